"""`@tool`, `@resource(uri)`, `@prompt`: mark what a server shall find, without a server.

A mark changes nothing about what it is put on. `Server.discover` finds marked functions, classes and methods; a server
can also be given one by hand. Several marks on one thing each count. Given a class or an object by hand, a server takes
inherited marks of methods too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar, Unpack, overload

from msgspec import Struct

from mcprelay.errors import DefinitionError
from mcprelay.server.option import PromptOptions, ResourceOptions, ToolOptions, check

__all__ = ["Mark", "prompt", "resource", "tool"]

F = TypeVar("F")
Kind: TypeAlias = Literal["tool", "resource", "prompt"]

MARKS = "__mcp_marks__"
"""The attribute that holds the marks."""


class Mark(Struct, frozen=True, eq=False):
    """What a marked thing shall be.

    Attributes:
        kind: Tool, resource or prompt.
        uri: Of a resource: its URI or template.
        options: What was said of it.
        file: Where the mark was put on.
        line: In which line.
    """

    kind: Kind
    uri: str | None
    options: dict[str, Any]
    file: str
    line: int

    @property
    def place(self) -> str:
        """Where the mark was put on, for messages."""
        return f"{self.file}:{self.line}"


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(_name: str | None = None, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
def tool(function: Any = None, /, **options: Any) -> Any:
    """Mark a function, a method, or a class with `__call__` as a tool. The options are `Server.tool`'s.

    Raises:
        DefinitionError: There is no such option, or the thing takes no attributes.
    """
    return _marking("tool", None, function, options)


def resource(uri: str, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
    """Mark a function, a method, or a class with `__call__` as a resource, or as a template where the URI has
    `{variables}`. The options are `Server.resource`'s.

    Raises:
        DefinitionError: There is no such option, or the thing takes no attributes.
    """
    if not isinstance(uri, str):
        raise DefinitionError("@resource needs the resource's URI: @resource('config://app')")
    marking: Callable[[F], F] = _marking("resource", uri, None, dict(options))
    return marking


@overload
def prompt(function: F, /) -> F: ...
@overload
def prompt(_name: str | None = None, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...
def prompt(function: Any = None, /, **options: Any) -> Any:
    """Mark a function, a method, or a class with `__call__` as a prompt. The options are `Server.prompt`'s.

    Raises:
        DefinitionError: There is no such option, or the thing takes no attributes.
    """
    return _marking("prompt", None, function, options)


def _marking(kind: Kind, uri: str | None, function: Any, options: dict[str, Any]) -> Any:
    if isinstance(function, str):
        function, options = None, {"name": function, **options}
    check(kind, options)

    def decorate(given: Any) -> Any:
        frame = sys._getframe(1)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - the documented way
        put(given, Mark(kind, uri, options, frame.f_code.co_filename, frame.f_lineno))
        return given

    if function is None:
        return decorate
    frame = sys._getframe(2)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as above
    put(function, Mark(kind, uri, options, frame.f_code.co_filename, frame.f_lineno))
    return function


def put(thing: Any, mark: Mark) -> None:
    """Put a mark on a thing, beside those that it has.

    Raises:
        DefinitionError: It takes no attributes.
    """
    try:
        setattr(thing, MARKS, (*marks_of(thing), mark))
    except (AttributeError, TypeError):
        raise DefinitionError(
            f"{thing!r} cannot be marked, because it takes no attributes: register it with server.add_{mark.kind}"
        ) from None


def marks_of(thing: Any) -> tuple[Mark, ...]:
    """The marks on a thing itself; those of its class are not its own."""
    try:
        own = vars(thing)
    except TypeError:
        return ()
    marks = own.get(MARKS, ())
    return marks if isinstance(marks, tuple) else ()
