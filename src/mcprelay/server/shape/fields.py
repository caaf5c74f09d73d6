"""The fields of every flavor of record, as their own libraries keep them.

Each function answers the same questions: which fields, of which annotation, with which default, and how a value is
made. attrs and pydantic are met only through the user's own class; nothing is imported for them.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import NODEFAULT

from mcprelay.server.shape.record import ABSENT


class Member(NamedTuple):
    """One field as its class declares it; see `mcprelay.server.shape.record.Field` for the words."""

    name: str
    annotation: Any
    key: str = ""
    default: Any = NODEFAULT
    default_factory: Any = NODEFAULT
    optional: bool = False
    flow: Literal["both", "input", "output"] = "both"
    omitted: bool = False


class Flavor(NamedTuple):
    """How the records of one class behave: what they have, how they are made, and what msgspec would do alone."""

    members: list[Member]
    build: Callable[[Sequence[Any]], Any]
    python: tuple[type, ...]
    native: bool = True
    tag: tuple[str, str | int] | None = None


def flavor_of(cls: type) -> Flavor | None:
    """How a class is a record, or None if it is none."""
    if hasattr(cls, "__dataclass_fields__"):
        return _dataclass(cls)
    if issubclass(cls, msgspec.Struct):
        return _struct(cls)
    if typing.is_typeddict(cls) or (issubclass(cls, dict) and hasattr(cls, "__total__")):
        return _typed_dict(cls)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _named_tuple(cls)
    return _attrs(cls) if hasattr(cls, "__attrs_attrs__") else None


def _dataclass(cls: type) -> Flavor:
    import dataclasses  # loaded by then: there is one

    members: list[Member] = []
    by_name = False
    for field in cls.__dataclass_fields__.values():  # type: ignore[attr-defined]  # `dataclasses.fields` hides `InitVar`
        kind = field._field_type.__repr__()  # noqa: SLF001 - the only place that says so
        if kind == "_FIELD_CLASSVAR":
            continue
        initial = kind == "_FIELD_INITVAR"
        flow: Literal["both", "input", "output"] = "input" if initial else "both" if field.init else "output"
        by_name |= field.kw_only
        default, factory = _defaults(field.default, field.default_factory, dataclasses.MISSING)
        members.append(Member(field.name, field.type, "", default, factory, flow=flow))
    taken = [member.name for member in members if member.flow != "output"]
    # msgspec writes what is in the instance, which lacks a field that only its class has a default for
    native = all(member.flow == "both" for member in members)
    return Flavor(members, _by_name(cls, taken) if by_name else _by_position(cls), (cls,), native)


def _struct(cls: type[msgspec.Struct]) -> Flavor:
    config = cls.__struct_config__
    fields = msgspec.structs.fields(cls)
    members = [
        Member(
            field.name,
            field.type,
            field.encode_name,
            *_defaults(field.default, field.default_factory, NODEFAULT),
            omitted=config.omit_defaults and not field.required,
        )
        for field in fields
    ]
    tag = (config.tag_field or "type", config.tag) if config.tag is not None else None
    native = not config.array_like
    return Flavor(members, _by_name(cls, [field.name for field in fields]), (cls,), native, tag)


def _typed_dict(cls: type) -> Flavor:
    required: frozenset[str] = getattr(cls, "__required_keys__", frozenset())
    members = []
    for name, annotation in annotations_of(cls).items():
        optional = name not in required
        members.append(Member(name, annotation, optional=optional))
    names = [member.name for member in members]

    def build(values: Sequence[Any]) -> dict[str, Any]:
        return {name: value for name, value in zip(names, values, strict=True) if value is not ABSENT}

    return Flavor(members, build, (dict,))


def _named_tuple(cls: type) -> Flavor:
    annotations = annotations_of(cls)
    defaults: Mapping[str, Any] = getattr(cls, "_field_defaults", {})
    names: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]  # that is what makes it one
    members = [Member(name, annotations.get(name, Any), "", defaults.get(name, NODEFAULT)) for name in names]
    return Flavor(members, _by_position(cls), (cls,), native=False)


def _attrs(cls: type) -> Flavor:
    members: list[Member] = []
    takes: list[str] = []
    for attribute in cls.__attrs_attrs__:  # type: ignore[attr-defined]  # that is what makes it one
        default: Any = attribute.default
        factory: Any = NODEFAULT
        if type(default).__name__ == "Factory":
            default, factory = NODEFAULT, (lambda: ABSENT) if default.takes_self else default.factory
        elif default.__class__.__name__ == "_Nothing":
            default = NODEFAULT
        annotation = Any if attribute.type is None else attribute.type
        flow: Literal["both", "output"] = "both" if attribute.init else "output"
        members.append(Member(attribute.name, annotation, "", default, factory, flow=flow))
        if attribute.init:
            takes.append(attribute.alias or attribute.name.lstrip("_"))
    native = not any(member.name.startswith("_") for member in members) and len(takes) == len(members)
    return Flavor(members, _by_name(cls, takes), (cls,), native)


def annotations_of(cls: type) -> dict[str, Any]:
    """The annotations of a class, unevaluated where the language says so."""
    try:
        import annotationlib  # type: ignore[import-not-found,unused-ignore]  # pyright: ignore[reportMissingImports]
    except ImportError:
        return dict(getattr(cls, "__annotations__", {}))
    return dict(annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF))


def _defaults(default: Any, factory: Any, missing: Any) -> tuple[Any, Any]:
    return (NODEFAULT if default is missing else default, NODEFAULT if factory is missing else factory)


def _by_position(cls: type) -> Callable[[Sequence[Any]], Any]:
    return lambda values: cls(*values)


def _by_name(cls: type, names: list[str]) -> Callable[[Sequence[Any]], Any]:
    def build(values: Sequence[Any]) -> Any:
        return cls(**{name: value for name, value in zip(names, values, strict=True) if value is not ABSENT})

    return build
