"""What of a server may be used: the declaration without which nothing is sent.

Four states are kept apart, because they are four different mistakes or none: nobody said anything; what was said is
empty; names; and all of it, which has to be said out loud. A declaration never depends on what a server says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from mcprelay.relay.errors import DefinitionRefused, SettingWrong, TrustEmpty, TrustUndeclared
from mcprelay.relay.pins import matches
from mcprelay.relay.reveal import legible

EVERYTHING: Literal["*"] = "*"
Allow: TypeAlias = Collection[str] | Literal["*"] | None
"""How a declaration is written: names, `"*"`, or None where nothing is said."""


class Trust(Struct, frozen=True, kw_only=True):
    """A declaration. Made by `declared`.

    Attributes:
        names: What may be used, exactly as the server names it; None where nothing is said.
        everything: Whether all of it may be, which is said by `"*"` alone.
    """

    names: frozenset[str] | None = None
    everything: bool = False

    @property
    def is_declared(self) -> bool:
        """Whether something was said at all."""
        return self.everything or self.names is not None

    def allows(self, name: str) -> bool:
        """Whether this may be used. Exact: no case is folded and no space is cut."""
        return self.everything or (self.names is not None and name in self.names)

    def names_it(self, name: str) -> bool:
        """Whether this was asked for by its name, so that leaving it out must not go unnoticed."""
        return self.names is not None and name in self.names

    def missing(self, offered: Iterable[str]) -> tuple[str, ...]:
        """What was asked for by name and is not offered, sorted."""
        return tuple(sorted((self.names or frozenset()).difference(offered)))

    def require(self, server: str, *, what: str = "tools", key: str = "allow") -> None:
        """See that something may be used, before anything is sent.

        Raises:
            TrustUndeclared: Nothing was said.
            TrustEmpty: What was said is nothing.
        """
        if not self.is_declared:
            raise TrustUndeclared(
                f"Nothing says which {what} of the server {server!r} may be used, so nothing was sent to it. A model"
                f" reads every word that a server publishes as instructions. Name what you have reviewed with"
                f' {key} = ["…"], or say {key} = "*" for all of it.',
                server=server,
            )
        if not self.everything and not self.names:
            raise TrustEmpty(
                f"{key} of the server {server!r} is EMPTY: it looks configured, and gives a model no {what} at all, so"
                f' nothing was sent to it. Name at least one of its {what}, say {key} = "*" for all of them, or take'
                f" the server out.",
                server=server,
            )

    def exclude(self, name: str, reason: str, *, server: str) -> None:
        """Leave something out that may not be offered: silently for whoever reads the report, never where it was named.

        Raises:
            DefinitionRefused: It was asked for by name.
        """
        if self.names_it(name):
            raise DefinitionRefused(
                f"{legible(name)} of the server {server!r} was asked for by name, but cannot be offered: {reason}. Take"
                " it out of allow, if it can be done without",
                server=server,
            )


UNDECLARED = Trust()


def declared(allow: Any) -> Trust:
    """Read a declaration.

    Args:
        allow: None, `"*"`, or names.

    Raises:
        SettingWrong: It is another text, which is one name and not a list of letters; or holds what is no name.
    """
    if allow is None:
        return UNDECLARED
    if allow == EVERYTHING:
        return Trust(everything=True)
    if isinstance(allow, str):
        raise SettingWrong(f'{allow!r} is one text and no list of names; write ["{allow}"]')
    if isinstance(allow, Mapping) or not isinstance(allow, Iterable):
        raise SettingWrong(f'expected a list of names, or "*" for everything, not {type(allow).__name__}')
    names = list(allow)
    for name in names:
        if not isinstance(name, str) or not name:
            raise SettingWrong(f"{name!r} is no name")
        if name == EVERYTHING:
            raise SettingWrong(
                '"*" among names would hide what it does; for everything write "*" alone, without a list'
            )
    return Trust(names=frozenset(names))


class Pins(Struct, frozen=True, kw_only=True):
    """Digests pinned in settings or in code, by the server's own name of each tool."""

    digests: dict[str, str]

    def check(self, name: str, digest: str) -> bool | None:
        """Whether a digest is the pinned one; None where none is pinned.

        Raises:
            SettingWrong: The pin is none.
        """
        pin = self.digests.get(name)
        return None if pin is None else matches(pin, digest)


def pinned(pins: Any) -> Pins:
    """Read pins from a mapping of names to digests.

    Raises:
        SettingWrong: It is no mapping, or a value is no digest. A pin that is lost pins nothing, so none is skipped.
    """
    if not isinstance(pins, Mapping):
        raise SettingWrong(f"expected a table of tool names and digests, not {type(pins).__name__}")
    for name, pin in pins.items():
        try:
            matches(pin, "sha256:")
        except SettingWrong as wrong:
            raise SettingWrong(f"{name}: {wrong}") from None
    return Pins(digests=dict(pins))
