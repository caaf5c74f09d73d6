"""The parameters of one callable: which of them are arguments, what each is in JSON, and where its value goes.

A plan knows signatures and shapes. It decodes nothing; the thunk it makes puts values, in the order of the arguments,
and injected values, in the order of the injections, where the callable wants them.
"""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from msgspec import NODEFAULT, UNSET, Struct

from mcprelay.errors import DefinitionError
from mcprelay.server.binding import Binder
from mcprelay.server.completion import Complete
from mcprelay.server.docstring import Docstring
from mcprelay.server.schema import HEADER, Schema
from mcprelay.server.shape import JsonSchema, Publisher, Shape
from mcprelay.server.shape.ambiguity import refuse_ambiguous
from mcprelay.server.shape.choice import Choice
from mcprelay.server.shape.collection import Array
from mcprelay.server.shape.noted import Defined, Noted, is_remark, note
from mcprelay.server.shape.notes import Notes
from mcprelay.server.shape.record import ABSENT, Field, Record
from mcprelay.server.shape.scalar import ANYTHING, NULL
from mcprelay.server.shape.union import NullUnsaid, OneOf
from mcprelay.server.shape.walk import NoJsonForm, Walk
from mcprelay.server.target import Target

Injects: TypeAlias = Callable[[str, Any], Any]
"""Given a parameter's name and its evaluated annotation: what will be injected there, or None for an argument."""

Values: TypeAlias = Sequence[Any]
Thunk: TypeAlias = Callable[[Values, Values], Any]
"""A call: the values of the arguments, and the injected ones."""

_VALUE, _INJECTED = 0, 1
_KINDS = {str: {"string"}, bool: {"boolean"}, int: {"integer", "number"}, float: {"number"}}
_BY_POSITION = frozenset({inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD})


class Injection(Struct, frozen=True):
    """A parameter that is injected: its name, and what the predicate said of it."""

    name: str
    token: Any


class Added(Struct, frozen=True):
    """What the user adds for the arguments as a whole, taken apart."""

    definition: JsonSchema | None = None
    properties: dict[str, JsonSchema] = {}
    required: frozenset[str] = frozenset()
    others: Any = UNSET
    root: JsonSchema = {}

    @classmethod
    def of(cls, schema: Schema | None) -> Added:
        """Take apart. What the signature settles, the type and which parameters are required, is left to it.

        Raises:
            DefinitionError: A whole definition is not of an object.
        """
        if schema is None:
            return cls()
        keywords = schema.keywords()
        if schema.definition is not UNSET:
            if keywords.get("type") != "object":
                raise DefinitionError("Schema(definition=…) for all arguments says {'type': 'object'} at its root")
            return cls(definition=keywords)
        properties = keywords.pop("properties", {})
        others = keywords.pop("additionalProperties", UNSET)
        root = {key: value for key, value in keywords.items() if key not in {"type", "required"}}
        required = frozenset(keywords.get("required", ()))
        return cls(properties=properties, required=required, others=others, root=root)


class Plan:
    """Where every parameter of a callable gets its value.

    Attributes:
        record: The arguments, as one object.
        injections: The parameters that are injected.
        completions: Where suggestions for arguments come from, by argument.
    """

    def __init__(self, target: Target, docs: Docstring, walk: Walk, injects: Injects, added: Added) -> None:
        self.record = Record(target.name, build=tuple)
        self.injections: list[Injection] = []
        self.completions: dict[str, Complete] = {}
        self._scope = target.scope
        self._docs = docs
        self._walk = walk
        self._added = added
        self._fields: list[Field] = []
        self._positions: list[tuple[int, int]] = []
        self._names: list[tuple[str, int, int]] = []
        self._spread: int | None = None
        self._passes_others = False
        for parameter in target.signature.parameters.values():
            try:
                self._take(parameter, injects)
            except NoJsonForm as error:
                advice = "or, if the caller should not send it, take it from Annotated[…, Depends(…)]."
                raise DefinitionError(f"parameter {parameter.name!r}: {error}; {advice}") from error
            except DefinitionError as error:
                raise DefinitionError(f"parameter {parameter.name!r}: {error}") from error
        self._name_others()
        self.record.fields = tuple(self._fields)
        self._open_up()
        self._check_keys()
        refuse_ambiguous(walk.unions)

    def binder(self, *, strict: bool) -> tuple[JsonSchema, Binder]:
        """What is published, and what reads the arguments.

        Raises:
            DefinitionError: What the user added is no JSON Schema.
        """
        publisher = Publisher("input")
        definition, root = self._added.definition, self._added.root
        published = definition or publisher.publish(self.record) | root
        whole = definition or {keyword: value for keyword, value in root.items() if not is_remark(keyword)} or None

        def by() -> JsonSchema:
            return definition or Publisher("input", purpose="mend").publish(self.record)

        binder = Binder(self.record.name, self.record, by=by, strict=strict, whole=whole)
        if publisher.stated or whole is not None:
            binder.compile()
        return published, binder

    # --- one parameter

    def _take(self, parameter: inspect.Parameter, injects: Injects) -> None:
        annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
        while isinstance(annotation, (str, typing.ForwardRef)):
            annotation = self._scope.resolve(annotation)
        token = injects(parameter.name, annotation)
        if token is None:
            _refuse_marks(parameter, annotation)
        if token is not None:
            self._pass(parameter, _INJECTED, len(self.injections))
            self.injections.append(Injection(parameter.name, token))
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            self._take_others(annotation)
        else:
            self._pass(parameter, _VALUE, len(self._fields))
            self._fields.append(self._field(parameter, annotation))

    def _pass(self, parameter: inspect.Parameter, source: int, at: int) -> None:
        if parameter.kind in _BY_POSITION:
            self._positions.append((source, at))
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            self._spread = at
        else:
            self._names.append((parameter.name, source, at))

    def _take_others(self, annotation: Any) -> None:
        """`**kwargs`: any other name, all of one type; or, unpacked from a TypedDict, the names that it has."""
        if typing.get_origin(annotation) is not typing.Unpack:
            self.record.extra = self._walk.shape(annotation, self._scope)
            self._passes_others = True
            return
        unpacked = self._walk.shape(typing.get_args(annotation)[0], self._scope)
        for field in unpacked.fields if isinstance(unpacked, Record) else ():
            self._names.append((field.name, _VALUE, len(self._fields)))
            self._fields.append(field)

    def _name_others(self) -> None:
        """What the user's `Schema` says of arguments that arrive in `**kwargs`, where it alone can tell of them."""
        if not self._passes_others:
            return
        keys = {field.key for field in self._fields}
        for key, said in self._added.properties.items():
            if key not in keys:
                self._names.append((key, _VALUE, len(self._fields)))
                shape = Defined(said, ANYTHING)
                self._fields.append(Field(name=key, key=key, shape=shape, optional=key not in self._added.required))

    def _field(self, parameter: inspect.Parameter, annotation: Any) -> Field:
        annotation, notes, shape, default = self._noted(parameter, annotation)
        said = {} if notes is None else notes.keywords
        key = notes.alias if notes is not None and notes.alias else parameter.name
        factory = NODEFAULT
        if default is NODEFAULT and notes is not None:
            default, factory = notes.default, notes.default_factory
        shape = self._walk.admitting(shape, default, annotation, self._scope)
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            shape, default = Array(shape, wire=list, build=list, python=(list,)), ()
        shape = self._described(shape, said, parameter.name, key)
        self._note_completion(key, shape, notes)
        _check_default(shape, default)
        return Field(name=parameter.name, key=key, shape=_headed(shape), default=default, default_factory=factory)

    def _noted(self, parameter: inspect.Parameter, annotation: Any) -> tuple[Any, Notes | None, Shape, Any]:
        """The annotation, what it says besides the type, the shape, and the default. `x: int = Field(5, ge=1)` says
        all of it in one place.
        """
        default = NODEFAULT if parameter.default is parameter.empty else parameter.default
        if not (type(default).__name__ == "FieldInfo" and type(default).__module__.startswith("pydantic")):
            shape, said = self._walk.noted(annotation, self._scope)
            return annotation, said, shape, default
        if typing.get_origin(annotation) is not typing.Annotated:
            inner, metadata = annotation, (default,)
        else:
            inner, *others = typing.get_args(annotation)
            metadata = (*others, default)
        notes = Notes().read(metadata)
        whole: Any = typing.Annotated[inner, *metadata]
        return whole, notes, self._walk.with_notes(inner, notes, self._scope, annotation=whole), NODEFAULT

    def _described(self, shape: Shape, said: JsonSchema, name: str, key: str) -> Shape:
        """With what the docstring and the callable's `Schema` say of it, where the parameter itself says nothing."""
        added = self._added.properties.get(key, {})
        text = self._docs.parameters.get(name)
        keywords = ({} if text is None else {"description": text}) | added
        missing = {keyword: value for keyword, value in keywords.items() if keyword not in said}
        if isinstance(shape, Defined):
            return Noted(shape, {k: v for k, v in missing.items() if k == "description" and k not in shape.definition})
        return note(shape, missing)

    def _note_completion(self, key: str, shape: Shape, notes: Notes | None) -> None:
        """Suggestions come from where the user says, else from the values that there are to choose from."""
        if notes is not None and notes.complete is not None:
            self.completions[key] = notes.complete
        elif values := _values_of(shape):
            self.completions[key] = Complete(values)

    # --- all of them

    def _open_up(self) -> None:
        """Whether arguments are welcome that no parameter is named after, beyond `**kwargs`."""
        others = UNSET if self.record.extra is not None else self._added.others
        if self._added.definition is not None and self.record.extra is None:
            self.record.extra = ANYTHING
        elif others is not UNSET and others is not False:
            self.record.extra = ANYTHING if others is True else Defined(others, ANYTHING)

    def _check_keys(self) -> None:
        keys = [field.key for field in self._fields]
        for key in keys:
            if keys.count(key) > 1:
                raise DefinitionError(f"two parameters are called {key!r} in JSON; give one another alias")
        if self.record.extra is None:
            for key in self._added.properties.keys() - set(keys):
                raise DefinitionError(f"Schema(properties=…) describes {key!r}, and no parameter has that name")
        if self._passes_others:
            taken = {name for name, _, _ in self._names} | {injection.name for injection in self.injections}
            by_position = {field.name for field in self._fields}
            self.record.reserved = frozenset((taken | by_position) - set(keys))

    def thunk(self, call: Callable[..., Any]) -> Thunk:
        """The call itself, its arguments in place."""
        if self._names or self._spread is not None or self.record.extra is not None:
            return self._placing(call)
        sources = [source for source, _ in self._positions]
        if not self.injections:
            return lambda values, _injected: call(*values)
        if sources == sorted(sources):
            return lambda values, injected: call(*values, *injected)
        if sources == sorted(sources, reverse=True):
            return lambda values, injected: call(*injected, *values)
        return self._placing(call)

    def _placing(self, call: Callable[..., Any]) -> Thunk:
        positions, names, spread, passes_others = self._positions, self._names, self._spread, self._passes_others

        def placed(values: Values, injected: Values) -> Any:
            given = (values, injected)
            positional = [given[source][at] for source, at in positions]
            if spread is not None:
                positional.extend(values[spread])
            named = {name: value for name, source, at in names if (value := given[source][at]) is not ABSENT}
            return call(*positional, **named, **values[-1]) if passes_others else call(*positional, **named)

        return placed


def _refuse_marks(parameter: inspect.Parameter, annotation: Any) -> None:
    """Refuse what would be taken for a value, or for nothing, although it was meant to say where the value comes from.

    A `Depends` of another framework is one of these; its name is all that is known of it here.
    """
    kind = type(parameter.default)
    if kind in {Schema, Complete} or kind.__name__ == "Depends":
        raise DefinitionError(
            f"its default is a {kind.__name__}(…), and a default is a value; write"
            f" {parameter.name}: Annotated[…, {kind.__name__}(…)] with the {kind.__name__} of mcprelay"
        )
    for mark in typing.get_args(annotation)[1:] if typing.get_origin(annotation) is typing.Annotated else ():
        home = type(mark).__module__.partition(".")[0]
        if type(mark).__name__ == "Depends" and home != "mcprelay":
            raise DefinitionError(f"the Depends of {home} means nothing here: import Depends from mcprelay")


def _check_default(shape: Shape, default: Any) -> None:
    """Refuse a plain default that the argument's own type does not allow.

    None passes: it says that there is no value. So does what JSON cannot say, since it is not published.
    """
    if isinstance(default, float) and not math.isfinite(default):
        return
    kinds = _KINDS.get(type(default))
    said = shape.schema(Publisher("input")).get("type") if kinds is not None else None
    if kinds is None or not isinstance(said, str) or said in kinds:
        return
    if not (said == "integer" and isinstance(default, float) and default.is_integer()):
        raise DefinitionError(f"its default {default!r} is no {said}, which is what its annotation asks for")


def _headed(shape: Shape) -> Shape:
    """An argument that a header mirrors has one primitive type: that it may be null is not said, though it may."""
    if not isinstance(shape, Noted) or HEADER not in shape.keywords or not isinstance(shape.inner, OneOf):
        return shape
    options = [option for option in shape.inner.options if option is not NULL]
    return Noted(NullUnsaid(shape.inner, options[0]), shape.keywords) if len(options) == 1 else shape


def _values_of(shape: Shape) -> tuple[Any, ...]:
    """The values of an enum or a Literal, also of an optional one."""
    if isinstance(shape, Noted):
        return _values_of(shape.inner)
    if isinstance(shape, OneOf):
        return tuple(value for option in shape.options for value in _values_of(option))
    return tuple(value for value in shape.values if value is not None) if isinstance(shape, Choice) else ()
