"""Forms from types: what a person is asked to fill in, and what is made of the answer.

A form is flat: strings, numbers, true or false, one of several choices, several of them (client/elicitation, "Requested
Schema"). A type that is more than that is refused when the form is made, and the message says which part. What the type
demands beyond what a form can say, a pattern for instance, is checked when the answer comes.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from mcprelay.errors import DefinitionError
from mcprelay.server.binding import Binder
from mcprelay.server.coercion import Mender, target_of
from mcprelay.server.report import refusal
from mcprelay.server.shape import JsonSchema, Misfit, Publisher, Shape
from mcprelay.server.shape.record import Field, Record
from mcprelay.server.shape.scope import Scope
from mcprelay.server.shape.walk import Walk

FORMATS = frozenset({"email", "uri", "date", "date-time"})
_REMARKS = ("title", "description")
_VALUE = "value"
"""The name of the only field, where the form is made of a type that is no class of fields."""


class Form(Struct, frozen=True):
    """A form.

    Attributes:
        schema: The `requestedSchema`.
        read: Makes the value of what was filled in.
    """

    schema: JsonSchema
    read: Callable[[dict[str, Any]], Any]

    def decode(self, content: Mapping[str, Any]) -> Any:
        """The value that was filled in. What the form did not ask for is passed over.

        Raises:
            ArgumentsInvalid: It does not fit; it lists everything that does not.
        """
        asked = self.schema["properties"]
        return self.read({key: value for key, value in content.items() if key in asked})


def form_of(annotation: Any) -> Form:
    """The form of a type: a flat class, or a string, number, boolean or enum itself.

    Raises:
        DefinitionError: The type cannot be a form; the message says which part of it, and why.
    """
    try:
        return _remembered(annotation)
    except TypeError:  # not hashable, so not remembered
        return _make(annotation)


def _make(annotation: Any) -> Form:
    name = getattr(annotation, "__name__", None) or "the answer"
    scope = Scope({}, local={}, qualname="")
    shape = Walk(strict=False).shape(annotation, scope)
    published = Publisher("input").publish(shape)
    if published.get("type") != "object" or "properties" not in published:
        shape = _single(shape)
        published = Publisher("input").publish(shape)
    read = _reader(name, shape, published)
    return Form(_flat(name, published), read)


_remembered = lru_cache(maxsize=512)(_make)


def _single(shape: Shape) -> Record:
    record = Record("Answer", build=lambda values: values[0])
    record.fields = (Field(name=_VALUE, key=_VALUE, shape=shape),)
    return record


def _reader(name: str, shape: Shape, published: JsonSchema) -> Callable[[dict[str, Any]], Any]:
    if isinstance(shape, Record):
        return Binder(f"the form {name}", shape, by=lambda: published).bind
    mender = Mender(published, strict=False)

    def read(content: dict[str, Any]) -> Any:
        mended = mender.mend(content)
        try:
            return shape.read(msgspec.json.encode(mended))
        except Misfit as misfit:
            raise refusal(f"the form {name}", list(misfit.every()), mended) from misfit

    return read


def _flat(name: str, published: JsonSchema) -> JsonSchema:
    """The part of JSON Schema that a form may say."""
    required = published.get("required", [])
    properties: JsonSchema = {}
    demanded: list[str] = []
    for key, schema in published["properties"].items():
        part, nullable = _without_null(target_of(schema, published) or {}, published)
        said = {**part, **{word: schema[word] for word in (*_REMARKS, "default") if word in schema}}
        properties[key] = _property(name, key, said, published)
        if key in required and not nullable:
            demanded.append(key)
    form: JsonSchema = {"type": "object", "properties": properties}
    return form | {"required": demanded} if demanded else form


def _without_null(schema: JsonSchema, root: JsonSchema) -> tuple[JsonSchema, bool]:
    """What may be filled in, and whether it may be left empty."""
    options = [target_of(option, root) for option in schema.get("anyOf", ())]
    others = [option for option in options if option.get("type") != "null"]
    if others and len(others) < len(options):
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return ({**others[0], **rest} if len(others) == 1 else {**rest, "anyOf": others}), True
    kinds = schema.get("type")
    if isinstance(kinds, list) and "null" in kinds:
        left = [kind for kind in kinds if kind != "null"]
        enum = {"enum": [value for value in schema["enum"] if value is not None]} if "enum" in schema else {}
        return {**schema, **enum, "type": left[0] if len(left) == 1 else left}, True
    return schema, False


def _property(name: str, key: str, schema: JsonSchema, root: JsonSchema) -> JsonSchema:
    """One field of the form."""
    said = {word: schema[word] for word in _REMARKS if word in schema}
    options = [target_of(option, root) for option in schema.get("anyOf", ())]
    if any(option.get("type") == "number" for option in options):  # a decimal: a number, or its digits
        schema = {**schema, "type": "number"}
    made = _field(schema, root)
    if made is None:
        raise DefinitionError(
            f"{name} cannot be a form: {key!r} is not a string, number, boolean, one of several strings or several of "
            "them. Forms are flat (client/elicitation); ask for its parts one by one."
        )
    default = schema.get("default")
    if default is not None:
        made["default"] = _default(made, default)
    return {**made, **said}


def _default(made: JsonSchema, default: Any) -> Any:
    """A default as the field has its values: choices as strings, decimals as numbers."""
    if "enum" in made:
        return str(default)
    return float(default) if made["type"] == "number" else default


def _field(schema: JsonSchema, root: JsonSchema) -> JsonSchema | None:
    kind = schema.get("type")
    if "enum" in schema:
        return _choice(schema)
    if kind == "boolean":
        return {"type": "boolean"}
    if kind in {"integer", "number"}:
        return {"type": kind, **_range(schema)}
    if kind == "string" and (titled := _titled(schema.get("oneOf"))):
        return {"type": "string", "oneOf": titled}
    if kind == "string" and "contentEncoding" not in schema:
        return _string(schema)
    return _choices(schema, root) if kind == "array" else None


def _string(schema: JsonSchema) -> JsonSchema:
    made: JsonSchema = {
        "type": "string",
        **{word: schema[word] for word in ("minLength", "maxLength") if word in schema},
    }
    return made | {"format": schema["format"]} if schema.get("format") in FORMATS else made


def _range(schema: JsonSchema) -> JsonSchema:
    """The least and the greatest number. A form has no exclusive bounds; of integers it needs none."""
    made: JsonSchema = {word: schema[word] for word in ("minimum", "maximum") if word in schema}
    if schema["type"] == "integer":
        if "exclusiveMinimum" in schema:
            made["minimum"] = schema["exclusiveMinimum"] + 1
        if "exclusiveMaximum" in schema:
            made["maximum"] = schema["exclusiveMaximum"] - 1
    return made


def _choice(schema: JsonSchema) -> JsonSchema | None:
    """One of several. Choices are strings on the wire; a number among them is read back from its digits."""
    values = schema["enum"]
    if not values or any(isinstance(value, (bool, float, list, dict)) or value is None for value in values):
        return None
    made: JsonSchema = {"type": "string", "enum": [str(value) for value in values]}
    names = schema.get("enumNames")  # how choices had names before they had titles
    return made | {"enumNames": names} if isinstance(names, list) and len(names) == len(values) else made


def _titled(options: Any) -> list[JsonSchema]:
    """Choices that have titles, as an author writes them; none if these are not such choices."""
    choices = [
        {"const": option["const"], "title": option["title"]}
        for option in (options if isinstance(options, list) else ())
        if isinstance(option, dict) and isinstance(option.get("const"), str) and isinstance(option.get("title"), str)
    ]
    return choices if options and len(choices) == len(options) else []


def _choices(schema: JsonSchema, root: JsonSchema) -> JsonSchema | None:
    item = target_of(schema.get("items"), root) or {}
    choice = _choice(item) if "enum" in item else None
    if titled := _titled(item.get("anyOf")):
        choice = {"anyOf": titled}
    if choice is None:
        return None
    return {
        "type": "array",
        "items": choice,
        **{word: schema[word] for word in ("minItems", "maxItems") if word in schema},
    }
