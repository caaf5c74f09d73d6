"""mcprelay: serve Python to any MCP client, call any MCP server, relay servers you do not own across a trust boundary.

Importing the package loads nothing; each public name loads its module on first use (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mcprelay.auth.oauth import OAuth
    from mcprelay.client import Client
    from mcprelay.client.elicitation import Elicitation
    from mcprelay.client.listening import PromptsChanged, ResourcesChanged, ResourceUpdated, ToolsChanged
    from mcprelay.client.option import CallOptions
    from mcprelay.client.outcome import Refused, Result, Succeeded
    from mcprelay.client.pool import ClientPool
    from mcprelay.client.progress import LogMessage, Progress
    from mcprelay.client.question import InputRequired
    from mcprelay.client.retry import Retry
    from mcprelay.client.sampling import Sampling
    from mcprelay.contract import Contract, define
    from mcprelay.errors import (
        AlreadyAnswered,
        AnswerInvalid,
        AuthorizationRequired,
        CallFailed,
        CallLimitExceeded,
        ConfigurationError,
        ConnectFailed,
        ConnectionLost,
        DeadlineExceeded,
        DefinitionError,
        Evidence,
        HttpError,
        LimitExceeded,
        LocalFault,
        MCPRelayError,
        NeedsInput,
        NotSent,
        PromptError,
        ProtocolError,
        RemoteError,
        RequestRefused,
        ResourceError,
        ResourceNotFound,
        ResponseInvalid,
        RevisionUnsupported,
        ToolError,
    )
    from mcprelay.relay.errors import RelayError
    from mcprelay.relay.frame import Framed
    from mcprelay.relay.gate import allow, ask, deny
    from mcprelay.relay.guarded import GuardedTool
    from mcprelay.relay.relay import Relay
    from mcprelay.relay.toolset import ToolSet
    from mcprelay.server import Context, Limits, Server
    from mcprelay.server.completion import Complete
    from mcprelay.server.depends import Depends
    from mcprelay.server.file import File
    from mcprelay.server.mark import prompt, resource, tool
    from mcprelay.server.schema import Format, Schema
    from mcprelay.types import (
        Annotations,
        Audio,
        ClientCapabilities,
        ContentBlock,
        ElicitResult,
        EmbeddedResource,
        Icon,
        Image,
        Implementation,
        PromptMessage,
        ResourceContents,
        ResourceLink,
        Root,
        SamplingMessage,
        SamplingResult,
        Text,
        ToolResult,
    )

_MODULES: dict[str, tuple[str, ...]] = {
    "mcprelay.auth.oauth": ("OAuth",),
    "mcprelay.client": ("Client",),
    "mcprelay.client.elicitation": ("Elicitation",),
    "mcprelay.client.listening": (
        "PromptsChanged",
        "ResourceUpdated",
        "ResourcesChanged",
        "ToolsChanged",
    ),
    "mcprelay.client.option": ("CallOptions",),
    "mcprelay.client.outcome": (
        "Refused",
        "Result",
        "Succeeded",
    ),
    "mcprelay.client.pool": ("ClientPool",),
    "mcprelay.client.progress": (
        "LogMessage",
        "Progress",
    ),
    "mcprelay.client.question": ("InputRequired",),
    "mcprelay.client.retry": ("Retry",),
    "mcprelay.client.sampling": ("Sampling",),
    "mcprelay.contract": ("Contract", "define"),
    "mcprelay.errors": (
        "AlreadyAnswered",
        "AnswerInvalid",
        "AuthorizationRequired",
        "CallFailed",
        "CallLimitExceeded",
        "ConfigurationError",
        "ConnectFailed",
        "ConnectionLost",
        "DeadlineExceeded",
        "DefinitionError",
        "Evidence",
        "HttpError",
        "LimitExceeded",
        "LocalFault",
        "MCPRelayError",
        "NeedsInput",
        "NotSent",
        "PromptError",
        "ProtocolError",
        "RemoteError",
        "RequestRefused",
        "ResourceError",
        "ResourceNotFound",
        "ResponseInvalid",
        "RevisionUnsupported",
        "ToolError",
    ),
    "mcprelay.relay.errors": ("RelayError",),
    "mcprelay.relay.frame": ("Framed",),
    "mcprelay.relay.gate": ("allow", "ask", "deny"),
    "mcprelay.relay.guarded": ("GuardedTool",),
    "mcprelay.relay.relay": ("Relay",),
    "mcprelay.relay.toolset": ("ToolSet",),
    "mcprelay.server": ("Context", "Limits", "Server"),
    "mcprelay.server.completion": ("Complete",),
    "mcprelay.server.depends": ("Depends",),
    "mcprelay.server.mark": ("prompt", "resource", "tool"),
    "mcprelay.server.file": ("File",),
    "mcprelay.server.schema": ("Format", "Schema"),
    "mcprelay.types": (
        "Annotations",
        "Audio",
        "ClientCapabilities",
        "ContentBlock",
        "ElicitResult",
        "EmbeddedResource",
        "Icon",
        "Image",
        "Implementation",
        "PromptMessage",
        "ResourceContents",
        "ResourceLink",
        "Root",
        "SamplingMessage",
        "SamplingResult",
        "Text",
        "ToolResult",
    ),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AlreadyAnswered",
    "Annotations",
    "AnswerInvalid",
    "Audio",
    "AuthorizationRequired",
    "CallFailed",
    "CallLimitExceeded",
    "CallOptions",
    "Client",
    "ClientCapabilities",
    "ClientPool",
    "Complete",
    "ConfigurationError",
    "ConnectFailed",
    "ConnectionLost",
    "ContentBlock",
    "Context",
    "Contract",
    "DeadlineExceeded",
    "DefinitionError",
    "Depends",
    "ElicitResult",
    "Elicitation",
    "EmbeddedResource",
    "Evidence",
    "File",
    "Format",
    "Framed",
    "GuardedTool",
    "HttpError",
    "Icon",
    "Image",
    "Implementation",
    "InputRequired",
    "LimitExceeded",
    "Limits",
    "LocalFault",
    "LogMessage",
    "MCPRelayError",
    "NeedsInput",
    "NotSent",
    "OAuth",
    "Progress",
    "PromptError",
    "PromptMessage",
    "PromptsChanged",
    "ProtocolError",
    "Refused",
    "Relay",
    "RelayError",
    "RemoteError",
    "RequestRefused",
    "ResourceContents",
    "ResourceError",
    "ResourceLink",
    "ResourceNotFound",
    "ResourceUpdated",
    "ResourcesChanged",
    "ResponseInvalid",
    "Result",
    "Retry",
    "RevisionUnsupported",
    "Root",
    "Sampling",
    "SamplingMessage",
    "SamplingResult",
    "Schema",
    "Server",
    "Succeeded",
    "Text",
    "ToolError",
    "ToolResult",
    "ToolSet",
    "ToolsChanged",
    "__version__",
    "allow",
    "ask",
    "define",
    "deny",
    "prompt",
    "resource",
    "tool",
]


def __getattr__(name: str) -> object:
    """Load the module of a public name when it is first asked for."""
    module = _PLACES.get(name)
    if module is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *_PLACES})
