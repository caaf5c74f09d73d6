"""Which types JSON can be read into, told from the type alone: before anything is sent, not from the first answer.

Knows what msgspec tells of a type. Knows no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect

from mcprelay.client.misuse import named

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEYLESS = (inspect.BoolType, inspect.FloatType, inspect.NoneType, inspect.RawType, inspect.ByteArrayType)
"""What msgspec does not read from the name of a member, which is a string. Somebody else may."""
_CHANGES = (
    inspect.ListType, inspect.DictType, inspect.SetType, inspect.ByteArrayType, inspect.TypedDictType,
)  # fmt: skip
"""What cannot be in a set, because it can change."""
_GROUPS = (
    *_CHANGES, inspect.StructType, inspect.DataclassType, inspect.FrozenSetType, inspect.TupleType,
    inspect.VarTupleType, inspect.NamedTupleType,
)  # fmt: skip
"""What is no scalar, and so never the name of a member."""


def impossible(kind: Any) -> str | None:
    """Why nobody reads JSON into a type, whoever knows its parts; None where nothing says so.

    Raises:
        TypeError, NameError: msgspec does not know the type at all.
    """
    return next(filter(None, map(_impossible, _nodes(inspect.type_info(kind)))), None)


def unknown(kind: Any) -> str | None:
    """Why msgspec and its hook for models do not read JSON into a type that msgspec knows; None where they do."""
    return next(filter(None, map(_unknown, _nodes(inspect.type_info(kind)))), None)


def is_model(kind: Any) -> bool:
    """Whether a class reads itself from JSON, as pydantic's models do."""
    return hasattr(kind, "model_validate_json")


def _nodes(told: Any, seen: set[int] | None = None) -> Iterator[inspect.Type]:
    """Every type inside what msgspec tells of one, that itself first."""
    seen = set() if seen is None else seen
    if isinstance(told, (tuple, list)):
        for part in told:
            yield from _nodes(part, seen)
    elif isinstance(told, (inspect.Type, inspect.Field)) and id(told) not in seen:
        seen.add(id(told))
        if isinstance(told, inspect.Type):
            yield told
        for name in told.__struct_fields__:
            yield from _nodes(getattr(told, name), seen)


def _impossible(node: inspect.Type) -> str | None:
    if isinstance(node, inspect.DictType) and all(isinstance(one, _GROUPS) for one in _choices(node.key_type)):
        return f"a member of an object has a string for its name, and {_name(node.key_type)} is none"
    if isinstance(node, (inspect.SetType, inspect.FrozenSetType)) and _changes(node.item_type):
        return f"a set cannot hold {_name(node.item_type)}, because that can change"
    return None


def _unknown(node: inspect.Type) -> str | None:
    if isinstance(node, inspect.CustomType) and node.cls is not object and not is_model(node.cls):
        return f"nothing here reads JSON into {named(node.cls)}"
    if isinstance(node, inspect.DictType) and all(isinstance(one, _KEYLESS) for one in _choices(node.key_type)):
        return f"nothing here reads the name of a member into {_name(node.key_type)}"
    return None


def _choices(node: inspect.Type) -> tuple[inspect.Type, ...]:
    return node.types if isinstance(node, inspect.UnionType) else (node,)


def _changes(node: inspect.Type) -> bool:
    if isinstance(node, inspect.TupleType):
        return any(map(_changes, node.item_types))
    if isinstance(node, inspect.VarTupleType):
        return _changes(node.item_type)
    if isinstance(node, inspect.UnionType):
        return all(map(_changes, node.types))
    if isinstance(node, inspect.StructType):
        return node.cls.__struct_config__.eq and not node.cls.__struct_config__.frozen
    return isinstance(node, _CHANGES) or (isinstance(node, inspect.DataclassType) and node.cls.__hash__ is None)


def _name(node: inspect.Type) -> str:
    """A type as people write it, without what is in it."""
    if isinstance(node, inspect.UnionType):
        return " | ".join(map(_name, node.types))
    cls: Any = getattr(node, "cls", None)
    return named(cls) if cls is not None else _PLAIN.get(type(node), type(node).__name__)


_PLAIN: dict[type[msgspec.Struct], str] = {
    inspect.BoolType: "bool",
    inspect.FloatType: "float",
    inspect.NoneType: "None",
    inspect.RawType: "msgspec.Raw",
    inspect.ListType: "list",
    inspect.DictType: "dict",
    inspect.SetType: "set",
    inspect.FrozenSetType: "frozenset",
    inspect.ByteArrayType: "bytearray",
    inspect.TupleType: "tuple",
    inspect.VarTupleType: "tuple",
}
