"""The options of a call: one list, which the type, the calls and the documentation have in common."""

import re
from pathlib import Path

import pytest

import mcprelay
from mcprelay import CallOptions, Client, Server
from mcprelay.client.caller import Caller

CALL = Path(__file__).parents[2] / "docs" / "call.md"


def test_the_type_of_the_options_is_public_and_made_when_it_is_asked_for():
    assert "CallOptions" in mcprelay.__all__
    assert {"timeout", "deadline", "retry"} <= CallOptions.__annotations__.keys()


def test_every_option_is_documented_and_every_documented_one_is_there():
    section = CALL.read_text(encoding="utf-8").partition("## Options of a call")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+`) \|", section, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == CallOptions.__annotations__.keys()


def test_calls_take_what_the_type_has():
    code = Caller._shape.__code__
    taken = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    assert set(taken) == CallOptions.__annotations__.keys()


async def test_options_that_are_passed_on_reach_the_call():
    server = Server("s")
    server.tool(lambda: 1, name="one")
    given: CallOptions = {"timeout": 5.0, "idempotency_key": "order-4711"}
    async with Client(server) as client:
        assert (await client.call_tool("one", **given, output=int)).value == 1
        with pytest.raises(TypeError, match="a call has no option 'timout'; did you mean 'timeout'"):
            await client.call_tool("one", timout=5)
