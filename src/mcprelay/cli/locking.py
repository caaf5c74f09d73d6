"""Reviewing what servers define, for `mcprelay.lock`: every definition whole, with everything visible, and a question.

A person reads this, so no declaration of trust is needed: nothing is called, and nothing is offered to a model. What a
server wrote is shown made visible, wherever the output goes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from mcprelay.cli.exit import Exit, explain
from mcprelay.cli.recording import change
from mcprelay.cli.show import say
from mcprelay.cli.target import open_client
from mcprelay.cli.terminal import forget_typed, typed
from mcprelay.client.brief import briefly
from mcprelay.client.listing import Listing
from mcprelay.errors import ConfigurationError, MCPRelayError, RemoteError
from mcprelay.relay import config
from mcprelay.relay.difference import FieldChange, differences
from mcprelay.relay.errors import DefinitionRefused
from mcprelay.relay.lock import Section, load
from mcprelay.relay.pins import Definition, define
from mcprelay.relay.reading import Readings, Room
from mcprelay.relay.reveal import legible, reveal
from mcprelay.relay.selection import NOT_PINNED, by_settings, require_few
from mcprelay.wire.jsonrpc import METHOD_NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mcprelay.cli.option import Options
    from mcprelay.client import Client
    from mcprelay.relay.lock import Lock
    from mcprelay.relay.settings import ServerSettings
    from mcprelay.types import Tool


_REMARKED = ", here and for a model; whoever runs the server can give the other a name of its own"


async def lock(names: Sequence[str], options: Options, *, how: str) -> Exit:
    """Review servers.

    Args:
        names: Servers of `mcprelay.toml`; all of them if none is named.
        how: `ask` before recording, `yes` to record without, `check` to compare only.

    Returns:
        Whether all of it is recorded, or, for `check`, as it was reviewed, and can be offered as the settings ask for
        it: not where a list ended before its end. Where a server gives no list, the others are gone through all the
        same, and the worst is what counts.
    """
    settings = config.load()
    path = settings.lock or Path(config.LOCK)
    before = load(path)
    chosen = [settings.server(name) for name in names or settings.servers]
    if not chosen:
        raise ConfigurationError(f"{settings.source}: there is no server in it yet; give each a table [servers.NAME]")
    if how == "ask" and not (sys.stdin is not None and sys.stdin.isatty()):
        raise ConfigurationError("nobody is there to ask; --check compares, and --yes records without asking")
    if how == "ask" and options.json:
        raise ConfigurationError("--json asks nobody: say --check or --yes beside it")
    ends: list[Exit] = []
    facts: list[dict[str, Any]] = []
    for server in chosen:
        try:
            offer = await _offered(server, options)
        except MCPRelayError as error:
            if os.environ.get("MCPRELAY_DEBUG"):
                raise
            failure = explain(error)
            ends.append(failure.code)
            facts.append({"server": server.name, "error": failure.facts})
            say(f"{server.name}: {failure.sentence}")
            continue
        review = _Review(server, before.section(server.name), offer.definitions, offer.revision)
        warnings = [*offer.warnings, *offer.faults, *offer.remarks]
        facts.append({**review.facts(), "complete": offer.whole, "warnings": warnings})
        if not options.json:
            review.show(details=how != "check")
        _warn(server.name, offer, tell=say if options.json or how != "check" else _line)
        good = review.same and offer.whole if how == "check" else await _recorded(path, server.name, offer, how=how)
        ends.append(Exit.DONE if good else Exit.REFUSED)
    if options.json:
        print(json.dumps(facts, indent=2))  # in ASCII, so that nothing in it is hidden
    return max(ends)


def _warn(name: str, offer: _Offer, *, tell: Callable[[str], None]) -> None:
    """Tell what is wrong with a list, below what may be many definitions, right before somebody agrees to them.

    Where it is compared only, it is what came of that, and so it is told where the rest of that is.
    """
    for warning in offer.warnings:
        tell(f"{name}: the list is not complete, or not clear: {' '.join(warning.split())}")
    for fault in offer.faults:
        tell(f"{name}: {fault}")
    for remark in offer.remarks:
        say(f"{name}: {' '.join(remark.split())}{_REMARKED}")


async def _recorded(path: Path, name: str, offer: _Offer, *, how: str) -> bool:
    """Record an offer if that is wanted. Whether all of it is, and can be offered: a comparison says the same then."""
    if how == "ask" and not await _agreed(name, len(offer.definitions)):
        say(f"nothing of {name} is recorded")
        return False
    await _record(path, name, offer)
    return offer.whole


async def _record(path: Path, name: str, offer: _Offer) -> None:
    """Record what was read. What was reviewed before stays where a list was cut: it may be behind the cut."""

    def made(known: Lock) -> Lock:
        definitions = offer.definitions
        if offer.warnings:
            read = {each.name for each in definitions}
            reviewed = known.section(name) or Section()
            definitions = definitions + [each for each in reviewed.tools.values() if each.name not in read]
        return known.reviewed(name, definitions, revision=offer.revision)

    await change(path, made)  # of what it says now: a person takes a while, and somebody else may have recorded more
    part = ", of a list that is not complete, or not clear" if offer.warnings else ""
    number = len(offer.definitions)
    say(f"{_counted(number)} of {name} {'is' if number == 1 else 'are'} recorded in {path}{part}")


def _counted(definitions: int) -> str:
    return f"{definitions} definition{'' if definitions == 1 else 's'}"


class _Offer(Struct, frozen=True, kw_only=True):
    """What was read of a server.

    Attributes:
        definitions: Those that can be recorded.
        revision: The protocol revision that they were read in.
        whole: Whether a model can have all that the settings ask for, as far as this list tells.
        warnings: What was wrong with the list, so that something may not be in it. Untrusted.
        faults: What cannot be offered, reviewed or not, and why. The rest may be whole without what nobody named.
        remarks: Which names came more than once, of which the first counts. Untrusted.
    """

    definitions: list[Definition]
    revision: str | None
    whole: bool
    warnings: tuple[str, ...]
    faults: tuple[str, ...]
    remarks: tuple[str, ...]


async def _offered(server: ServerSettings, options: Options) -> _Offer:
    # As a relay reads it, so that what is reviewed is what is offered: but a person sees what is too long for a model.
    async with briefly(open_client(server.name, _fitting(options, server)), definition_bytes=sys.maxsize) as client:
        found = await _listed(client, server.name)
        revision = client.server.revision
    definitions: list[Definition] = []
    remarks = tuple(found.repeated.values())
    warnings = tuple(each for each in found.warnings if each not in remarks)
    whole, room = not warnings, Room(Readings(), server)
    faults = [
        f"{legible(each.name)} is no definition of a tool: {' '.join(each.reason.split())}" for each in found.excluded
    ]
    try:
        require_few(len(found), server)
    except DefinitionRefused as refused:
        faults.append(f"nothing of it is offered to a model, reviewed or not: {refused}")
        whole = False
    for tool in found:
        if server.allow.is_declared and not server.allow.allows(tool.name):
            continue
        raw = bytes(tool.raw or b"")
        try:
            definitions.append(define(raw))
        except DefinitionRefused as refused:
            faults.append(f"{legible(tool.name)} cannot be recorded: {refused}")
            whole = not server.allow.names_it(tool.name) and whole
            continue
        if server.pins.check(tool.name, definitions[-1].digest) is False:
            then = by_settings(definitions[-1], server.name)
            faults.append(f"{legible(tool.name)} is not offered to a model, reviewed or not: {then}")
            whole = False
        try:
            room.read(room.define(raw))
        except DefinitionRefused as refused:
            faults.append(f"{legible(tool.name)} is not offered to a model, reviewed or not: {refused}")
            whole = not server.allow.names_it(tool.name) and whole
    offered = {tool.name for tool in found}
    missing = server.allow.missing(offered)
    unpinned = sorted(server.pins.digests.keys() - offered - set(missing))
    faults += [f"{legible(name)} is in allow, and the server does not offer it" for name in missing]
    faults += [f"{legible(name)}: {NOT_PINNED}" for name in unpinned]
    return _Offer(
        definitions=definitions,
        revision=revision,
        whole=whole and not missing and not unpinned,
        warnings=warnings,
        faults=tuple(faults),
        remarks=remarks,
    )


def _fitting(options: Options, server: ServerSettings) -> Options:
    """Options that were given for all servers, as far as they are for one of this kind."""
    return replace(options, env=()) if server.url is not None else replace(options, header=(), token=None)


async def _listed(client: Client, name: str) -> Listing[Tool]:
    """The tools of a server: none, where it does not know the question."""
    try:
        return await client.list_tools()
    except RemoteError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        say(f"{name}: the server has no tools")
        return Listing()


class _Review:
    """What a server offers now beside what was reviewed of it."""

    def __init__(
        self, server: ServerSettings, before: Section | None, definitions: Sequence[Definition], revision: str | None
    ) -> None:
        self._server = server
        self._before = before or Section()
        self._definitions = definitions
        self._revision = revision
        self._known = before is not None
        reviewed = [(each, self._before.tools.get(each.name)) for each in definitions]
        self._different = [(now, old) for now, old in reviewed if old is None or old.digest != now.digest]
        allow = server.allow
        wanted = {each for each in self._before.tools if allow.allows(each) or not allow.is_declared}
        self._gone = sorted(wanted - {each.name for each in definitions})
        self.same = self._known and not self._different and not self._gone

    def show(self, *, details: bool) -> None:
        """Print it.

        Args:
            details: Whether what is new or changed is shown whole, beside the differences.
        """
        name = self._server.name
        if self._known and self._before.revision != self._revision:
            print(f"{name}: reviewed in revision {self._before.revision}, read in {self._revision} now")
        for definition, reviewed in self._different:
            _print(self._lines(definition, reviewed, details=details))
        for gone in self._gone:
            print(f"{name}: {legible(gone)} was reviewed, and is not offered any more")
        if self.same:
            print(f"{name}: {_counted(len(self._definitions))}, all as they were reviewed")
        elif not self._known:
            then = "" if details else f"; `mcprelay lock {name}` reviews it"
            print(f"{name}: nothing of it was reviewed yet{then}")

    def facts(self) -> dict[str, Any]:
        """The same for a program, as plain JSON values; texts are raw."""
        tools: list[dict[str, Any]] = []
        for definition, reviewed in self._different:
            changes = [] if reviewed is None else [_fact(each) for each in differences(reviewed, definition)]
            state = "new" if reviewed is None else "changed"
            tools.append({"name": definition.name, "state": state, "changes": changes})
        tools.extend({"name": gone, "state": "gone", "changes": []} for gone in self._gone)
        return {
            "server": self._server.name,
            "reviewed": self._known,
            "same": self.same,
            "revision": self._revision,
            "reviewedRevision": self._before.revision,
            "definitions": len(self._definitions),
            "differences": tools,
        }

    def _lines(self, definition: Definition, reviewed: Definition | None, *, details: bool) -> Iterator[str]:
        called = reveal(definition.name, of="name")
        yield f"{self._server.name}: {called} is {'new' if reviewed is None else 'changed'}"
        if reviewed is not None:
            for change in differences(reviewed, definition):
                yield from (f"    {line}" for line in change.lines())
        if details:
            yield from _whole(definition)


def _fact(change: FieldChange) -> dict[str, Any]:
    sides = {"before": change.before, "after": change.after}
    return {"path": change.path} | {side: value for side, value in sides.items() if value is not msgspec.UNSET}


def _whole(definition: Definition) -> Iterator[str]:
    """All that a model would be shown, and all that is pinned."""
    yield f"  digest       {definition.digest}"
    if definition.title is not None:
        yield f"  title        {reveal(definition.title, of='name')}"
    yield "  description"
    yield from (f"    | {line}" for line in reveal(definition.description).split("\n"))
    yield "  input schema"
    text = msgspec.json.format(msgspec.json.encode(definition.input_schema), indent=2).decode()
    yield from (f"    | {line}" for line in reveal(text).split("\n"))


def _line(line: str) -> None:
    _print(iter((line,)))


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n".encode(errors="backslashreplace").decode())
    sys.stdout.flush()


async def _agreed(name: str, count: int) -> bool:
    """Ask the person at the terminal. The end of input (Ctrl-D) says no."""
    forget_typed()
    try:
        these = "" if count == 1 else "these "
        answer = await typed(f"Record {these}{_counted(count)} of {name} as reviewed? [y/N] ")
    except EOFError:
        say("")  # the question stands on this line
        return False
    except asyncio.CancelledError:  # Ctrl-C
        say(f"\ninterrupted; nothing of {name} is recorded")
        raise
    return answer.strip().lower() in {"y", "yes"}


def init(path: Path) -> None:
    """Write commented settings.

    Raises:
        ConfigurationError: There are settings already.
    """
    from mcprelay.relay.template import TEMPLATE

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        raise ConfigurationError(f"{path} is there already and is not touched; edit it, or move it away") from None
    say(f"{path} is written; it says how to go on")
