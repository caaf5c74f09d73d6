"""Gates made of others, and of what an application has: scopes, its own list of tools that only read, a function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from mcprelay.relay import given
from mcprelay.relay.errors import SettingWrong
from mcprelay.relay.gate import Ask, Call, Gate, Verdict, allow, called, consult, deny, share
from mcprelay.relay.policy import UNDECLARED, Trust, declared


def every(*gates: Gate) -> Gate:
    """All have to allow. A denial is final even where an earlier gate would ask; all who are asked have to agree.

    Raises:
        SettingWrong: There are none, so that every call would pass; or one is no function of a call.
    """
    if not gates:
        raise SettingWrong("every() of no gates would allow every call; give it one at least, or no gate at all")
    given.functions("every", gates, "call")

    async def every_gate(call: Call) -> Verdict:
        asks: list[Ask] = []
        for gate in gates:
            verdict = await consult(gate, call)
            if verdict.reason is not None:
                return verdict
            asks.extend(verdict.asks)
        return Verdict(asks=tuple(asks))

    return every_gate


def either(*gates: Gate) -> Gate:
    """One has to allow, and then nobody is asked. Where none does, the first that asks decides, or the first denial.

    Of the time that is left each has an equal share with those that come after it, so that one that hangs takes none
    of theirs; one that does not answer in its share denies.

    Raises:
        SettingWrong: One is no function of a call.
    """
    given.functions("either", gates, "call")

    async def either_gate(call: Call) -> Verdict:
        verdicts = [await consult(gate, call, timeout=share(len(gates) - at)) for at, gate in enumerate(gates)]
        for wanted in (lambda verdict: verdict.allows, lambda verdict: verdict.reason is None, lambda _: True):
            for verdict in verdicts:
                if wanted(verdict):
                    return verdict
        return deny("no gate allows it")

    return either_gate


def from_callable(function: Callable[..., Any]) -> Gate:
    """A gate from a function of `(server, tool, arguments)`, async or not, which answers like a gate.

    Raises:
        SettingWrong: It is none.
    """
    given.function("from_callable", function, "server", "tool", "arguments")

    def gate(call: Call) -> Any:
        return function(call.server, call.tool, call.arguments)

    gate.__name__ = called(function)
    return gate


def by_scopes(required: Mapping[str, Any], *, scopes_of: Callable[[Any], Collection[str]] | None = None) -> Gate:
    """A gate from the scopes of the principal.

    Args:
        required: For each server the scopes that its calls take, or a table of tools with the scopes of each, where
            `"*"` stands for every other tool. A server or tool that is not in it is denied.
        scopes_of: Gives the scopes of a principal. Without it they are `principal.scopes`, or none. A text of them is
            read as OAuth writes it, one space apart; a mapping, which could say no of one, denies.

    Raises:
        SettingWrong: It is no such table, or `scopes_of` no function of a principal.
    """
    given.mapping("by_scopes", required, of="servers and the scopes that their calls take")
    if scopes_of is not None:
        given.function("by_scopes: scopes_of", scopes_of, "principal")
    table = {given.text("by_scopes: a server", server): _scopes(entry, server) for server, entry in required.items()}
    read = scopes_of or (lambda principal: getattr(principal, "scopes", None) or ())

    def scope_gate(call: Call) -> Verdict:
        entry = table.get(call.server, {})
        needed = entry.get(call.tool, entry.get("*"))
        if needed is None:
            return deny("no scope is set for it")
        lacking = sorted(needed.difference(_held(read(call.principal))))
        return deny(f"it takes the scope {', '.join(lacking)}") if lacking else allow()

    return scope_gate


def _held(scopes: Any) -> Collection[str]:
    """The scopes that a principal has."""
    if isinstance(scopes, Mapping):
        raise TypeError("scopes are a list of them, or a text")
    return scopes.split() if isinstance(scopes, str) else frozenset(scopes)


def _scopes(entry: Any, server: str) -> dict[str, frozenset[str]]:
    tools = entry if isinstance(entry, Mapping) else {"*": entry}
    for tool, scopes in tools.items():
        if isinstance(scopes, str) or not isinstance(scopes, Collection):
            raise SettingWrong(f"scopes of {server}/{tool}: expected a list of scopes, not {scopes!r}")
        given.texts(f"scopes of {server}/{tool}", scopes)
    return {tool: frozenset(scopes) for tool, scopes in tools.items()}


def read_only(tools: Mapping[str, Collection[str]], *, otherwise: Verdict) -> Gate:
    """A gate from our own list of tools that only read. A server's hints about its tools are not asked.

    Args:
        tools: For each server the names of its tools that only read.
        otherwise: The verdict for every other tool, such as `ask(human)` or `deny("…")`.

    Raises:
        SettingWrong: They are none.
    """
    given.mapping("read_only", tools, of="servers and the names of their tools that only read")
    given.instance("read_only: otherwise", otherwise, Verdict, like='a verdict, such as ask(human) or deny("…")')
    listed = {given.text("read_only: a server", server): _read_only(server, names) for server, names in tools.items()}

    def read_only_gate(call: Call) -> Verdict:
        return allow() if listed.get(call.server, UNDECLARED).allows(call.tool) else otherwise

    return read_only_gate


def _read_only(server: str, names: Collection[str]) -> Trust:
    try:
        return declared(names)
    except SettingWrong as wrong:
        raise SettingWrong(f"read_only: {server}: {wrong}") from None
