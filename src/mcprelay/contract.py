"""A tool's contract without a handler: what goes in, what comes out, and how it is described.

One value stands at both ends: a server gives it a handler, a client calls through it and gets the declared type back.
It knows types and texts, and neither how they become a schema nor how they travel.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar, overload

from msgspec import Struct

from mcprelay.errors import DefinitionError
from mcprelay.types import Icon, Meta, ToolAnnotations

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

NAME_LENGTH = 128
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")


class Contract(Struct, Generic[InputT, OutputT], frozen=True, kw_only=True):
    """What `define` makes. `server.handle(contract, fn)` serves it; `client.call_tool(contract, value)` calls it.

    Attributes:
        name: The tool's name.
        input: The type of the one value that goes in: its fields are the tool's arguments.
        output: The type of the value that comes out, or None for content without a structured value.
        title: For display.
        description: For the model.
        annotations: Hints about behavior.
        icons: For display.
        meta: The definition's `_meta`.
    """

    name: str
    input: type[InputT]
    output: type[OutputT]
    title: str | None = None
    description: str | None = None
    annotations: ToolAnnotations | None = None
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = None


@overload
def define(
    name: str,
    *,
    input: type[InputT],
    output: type[OutputT],
    title: str | None = None,
    description: str | None = None,
    annotations: ToolAnnotations | None = None,
    icons: tuple[Icon, ...] | None = None,
    meta: Meta | None = None,
) -> Contract[InputT, OutputT]: ...
@overload
def define(
    name: str,
    *,
    input: type[InputT],
    output: object,
    title: str | None = None,
    description: str | None = None,
    annotations: ToolAnnotations | None = None,
    icons: tuple[Icon, ...] | None = None,
    meta: Meta | None = None,
) -> Contract[InputT, Any]: ...
def define(
    name: str,
    *,
    input: type[InputT],
    output: Any,
    title: str | None = None,
    description: str | None = None,
    annotations: ToolAnnotations | None = None,
    icons: tuple[Icon, ...] | None = None,
    meta: Meta | None = None,
) -> Contract[InputT, Any]:
    """A contract that both sides may import.

    Args:
        name: 1 to 128 ASCII letters, digits and `_ - .` (server/tools, "Tool Names").
        input: A dataclass, TypedDict, msgspec Struct, attrs class or pydantic model: its fields are the arguments.
        output: Any type that JSON can carry, bytes and content blocks; `type(None)` for a tool that returns nothing.
            Checkers take what is no class, such as a union or a `Literal`, for `Any`.
        title: For display.
        description: For the model. The input type's docstring when left out.
        annotations: Hints about behavior.
        icons: For display.
        meta: The definition's `_meta`.

    Raises:
        DefinitionError: The name is not one.
    """
    check_tool_name(name)
    return Contract(
        name=name,
        input=input,
        output=output,
        title=title,
        description=description,
        annotations=annotations,
        icons=icons,
        meta=meta,
    )


def check_tool_name(name: Any, place: str = "") -> None:
    """Whether tools may be called so. The older revisions have no rule, so the newest one's holds in all of them.

    Args:
        name: The name.
        place: Where it is given, for the message.

    Raises:
        DefinitionError: They may not.
    """
    where = f" ({place})" if place else ""
    if not isinstance(name, str) or not name:
        raise DefinitionError(f"a tool's name is a string that is not empty, not {name!r}{where}")
    if len(name) > NAME_LENGTH:
        raise DefinitionError(
            f"the tool name {name[:40]!r}… has {len(name)} characters{where}, and at most {NAME_LENGTH} are allowed:"
            " give another, name="
        )
    bad = next((character for character in name if character not in _NAME_CHARACTERS), None)
    if bad is not None:
        raise DefinitionError(
            f"the tool name {name!r} has {bad!r} in it{where}: a name is made of ASCII letters, digits, '_', '-' and"
            " '.'; give another, name="
        )
