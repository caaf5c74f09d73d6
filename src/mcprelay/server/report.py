"""What does not fit, told so that whoever sent it can mend it: where, what was expected, what came. All of it at once.

Reports are made from a JSON Schema and from the misfits of types; they know no Python type and no protocol.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from mcprelay.errors import DefinitionError, MCPRelayError
from mcprelay.server.coercion import target_of
from mcprelay.server.shape import JsonSchema, Misfit

SHOWN = 20
"""How many misfits the text of one report lists; the data lists all."""

_NOUNS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "an array",
    "object": "an object",
}


class ArgumentError(Struct, frozen=True):
    """One thing that does not fit.

    Attributes:
        path: A JSON Pointer (RFC 6901) into the arguments; the arguments themselves are the empty string.
        expected: What would fit, in words.
        got: What came, in words; None where nothing came.
        message: A sentence that says all of it.
    """

    path: str
    expected: str
    got: str | None
    message: str


class ArgumentsInvalid(MCPRelayError, ValueError):
    """Arguments do not fit what was published. The handler did not run.

    Attributes:
        errors: Everything that does not fit.
    """

    def __init__(self, name: str, errors: Sequence[ArgumentError]) -> None:
        lines = [f"- {error.message}" for error in errors[:SHOWN]]
        if len(errors) > SHOWN:
            lines.append(f"- … and {len(errors) - SHOWN} more")
        super().__init__("\n".join([f"Invalid arguments for {name}:", *lines]))
        self.errors = tuple(errors)

    def data(self) -> list[dict[str, Any]]:
        """The errors as JSON values."""
        plain: list[dict[str, Any]] = msgspec.to_builtins(self.errors)
        return plain


class Reporter:
    """Finds everything in a value that a schema refuses. Built once for each schema, when it is first needed."""

    def __init__(self, schema: JsonSchema, *, what: str = "arguments") -> None:
        """Compile.

        Args:
            schema: What values are held against.
            what: What the value as a whole is called.

        Raises:
            DefinitionError: It is no valid JSON Schema 2020-12.
        """
        from jsonschema_rs import Draft202012Validator, ValidationError  # 8 ms that most servers never pay

        self._schema = schema
        self._what = what
        try:
            self._validator = Draft202012Validator(schema, validate_formats=True, offline=True)
        except ValidationError as error:
            where = place(error.instance_path, "its root")
            raise DefinitionError(f"the schema is no valid JSON Schema 2020-12, at {where}: {error.message}") from error

    def accepts(self, value: Any) -> bool:
        """Whether the schema takes the value."""
        return self._validator.is_valid(value)

    def errors(self, value: Any) -> list[ArgumentError]:
        """Everything that the schema refuses, in the order of the schema."""
        found = self._report(self._validator.iter_errors(value))
        return list({error.message: error for error in found}.values())  # two keywords may refuse for one reason

    def _report(self, found: Iterable[Any]) -> Iterator[ArgumentError]:
        for error in found:
            path = list(error.instance_path)
            keyword = error.kind.name
            if keyword == "required":
                yield self._missing(path, error)
            elif keyword in {"additionalProperties", "unevaluatedProperties"}:
                yield from self._unknown(path, error)
            elif keyword in {"anyOf", "oneOf"} and (inner := _best(error)) is not None:
                yield from self._report(inner)
            else:
                yield self._unfit(path, _expected(self._parent(error), self._schema, keyword), error.instance)

    def _unfit(self, path: Sequence[str | int], expected: str, value: Any) -> ArgumentError:
        got = describe(value)
        message = f"{place(path, self._what)}: expected {expected}, got {got}"
        return ArgumentError(_pointer(path), expected, got, message)

    def _parent(self, error: Any) -> Any:
        """The schema that holds the keyword that refused."""
        node: Any = self._schema
        for step in error.schema_path[:-1]:
            node = node[step] if isinstance(node, (dict, list)) else {}
        return node

    def _missing(self, path: list[Any], error: Any) -> ArgumentError:
        name = error.kind.property
        part = self._parent(error).get("properties", {}).get(name, {})
        expected = _expected(part, self._schema)
        where = place([*path, name])
        return ArgumentError(_pointer([*path, name]), expected, None, f"{where}: is missing, expected {expected}")

    def _unknown(self, path: list[Any], error: Any) -> Iterator[ArgumentError]:
        known = list(self._parent(error).get("properties", {}))
        for name in error.kind.unexpected:
            yield unknown_key([*path, name], known, error.instance[name])


def unknown_key(path: Sequence[str | int], known: Sequence[str], value: Any) -> ArgumentError:
    """The report of a key that is not there to be set, with the one that was probably meant."""
    name = str(path[-1])
    near = difflib.get_close_matches(name, known, n=1) or [key for key in known if key.lower() == name.lower()]
    hint = (
        f"; did you mean {near[0]!r}?" if near else f"; known are {_listed(known)}" if known else "; none is taken here"
    )
    message = f"{place(path)}: there is no such argument{hint}"
    return ArgumentError(_pointer(path), f"one of {_listed(known)}" if known else "nothing", describe(value), message)


def misfit_error(misfit: Misfit, value: Any) -> ArgumentError:
    """The report of a value that its type refused."""
    path = list(misfit.path)
    expected = misfit.reason.partition(", got ")[0].removeprefix("expected ")
    return ArgumentError(_pointer(path), expected, describe(_at(value, path)), f"{place(path)}: {misfit.reason}")


def describe(value: Any) -> str:
    """A JSON value in a few words."""
    if isinstance(value, str):
        shown = value if len(value) <= 60 else f"{value[:57]}…"
        return f"the string {_quoted(shown)}"
    if isinstance(value, dict):
        return f"an object with {_listed(list(value))}" if value else "an empty object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if value is None or isinstance(value, bool):
        return str(msgspec.json.encode(value), "ascii")
    return f"the number {str(value)[:60]}"


def _best(error: Any) -> Sequence[Any] | None:
    """The refusals of the option that came nearest, where the options are objects or arrays and one of them did; else
    the union as a whole is what was not met.
    """
    options = getattr(error.kind, "context", None)
    if not options or not isinstance(error.instance, (dict, list)):
        return None
    depth = len(error.instance_path)
    looked_inside = [
        option
        for option in options
        if option and not any(len(e.instance_path) == depth and e.kind.name == "type" for e in option)
    ]
    return min(looked_inside, key=_distance, default=None)


def _distance(option: Sequence[Any]) -> tuple[bool, int]:
    """How far from fitting: a wrong tag is farther than anything else."""
    return any(error.kind.name in {"enum", "const"} for error in option), len(option)


def _expected(schema: Any, root: Any, keyword: str | None = None) -> str:
    """What a schema wants, in words. Its own description is for the model's first reading, not for this."""
    schema = target_of(schema, root)
    if not isinstance(schema, dict) or not schema:
        return "any value" if schema is not False else "nothing"
    if keyword == "multipleOf":
        return f"a multiple of {schema['multipleOf']}"
    if "enum" in schema:
        return f"one of {_listed(schema['enum'])}" if len(schema["enum"]) != 1 else _quoted(schema["enum"][0])
    if "const" in schema:
        return _quoted(schema["const"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(dict.fromkeys(_expected(option, root) for option in schema[union]))
    return _with_limits(schema, keyword)


def _with_limits(schema: JsonSchema, keyword: str | None) -> str:
    kinds = schema.get("type", [])
    noun = " or ".join(_NOUNS.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)) or "a value"
    words = [text.format(schema[name]) for name, text in _LIMITS.items() if name in schema]
    if schema.get("uniqueItems"):
        words.append("without repetitions")
    if not words and keyword not in {None, "type", "properties", "items"}:
        words.append(f"that meets {keyword!r}")
    return " ".join([noun, " and ".join(words)]).strip()


_LIMITS = {
    "minimum": "of at least {}",
    "exclusiveMinimum": "of more than {}",
    "maximum": "of at most {}",
    "exclusiveMaximum": "of less than {}",
    "multipleOf": "that is a multiple of {}",
    "minLength": "of at least {} characters",
    "maxLength": "of at most {} characters",
    "pattern": "that matches {}",
    "format": "in the format {}",
    "minItems": "of at least {} items",
    "maxItems": "of at most {} items",
    "minProperties": "with at least {} properties",
    "maxProperties": "with at most {} properties",
}


def _listed(values: Sequence[Any], most: int = 12) -> str:
    shown = [_quoted(value) for value in values[:most]]
    return ", ".join(shown) + (", …" if len(values) > most else "")


def _quoted(value: Any) -> str:
    try:
        return str(msgspec.json.encode(value), "utf-8")
    except (TypeError, UnicodeEncodeError):
        return repr(value)


def place(path: Sequence[str | int], whole: str = "arguments") -> str:
    """A path as people write it: `seats[2].row`; of nothing, the word for the whole."""
    if not path:
        return whole
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _pointer(path: Sequence[str | int]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def _at(value: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value
