"""Shapes of Python types that are strings in JSON: dates, times, identifiers, decimals, bytes, paths, addresses.

| type | JSON in | taken beyond that | JSON out |
|---|---|---|---|
| `datetime` | `format: date-time` | any ISO 8601 date or date-time | with an offset; a naive one is local time |
| `date` | `format: date` | any ISO 8601 date | the same |
| `time` | `format: time` | any ISO 8601 time | as it is; a pattern, because the format wants an offset |
| `timedelta` | `format: duration` | fractions and a sign | by a pattern; days, hours, minutes, seconds |
| `UUID` | `format: uuid` | without hyphens | with hyphens |
| `Decimal` | a number, or digits in a string | | digits in a string: exact in every parser |
| `bytes` | base64 | | base64 |
| `Path`, addresses, networks, `re.Pattern`, `ZoneInfo` | a string that the type accepts | | a string |

A format that the type gives is a hint to clients; what is read is decided by the type. Formats that a user states are
enforced (`noted`).
"""

# ruff: noqa: D102 - the methods of a shape are described once, in `Shape`
# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import msgspec

from mcprelay.server.shape import JsonSchema, Kind, Misfit, Mode, Publisher, Reader, Shape
from mcprelay.server.words import clipped

_TIME = r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)?$"
_DURATION = r"^-?P(?!$)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?$"
_DECIMAL = r"^-?\d+(\.\d+)?([eE][+-]?\d+)?$"
_ISO_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?\Z"
)


class Text(Shape):
    """A type that is a string in JSON.

    `wire` is what msgspec decodes to and `parse` makes the value of it; `check` is what written text decodes as.
    """

    def __init__(
        self,
        type: type,
        schema: JsonSchema,
        *,
        wire: Any = str,
        parse: Callable[[Any], Any] | None = None,
        output: JsonSchema | None = None,
        check: Any = str,
        write: Callable[[Any], Any] | None = None,
        repair: Callable[[Any], Any] | None = None,
        kinds: frozenset[Kind] = frozenset({"string"}),
    ) -> None:
        self.type = type
        self.python = (type,)
        self.kinds = kinds
        self._schemas = {"input": schema, "output": schema if output is None else output}
        self._readers = {"input": Reader(wire, parse), "output": Reader(check)}
        self._write = write
        self._repair = repair or write

    def schema(self, to: Publisher) -> JsonSchema:
        return dict(self._schemas[to.mode])

    def reader(self, mode: Mode) -> Reader:
        return self._readers[mode]

    def writer(self, *, careful: bool) -> Callable[[Any], Any] | None:
        return self._repair if careful else self._write

    def refusals(self, misfit: Misfit, value: Any, mode: Mode) -> list[Misfit]:
        own = not isinstance(misfit.__cause__, msgspec.DecodeError)
        return [misfit] if own else [self.unmet(value, mode)]


def _read_datetime(text: str) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        pass
    try:
        return msgspec.convert(text, dt.datetime)
    except msgspec.ValidationError:
        raise Misfit(f"expected a date and time such as 1999-12-31T09:30:00Z, got {clipped(text)!r}") from None


def _read_time(text: str) -> dt.time:
    try:
        return dt.time.fromisoformat(text)
    except ValueError:
        raise Misfit(f"expected a time such as 09:30:00, got {clipped(text)!r}") from None


def _read_date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise Misfit(f"expected a date such as 1999-12-31, got {clipped(text)!r}") from None


def _read_duration(text: str) -> dt.timedelta:
    found = _ISO_DURATION.match(text)
    parts = (
        {unit: float(amount) for unit, amount in found.groupdict().items() if amount and unit != "sign"}
        if found
        else {}
    )
    if not found or not parts:
        expected = "a duration in weeks, days, hours, minutes and seconds such as P1DT2H30M"
        raise Misfit(f"expected {expected}, got {clipped(text)!r}")
    try:
        length = dt.timedelta(**parts)
    except OverflowError:
        raise Misfit(f"the duration {clipped(text)!r} is too long") from None
    return -length if found["sign"] == "-" else length


def _read_uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise Misfit(f"expected a UUID, got {clipped(text)!r}") from None


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise Misfit(f"expected a finite number, got {clipped(str(value))!r}")
    return value


def _with_offset(value: Any) -> Any:
    """RFC 3339 wants an offset, and Python says that a date-time without one is local time."""
    return value.astimezone() if isinstance(value, dt.datetime) and value.tzinfo is None else value


def _write_decimal(value: Any) -> Any:
    return _finite(value) if isinstance(value, Decimal) else value


def _parsed_by(build: Callable[[str], Any], what: str) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            return build(text)
        except Exception as error:
            raise Misfit(f"expected {what}, got {clipped(text)!r} ({clipped(str(error), 120)})") from error

    return parse


_STRING: JsonSchema = {"type": "string"}
_BASE64: JsonSchema = {"type": "string", "contentEncoding": "base64"}


def _formatted(name: str) -> JsonSchema:
    return {"type": "string", "format": name}


def _pattern(expression: str) -> tuple[JsonSchema, Any]:
    """A schema by pattern, and the type that checks it. Our own patterns mean the same to Python and to JSON Schema
    where the string has no line break, and what we write has none.
    """
    return {"type": "string", "pattern": expression}, Annotated[str, msgspec.Meta(pattern=expression)]


def _bytes(type: type) -> Text:
    return Text(type, _BASE64, wire=bytes, parse=None if type is bytes else type)


_time_out, _time_check = _pattern(_TIME)
_duration_out, _duration_check = _pattern(_DURATION)
_decimal_out, _decimal_check = _pattern(_DECIMAL)

_TEXTS: dict[type, Text] = {
    dt.datetime: Text(
        dt.datetime,
        _formatted("date-time"),
        parse=_read_datetime,
        check=Annotated[dt.datetime, msgspec.Meta(tz=True)],
        repair=_with_offset,
    ),
    dt.date: Text(dt.date, _formatted("date"), parse=_read_date, check=dt.date),
    dt.time: Text(dt.time, _formatted("time"), parse=_read_time, output=_time_out, check=_time_check),
    dt.timedelta: Text(
        dt.timedelta, _formatted("duration"), parse=_read_duration, output=_duration_out, check=_duration_check
    ),
    uuid.UUID: Text(uuid.UUID, _formatted("uuid"), parse=_read_uuid, check=uuid.UUID),
    Decimal: Text(
        Decimal,
        {"anyOf": [{"type": "number"}, _decimal_out]},
        wire=Decimal,
        parse=_finite,
        output=_decimal_out,
        check=_decimal_check,
        repair=_write_decimal,
        kinds=frozenset({"string", "number", "integer"}),
    ),
    bytes: _bytes(bytes),
    bytearray: _bytes(bytearray),
    memoryview: _bytes(memoryview),
}

_OTHERS: dict[tuple[str, str], tuple[JsonSchema, str]] = {
    ("pathlib", "Path"): (_STRING, "a path"),
    ("pathlib", "PosixPath"): (_STRING, "a path"),
    ("pathlib", "WindowsPath"): (_STRING, "a path"),
    ("pathlib", "PurePath"): (_STRING, "a path"),
    ("pathlib", "PurePosixPath"): (_STRING, "a path"),
    ("pathlib", "PureWindowsPath"): (_STRING, "a path"),
    ("ipaddress", "IPv4Address"): (_formatted("ipv4"), "an IPv4 address"),
    ("ipaddress", "IPv6Address"): (_formatted("ipv6"), "an IPv6 address"),
    ("ipaddress", "IPv4Network"): (_STRING, "an IPv4 network"),
    ("ipaddress", "IPv6Network"): (_STRING, "an IPv6 network"),
    ("ipaddress", "IPv4Interface"): (_STRING, "an IPv4 address with a prefix"),
    ("ipaddress", "IPv6Interface"): (_STRING, "an IPv6 address with a prefix"),
    ("re", "Pattern"): (_formatted("regex"), "a regular expression"),
    ("zoneinfo", "ZoneInfo"): (_STRING, "a time zone such as Europe/Berlin"),
}
"""By module and name, so that no module is imported for types that nobody uses."""


def text_shape(type: type) -> Text | None:
    """The shape of a type that is a string in JSON, or None."""
    shape = _TEXTS.get(type)
    if shape is None and (other := _OTHERS.get((type.__module__.partition(".")[0], type.__name__))) is not None:
        schema, what = other
        build = re.compile if type is re.Pattern else type
        shape = _TEXTS[type] = Text(type, schema, parse=_parsed_by(build, what), write=plain_text)
    return shape


def plain_text(value: Any) -> Any:
    """The string of a value of these types that msgspec does not write by itself; anything else as it is."""
    if isinstance(value, re.Pattern):
        return value.pattern
    module = type(value).__module__.partition(".")[0]
    return str(value) if module in {"pathlib", "ipaddress", "zoneinfo"} else value
