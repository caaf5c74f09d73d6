"""What became of everything that was asked for: the other half of a tool set.

Values for a program, and a page for a person. Names and texts of servers are made visible before they are printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from mcprelay.relay.errors import DefinitionChanged, DefinitionRefused, RelayError
from mcprelay.relay.names import Shadow
from mcprelay.relay.reveal import legible, reveal


class Left(Struct, frozen=True, kw_only=True):
    """A tool that is not offered. The name is the server's: untrusted; the reason is ours.

    Attributes:
        server: The configured name.
        tool: The server's own name of it.
        reason: Why it is not offered.
    """

    server: str
    tool: str
    reason: str = ""


class Report(Struct, frozen=True, kw_only=True):
    """What became of everything that was asked for.

    Attributes:
        offered: Public names.
        missing: Asked for by name in `allow`, or in `pins`, and not there.
        excluded: Cannot be offered, with the reason.
        changed: Not what was reviewed, with the differences: withdrawn until they are reviewed again.
        new: Not in the lock file's section of their server, or, with `pins = "required"`, in no section at all:
            withheld until they are reviewed.
        unpinned: Public names of what is offered without a pin.
        shadowed: What may be taken for something else.
        unreachable: Servers that gave no list, by name; only with `skip_unavailable=True`.
        notes: What was wrong with a list, by server.
        lock: Why no lock was read, so that what is offered was compared with nothing; empty where one was.
        lock_lost: Whether that is because a lock file that the application named is not there.
        heard: What servers said unasked, counted: `changes` of the list, `logs`, and of what was thrown away
            what was `unasked`, such as progress, or `unreadable`.
    """

    offered: tuple[str, ...] = ()
    missing: tuple[Left, ...] = ()
    excluded: tuple[Left, ...] = ()
    changed: tuple[DefinitionChanged, ...] = ()
    new: tuple[Left, ...] = ()
    unpinned: tuple[str, ...] = ()
    shadowed: tuple[Shadow, ...] = ()
    unreachable: dict[str, RelayError] = {}
    notes: tuple[tuple[str, str], ...] = ()
    lock: str = ""
    lock_lost: bool = False
    heard: dict[str, dict[str, int]] = {}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    @property
    def is_clean(self) -> bool:
        """Whether everything asked for is offered, compared as was said, and not to be taken for something else."""
        wanting = (self.missing, self.excluded, self.changed, self.new, self.unreachable)
        return not (any(wanting) or self.shadowed or self.notes or self.lock_lost)

    def require_clean(self) -> None:
        """See that the report is clean.

        Raises:
            DefinitionChanged: A tool is not what was reviewed.
            DefinitionRefused: Something else is not as it was asked for; the sentence is the report.
        """
        if self.changed:
            raise self.changed[0]
        if not self.is_clean:
            then = f"\n{_SHADOWED}" if self.shadowed else ""
            raise DefinitionRefused(f"strict=True, and not everything is as it was asked for:\n{self}{then}")

    def _lines(self) -> Iterator[str]:
        count = len(self.offered)
        if count:
            yield f"offered: {count} tool{'s' if count > 1 else ''}: {', '.join(self.offered)}"
        else:
            yield "offered: no tool at all, so a model can call nothing"
        yield from _listed("missing", (f"{_name(one)}{': ' if one.reason else ''}{one.reason}" for one in self.missing))
        yield from _listed("excluded", (f"{_name(one)}: {one.reason}" for one in self.excluded))
        for one in self.changed:
            yield f"changed: {one}"
            for change in one.changes:
                yield from (f"    {line}" for line in change.lines())
        yield from _listed("new", (f"{_name(one)}: {one.reason}" for one in self.new))
        yield from _listed("unpinned", self.unpinned)
        if self.lock:
            yield f"lock: none was read: {self.lock}"
        yield from _listed("shadowed", map(_shadow, self.shadowed))
        yield from _listed("unreachable", (f"{name}: {reveal(str(why))}" for name, why in self.unreachable.items()))
        yield from _listed("note", (f"{server}: {note}" for server, note in self.notes))
        for server, counts in self.heard.items():
            yield f"heard of {server}: {', '.join(f'{number} {what}' for what, number in counts.items())}"


_SHADOWED = (
    "What is shadowed is left out of allow, on one side; where two servers have a tool of the same name on purpose,"
    " both have a prefix in their settings"
)
"""What to do about what may be taken for something else. Who thought of it need not refuse it."""


def _name(one: Left) -> str:
    return f"{legible(one.tool)} of {legible(one.server)}"


def _shadow(one: Shadow) -> str:
    return f"{one.name} / {legible(one.other)}: {one.why}{f', and {one.more} others' if one.more else ''}"


def _listed(title: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"{title}: {line}"
