"""Calling a tool through the function that serves it: `await client.tool(add)(a=1, b=2)`.

Knows the definitions that registration leaves on a function, and the function's hints. The function itself never runs.
"""

from __future__ import annotations

import inspect
import typing
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mcprelay.client.content import is_content, is_null
from mcprelay.contract import Contract
from mcprelay.errors import ConfigurationError
from mcprelay.types import Tool, ToolResult
from mcprelay.wire.field import shown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcprelay.client.outcome import Result

DEFINITIONS = "__mcp__"
"""The attribute in which registration leaves the definitions, one for each name."""

_NOTHING = type(None)


class Typed:
    """One tool, called like its function. Positional arguments go to the tool's own in the function's order.

    Args:
        function: A function that is registered as a tool, in this program or in one that it was imported from.
        call: Calls a tool by name with arguments and an output type.
        name: The tool's name at the server, where it is not the one name that the function is registered under.

    Raises:
        ConfigurationError: The function is no tool, or is one under several names and it is not said which.
    """

    def __init__(
        self,
        function: Any,
        call: Callable[[str, dict[str, Any], Any], Awaitable[Result[Any]]],
        *,
        name: str | None = None,
    ) -> None:
        self._call = call
        self.definition = _meant(function, name)
        self.name = name or self.definition.name
        self._names = _own(function, self.definition)
        self._kind = _returned(function)

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value, or what `call_tool` raises.

        Raises:
            TypeError: The function does not take such arguments.
        """
        kind = self._output
        result = await self._call(self.name, self._bound(args, kwargs), kind)
        says_nothing = kind is None and result.structured is UNSET and is_null(result.content)
        return None if says_nothing else result.value

    @property
    def _output(self) -> Any:
        """The type to decode into: none where what comes back is content that the function's type does not tell."""
        kind = self._kind
        if kind is _NOTHING or kind is None:
            return _NOTHING
        told = kind is ToolResult or is_content(kind) or self.definition.output_schema is not None
        return kind if told and kind is not Any else None

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        name = self.name
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


def _meant(function: Any, name: str | None) -> Tool:
    """The definition of a function: the one of that name where it has several."""
    if isinstance(function, (str, Contract)):
        called = f"the name {shown(function)}" if isinstance(function, str) else "a contract"
        right = f"`await client.call_tool({shown(function) if isinstance(function, str) else 'contract'}, {{…}})`"
        raise ConfigurationError(f"{called} is not a function that serves a tool: names and contracts go to {right}")
    known = getattr(function, DEFINITIONS, None)
    called = f"the function {getattr(function, '__qualname__', function)!r}"
    if not isinstance(known, tuple) or not all(isinstance(each, Tool) for each in known):
        raise ConfigurationError(
            f"{called} is no tool here: register it with a Server first, or call the tool by its name or a contract "
            "(define)"
        )
    tools: tuple[Tool, ...] = known
    found = [each for each in tools if each.name == name] or tools
    if len(found) == 1:
        return found[0]
    names = " and ".join(repr(each.name) for each in tools)
    said = "" if name is None else f", and not as {name!r}"
    raise ConfigurationError(
        f"{called} is registered as {names}{said}: say which with name=, or call the tool by its name or a contract"
    )


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
