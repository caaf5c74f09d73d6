"""From the JSON of the arguments to the values that a handler is called with.

The usual way is one decode into a Struct made for the purpose: types, constraints and unknown keys are settled there.
Only when that fails does the second way look closer: decode as plain JSON, mend what may be mended, decode again, and
if that fails too, explain everything that does not fit.

A binder knows a record of parameters. It knows no function, and nothing of who calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from mcprelay.server.coercion import Mender
from mcprelay.server.report import ArgumentError, ArgumentsInvalid, refusal
from mcprelay.server.shape import JsonSchema, Misfit
from mcprelay.server.shape.record import Record
from mcprelay.server.validator import Validator
from mcprelay.server.words import describe

_NOTHING = b"{}"


class Binder:
    """Reads the arguments of one callable."""

    def __init__(
        self,
        name: str,
        record: Record,
        *,
        by: Callable[[], JsonSchema],
        strict: bool = False,
        whole: JsonSchema | None = None,
    ) -> None:
        """Set up. The decoder itself is made for the first call: most of many tools are never called.

        Args:
            name: What the callable is called in reports.
            record: Its parameters.
            by: Makes the schema that arguments are mended by.
            strict: Whether nothing is mended but the spelling of a number.
            whole: What the user says of the arguments as a whole, beyond what the record says.
        """
        self._name = name
        self._record = record
        self._by = by
        self._strict = strict
        self._whole = whole
        self._validator: Validator | None = None
        self._mender: Mender | None = None
        self._decode: Callable[[Raw | bytes], Any] | None = None
        self._lift: Callable[[Any], Any] | None = None

    def decode(self, arguments: Raw | bytes | None) -> tuple[Any, ...]:
        """The values, in the order of the parameters.

        Raises:
            ArgumentsInvalid: They do not fit; it lists everything that does not.
        """
        data = _NOTHING if arguments is None else arguments
        decode = self._decode or self.compile()
        if self._validator is None:
            try:
                values: tuple[Any, ...] = decode(data) if self._lift is None else self._lift(decode(data))
                return values
            except (msgspec.DecodeError, Misfit, RecursionError):
                pass
        return self.bind(self._plain(data))

    def compile(self) -> Callable[[Raw | bytes], Any]:
        """Make the decoder, and what enforces what the user says of the whole.

        Raises:
            DefinitionError: A schema that the user wrote is no valid JSON Schema 2020-12.
        """
        reader = self._record.reader("input")
        self._lift = reader.lift
        if self._whole is not None:
            self._validator = Validator(self._whole)
        self._decode = msgspec.json.Decoder(reader.type).decode
        return self._decode

    def bind(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """The same for arguments that are already values: the variables of a URI, the strings of a prompt.

        Raises:
            ArgumentsInvalid: They do not fit; it lists everything that does not.
        """
        try:
            return self._look_closer(dict(arguments))
        except RecursionError:
            message = "arguments: are nested too deeply"
            raise ArgumentsInvalid(self._name, [ArgumentError("", "less nesting", None, message)]) from None

    def _plain(self, data: Raw | bytes) -> dict[str, Any]:
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            message = f"arguments: {str(error) or 'nested too deeply'}"
            invalid = ArgumentError("", "a JSON object", "what is no JSON value", message)
            raise ArgumentsInvalid(self._name, [invalid]) from error
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise refusal(self._name, [Misfit(f"expected an object, got {describe(value)}")], value)
        return value

    def _look_closer(self, arguments: dict[str, Any]) -> tuple[Any, ...]:
        if self._mender is None:
            self._mender = Mender(self._by(), strict=self._strict)
        mended = self._mender.mend(arguments)
        decode = self._decode or self.compile()
        refused = [] if self._validator is None else self._validator.misfits(mended)
        if not refused:
            try:
                read = decode(msgspec.json.encode(mended))
                values: tuple[Any, ...] = read if self._lift is None else self._lift(read)
                return values
            except (msgspec.DecodeError, Misfit, TypeError):
                pass
        told = {misfit.path[:1] for misfit in refused}
        refused += [misfit for misfit in self._record.explain(mended, "input") if misfit.path[:1] not in told]
        raise refusal(self._name, refused or [Misfit("cannot be read as they are")], mended)
