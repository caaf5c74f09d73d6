"""Calling a tool through the function that serves it: `await client.tool(add)(a=1, b=2)`.

Knows the definition that registration leaves on a function, and the function's hints. The function itself never runs.
"""

from __future__ import annotations

import inspect
import typing
from typing import TYPE_CHECKING, Any

from mcprelay.client.outcome import Block
from mcprelay.errors import ConfigurationError
from mcprelay.types import Tool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcprelay.client.outcome import Result

DEFINITION = "__mcp__"
"""The attribute in which registration leaves the definition."""

_NOTHING = type(None)
_BLOCKS = typing.get_args(Block)


class Typed:
    """One tool, called like its function. Positional arguments go to the tool's own in the function's order.

    Args:
        function: A function that is registered as a tool, in this program or in one that it was imported from.
        call: Calls a tool by name with arguments and an output type.

    Raises:
        ConfigurationError: The function is no tool.
    """

    def __init__(self, function: Any, call: Callable[[str, dict[str, Any], Any], Awaitable[Result[Any]]]) -> None:
        definition = getattr(function, DEFINITION, None)
        if not isinstance(definition, Tool):
            raise ConfigurationError(
                f"{getattr(function, '__qualname__', function)!r} is no tool here: register it with a Server first, or "
                "call it by its name or a contract (define)"
            )
        self._call = call
        self.definition = definition
        self._names = _own(function, definition)
        self._kind = _returned(function)

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value, or what `call_tool` raises.

        Raises:
            TypeError: The function does not take such arguments.
        """
        result = await self._call(self.definition.name, self._bound(args, kwargs), self._output)
        return self._value(result)

    @property
    def _output(self) -> Any:
        """The type to decode into: none where what comes back is content and no value."""
        return None if self._kind is Any or self.definition.output_schema is None else self._kind

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        name = self.definition.name
        if len(args) > len(self._names):
            raise TypeError(f"{name} takes {len(self._names)} arguments, not {len(args)}")
        bound = dict(zip(self._names, args, strict=False))
        for key, value in kwargs.items():
            if key not in self._names:
                raise TypeError(f"{name} takes no argument {key!r}; it takes {', '.join(self._names) or 'none'}")
            if key in bound:
                raise TypeError(f"{name} got two values for its argument {key!r}")
            bound[key] = value
        missing = [key for key in self.definition.input_schema.get("required", ()) if key not in bound]
        if missing:
            raise TypeError(f"{name} needs the argument {missing[0]!r}")
        return bound

    def _value(self, result: Result[Any]) -> Any:
        kind = self._kind
        if kind is _NOTHING or kind is None:
            return None
        if kind is ToolResult:
            return ToolResult(
                content=result.content,  # type: ignore[arg-type]  # an `Unknown` block is kept as it came
                structured_content=result.structured,
                meta=result.meta or None,
            )
        if isinstance(kind, type) and issubclass(kind, _BLOCKS):
            return next((block for block in result.content if isinstance(block, kind)), None)
        return result.value


def _own(function: Any, definition: Tool) -> tuple[str, ...]:
    """The parameters that are the tool's arguments, in the function's order: what is injected is none."""
    properties = definition.input_schema.get("properties", {})
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return tuple(properties)
    ordered = [name for name in parameters if name in properties]
    return (*ordered, *(name for name in properties if name not in parameters))


def _returned(function: Any) -> Any:
    """What the function says that it returns; anything, where it does not say."""
    target = function if inspect.isroutine(function) else getattr(function, "func", type(function).__call__)
    try:
        hints = typing.get_type_hints(inspect.unwrap(target))
    except (TypeError, NameError):
        return Any
    return hints.get("return", Any)
