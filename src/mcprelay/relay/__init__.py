"""Servers that are not ours in front of a model, across a boundary that the application can see.

Importing the package loads nothing; each public name loads its module on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcprelay.relay.budget import Limits
    from mcprelay.relay.difference import FieldChange
    from mcprelay.relay.errors import (
        CallDenied,
        CallRefused,
        DefinitionChanged,
        DefinitionRefused,
        LockUnreadable,
        NotTrusted,
        RelayError,
        ResultTooLarge,
        ServerUnreachable,
        SettingWrong,
        TokenFailed,
        ToolFailed,
        TrustEmpty,
        TrustUndeclared,
        Unauthorized,
    )
    from mcprelay.relay.frame import Framed, FramedMessage, Words
    from mcprelay.relay.gate import Call, allow, ask, deny
    from mcprelay.relay.guarded import GuardedTool
    from mcprelay.relay.lock import Lock
    from mcprelay.relay.media import Media
    from mcprelay.relay.question import Asked
    from mcprelay.relay.relay import Relay
    from mcprelay.relay.report import Report
    from mcprelay.relay.rule import by_scopes, either, every, from_callable, read_only
    from mcprelay.relay.settings import CacheSettings
    from mcprelay.relay.toolset import ToolSet

_MODULES: dict[str, tuple[str, ...]] = {
    "budget": ("Limits",),
    "difference": ("FieldChange",),
    "errors": (
        "CallDenied",
        "CallRefused",
        "DefinitionChanged",
        "DefinitionRefused",
        "LockUnreadable",
        "NotTrusted",
        "RelayError",
        "ResultTooLarge",
        "ServerUnreachable",
        "SettingWrong",
        "TokenFailed",
        "ToolFailed",
        "TrustEmpty",
        "TrustUndeclared",
        "Unauthorized",
    ),
    "frame": ("Framed", "FramedMessage", "Words"),
    "gate": ("Call", "allow", "ask", "deny"),
    "guarded": ("GuardedTool",),
    "lock": ("Lock",),
    "media": ("Media",),
    "question": ("Asked",),
    "relay": ("Relay",),
    "report": ("Report",),
    "rule": ("by_scopes", "either", "every", "from_callable", "read_only"),
    "settings": ("CacheSettings",),
    "toolset": ("ToolSet",),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Asked",
    "CacheSettings",
    "Call",
    "CallDenied",
    "CallRefused",
    "DefinitionChanged",
    "DefinitionRefused",
    "FieldChange",
    "Framed",
    "FramedMessage",
    "GuardedTool",
    "Limits",
    "Lock",
    "LockUnreadable",
    "Media",
    "NotTrusted",
    "Relay",
    "RelayError",
    "Report",
    "ResultTooLarge",
    "ServerUnreachable",
    "SettingWrong",
    "TokenFailed",
    "ToolFailed",
    "ToolSet",
    "TrustEmpty",
    "TrustUndeclared",
    "Unauthorized",
    "Words",
    "allow",
    "ask",
    "by_scopes",
    "deny",
    "either",
    "every",
    "from_callable",
    "read_only",
]


def __getattr__(name: str) -> object:
    """Load the module of a public name when it is first asked for."""
    module = _PLACES.get(name)
    if module is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    return getattr(import_module(f"mcprelay.relay.{module}"), name)


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *_PLACES})
