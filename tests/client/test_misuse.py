"""Mistakes of whoever uses a client are told where they are made, with what would be right."""

import dataclasses
import math
import sys
from pathlib import Path

import pytest

from mcprelay import Client, ConfigurationError, DeadlineExceeded, ResponseInvalid, Server
from mcprelay.client import misuse
from mcprelay.client.elicitation import Elicitation
from mcprelay.client.output import decoder
from mcprelay.client.setting import Settings

server = Server("s")


@server.tool
def double(n: int) -> int:
    """Twice a number."""
    return 2 * n


@dataclasses.dataclass
class Receipt:
    total: float


@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        ("http://x/mcp", {"reqest_timeout": 5}, "no option 'reqest_timeout'; did you mean 'request_timeout'?"),
        ("http://x/mcp", {"on_elict": print}, "no option 'on_elict'; did you mean 'on_elicit'?"),
        ("http://x/mcp", {"zzz": 1}, "no option 'zzz'; there are allow_plaintext, auth, cache"),
        (
            "http://x/mcp",
            {"request_timeout": "5"},
            "request_timeout is a number of seconds, and not '5' (str)",
        ),
        ("http://x/mcp", {"retry": 3}, "retry is a value of the type Retry, and not 3 (int)"),
        ("http://x/mcp", {"settings": {}}, "settings is a value of the type Settings, and not {} (dict)"),
        ("http://x/mcp", {"client_info": "me"}, "client_info is a value of the type Implementation"),
        ("http://x/mcp", {"capabilities": {}}, "capabilities is a value of the type ClientCapabilities"),
        ("http://x/mcp", {"cache": {}}, "cache is a value of the type Cache"),
        ("http://x/mcp", {"memory": {}}, "memory is a value of the type Memory"),
        ("http://x/mcp", {"on_elicit": 5}, "on_elicit is a function or a coroutine function, and not 5 (int)"),
        ("http://x/mcp", {"on_progress": 5}, "on_progress is a function"),
        ("http://x/mcp", {"on_log": "x"}, "on_log is a function"),
        ("http://x/mcp", {"log_level": "warn"}, "log_level is one of debug, info, notice, warning"),
        ("http://x/mcp", {"revision": "1999-01-01"}, "revision is one of 2026-07-28,"),
        ("http://x/mcp", {"headers": 5}, "headers maps names to strings, and not 5 (int)"),
        ("http://x/mcp", {"headers": {"x-key": 5}}, "headers maps names to strings, and not 'x-key' to int"),
        ("http://x/mcp", {"headers": {"Host": "y"}}, "headers: the header 'Host' is the protocol's own"),
        ("http://x/mcp", {"headers": {"mcp-session-id": "y"}}, "is the protocol's own and cannot be set"),
        ("http://x/mcp", {"headers": {"x-key": "a\nb"}}, "'x-key' has a character that is not printable ASCII"),
        ("http://x/mcp", {"headers": {"x key": "a"}}, "headers: 'x key' is not a header name"),
        ("http://x/mcp", {"stderr": "inherit"}, "stderr belongs to a command"),
        (["x"], {"stderr": "show"}, "stderr is 'tail', 'inherit' or a function that gets each line, and not 'show'"),
        (["x"], {"env": {"TOKEN": 5}}, "env maps names to strings, and not 'TOKEN' to int"),
        (["x"], {"env": ["A=b"]}, "env maps names to strings"),
        (["x"], {"cwd": 7}, "cwd is a value of the type str or PathLike, and not 7 (int)"),
        (int, {}, "a Server or a Channel, not the type int"),
    ],
)
def test_a_wrong_option_of_a_client_says_what_would_be_right(target, options, said):
    with pytest.raises(ConfigurationError) as caught:
        Client(target, **options)
    assert said in str(caught.value)


def test_every_setting_and_option_is_known_where_a_word_is_looked_for():
    with pytest.raises(ConfigurationError) as caught:
        Client("http://x/mcp", zzz=1)
    assert all(name in str(caught.value) for name in Settings.__struct_fields__)
    assert "on_sample" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"timeout": "5"}, "timeout is a number of seconds, and not '5' (str)"),
        ({"timeout": True}, "timeout is a number of seconds, and not True (bool)"),
        ({"timeout": float("nan")}, "timeout is a number of seconds"),
        ({"deadline": "now"}, "deadline is a number of seconds, and not 'now' (str)"),
        ({"timeout": 5, "deadline": "now"}, "deadline is a number of seconds"),
        ({"retry": 3}, "retry is a value of the type Retry"),
        ({"on_progress": "x"}, "on_progress is a function"),
        ({"on_log": 1}, "on_log is a function"),
        ({"log_level": "loud"}, "log_level is one of debug"),
        ({"meta": 5}, "meta is a value of the type Mapping, and not 5 (int)"),
        ({"meta": "x"}, "meta is a value of the type Mapping, and not 'x' (str)"),
        ({"idempotency_key": "a b"}, "idempotency_key is 1 to 255 visible ASCII characters, and not 'a b' (str)"),
    ],
)
async def test_a_wrong_option_of_a_call_says_what_would_be_right_and_nothing_is_sent(options, said):
    async with Client(server) as client:
        with pytest.raises(ConfigurationError) as caught:
            await client.call_tool("double", {"n": 1}, **options)
        assert said in str(caught.value)
        assert not client.busy


async def test_an_option_that_a_call_does_not_have_is_a_type_error_with_the_one_that_was_meant():
    async with Client(server) as client:
        with pytest.raises(TypeError, match=r"a call has no option 'tiemout'; did you mean 'timeout'\?"):
            await client.call_tool("double", {"n": 1}, tiemout=5)
        with pytest.raises(TypeError, match="no option 'zzz'; there are correlation_id, deadline"):
            await client.list_tools(zzz=1)
        for option in ("call", "carried", "options", "method", "members", "name"):
            with pytest.raises(TypeError, match=f"a call has no option '{option}'"):
                await client.call_tool("double", {"n": 1}, **{option: 1})


@pytest.mark.parametrize(
    ("updates", "said"),
    [
        ("file:///x", r"and not one string: \['file:///x'\]"),
        (7, r"not 7 \(int\)"),
        (["file:///x", 7], r"7 \(int\) is none"),
    ],
)
def test_what_to_listen_to_is_a_list(updates, said):
    with pytest.raises(ConfigurationError, match=f"updates is a list of strings, .*{said}"):
        Client(server).listen(updates=updates)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(str, "str"), (list[str], "list[str]"), (Receipt, "Receipt"), (Receipt | None, "Receipt | None"), (dict, "dict")],
)
async def test_types_are_called_what_people_call_them(kind, name):
    assert misuse.named(kind).rpartition(".")[2] == name
    async with Client(server) as client:
        with pytest.raises(ResponseInvalid) as caught:
            await client.call_tool("double", {"n": 1}, output=kind)
    assert "<class" not in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize("seconds", [0, 0.0, -1, -math.inf])
async def test_a_time_in_which_nothing_can_be_done_is_no_timeout(seconds):
    async with Client(server) as client:
        for call in (client.call_tool("double", {"n": 1}, timeout=seconds), client.list_tools(timeout=seconds)):
            with pytest.raises(ConfigurationError, match="^timeout is a number of seconds above 0, and not"):
                await call
        with pytest.raises(DeadlineExceeded):
            await client.call_tool("double", {"n": 1}, deadline=1.0)
    for option in ("request_timeout", "connect_timeout"):
        with pytest.raises(ConfigurationError, match=f"^{option} is a number of seconds above 0, and not"):
            Client(server, **{option: seconds})


class Odd:
    """Nothing decodes it."""


@dataclasses.dataclass
class Holding:
    odd: Odd


@dataclasses.dataclass
class Unresolved:
    part: "Nowhere"  # noqa: F821 - there is no such type, on purpose


@pytest.mark.parametrize("without_pydantic", [False, True])
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (5, "and not 5 (int)"),
        ({}, "and not {} (dict)"),
        ("Receipt", "'Receipt' is a name: give the type itself, without quotes"),
        (lambda value: value, "(function)"),
        (len, "(builtin_function_or_method)"),
        (Odd, "values of the type Odd cannot be read: nothing here reads JSON into Odd"),
        (list[Odd], "nothing here reads JSON into Odd"),
        (dict[str, Odd | None], "nothing here reads JSON into Odd"),
        (Holding, "values of the type Holding cannot be read: nothing here reads JSON into Odd"),
        (Unresolved, "values of the type Unresolved cannot be read: name 'Nowhere' is not defined"),
    ],
)
async def test_a_type_that_nothing_reads_is_refused_before_the_tool_runs(kind, said, without_pydantic, monkeypatch):
    if without_pydantic:
        monkeypatch.setitem(sys.modules, "pydantic", None)
    ran = []
    serving = Server("s")
    serving.add_tool(lambda: ran.append(1), name="pay", description="Pay.")
    async with Client(serving) as client:
        for call in (client.call_tool, client.try_call_tool):
            with pytest.raises(ConfigurationError) as caught:
                await call("pay", output=kind)
            assert str(caught.value).startswith("output is a type that JSON can be read into, such as float, list[str]")
            assert said in str(caught.value)
    assert ran == []


def test_what_pydantic_says_of_a_type_is_told_once():
    with pytest.raises(ConfigurationError, match="; pydantic says: name 'Nowhere' is not defined$"):
        decoder(list["Nowhere"])  # noqa: F821 - there is no such type, on purpose
    with pytest.raises(ConfigurationError, match="cannot be read: name 'Nowhere' is not defined$"):
        decoder(Unresolved)


@pytest.mark.parametrize("kind", [Path, list[Path], complex])
def test_what_pydantic_alone_reads_is_read_by_it(kind):
    assert callable(decoder(kind))


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        (int, None, "a tool is called by its name or its contract, not by the type int"),
        ("double", [1], r"the arguments of 'double' must be a mapping, not \[1\] \(list\)"),
        ("double", {"n": int}, "the arguments of 'double' cannot be sent: .*int.* is no JSON value"),
        ("double", {"n": object}, "the type object is no JSON value"),
    ],
)
async def test_arguments_that_cannot_be_sent_say_which_and_why(tool, arguments, said):
    async with Client(server) as client:
        with pytest.raises(ConfigurationError, match=said) as caught:
            await client.call_tool(tool, arguments)
    assert "<class" not in str(caught.value)


async def test_a_result_is_shown_without_its_bytes():
    async with Client(server) as client:
        good = await client.call_tool("double", {"n": 2})
        refused = await client.try_call_tool("double", {"n": "x"})
    assert repr(good).startswith("Succeeded(value=4, content=(Text(")
    assert repr(refused).startswith("Refused(content=(Text(")
    assert all("Raw" not in repr(one) and "UNSET" not in repr(one) for one in (good, refused))


SEATS = {
    "type": "object",
    "properties": {
        "seat": {"type": "string", "enum": ["window", "aisle"]},
        "meal": {"type": "string", "oneOf": [{"const": "v", "title": "Vegan"}, {"const": "m", "title": "Meat"}]},
        "days": {"type": "array", "items": {"type": "string", "enum": ["mon", "tue"]}},
        "bags": {"type": "integer"},
        "code": {"type": "string", "enum": [f"code{n}" for n in range(500)]},
    },
}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"seat": "wing"}, "'seat' must be one of 'window', 'aisle', not 'wing'"),
        ({"meal": "Vegan"}, "'meal' must be one of 'v', 'm', not 'Vegan'"),
        ({"days": ["wed"]}, "'days' must be a list of some of 'mon', 'tue', not ['wed']"),
        ({"bags": "two"}, "'bags' must be integer, not 'two'"),
    ],
)
def test_a_choice_that_a_form_does_not_have_says_which_there_are(values, said):
    with pytest.raises(ValueError, match="the answer does not fit the form") as caught:
        Elicitation(requested_schema=SEATS).accept(**values)
    assert said in str(caught.value)


def test_of_many_choices_some_are_named():
    with pytest.raises(ValueError, match="'code19', …, not") as caught:
        Elicitation(requested_schema=SEATS).accept(code="x" * 10_000)
    assert len(str(caught.value)) < 1000
