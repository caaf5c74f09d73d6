"""Whether a plain function asks the client, which only an `async def` can: seen in its code, before it ever runs.

Asking is awaited. A `def` would go on with a coroutine in its hands instead of an answer.
"""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING, Any

from mcprelay.errors import DefinitionError
from mcprelay.server.target import inner_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

ASKS = frozenset(("elicit", "elicit_url", "once", "roots", "sample"))
"""The methods of a `Context` that are awaited."""

_INLINE = frozenset(("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"))
"""Code of its own in some versions of Python, and yet of the function around it."""
_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def refuse_asking(function: Any, contexts: Collection[str]) -> None:
    """Refuse a plain function that asks through one of these parameters, where its code shows it.

    Raises:
        DefinitionError: It does.
    """
    code = getattr(inner_of(function), "__code__", None)
    if not contexts or not isinstance(code, types.CodeType) or code.co_flags & _ASYNC or not _may_ask(code):
        return
    asked = _asked(code, contexts)
    if asked is not None:
        raise DefinitionError(
            f"{code.co_name} ({code.co_filename}:{code.co_firstlineno}) is a `def` and calls {asked}(…), which has to"
            f" be awaited: make it `async def {code.co_name}` and say `await {asked}(…)`"
        )


def _inside(code: types.CodeType) -> Iterator[types.CodeType]:
    return (const for const in code.co_consts if isinstance(const, types.CodeType) and const.co_name in _INLINE)


def _may_ask(code: types.CodeType) -> bool:
    """Whether one of the names occurs at all, which spares most functions the closer look."""
    return not ASKS.isdisjoint(code.co_names) or any(map(_may_ask, _inside(code)))


def _asked(code: types.CodeType, contexts: Collection[str]) -> str | None:
    """The first call on one of the parameters that has to be awaited, as it is written."""
    import dis  # which `inspect` has loaded

    before: Any = None
    for instruction in dis.get_instructions(code):
        name = instruction.argval
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and name in ASKS and before in contexts:
            return f"{before}.{name}"
        if "LOAD_FAST" in instruction.opname or "LOAD_DEREF" in instruction.opname:  # two at once, in newer versions
            before = name[-1] if isinstance(name, tuple) else name
        elif instruction.opname != "CACHE":
            before = None
    return next((asked for each in _inside(code) if (asked := _asked(each, contexts)) is not None), None)
