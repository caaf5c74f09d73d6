"""mcprelay: serve Python to any MCP client, call any MCP server, relay servers you do not own across a trust boundary.

Importing the package loads nothing; each public name loads its module on first use (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mcprelay.contract import Contract, define
    from mcprelay.errors import (
        AuthorizationRequired,
        CallFailed,
        ConfigurationError,
        ConnectFailed,
        ConnectionLost,
        DeadlineExceeded,
        DefinitionError,
        Evidence,
        HttpError,
        LimitExceeded,
        MCPRelayError,
        NeedsInput,
        NotSent,
        PromptError,
        ProtocolError,
        RemoteError,
        ResourceError,
        ResourceNotFound,
        ResponseInvalid,
        RevisionUnsupported,
        ToolError,
    )
    from mcprelay.server import Context, Limits, Server
    from mcprelay.server.completion import Complete
    from mcprelay.server.schema import Schema
    from mcprelay.types import (
        Annotations,
        Audio,
        ContentBlock,
        EmbeddedResource,
        Icon,
        Image,
        PromptMessage,
        ResourceContents,
        ResourceLink,
        Text,
        ToolResult,
    )

_MODULES: dict[str, tuple[str, ...]] = {
    "mcprelay.contract": ("Contract", "define"),
    "mcprelay.errors": (
        "AuthorizationRequired",
        "CallFailed",
        "ConfigurationError",
        "ConnectFailed",
        "ConnectionLost",
        "DeadlineExceeded",
        "DefinitionError",
        "Evidence",
        "HttpError",
        "LimitExceeded",
        "MCPRelayError",
        "NeedsInput",
        "NotSent",
        "PromptError",
        "ProtocolError",
        "RemoteError",
        "ResourceError",
        "ResourceNotFound",
        "ResponseInvalid",
        "RevisionUnsupported",
        "ToolError",
    ),
    "mcprelay.server": ("Context", "Limits", "Server"),
    "mcprelay.server.completion": ("Complete",),
    "mcprelay.server.schema": ("Schema",),
    "mcprelay.types": (
        "Annotations",
        "Audio",
        "ContentBlock",
        "EmbeddedResource",
        "Icon",
        "Image",
        "PromptMessage",
        "ResourceContents",
        "ResourceLink",
        "Text",
        "ToolResult",
    ),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Annotations",
    "Audio",
    "AuthorizationRequired",
    "CallFailed",
    "Complete",
    "ConfigurationError",
    "ConnectFailed",
    "ConnectionLost",
    "ContentBlock",
    "Context",
    "Contract",
    "DeadlineExceeded",
    "DefinitionError",
    "EmbeddedResource",
    "Evidence",
    "HttpError",
    "Icon",
    "Image",
    "LimitExceeded",
    "Limits",
    "MCPRelayError",
    "NeedsInput",
    "NotSent",
    "PromptError",
    "PromptMessage",
    "ProtocolError",
    "RemoteError",
    "ResourceContents",
    "ResourceError",
    "ResourceLink",
    "ResourceNotFound",
    "ResponseInvalid",
    "RevisionUnsupported",
    "Schema",
    "Server",
    "Text",
    "ToolError",
    "ToolResult",
    "__version__",
    "define",
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
