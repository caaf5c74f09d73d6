"""Arguments as a model, an SDK or a person's program gives them, as the one mapping that is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mcprelay.errors import ConfigurationError
from mcprelay.relay.reveal import legible


class Unreadable(ValueError):
    """What a model gave is no object. The sentence is for the model."""


def read(given: Mapping[str, Any] | str | bytes | None) -> dict[str, Any]:
    """A model's arguments: a mapping, or a JSON text of one. Nothing, as some SDKs say it, is an empty object.

    Raises:
        Unreadable: It is neither.
    """
    if type(given) is dict:
        return given.copy()  # what is checked is what is sent, whatever the caller does with its own
    if isinstance(given, str | bytes):
        if not given.strip():
            return {}
        try:
            given = msgspec.json.decode(given)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise Unreadable("The arguments are no JSON. Nothing was sent; call again with a JSON object.") from None
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise Unreadable("The arguments are no JSON object. Nothing was sent; call again with an object.")
    return dict(given)


def own(given: Mapping[str, Any]) -> dict[str, Any]:
    """A copy through and through: what a person agrees to is what is sent, whatever becomes of the caller's own lists.

    Raises:
        Unreadable: It nests without end.
    """
    try:
        return {name: _copied(inner) for name, inner in given.items()}
    except RecursionError:
        raise Unreadable("The arguments nest too deep. Nothing was sent; call again with fewer levels.") from None


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(inner) for name, inner in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list | tuple) else value


def bound(
    positionals: Sequence[Any], keywords: Mapping[str, Any], *, required: Sequence[str], of: str
) -> dict[str, Any]:
    """A program's arguments: keywords; or one mapping; or positionals for the required members, in their order.

    Args:
        of: The tool's public name.

    Raises:
        ConfigurationError: There are more positionals than required members, or one is given twice.
    """
    if len(positionals) == 1 and isinstance(positionals[0], Mapping) and not keywords:
        return dict(positionals[0])
    if len(positionals) > len(required):
        raise ConfigurationError(
            f"{of}: {len(positionals)} positional arguments for {len(required)} required members; give the others by"
            " name"
        )
    made = dict(zip(required, positionals, strict=False))
    twice = sorted(made.keys() & keywords.keys())
    if twice:
        raise ConfigurationError(f"{of}: {legible(twice[0])} is given by position and by name; give it once")
    return {**made, **keywords}
