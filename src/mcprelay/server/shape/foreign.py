"""Shapes of types that belong to pydantic. pydantic is used here and only here, and only once a user's type needs it.

The schema is pydantic's, by alias, without the titles it makes up from names; what is read and written is pydantic's
own doing, in its own lax or strict mode. Keys that a model does not know are refused, unless the model says otherwise.
"""

# ruff: noqa: D102 - the methods of a shape are described once, in `Shape`
# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from mcprelay.errors import DefinitionError
from mcprelay.server.coercion import target_of
from mcprelay.server.shape import EVERY_KIND, MOST, JsonSchema, Kind, Misfit, Mode, Publisher, Reader, Shape, together
from mcprelay.server.shape.finite import path_to_nonfinite
from mcprelay.server.validator import Validator, unknown

_NOT_A_NUMBER = re.compile(rb'"\s*[-+]?(?:nan|inf(?:inity)?)\s*"', re.IGNORECASE)


class Foreign(Shape):
    """A type that pydantic knows and we do not."""

    def __init__(self, annotation: Any, *, strict: bool) -> None:
        pydantic = _pydantic(annotation)
        try:
            self._adapter: Any = pydantic.TypeAdapter(annotation)
            self._schemas = {mode: self._make_schema(mode) for mode in ("input", "output")}
        except pydantic.errors.PydanticUserError as error:
            raise DefinitionError(f"pydantic cannot describe {annotation!r}: {error.message}") from error
        self._validators: dict[Mode, Validator] = {}
        self._strict = strict
        self._error = pydantic.ValidationError
        self._closed = _is_closed(annotation) and not _has_open_objects(self._schemas["input"])
        self.python = (annotation,) if isinstance(annotation, type) else ()
        self.kinds = _kinds(self._schemas["input"])
        self._options: dict[str, Any] = {"extra": "forbid"} if self._closed else {}

    def _make_schema(self, mode: str) -> JsonSchema:
        from pydantic.json_schema import GenerateJsonSchema

        class Untitled(GenerateJsonSchema):
            def field_title_should_be_set(self, schema: Any) -> bool:
                return False

        schema: Any = self._adapter.json_schema(
            mode="validation" if mode == "input" else "serialization",
            ref_template="#/$defs/{model}",
            schema_generator=Untitled,
        )
        if mode == "output":
            schema = _without_loose_formats(schema)
        plain: JsonSchema = _without_null_defaults(_without_class_titles(schema))
        return plain

    def schema(self, to: Publisher) -> JsonSchema:
        if to.purpose == "mend":  # a model sent as a string of JSON is one; what is inside is pydantic's
            return {"type": sorted(self.kinds)} if self.kinds <= {"object", "array"} else {}
        schema = self._schemas[to.mode]
        if to.mode == "input" and self._closed:
            schema = _close(schema)
        schema = dict(schema)
        renames = {}
        for name, body in schema.pop("$defs", {}).items():
            known = to.foreign.get(name)
            if known is not None and known[1] == body:
                renames[name] = known[0]
            else:
                renames[name] = to.reserve(name)
                to.foreign[name] = (renames[name], body)
                to.defs[renames[name]] = body
        for name in renames.values():
            to.defs[name] = _renamed(to.defs[name], renames)
        renamed: JsonSchema = _renamed(schema, renames)
        return renamed

    def reader(self, mode: Mode) -> Reader:
        return Reader(Raw, self._validate if mode == "input" else self._check)

    def refusals(self, misfit: Misfit, value: Any, mode: Mode) -> list[Misfit]:
        return list(misfit.every())

    def _check(self, raw: Raw) -> None:
        value = msgspec.json.decode(raw)
        if not self._validator("output").accepts(value):
            raise together(self._validator("output").misfits(value))

    def _validator(self, mode: Mode) -> Validator:
        if mode not in self._validators:
            self._validators[mode] = Validator(self._schemas[mode])
        return self._validators[mode]

    def _validate(self, raw: Raw) -> Any:
        data = bytes(raw)
        # pydantic reads the string "nan" as a number, which JSON Schema does not
        if _NOT_A_NUMBER.search(data) and not self._validator("input").accepts(msgspec.json.decode(data)):
            raise Misfit("holds a number that is not finite")
        try:
            return self._adapter.validate_json(data, strict=self._strict or None, **self._options)
        except self._error as error:
            details = error.errors(include_url=False, include_context=False)
            raise together([self._misfit(detail) for detail in details[:MOST]]) from error

    def _misfit(self, detail: Any) -> Misfit:
        path = tuple(detail["loc"])
        if detail["type"] == "extra_forbidden":
            return unknown(str(path[-1]), self._keys_at(path[:-1])).under(path[:-1])
        return Misfit(_sentence(detail["msg"]), path)

    def _keys_at(self, path: tuple[str | int, ...]) -> list[str]:
        """The keys that an object at this place may have."""
        root = self._schemas["input"]
        node = root
        for step in path:
            node = _inside(target_of(node, root), step)
        return list((target_of(node, root) or {}).get("properties", {}))

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        return self._write_careful if careful else self._write

    def _write(self, value: Any) -> Any:
        try:
            data = self._adapter.dump_json(value, by_alias=True, warnings="error")
        except ValueError as error:  # PydanticSerializationError: the value is not what the type says
            raise Misfit(str(error)) from error
        if data.find(b"null") >= 0 and (path := path_to_nonfinite(value)) is not None:
            raise Misfit("is a number that is not finite, which JSON cannot say", (path,) if path else ())
        return Raw(data)

    def _write_careful(self, value: Any) -> Any:
        """A value that is not of the type yet, a mapping for a model say, is made one first."""
        try:
            return self._write(value)
        except Misfit as misfit:
            try:
                return self._write(self._adapter.validate_python(value))
            except self._error:
                raise misfit from None


def _inside(schema: Any, step: str | int) -> Any:
    """The schema of a part, as far as it can be seen without knowing the value."""
    if not isinstance(schema, dict):
        return None
    found = schema.get("items") if isinstance(step, int) else schema.get("properties", {}).get(step)
    for option in schema.get("anyOf", ()) if found is None else ():
        if isinstance(option, dict) and "$ref" in option:
            return option
    return found


def is_foreign(annotation: Any) -> bool:
    """Whether a type belongs to pydantic: one of its own, a model, or a class that tells pydantic how to read it."""
    module = getattr(annotation, "__module__", "") or ""
    return (
        hasattr(annotation, "__get_pydantic_core_schema__")
        or hasattr(annotation, "__pydantic_validator__")
        or module.partition(".")[0] in {"pydantic", "pydantic_extra_types"}
    )


def _sentence(message: str) -> str:
    return (message[:1].lower() + message[1:]).removeprefix("value error, ")


def _pydantic(annotation: Any) -> Any:
    try:
        import pydantic
    except ImportError as error:
        raise DefinitionError(f"{annotation!r} can only be read by pydantic, which is not installed") from error
    return pydantic


def _is_closed(annotation: Any) -> bool:
    """Whether unknown keys are ours to refuse in a model and those inside it, and this pydantic can do so."""
    import inspect

    from pydantic import TypeAdapter

    config = getattr(annotation, "model_config", None) or getattr(annotation, "__pydantic_config__", None) or {}
    return (
        config.get("extra", "forbid") == "forbid" and "extra" in inspect.signature(TypeAdapter.validate_json).parameters
    )


def _has_open_objects(node: Any) -> bool:
    """Whether any object with named properties says that it takes others too."""
    if isinstance(node, dict):
        if "properties" in node and node.get("additionalProperties", False) is not False:
            return True
        return any(_has_open_objects(value) for value in node.values())
    return isinstance(node, list) and any(_has_open_objects(item) for item in node)


def _kinds(schema: JsonSchema) -> frozenset[Kind]:
    target = schema
    if ref := schema.get("$ref"):
        target = schema.get("$defs", {}).get(ref.rpartition("/")[2], {})
    kind: Any = target.get("type")
    if kind not in EVERY_KIND:
        return EVERY_KIND
    return frozenset({"number", "integer"}) if kind == "number" else frozenset({kind})


def _without_class_titles(node: JsonSchema) -> JsonSchema:
    """Pydantic gives each class its name as a title, which says nothing that a reader needs."""
    plain = {key: value for key, value in node.items() if key not in {"title", "$defs"}}
    if "$defs" in node:
        plain["$defs"] = {name: _without_class_title(name, body) for name, body in node["$defs"].items()}
    return plain


def _without_null_defaults(node: Any) -> Any:
    """Pydantic does not hold a default against its type, and publishes null for what may not be null."""
    if isinstance(node, list):
        return [_without_null_defaults(item) for item in node]
    if not isinstance(node, dict):
        return node
    untold = node.get("default", node) is None and isinstance(node.get("type"), str) and node["type"] != "null"
    return {key: _without_null_defaults(value) for key, value in node.items() if not (untold and key == "default")}


def _without_class_title(name: str, body: JsonSchema) -> JsonSchema:
    return {key: value for key, value in body.items() if key != "title" or value != name}


def _without_loose_formats(node: Any) -> Any:
    """Pydantic writes date-times without an offset, and durations with fractions, which their formats do not allow."""
    if isinstance(node, dict):
        return {
            key: _without_loose_formats(value)
            for key, value in node.items()
            if not (key == "format" and value in {"date-time", "time", "duration"})
        }
    return [_without_loose_formats(item) for item in node] if isinstance(node, list) else node


def _close(node: JsonSchema) -> JsonSchema:
    """Say of every object with named properties that it has no others."""
    closed = {
        key: {name: _close(body) for name, body in value.items()} if key == "$defs" else value
        for key, value in node.items()
    }
    if "properties" in closed and "additionalProperties" not in closed:
        closed["additionalProperties"] = False
    return closed


def _renamed(node: Any, renames: dict[str, str]) -> Any:
    """The same schema, its references pointing to the new names."""
    if isinstance(node, dict):
        return {
            key: f"#/$defs/{renames.get(value[8:], value[8:])}"
            if key == "$ref" and isinstance(value, str) and value.startswith("#/$defs/")
            else _renamed(value, renames)
            for key, value in node.items()
        }
    return [_renamed(item, renames) for item in node] if isinstance(node, list) else node
