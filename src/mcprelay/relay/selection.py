"""Which tools of a list may be offered: trust, pins and what cannot be offered at all, decided anew each time.

Pure: what goes in is the raw list, the settings and the lock. The order is the one of the boundary: what is not trusted
is not looked at; what changed is not read any further.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from mcprelay.relay.difference import differences
from mcprelay.relay.errors import DefinitionChanged, DefinitionRefused
from mcprelay.relay.listed import Listed
from mcprelay.relay.lock import Section
from mcprelay.relay.pins import Definition
from mcprelay.relay.reading import Reading, Readings
from mcprelay.relay.report import Left
from mcprelay.relay.settings import ServerSettings

Pinned = Literal["pinned", "unpinned"]


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


def select(listed: Listed, *, settings: ServerSettings, section: Section | None, readings: Readings) -> Selection:
    """Decide about every tool of a list.

    Raises:
        DefinitionRefused: There are more tools than allowed, or one that was asked for by name cannot be offered.
    """
    server, trust, limits = settings.name, settings.allow, settings.limits
    if len(listed.tools) > limits.tools:
        raise DefinitionRefused(
            f"the server {server!r} lists {len(listed.tools)} tools: tools={limits.tools}. Raise tools to allow more.",
            server=server,
        )
    made = Selection(candidates=[], missing=[], excluded=[], changed=[], new=[])
    for name, raw in listed.tools:
        if not trust.allows(name):
            continue
        try:
            definition = readings.define(raw)
            pinned = pin(definition, settings=settings, section=section, revision=listed.revision)
            if pinned == "new":
                made.new.append(Left(server=server, tool=name, reason=f"review it with `mcprelay lock {server}`"))
                continue
            reading = readings.of(definition, limits=limits)
        except DefinitionChanged as changed:
            made.changed.append(changed)
            continue
        except DefinitionRefused as refused:
            _exclude(made, settings, name, str(refused))
            continue
        made.candidates.append(Candidate(definition=definition, reading=reading, pinned=pinned))
    for name, limit in listed.left_out:
        if trust.allows(name):
            deep = f"its definition nests deeper than message_depth={limits.message_depth} allows"
            none = f"what the server lists is no definition of a tool; `mcprelay tools {server}` says why"
            _exclude(made, settings, name, deep if limit == "depth" else none)
    names = {name for name, _ in listed.tools} | {name for name, _ in listed.left_out}
    made.missing = [Left(server=server, tool=name) for name in trust.missing(names)]
    return made


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
        raise _changed(definition, settings, pinned=settings.pins.digests[name], before=None, where="")
    reviewed = None if section is None else section.tools.get(name)
    if reviewed is not None:
        if reviewed.digest != definition.digest:
            where = ""
            if section is not None and section.revision != revision:
                where = f"it was reviewed in revision {section.revision} and is read in {revision} now; "
            raise _changed(definition, settings, pinned=reviewed.digest, before=reviewed, where=where)
        return "pinned"
    if told:
        return "pinned"
    return "unpinned" if section is None or settings.unpinned == "offered" else "new"


def _changed(
    definition: Definition, settings: ServerSettings, *, pinned: str, before: Definition | None, where: str
) -> DefinitionChanged:
    changes = () if before is None else differences(before, definition)
    return DefinitionChanged(
        f"{where}it is not the one that was reviewed, so it is withheld; `mcprelay lock {settings.name}` reviews it",
        server=settings.name,
        tool=definition.name,
        pinned=pinned,
        actual=definition.digest,
        changes=changes,
    )


def _exclude(made: Selection, settings: ServerSettings, name: str, reason: str) -> None:
    settings.allow.exclude(name, reason, server=settings.name)
    made.excluded.append(Left(server=settings.name, tool=name, reason=reason))
