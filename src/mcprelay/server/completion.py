"""`Complete`: where suggestions for an argument come from, and which of them fit what was typed so far.

It knows values, enums and callables. Who may ask, how many are sent and the wire's shape are `dispatch`'s business.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import enum
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias, cast

from mcprelay.errors import DefinitionError
from mcprelay.server.target import is_async

Run: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
Suggest: TypeAlias = Callable[..., Iterable[Any] | Awaitable[Iterable[Any]]]


class Complete:
    """Completions of an argument: `Annotated[str, Complete(["red", "green"])]`, an enum class, or a callable.

    Values and enums are offered as they begin with what was typed, whatever the case of the letters. A callable, plain
    or `async`, gets what was typed, and, if it takes a second parameter, the other arguments so far as a mapping of
    strings; what it gives is offered as it is. A plain one runs in a worker thread, as handlers do,
    and may block.
    """

    def __init__(self, source: Iterable[Any] | type[enum.Enum] | Suggest) -> None:
        self.values: tuple[str, ...] | None = None
        self.suggest: Suggest | None = None
        if isinstance(source, type) and issubclass(source, enum.Enum):
            self.values = tuple(_text_of(member) for member in source)
        elif callable(source):
            self.suggest = cast("Suggest", source)
            self._takes_arguments = _positionals(self.suggest) > 1
        elif isinstance(source, (str, bytes)) or not isinstance(source, Iterable):
            raise DefinitionError(f"Complete(…) takes a list of values, an enum or a callable, and not {source!r}.")
        else:
            self.values = tuple(_text_of(value) for value in source)

    async def __call__(self, typed: str, arguments: Mapping[str, str], *, run: Run) -> list[str]:
        """Every value that fits, in the source's order; the caller cuts the list to what may be sent.

        Args:
            typed: What was typed so far.
            arguments: The other arguments.
            run: Runs what may block.
        """
        if self.values is not None:
            start = typed.casefold()
            return [value for value in self.values if value.casefold().startswith(start)]
        if self.suggest is None:
            return []
        suggest = partial(self.suggest, typed, arguments) if self._takes_arguments else partial(self.suggest, typed)
        found = suggest() if is_async(self.suggest) else await run(lambda: _read(suggest()))
        if inspect.isawaitable(found):
            found = _read(await found)
        return cast("list[str]", found)


def _read(found: Any) -> Any:
    """What was suggested, as text; a generator is read here, where it may block. What must be awaited stays."""
    return found if inspect.isawaitable(found) else [_text_of(value) for value in found]


def _text_of(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return str(value.value) if isinstance(value.value, (str, int)) else value.name
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _positionals(function: Callable[..., Any]) -> int:
    """How many arguments a callable takes by position."""
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return 2
    return sum(kind in {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD} for kind in kinds)
