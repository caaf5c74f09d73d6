"""What `Annotated` says: our `Schema`, `annotated_types`, `msgspec.Meta`, `pydantic.Field`, plain strings.

Other people's classes are recognized by their names, so that nothing is imported for what a user does not use. What
pydantic alone can enforce (validators, discriminators, strict types) is marked `foreign`: that type goes to pydantic
whole. Metadata of anybody else is passed over, as PEP 593 asks.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import NODEFAULT, UNSET

from mcprelay.server.completion import Complete
from mcprelay.server.schema import Schema
from mcprelay.server.shape import JsonSchema
from mcprelay.server.shape.noted import Check

_BOUNDS = {
    "gt": ("exclusiveMinimum", operator.gt, "more than"),
    "ge": ("minimum", operator.ge, "at least"),
    "lt": ("exclusiveMaximum", operator.lt, "less than"),
    "le": ("maximum", operator.le, "at most"),
}


class Notes:
    """What is said about a type.

    Attributes:
        keywords: JSON Schema keywords.
        sizes: `min` and `max` of a length, whatever it is the length of.
        bounds: Checks of values that JSON has no numbers for.
        checks: Predicates.
        definition: A whole schema that replaces the type's, or None.
        alias: The name in JSON, or None.
        default, default_factory: A default that stands in the annotation, or `msgspec.NODEFAULT`.
        complete: A source of completions, or None.
        foreign: Whether only pydantic can enforce it.
    """

    def __init__(self) -> None:
        self.keywords: JsonSchema = {}
        self.sizes: dict[str, int] = {}
        self.bounds: list[Check] = []
        self.checks: list[Check] = []
        self.definition: JsonSchema | None = None
        self.alias: str | None = None
        self.default: Any = NODEFAULT
        self.default_factory: Any = NODEFAULT
        self.complete: Complete | None = None
        self.foreign = False

    def read(self, metadata: Iterable[Any]) -> Notes:
        """Take in what these say; a later one wins over an earlier one."""
        for item in metadata:
            if isinstance(item, str):
                self.keywords["description"] = item
            elif isinstance(item, Schema):
                self._read_schema(item)
            elif isinstance(item, msgspec.Meta):
                self._read_meta(item)
            elif isinstance(item, Complete):
                self.complete = item
            else:
                self._read_other(item)
        return self

    def _read_schema(self, schema: Schema) -> None:
        if schema.definition is not UNSET:
            self.definition = schema.keywords()
        else:
            self.keywords |= schema.keywords()
        if schema.alias is not UNSET:
            self.alias = schema.alias

    def _read_meta(self, meta: msgspec.Meta) -> None:
        for bound in _BOUNDS:
            self._bound(bound, getattr(meta, bound))
        self._say(multipleOf=meta.multiple_of, pattern=meta.pattern, title=meta.title, description=meta.description)
        self._say(examples=meta.examples)
        self._size(meta.min_length, meta.max_length)
        self.keywords |= meta.extra_json_schema or {}
        if meta.tz is not None:
            self.checks.append(_aware() if meta.tz else _naive())

    def _read_other(self, item: Any) -> None:
        module, name = type(item).__module__.partition(".")[0], type(item).__name__
        if module == "annotated_types":
            self._read_annotated_type(name, item)
        elif module in {"pydantic", "pydantic_core"}:
            self._read_pydantic(name.lstrip("_"), item)
        elif isinstance(documentation := getattr(item, "documentation", None), str):  # PEP 727's Doc
            self.keywords["description"] = documentation

    def _read_annotated_type(self, name: str, item: Any) -> None:
        if (bound := name.lower()) in _BOUNDS:
            self._bound(bound, getattr(item, bound))
        elif name == "MultipleOf":
            self._say(multipleOf=item.multiple_of)
        elif name == "MinLen":
            self._size(item.min_length, None)
        elif name == "MaxLen":
            self._size(None, item.max_length)
        elif name == "Predicate":
            self.checks.append(Check(item.func, f"a value for which {_name_of(item.func)} holds"))
        elif name == "Not":
            self.checks.append(
                Check(lambda value: not item.func(value), f"a value for which {_name_of(item.func)} does not hold")
            )
        elif name == "Timezone":
            self.checks.append(_naive() if item.tz is None else _aware())
        elif isinstance(item, Iterable):  # Interval, Len: groups of the above
            self.read(item)
        elif isinstance(documentation := getattr(item, "documentation", None), str):
            self.keywords["description"] = documentation

    def _read_pydantic(self, name: str, item: Any) -> None:
        if name == "FieldInfo":
            self._read_field(item)
        elif name == "PydanticGeneralMetadata":
            said = {key: value for key, value in vars(item).items() if value is not None}
            self._say(pattern=_expression(said.pop("pattern", None)))
            self.foreign |= bool(said)
        else:
            self.foreign = True

    def _read_field(self, info: Any) -> None:
        self.read(info.metadata)
        self._say(title=info.title, description=info.description, examples=info.examples)
        self._say(deprecated=True if info.deprecated else None)
        self.foreign |= info.discriminator is not None
        alias = info.validation_alias or info.alias
        self.alias = alias if isinstance(alias, str) else self.alias
        if isinstance(info.json_schema_extra, Mapping):
            self.keywords |= info.json_schema_extra
        if type(info.default).__name__ not in {"PydanticUndefinedType", "ellipsis"}:
            self.default = info.default
        if info.default_factory is not None:
            self.default_factory = info.default_factory

    def _say(self, **keywords: Any) -> None:
        self.keywords |= {key: value for key, value in keywords.items() if value is not None}

    def _size(self, least: int | None, most: int | None) -> None:
        self.sizes |= {key: value for key, value in (("min", least), ("max", most)) if value}

    def _bound(self, name: str, value: Any) -> None:
        """A bound is a keyword where JSON has numbers for it, else a check of the value."""
        if value is None:
            return
        keyword, compare, words = _BOUNDS[name]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            self.keywords[keyword] = value
        else:
            self.bounds.append(Check(lambda made: compare(made, value), f"{words} {value}"))


def _expression(pattern: Any) -> Any:
    return getattr(pattern, "pattern", pattern)


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", repr(function))
    return "the predicate" if "<lambda>" in name else name


def _aware() -> Check:
    return Check(lambda value: value.tzinfo is not None, "a time with an offset")


def _naive() -> Check:
    return Check(lambda value: value.tzinfo is None, "a time without an offset")
