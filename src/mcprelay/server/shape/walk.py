"""From annotations to shapes.

The walk knows every form that a type hint takes: generics, aliases, qualifiers, forward references, `Annotated`. What
it cannot turn into JSON is refused with a sentence that says what to write instead.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownVariableType=false

from __future__ import annotations

import collections
import enum
import types
import typing
from collections import abc
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import NODEFAULT, UnsetType

from mcprelay.errors import DefinitionError
from mcprelay.server.docstring import parse_docstring
from mcprelay.server.shape import Shape
from mcprelay.server.shape.alias import Named
from mcprelay.server.shape.choice import enum_shape, literal_shape
from mcprelay.server.shape.collection import Array, Map, Tuple
from mcprelay.server.shape.fields import Flavor, Member, flavor_of
from mcprelay.server.shape.foreign import Foreign, is_foreign
from mcprelay.server.shape.measure import bounds, sizes
from mcprelay.server.shape.noted import Defined, note
from mcprelay.server.shape.notes import Notes
from mcprelay.server.shape.record import Field, Record
from mcprelay.server.shape.scalar import ANYTHING, BOOLEAN, INTEGER, NULL, NUMBER, STRING, Subtype
from mcprelay.server.shape.scope import Scope, scope_of_class
from mcprelay.server.shape.text import text_shape
from mcprelay.server.shape.union import OneOf

_PLAIN: dict[Any, Shape] = {
    str: STRING,
    int: INTEGER,
    float: NUMBER,
    bool: BOOLEAN,
    None: NULL,
    types.NoneType: NULL,
    Any: ANYTHING,
    object: ANYTHING,
    typing.AnyStr: STRING,
    typing.LiteralString: STRING,
}
_BASES = {str: STRING, int: INTEGER, float: NUMBER}

_ARRAYS: dict[Any, tuple[Any, Callable[[Any], Any], bool]] = {
    list: (list, list, False),
    abc.Sequence: (list, list, False),
    abc.MutableSequence: (list, list, False),
    abc.Iterable: (list, list, False),
    abc.Collection: (list, list, False),
    collections.deque: (None, collections.deque, False),
    set: (set, set, True),
    abc.Set: (set, set, True),
    abc.MutableSet: (set, set, True),
    frozenset: (frozenset, frozenset, True),
}
"""Arrays by their class: msgspec's generic for them, what makes one of a list, and whether items are distinct."""

_MAPS: dict[Any, Callable[[Any], Any]] = {
    dict: dict,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
    collections.OrderedDict: collections.OrderedDict,
    collections.defaultdict: lambda items: collections.defaultdict(None, items),
    collections.Counter: collections.Counter,
}

_QUALIFIERS = {"Required", "NotRequired", "ReadOnly", "Final", "ClassVar", "Unpack"}


class Walk:
    """One walk over the annotations of one callable. A class met twice gives the same shape, which is then shared.

    Attributes:
        unions: Every union that was met.
    """

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._records: dict[Any, Record] = {}
        self._aliases: dict[Any, Named] = {}
        self.unions: list[OneOf] = []

    def shape(self, annotation: Any, scope: Scope, variables: Mapping[Any, Any] | None = None) -> Shape:
        """The shape of an annotation.

        Args:
            annotation: Any type hint, evaluated or not.
            scope: Where the names of a postponed one are found.
            variables: What type variables stand for here.

        Raises:
            DefinitionError: The type has no JSON form; the message says what to write instead.
        """
        try:
            plain = _PLAIN.get(annotation)
        except TypeError:  # not hashable: `Annotated` with a list in it, say
            plain = None
        if plain is not None:
            return plain
        if isinstance(annotation, (str, typing.ForwardRef)):
            return self.shape(scope.resolve(annotation), scope, variables)
        origin = typing.get_origin(annotation)
        if origin is None:
            return self._bare(annotation, scope, variables or {})
        return self._generic(annotation, origin, scope, variables or {})

    # --- what is not subscripted --------------------------------------------------------------------------------------

    def _bare(self, annotation: Any, scope: Scope, variables: Mapping[Any, Any]) -> Shape:
        if isinstance(annotation, type):
            return self._class(annotation, (), scope, variables)
        if isinstance(annotation, typing.TypeVar):
            return self._variable(annotation, scope, variables)
        if hasattr(annotation, "__supertype__"):  # NewType
            return self.shape(annotation.__supertype__, scope, variables)
        if type(annotation).__name__ == "TypeAliasType":
            return self._alias(annotation, (), scope, variables)
        raise _refusal(annotation)

    def _variable(self, variable: Any, scope: Scope, variables: Mapping[Any, Any]) -> Shape:
        if variable in variables:
            return self.shape(variables[variable], scope, variables)
        if variable.__constraints__:
            return self._union(variable.__constraints__, scope, variables)
        default = getattr(variable, "__default__", None)
        if default is not None and type(default).__name__ not in {"NoDefaultType", "NoDefault"}:
            return self.shape(default, scope, variables)
        return ANYTHING if variable.__bound__ is None else self.shape(variable.__bound__, scope, variables)

    def _alias(self, alias: Any, arguments: tuple[Any, ...], scope: Scope, variables: Mapping[Any, Any]) -> Shape:
        arguments = self._resolved(arguments, variables)
        key = (alias, *map(_identity, arguments))
        if key not in self._aliases:
            named = self._aliases[key] = Named(alias.__name__)
            inner = dict(zip(alias.__type_params__, arguments, strict=False))
            named.settle(self.shape(alias.__value__, scope, inner))
        return self._aliases[key]

    # --- what is ------------------------------------------------------------------------------------------------------

    def _generic(self, annotation: Any, origin: Any, scope: Scope, variables: Mapping[Any, Any]) -> Shape:
        arguments = typing.get_args(annotation)
        if origin is typing.Annotated:
            return self.noted(annotation, scope, variables)[0]
        if origin is typing.Union or origin is types.UnionType:
            return self._union(arguments, scope, variables)
        if origin is typing.Literal or getattr(origin, "__name__", getattr(origin, "_name", "")) == "Literal":
            return literal_shape(arguments)
        if _is_qualifier(origin):
            return self.shape(arguments[0], scope, variables)
        if type(origin).__name__ == "TypeAliasType":
            return self._alias(origin, arguments, scope, variables)
        if isinstance(origin, typing.ParamSpec):  # of a wrapper that hides what it wraps
            return ANYTHING
        return self._class(origin, arguments, scope, variables, annotation)

    def _union(self, arguments: tuple[Any, ...], scope: Scope, variables: Mapping[Any, Any]) -> Shape:
        options: list[Shape] = []
        for argument in arguments:
            if argument is UnsetType:  # msgspec's word for a field that may be left out
                continue
            shape = self.shape(argument, scope, variables)
            options.extend(shape.options if isinstance(shape, OneOf) else [shape])
        if ANYTHING in options:
            return ANYTHING
        distinct = list(dict.fromkeys(options))
        if len(distinct) == 1:
            return distinct[0]
        union = OneOf(distinct)
        self.unions.append(union)
        return union

    def noted(
        self, annotation: Any, scope: Scope, variables: Mapping[Any, Any] | None = None
    ) -> tuple[Shape, Notes | None]:
        """The shape of an annotation, and what `Annotated` said that is no part of it: names, defaults, completions."""
        if isinstance(annotation, (str, typing.ForwardRef)):
            annotation = scope.resolve(annotation)
        if typing.get_origin(annotation) is not typing.Annotated:
            return self.shape(annotation, scope, variables), None
        inner, *metadata = typing.get_args(annotation)
        notes = Notes().read(metadata)
        return self.with_notes(inner, notes, scope, variables, annotation), notes

    def admitting(
        self, shape: Shape, default: Any, annotation: Any, scope: Scope, variables: Mapping[Any, Any] | None = None
    ) -> Shape:
        """The shape of what may also be its default: `x: int = None` takes null, as `x: int | None = None` does."""
        if default is not None or "null" in shape.kinds:
            return shape
        if isinstance(annotation, (str, typing.ForwardRef)):
            annotation = scope.resolve(annotation)
        if typing.get_origin(annotation) is not typing.Annotated:
            return self.shape(typing.Union[annotation, None], scope, variables)  # noqa: UP007 - known at run time only
        inner, *metadata = typing.get_args(annotation)
        optional: Any = typing.Annotated[typing.Union[inner, None], *metadata]  # noqa: UP007 - as above
        return self.noted(optional, scope, variables)[0]

    def with_notes(
        self,
        inner: Any,
        notes: Notes,
        scope: Scope,
        variables: Mapping[Any, Any] | None = None,
        annotation: Any = None,
    ) -> Shape:
        """The shape of an annotation with what is said about it."""
        if notes.definition is not None:
            return Defined(notes.definition, self._inner_of_definition(inner, scope, variables))
        if notes.foreign:
            return self._foreign(annotation)
        shape = self.shape(inner, scope, variables)
        keywords = notes.keywords | sizes(notes, shape)
        return note(shape, keywords, [*bounds(notes, shape), *notes.checks])

    def _inner_of_definition(self, inner: Any, scope: Scope, variables: Mapping[Any, Any] | None) -> Shape:
        """With a whole definition the type need not have a JSON form: then the JSON value comes as it is."""
        try:
            return self.shape(inner, scope, variables)
        except DefinitionError:
            return ANYTHING

    # --- classes ------------------------------------------------------------------------------------------------------

    def _class(
        self, cls: Any, arguments: tuple[Any, ...], scope: Scope, variables: Mapping[Any, Any], annotation: Any = None
    ) -> Shape:
        if cls in _ARRAYS:
            wire, build, unique = _ARRAYS[cls]
            item = self.shape(arguments[0], scope, variables) if arguments else ANYTHING
            python = (abc.Iterable,) if cls in {abc.Iterable, abc.Collection} else (cls,)
            return Array(
                item,
                wire=None if item.kinds & {"object", "array"} and unique else wire,
                build=build,
                python=python,
                unique=unique,
            )
        if cls is tuple:
            empty = not arguments and annotation not in {None, typing.Tuple}  # noqa: UP006 - the bare one of old
            return Tuple(()) if empty else self._tuple(arguments, scope, variables)
        if cls in _MAPS:
            return self._map(cls, arguments, scope, variables)
        if not isinstance(cls, type):
            raise _refusal(annotation or cls)
        if issubclass(cls, enum.Enum):
            return enum_shape(cls)
        if (text := text_shape(cls)) is not None:
            return text
        return self._user_class(cls, arguments, scope, variables, annotation)

    def _user_class(
        self, cls: type, arguments: tuple[Any, ...], scope: Scope, variables: Mapping[Any, Any], annotation: Any
    ) -> Shape:
        if is_foreign(cls):
            return self._foreign(cls if annotation is None else annotation)
        arguments = self._resolved(arguments, variables)
        key = (cls, *map(_identity, arguments))
        if key in self._records:
            return self._records[key]
        flavor = flavor_of(cls)
        if flavor is not None:
            return self._record(cls, arguments, flavor, key)
        for base, shape in _BASES.items():
            if issubclass(cls, base):
                return Subtype(cls, shape)
        raise _refusal(cls)

    def _foreign(self, annotation: Any) -> Shape:
        return Foreign(annotation, strict=self._strict)

    def _tuple(self, arguments: tuple[Any, ...], scope: Scope, variables: Mapping[Any, Any]) -> Shape:
        if not arguments:
            return Array(ANYTHING, wire=tuple, build=tuple, python=(tuple,))
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return Array(self.shape(arguments[0], scope, variables), wire=tuple, build=tuple, python=(tuple,))
        return Tuple(tuple(self.shape(item, scope, variables) for item in arguments))

    def _map(self, cls: Any, arguments: tuple[Any, ...], scope: Scope, variables: Mapping[Any, Any]) -> Shape:
        if cls is collections.Counter:
            arguments = (*arguments, int) if arguments else (str, int)
        key, value = arguments or (str, Any)
        shape = self.shape(key, scope, variables)
        return Map(
            STRING if shape is ANYTHING else shape, self.shape(value, scope, variables), build=_MAPS[cls], python=(cls,)
        )

    # --- records ------------------------------------------------------------------------------------------------------

    def _record(self, cls: type, arguments: tuple[Any, ...], flavor: Flavor, key: Any) -> Record:
        own = cls.__dict__.get("__doc__")
        docs = parse_docstring(None if own is None or own.startswith(f"{cls.__name__}(") else own)
        name = "_".join([cls.__name__, *(getattr(argument, "__name__", "") or "of" for argument in arguments)])
        record = Record(name, build=flavor.build, python=flavor.python, description=docs.text, tag=flavor.tag)
        self._records[key] = record
        scope = scope_of_class(cls)
        variables = _type_arguments(cls, arguments)
        record.fields = tuple(
            self._field(member, scope, variables, docs.parameters.get(member.name)) for member in flavor.members
        )
        pairs = zip(record.fields, flavor.members, strict=True)
        record.native = flavor.native and all(field.key == (member.key or member.name) for field, member in pairs)
        return record

    def _field(self, member: Member, scope: Scope, variables: Mapping[Any, Any], description: str | None) -> Field:
        annotation, optional = _unqualified(member.annotation, scope, optional=member.optional)
        try:
            shape, notes = self.noted(annotation, scope, variables)
            default, factory = member.default, member.default_factory
            if notes is not None and default is NODEFAULT and factory is NODEFAULT and not optional:
                default, factory = notes.default, notes.default_factory
            shape = self.admitting(shape, default, annotation, scope, variables)
            if description is not None and (notes is None or "description" not in notes.keywords):
                shape = note(shape, {"description": description})
        except DefinitionError as error:
            raise DefinitionError(f"in field {member.name!r} of {scope.qualname}: {error}") from error
        return Field(
            name=member.name,
            key=(notes.alias if notes is not None and notes.alias else member.key) or member.name,
            shape=shape,
            default=default,
            default_factory=factory,
            optional=optional,
            flow=member.flow,
            omitted=member.omitted,
        )

    def _resolved(self, arguments: tuple[Any, ...], variables: Mapping[Any, Any]) -> tuple[Any, ...]:
        """Type arguments with the type variables of this place filled in."""
        return tuple(variables.get(item, item) if isinstance(item, typing.TypeVar) else item for item in arguments)


def _identity(annotation: Any) -> Any:
    """What tells an annotation from others; by what it is where it can be hashed, which metadata may prevent."""
    try:
        hash(annotation)
    except TypeError:
        return id(annotation)
    return annotation


def _is_qualifier(origin: Any) -> bool:
    """Whether it says something about a field and nothing about its type, in `typing` or in `typing_extensions`."""
    return origin is not None and not isinstance(origin, type) and getattr(origin, "_name", "") in _QUALIFIERS


def _unqualified(annotation: Any, scope: Scope, *, optional: bool) -> tuple[Any, bool]:
    """A field's annotation without `Required`, `NotRequired` and the like, which a postponed one hid from its class."""
    while True:
        if isinstance(annotation, (str, typing.ForwardRef)):
            annotation = scope.resolve(annotation)
        if type(annotation).__name__ == "InitVar":
            annotation = annotation.type
            continue
        origin = typing.get_origin(annotation)
        if not _is_qualifier(origin):
            return annotation, optional
        name = origin._name  # noqa: SLF001 - a special form has no other name
        optional = name == "NotRequired" or (optional and name != "Required")
        annotation = typing.get_args(annotation)[0]


def _type_arguments(cls: type, arguments: tuple[Any, ...]) -> dict[Any, Any]:
    """What type variables stand for inside a class, those of its generic bases included."""
    variables: dict[Any, Any] = dict(zip(getattr(cls, "__parameters__", ()), arguments, strict=False))
    for base in getattr(cls, "__orig_bases__", ()):
        origin = typing.get_origin(base)
        if origin is not None and origin not in {typing.Generic, typing.Protocol}:
            given = tuple(
                variables.get(item, item) if isinstance(item, typing.TypeVar) else item
                for item in typing.get_args(base)
            )
            variables = _type_arguments(origin, given) | variables
    return variables


class NoJsonForm(DefinitionError):
    """A type has no JSON form. The message ends open, for advice on where the type stands."""


def _refusal(annotation: Any) -> NoJsonForm:
    name = getattr(annotation, "__qualname__", None) or repr(annotation)
    return NoJsonForm(
        f"the type {name} has no JSON form. Use a dataclass, TypedDict, NamedTuple, msgspec Struct, attrs class or "
        "pydantic model; or say what it looks like with Annotated[…, Schema(definition={…})]"
    )
