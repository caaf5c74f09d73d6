"""What a `Schema` says of arguments that arrive in `**kwargs`: the signature cannot tell of them, so it does."""

from __future__ import annotations

import pytest

from mcprelay import DefinitionError, Schema, Server
from mcprelay.server.report import ArgumentsInvalid
from mcprelay.server.signature import compile_call

UNITS = {"type": "string", "enum": ["m", "ft"]}


def measure(what: str, **options: object) -> dict[str, object]:
    return {"what": what, **options}


def compiled(**said: object):
    return compile_call(measure, schema=Schema(**said))  # type: ignore[arg-type]


def called(data: bytes, **said: object) -> dict[str, object]:
    one = compiled(**said)
    result: dict[str, object] = one.call(one.decode(data), ())
    return result


def test_properties_of_no_parameter_are_published_beside_those_of_parameters():
    schema = compiled(properties={"units": UNITS, "what": {"minLength": 1}}, required=["units"]).input_schema
    assert schema["properties"] == {"what": {"type": "string", "minLength": 1}, "units": UNITS}
    assert (schema["required"], schema["additionalProperties"]) == (["what", "units"], True)


def test_they_are_enforced_and_arrive_with_the_others():
    said = {"properties": {"units": UNITS}}
    assert called(b'{"what":"a","units":"m","more":1}', **said) == {"what": "a", "units": "m", "more": 1}
    assert called(b'{"what":"a"}', **said) == {"what": "a"}
    with pytest.raises(ArgumentsInvalid, match='units: expected one of "m", "ft", got the string "km"'):
        called(b'{"what":"a","units":"km"}', **said)


def test_what_is_required_must_come():
    with pytest.raises(ArgumentsInvalid, match='units: is missing, expected one of "m", "ft"'):
        called(b'{"what":"a"}', properties={"units": UNITS}, required=["units"])


def test_numbers_in_strings_are_read_by_their_schema():
    assert called(b'{"what":"a","times":"3"}', properties={"times": {"type": "integer"}})["times"] == 3


def test_without_kwargs_a_property_of_no_parameter_stays_an_error():
    with pytest.raises(DefinitionError, match="describes 'units', and no parameter has that name"):
        Server("s").add_tool(lambda what: what, name="t", schema=Schema(properties={"units": UNITS}))
