"""`ToolSet`: the tools that one model may have in one run, by their public names.

The set is one account: budgets of a run count what all of its tools have answered. Another run takes another set.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from functools import partial
from itertools import count
from typing import Any, final

from mcprelay.relay import audit
from mcprelay.relay.budget import Ledger
from mcprelay.relay.frame import Framed, Funnel
from mcprelay.relay.guarded import GuardedTool
from mcprelay.relay.names import Named, Shadow, public_name, shadows
from mcprelay.relay.report import Report
from mcprelay.relay.reveal import legible


@final
class ToolSet:
    """Guarded tools in order. Iterating gives the tools; `[name]`, `keys()`, `values()` and `items()` go by name.

    Sets can be added: `a + b`. Where both have a tool of one name, that of `b` gets another one; each call leaves with
    what its own set was made for.
    """

    def __init__(
        self,
        tools: Iterable[GuardedTool],
        *,
        report: Callable[[tuple[Shadow, ...]], Report],
        local: Iterable[str] = (),
    ) -> None:
        self._tools: dict[str, GuardedTool] = {}
        self._local = tuple(local)
        for tool in tools:
            if not isinstance(tool, GuardedTool):
                raise TypeError(f"a tool set holds guarded tools, which a Relay makes, and not {type(tool).__name__}")
            self._tools[tool.name] = tool
        self._make_report = report
        self._report: Report | None = None

    def __iter__(self) -> Iterator[GuardedTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools if isinstance(name, str) else name in self._tools.values()

    def __getitem__(self, name: str) -> GuardedTool:
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(self._tools) or "the set is empty"
            raise KeyError(f"no tool {name!r} is offered ({known}); report() says what became of the others")
        return tool

    def get(self, name: str) -> GuardedTool | None:
        """The tool of a name, or None."""
        return self._tools.get(name)

    def keys(self) -> KeysView[str]:
        """The public names."""
        return self._tools.keys()

    def values(self) -> ValuesView[GuardedTool]:
        """The tools."""
        return self._tools.values()

    def items(self) -> ItemsView[str, GuardedTool]:
        """Names and tools."""
        return self._tools.items()

    def __repr__(self) -> str:
        return f"ToolSet({', '.join(self._tools)})" if self._tools else "ToolSet(no tool at all; see report())"

    def report(self) -> Report:
        """What became of everything that was asked for. It prints well."""
        if self._report is None:  # made when it is wanted: comparing all names and texts takes its time
            seen = {tool.name: (Named(tool.server, tool.tool), tool.description) for tool in self}
            prefixed = {tool.server for tool in self if tool.is_prefixed}
            self._report = self._make_report(tuple(shadows(seen, local=self._local, prefixed=prefixed)))
        return self._report

    async def run(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> Framed:
        """Call a tool by its public name with what a model gave. A name that is not in the set is a refusal in words.

        Raises:
            ConfigurationError, NotTrusted, LockUnreadable, LocalFault: As `GuardedTool.run`.
        """
        asked: Any = name  # whatever a model, or an SDK, makes of it
        tool = self._tools.get(asked) if isinstance(asked, str) else None
        if tool is None:
            audit.record("call", server="", tool=str(name), verdict="unknown_tool")
            has = "Call only tools that you were given." if self._tools else "There is no tool at all."
            words = f"There is no tool of this name. {has}"
            return Funnel("").refusal(words, code="unknown_tool", tool=legible(str(name)))
        return await tool.run(arguments)

    def __add__(self, other: ToolSet) -> ToolSet:
        if not isinstance(other, ToolSet):
            return NotImplemented
        ledger = Ledger()
        made = {name: tool.moved(name, ledger) for name, tool in self.items()}
        renamed: dict[str, str] = {}
        local = (*self._local, *other._local)
        for name, tool in other.items():
            held = made.get(name)
            if held is not None and held.same_as(tool):
                continue
            own = name if held is None else _free(tool, name, made)
            renamed[name] = own
            made[own] = tool.moved(own, ledger)
        report = partial(_joined, self.report(), other.report(), renamed, tuple(made))
        return ToolSet(made.values(), report=report, local=local)


def _free(tool: GuardedTool, name: str, taken: Mapping[str, Any]) -> str:
    """Another name for a tool: the same wherever the same sets are joined in the same order."""
    prefix = name.partition("__")[0] if "__" in name else ""
    names = (public_name(f"{tool.server} {number}", f"{tool.tool}__", prefix=prefix) for number in count(2))
    return next(free for free in names if free not in taken)


def _joined(
    first: Report,
    second: Report,
    renamed: Mapping[str, str],
    offered: tuple[str, ...],
    shadowed: tuple[Shadow, ...],
) -> Report:
    return Report(
        offered=offered,
        missing=_once(first.missing, second.missing),
        excluded=_once(first.excluded, second.excluded),
        changed=first.changed + second.changed,
        new=_once(first.new, second.new),
        unpinned=_once(first.unpinned, tuple(renamed.get(name, name) for name in second.unpinned)),
        shadowed=shadowed,
        unreachable={**first.unreachable, **second.unreachable},
        notes=_once(first.notes, second.notes),
        lock="; ".join(why for why in _once((first.lock,), (second.lock,)) if why),
        lock_lost=first.lock_lost or second.lock_lost,
        heard={**first.heard, **second.heard},
    )


def _once(*parts: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(item for part in parts for item in part))
