"""From the JSON of the arguments to the values that a handler is called with.

The usual way is one decode into a Struct made for the purpose: types, constraints and unknown keys are settled there.
Only when that fails, or when a constraint is one that no decoder enforces, does the second way look closer: decode as
plain JSON, mend what may be mended, hold it against the schema, and decode again.

A binder knows a record of parameters. It knows no function, and nothing of who calls.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from mcprelay.server.coercion import Mender
from mcprelay.server.report import ArgumentError, ArgumentsInvalid, Reporter, describe, misfit_error
from mcprelay.server.shape import JsonSchema, Misfit, Purpose
from mcprelay.server.shape.record import Record

_NOTHING = b"{}"


class Binder:
    """Reads the arguments of one callable."""

    def __init__(
        self,
        name: str,
        record: Record,
        *,
        schema: Callable[[Purpose], JsonSchema],
        strict: bool,
        exact: bool,
    ) -> None:
        """Set up. The decoder itself is made for the first call: most of many tools are never called.

        Args:
            name: What the callable is called in reports.
            record: Its parameters.
            schema: Makes the schema that arguments are mended by, and the one that they are held against.
            strict: Whether nothing is mended but the spelling of a number.
            exact: Whether the record says all that the schema says.
        """
        self._name = name
        self._record = record
        self._schema = schema
        self._strict = strict
        self._mender: Mender | None = None
        self._reporter: Reporter | None = None
        self._exact = exact
        self._decode: Callable[[Raw | bytes], Any] | None = None
        self._lift: Callable[[Any], Any] = _nothing_to_lift
        self._fast = False

    def decode(self, arguments: Raw | bytes | None) -> tuple[Any, ...]:
        """The values, in the order of the parameters.

        Raises:
            ArgumentsInvalid: They do not fit; it lists everything that does not.
        """
        data = _NOTHING if arguments is None else arguments
        decode = self._decode or self.compile()
        if self._fast:
            try:
                values: tuple[Any, ...] = self._lift(decode(data))
                return values
            except (msgspec.DecodeError, Misfit, RecursionError):
                pass
        return self._look_closer(self._plain(data))

    def compile(self) -> Callable[[Raw | bytes], Any]:
        """Make the decoder, and, where it does not enforce all that is published, what does.

        Raises:
            DefinitionError: The schema is no valid JSON Schema 2020-12.
        """
        reader = self._record.reader("input")
        self._lift = reader.lift or _nothing_to_lift
        self._fast = reader.exact and self._exact
        if not self._fast:
            self.reporter()
        self._decode = msgspec.json.Decoder(reader.type).decode
        return self._decode

    def bind(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """The same for arguments that are already values: the variables of a URI, the strings of a prompt.

        Raises:
            ArgumentsInvalid: They do not fit; it lists everything that does not.
        """
        return self._look_closer(dict(arguments))

    def reporter(self) -> Reporter:
        """The reporter, made when it is first needed."""
        if self._reporter is None:
            self._reporter = Reporter(self._schema("check"))
        return self._reporter

    def _plain(self, data: Raw | bytes) -> dict[str, Any]:
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            message = f"arguments: {str(error) or 'nested too deeply'}"
            raise ArgumentsInvalid(
                self._name, [ArgumentError("", "a JSON object", "what is no JSON value", message)]
            ) from error
        if value is None:
            return {}
        if not isinstance(value, dict):
            got = describe(value)
            message = f"arguments: expected an object, got {got}"
            raise ArgumentsInvalid(self._name, [ArgumentError("", "an object", got, message)])
        return value

    def _look_closer(self, arguments: dict[str, Any]) -> tuple[Any, ...]:
        if self._mender is None:
            self._mender = Mender(self._schema("mend"), strict=self._strict)
        mended = self._mender.mend(arguments)
        decode = self._decode or self.compile()
        if self._fast or self.reporter().accepts(mended):
            try:
                values: tuple[Any, ...] = self._lift(decode(_encode(mended)))
                return values
            except (msgspec.DecodeError, Misfit, TypeError):
                pass
        errors = self.reporter().errors(mended)
        known = {_first(error.path) for error in errors}
        errors += [error for error in self._refused(mended) if _first(error.path) not in known]
        if not errors:
            errors = [ArgumentError("", "other arguments", describe(mended), "arguments: cannot be read as they are")]
        raise ArgumentsInvalid(self._name, errors)

    def _refused(self, arguments: dict[str, Any]) -> list[ArgumentError]:
        """What the types refuse of what the schema lets pass, argument by argument."""
        errors: list[ArgumentError] = []
        for field in self._record.fields:
            if field.key in arguments:
                try:
                    field.shape.read(_encode(arguments[field.key]))
                except Misfit as misfit:
                    errors.extend(misfit_error(one.below(field.key), arguments) for one in misfit.every())
            elif field.required:
                errors.append(misfit_error(Misfit("is missing", (field.key,)), arguments))
        return errors + self._refused_others(arguments)

    def _refused_others(self, arguments: dict[str, Any]) -> list[ArgumentError]:
        """The same for arguments that no parameter is named after, where such are taken."""
        named = {field.key for field in self._record.fields}
        errors: list[ArgumentError] = []
        for key, value in arguments.items():
            if self._record.extra is not None and key not in named:
                try:
                    self._record.extra.read(_encode(value))
                except Misfit as misfit:
                    errors.extend(misfit_error(one.below(key), arguments) for one in misfit.every())
        return errors


def _nothing_to_lift(value: Any) -> Any:
    return value


def _encode(value: Any) -> bytes:
    """Plain JSON values as JSON, so that one decoder reads both ways in."""
    return msgspec.json.encode(value)


def _first(pointer: str) -> str:
    return pointer[1:].partition("/")[0]
