"""Which tools of a list may be offered: trust, pins and what cannot be offered at all, decided anew each time.

What goes in is the raw list, the settings and the lock. The order is the one of the boundary: what is not trusted is
not looked at; what changed is not read any further. Others have the loop between tools: a list is as long as its server
likes.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Literal

from msgspec import Struct

from mcprelay.relay.budget import over
from mcprelay.relay.difference import differences
from mcprelay.relay.errors import DefinitionChanged, DefinitionRefused
from mcprelay.relay.listed import Listed
from mcprelay.relay.lock import Section
from mcprelay.relay.pins import Definition
from mcprelay.relay.reading import Reading, Readings, Room, too_long
from mcprelay.relay.report import Left
from mcprelay.relay.reveal import legible
from mcprelay.relay.settings import ServerSettings

NOT_PINNED = "pins in the settings names it, and the server has no such tool, so that it pins nothing"
Pinned = Literal["pinned", "unpinned"]
_BREATH = 0.01
"""Seconds after which others have the loop."""


class Candidate(Struct, frozen=True, kw_only=True):
    """A tool that may be offered."""

    definition: Definition
    reading: Reading
    pinned: Pinned


class Selection(Struct, kw_only=True):
    """What became of one server's list."""

    candidates: list[Candidate]
    missing: list[Left]
    excluded: list[Left]
    changed: list[DefinitionChanged]
    new: list[Left]


async def select(listed: Listed, *, settings: ServerSettings, section: Section | None, readings: Readings) -> Selection:
    """Decide about every tool of a list.

    Raises:
        DefinitionRefused: There are more tools than allowed, they cannot be looked at in time, or one that was asked
            for by name cannot be offered.
    """
    server, trust, limits = settings.name, settings.allow, settings.limits
    require_few(len(listed.tools), settings)
    choosing = _Choosing(listed, settings=settings, section=section, readings=readings)
    pace = _Pace(settings)
    none = f"what the server lists is no definition of a tool; `mcprelay tools {server}` says why"
    known = {
        "depth": f"its definition nests too deep: {over('message_depth', limits.message_depth)}",
        "definition_bytes": too_long(limits),
    }
    try:
        for name, raw in listed.tools:
            if trust.allows(name):
                choosing.look(name, raw)
                await pace.breathe()
    finally:
        choosing.room.close()  # what was not looked at in time goes on from there
    for name, limit in listed.left_out:
        if trust.allows(name):
            _exclude(choosing.made, settings, name, known.get(limit, none))
    names = {name for name, _ in listed.tools} | {name for name, _ in listed.left_out}
    choosing.made.missing = [Left(server=server, tool=name) for name in trust.missing(names)]
    pinned = sorted(settings.pins.digests.keys() - names - (trust.names or frozenset()))
    choosing.made.missing += [Left(server=server, tool=name, reason=NOT_PINNED) for name in pinned]
    return choosing.made


def require_few(count: int, settings: ServerSettings) -> None:
    """See that a list has no more tools than it may.

    Raises:
        DefinitionRefused: It has.
    """
    if count > settings.limits.tools:
        raise DefinitionRefused(
            f"the server {settings.name!r} lists {count} tools: {over('tools', settings.limits.tools)}",
            server=settings.name,
        )


class _Choosing:
    """One server's list, tool by tool."""

    def __init__(
        self, listed: Listed, *, settings: ServerSettings, section: Section | None, readings: Readings
    ) -> None:
        self.made = Selection(candidates=[], missing=[], excluded=[], changed=[], new=[])
        self._revision = listed.revision
        self._settings = settings
        self._section = section
        self.room = Room(readings, settings)

    def look(self, name: str, raw: bytes) -> None:
        """Decide about a tool that is trusted."""
        made, settings = self.made, self._settings
        try:
            definition = self.room.define(raw)
            pinned = pin(definition, settings=settings, section=self._section, revision=self._revision)
            if pinned == "new":
                made.new.append(Left(server=settings.name, tool=name, reason=_unreviewed(settings, self._section)))
                return
            reading = self.room.read(definition)
        except DefinitionChanged as changed:
            made.changed.append(changed)
        except DefinitionRefused as refused:
            _exclude(made, settings, name, str(refused))
        else:
            made.candidates.append(Candidate(definition=definition, reading=reading, pinned=pinned))


class _Pace:
    """Lets others have the loop, and ends what takes longer than the server's `timeout`."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._began = self._last = monotonic()

    async def breathe(self) -> None:
        """Be somebody else's turn, if it is time.

        Raises:
            DefinitionRefused: All of it takes too long.
        """
        now = monotonic()
        if now - self._last > _BREATH:
            if now - self._began > self._settings.timeout:
                name, timeout = self._settings.name, self._settings.timeout
                raise DefinitionRefused(
                    f"the tools of the server {name!r} cannot be looked at within timeout={timeout:g}; allow fewer of"
                    " them, or raise timeout.",
                    server=name,
                )
            await asyncio.sleep(0)
            self._last = monotonic()


def pin(
    definition: Definition, *, settings: ServerSettings, section: Section | None, revision: str | None
) -> Literal["pinned", "unpinned", "new"]:
    """Whether a definition is what was reviewed, by the settings' pins and by the lock.

    Raises:
        DefinitionChanged: It is not.
        SettingWrong: A pin is none.
    """
    name = definition.name
    told = settings.pins.check(name, definition.digest)
    if told is False:
        raise _changed(
            definition, settings, pinned=settings.pins.digests[name], then=by_settings(definition, settings.name)
        )
    reviewed = None if section is None else section.tools.get(name)
    if reviewed is not None:
        if reviewed.digest != definition.digest:
            then, old = f"`mcprelay lock {settings.name}` reviews it", ""
            if section is not None and section.revision != revision:
                old = f"was reviewed in revision {section.revision}, is read in {revision} now, and "
            raise _changed(definition, settings, pinned=reviewed.digest, before=reviewed, then=then, old=old)
        return "pinned"
    if told:
        return "pinned"
    if settings.unpinned == "withheld":
        return "unpinned" if section is None else "new"
    return "unpinned" if settings.unpinned == "offered" else "new"


def _unreviewed(settings: ServerSettings, section: Section | None) -> str:
    """Why a tool is withheld that nobody has reviewed, and what to do about it."""
    then = f"review it with `mcprelay lock {settings.name}`"
    return then if section is not None else f'pins = "required", and nothing of its server is on record: {then}'


def by_settings(definition: Definition, server: str) -> str:
    """What to do about a definition that is not the one whose digest is in the settings."""
    return (
        f"pins in the settings has another digest of it: review it (`mcprelay tools {server}` shows it), and then set"
        f" the pin to {definition.digest!r}, or take it out"
    )


def _changed(
    definition: Definition,
    settings: ServerSettings,
    *,
    pinned: str,
    then: str,
    before: Definition | None = None,
    old: str = "",
) -> DefinitionChanged:
    changes = () if before is None else differences(before, definition)
    return DefinitionChanged(
        f"{legible(definition.name)} of the server {settings.name!r} {old}is not the one that was reviewed, so it is"
        f" withheld; {then}",
        server=settings.name,
        tool=definition.name,
        pinned=pinned,
        actual=definition.digest,
        changes=changes,
    )


def _exclude(made: Selection, settings: ServerSettings, name: str, reason: str) -> None:
    settings.allow.exclude(name, reason, server=settings.name)
    made.excluded.append(Left(server=settings.name, tool=name, reason=reason))
