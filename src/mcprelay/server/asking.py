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
    from collections.abc import Collection

ASKS = frozenset(("elicit", "elicit_url", "once", "roots", "sample"))
"""The methods of a `Context` that are awaited."""

_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def refuse_asking(function: Any, contexts: Collection[str]) -> None:
    """Refuse a plain function that asks through one of these parameters, where its code shows it.

    Raises:
        DefinitionError: It does.
    """
    code = getattr(inner_of(function), "__code__", None)
    if not contexts or not isinstance(code, types.CodeType) or code.co_flags & _ASYNC or not ASKS & {*code.co_names}:
        return
    asked = _asked(code, contexts)
    if asked is not None:
        raise DefinitionError(
            f"{code.co_name} ({code.co_filename}:{code.co_firstlineno}) is a `def` and calls {asked}(…), which has to"
            f" be awaited: make it `async def {code.co_name}` and say `await {asked}(…)`"
        )


def _asked(code: types.CodeType, contexts: Collection[str]) -> str | None:
    """The first call on one of the parameters that has to be awaited, as it is written."""
    import dis  # which `inspect` has loaded

    before: Any = None
    for instruction in dis.get_instructions(code):
        name = instruction.argval
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and name in ASKS and before in contexts:
            return f"{before}.{name}"
        if instruction.opname.startswith(("LOAD_FAST", "LOAD_DEREF")):
            before = name[-1] if isinstance(name, tuple) else name
        elif instruction.opname != "CACHE":
            before = None
    return None
