"""What may be said to `Server(…)`: whether each setting is of its kind, found out where it is said."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcprelay.errors import ConfigurationError
from mcprelay.server.kind import are_icons, is_count, is_name, is_switch, is_text, one_of
from mcprelay.server.limits import Limits
from mcprelay.types import ServerCapabilities


def check_settings(settings: Mapping[str, Any]) -> None:
    """Whether a server may be made so. A setting that is None is not said.

    Raises:
        ConfigurationError: One is of another kind. The message names it, and does not show what may be a secret.
    """
    for name, (fits, expected) in _RULES.items():
        value = settings[name]
        if (value is not None or name in _NEEDED) and not fits(value):
            came = type(value).__name__ if name == "state_keys" else repr(value)[:80]
            raise ConfigurationError(f"{name}: {expected}, and not {came}")


def _are_keys(value: Any) -> bool:
    keys = () if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) else value
    return bool(keys) and all(isinstance(key, (str, bytes)) for key in keys)


_NEEDED = frozenset({"name", "version", "ttl_ms", "cache_scope", "strict", "cors", "sessions"})
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (is_name, "a string that is not empty"),
    "version": (is_text, "a string such as '1.0.0'"),
    "title": (is_text, "a string"),
    "description": (is_text, "a string"),
    "instructions": (is_text, "a string"),
    "website_url": (is_text, "a string"),
    "icons": (are_icons, "a list of Icon(src=…)"),
    "capabilities": (lambda value: isinstance(value, ServerCapabilities), "a ServerCapabilities(…)"),
    "limits": (lambda value: isinstance(value, Limits), "a Limits(…)"),
    "logger": (lambda value: isinstance(value, logging.Logger), "a logging.Logger, such as logging.getLogger('name')"),
    "ttl_ms": (is_count, "a number of milliseconds"),
    "cache_scope": one_of("public", "private"),
    "strict": (is_switch, "True or False"),
    "container": (callable, "a function from a type to an instance of it"),
    "state_keys": (_are_keys, "a list of secrets"),
    "cors": (is_switch, "True or False"),
    "sessions": one_of("required", "optional", "off"),
}
"""What the values must be, in code and in words. What is not here is checked by whoever takes it."""
