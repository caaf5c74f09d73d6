"""What was selected of each server, as one set of guarded tools with one report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mcprelay.relay import audit
from mcprelay.relay.budget import Ledger
from mcprelay.relay.guarded import MAKER, GuardedTool
from mcprelay.relay.names import Table
from mcprelay.relay.report import Left, Report
from mcprelay.relay.toolset import ToolSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcprelay.relay.errors import RelayError
    from mcprelay.relay.gate import Gated
    from mcprelay.relay.listed import Listed
    from mcprelay.relay.lockfile import LockFile
    from mcprelay.relay.names import Shadow
    from mcprelay.relay.post import Post
    from mcprelay.relay.selection import Selection


class Chosen(NamedTuple):
    """One server: where it is called from, its list, what was selected of it, and what it said unasked."""

    post: Post
    listed: Listed
    selection: Selection
    heard: dict[str, int]


def offered(
    chosen: Sequence[Chosen],
    *,
    gate: Gated | None,
    local: Sequence[str],
    unreachable: Mapping[str, RelayError],
    lock: LockFile,
) -> ToolSet:
    """The set.

    Args:
        lock: By what it was selected, as it was read for that.

    Raises:
        DefinitionRefused: A tool that was asked for by name cannot have a public name of its own.
    """
    making = _Making(gate)
    for one in chosen:
        making.take(one)
    report = partial(_report, tuple(chosen), making, dict(unreachable), (lock.absence, lock.lost))
    return ToolSet(making.tools, report=report, local=local)


def _report(
    chosen: Sequence[Chosen],
    making: _Making,
    unreachable: dict[str, RelayError],
    lock: tuple[str, bool],
    shadowed: tuple[Shadow, ...],
) -> Report:
    selections = [one.selection for one in chosen]
    return Report(
        offered=tuple(tool.name for tool in making.tools),
        missing=tuple(left for made in selections for left in made.missing),
        excluded=(*(left for made in selections for left in made.excluded), *making.doubled),
        changed=tuple(left for made in selections for left in made.changed),
        new=tuple(left for made in selections for left in made.new),
        unpinned=tuple(making.unpinned),
        shadowed=shadowed,
        unreachable=unreachable,
        notes=tuple((one.post.settings.name, note) for one in chosen for note in one.listed.notes),
        lock=lock[0],
        lock_lost=lock[1],
        heard={one.post.settings.name: one.heard for one in chosen if one.heard},
    )


class _Making:
    """The tools so far: one run, one account, one table of names."""

    def __init__(self, gate: Gated | None) -> None:
        self.tools: list[GuardedTool] = []
        self.doubled: list[Left] = []
        self.unpinned: list[str] = []
        self._gate = gate
        self._ledger = Ledger()
        self._names = Table()

    def take(self, one: Chosen) -> None:
        """Take in what was selected of one server."""
        server = one.post.settings
        funnel = one.post.funnel(self._ledger)
        for candidate in one.selection.candidates:
            tool = candidate.definition.name
            name = self._names.add(server.name, tool, prefix=server.prefix)
            if name is None:
                reason = "another tool has its public name; give one of their servers another prefix"
                server.allow.exclude(tool, reason, server=server.name)
                self.doubled.append(Left(server=server.name, tool=tool, reason=reason))
                continue
            self.tools.append(
                GuardedTool(MAKER, name=name, candidate=candidate, post=one.post, funnel=funnel, gate=self._gate)
            )
            if candidate.pinned == "unpinned":
                self.unpinned.append(name)
        if audit.wanted():
            doubled = {left.tool for left in self.doubled if left.server == server.name}
            for tool, verdict, digest in _verdicts(one.selection, doubled):
                audit.record(
                    "offer", server=server.name, tool=tool, verdict=verdict, principal=one.post.principal, digest=digest
                )


def _verdicts(made: Selection, doubled: set[str]) -> Iterator[tuple[str, str, str]]:
    """What was decided about each tool that anybody asked for."""
    for candidate in made.candidates:
        name = candidate.definition.name
        yield name, "definition" if name in doubled else f"offered {candidate.pinned}", candidate.definition.digest
    for changed in made.changed:
        yield changed.tool, changed.code, changed.actual
    for verdict, lefts in (("missing", made.missing), ("definition", made.excluded), ("new", made.new)):
        for left in lefts:
            yield left.tool, verdict, ""
