"""How a call ends: value, refusal, failure; typed values; what came is kept."""

import asyncio
import collections.abc
import copy
import dataclasses
import enum
import pickle
import re
from typing import Annotated, Any

import msgspec
import pydantic
import pytest
from msgspec import UNSET

from mcprelay import (
    Audio,
    Client,
    ConfigurationError,
    EmbeddedResource,
    Evidence,
    Image,
    Refused,
    RemoteError,
    ResourceLink,
    ResponseInvalid,
    Server,
    Succeeded,
    Text,
    ToolError,
    define,
)
from mcprelay.types import Unknown
from tests.client.peer import connected, in_session, tool_result


async def answered(result, *args, **options):
    """What `call_tool` gives for a result of the server's."""
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("t", *args, **options))
        channel.reply(await channel.expect("tools/call"), result)
        return await calling


async def tried(result, **options):
    """What `try_call_tool` gives for a result of the server's."""
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.try_call_tool("t", **options))
        channel.reply(await channel.expect("tools/call"), result)
        return await calling


async def test_every_kind_of_content_is_kept_as_it_came():
    content = [
        {"type": "text", "text": "a"},
        {"type": "image", "data": "AAEC", "mimeType": "image/png"},
        {"type": "audio", "data": "AAEC", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///a", "blob": "AAEC"}},
        {"type": "hologram", "beam": [1, 2]},
        {"type": "image", "data": "not base64!", "mimeType": "image/png"},
        {"type": "text", "text": "b", "_meta": {"x": 1}, "annotations": {"priority": 1}},
    ]
    result = await answered({"resultType": "complete", "content": content, "_meta": {"k": "v"}, "extra": 1})
    kinds = [Text, Image, Audio, ResourceLink, EmbeddedResource, Unknown, Unknown, Text]
    assert [type(block) for block in result.content] == kinds
    assert result.content[1].data == b"\x00\x01\x02"
    assert msgspec.json.decode(result.content[5].raw) == content[5]
    assert result.content[6].type == "image"
    assert result.content[7].meta == {"x": 1}
    assert result.text == "a\nb"
    assert result.meta == {"k": "v"}
    assert result.structured is UNSET
    assert msgspec.json.decode(result.raw)["extra"] == 1


@pytest.mark.parametrize("value", [None, 0, "", [], {}, 1.5, 2**70, {"result": 1}, [None]])
async def test_structured_content_of_any_kind_is_the_value_and_null_is_not_absent(value):
    result = await answered({"resultType": "complete", "content": [], "structuredContent": value})
    assert result.value == value
    assert result.structured == value


async def test_without_structured_content_the_text_is_the_value():
    result = await answered({"resultType": "complete", "content": [{"type": "text", "text": "a"}]})
    assert result.value == "a"
    assert result.structured is UNSET


async def test_a_result_without_a_type_is_complete_and_one_of_an_unknown_type_is_none():
    assert (await answered({"content": []})).content == ()
    with pytest.raises(ResponseInvalid, match="'task'"):
        await answered({"resultType": "task", "content": []})


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"contents": 5},
        {"resultType": "complete"},
        {"content": 5},
        {"content": None},
        {"content": [7]},
        {"content": [{"no": "type"}]},
        {"isError": "yes"},
        [],
    ],
)
async def test_a_result_that_is_none_is_told(result):
    with pytest.raises(ResponseInvalid) as caught:
        await answered(result)
    assert caught.value.evidence is Evidence.ANSWERED
    assert caught.value.excerpt


async def test_content_is_required_where_nothing_else_says_what_the_call_came_to():
    with pytest.raises(
        ResponseInvalid, match="it has neither `content`, which every result of a tool has, nor"
    ) as caught:
        await answered({"contents": 5})
    assert caught.value.excerpt == '{"contents":5}'
    assert (await answered({"content": []})).value == ""
    assert (await answered({"structuredContent": {"a": 1}})).value == {"a": 1}
    assert (await tried({"isError": True})).content == ()


async def test_a_refusal_is_an_exception_or_a_value_with_its_content():
    refusal = {
        "resultType": "complete",
        "isError": True,
        "content": [{"type": "text", "text": "no such row"}],
        "structuredContent": {"c": 1},
    }
    with pytest.raises(ToolError, match="no such row") as caught:
        await answered(refusal, output=int)  # before any decoding
    assert caught.value.content == (Text("no such row"),)
    assert caught.value.structured == {"c": 1}
    assert caught.value.result.is_error
    match await tried(refusal):
        case Refused(content, structured):
            assert content == (Text("no such row"),)
            assert structured == {"c": 1}
        case other:
            pytest.fail(f"{other!r} is no refusal")


async def test_a_value_is_matched_by_its_kind():
    match await tried(tool_result(3)):
        case Succeeded(value):
            assert value == 3
        case other:
            pytest.fail(f"{other!r} is no success")


async def test_an_error_of_the_protocol_is_a_failure_with_code_and_data():
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.try_call_tool("t", correlation_id="c-1"))
        request = await channel.expect("tools/call")
        channel.refuse(request, -32602, "unknown tool", {"tool": "t"})
        with pytest.raises(RemoteError) as caught:
            await calling
        error = caught.value
        assert (error.code, error.data, error.message) == (-32602, {"tool": "t"}, "unknown tool")
        assert (error.method, error.request_id, error.correlation_id) == ("tools/call", request["id"], "c-1")
        assert error.evidence is Evidence.ANSWERED


# --- typed values


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Color(enum.Enum):
    RED = "red"


class Model(pydantic.BaseModel):
    a: int = pydantic.Field(ge=1)


CASES = [
    (3, int, 3),
    ("a", str, "a"),
    ({"x": 1}, Point, Point(1)),
    ([{"x": 1, "y": 2}], list[Point], [Point(1, 2)]),
    ("red", Color, Color.RED),
    ({"a": 2}, Model, Model(a=2)),
    ([{"a": 2}], list[Model], [Model(a=2)]),
    (None, type(None), None),
    (None, int | None, None),
    ({"k": [1]}, dict[str, list[int]], {"k": [1]}),
    (5, Any, 5),
]


@pytest.mark.parametrize(("sent", "kind", "value"), CASES)
async def test_a_declared_type_is_what_the_value_is_of(sent, kind, value):
    assert (await answered(tool_result(sent), output=kind)).value == value


@pytest.mark.parametrize(("sent", "kind", "value"), [case for case in CASES if case[1] is not Any])
async def test_the_wrapping_of_older_revisions_is_undone(sent, kind, value):
    assert (await answered(tool_result({"result": sent}), output=kind)).value == value


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [("3", int, 3), ("plain", str, "plain"), ('{"x":1}', Point, Point(1)), ("", type(None), None)],
)
async def test_where_a_revision_has_no_structured_content_the_text_is_read(text, kind, value):
    async with in_session(initialized=None) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("t", output=kind))
        channel.reply(await channel.expect("tools/call"), {"content": [{"type": "text", "text": text}]})
        assert (await calling).value == value


@pytest.mark.parametrize(
    ("sent", "kind"), [("a", int), ({"x": "1"}, Point), ({"a": 0}, Model), ([], Point), (None, int)]
)
async def test_a_value_of_another_type_is_an_invalid_answer_and_not_a_wrong_value(sent, kind):
    with pytest.raises(ResponseInvalid, match="declared type"):
        await answered(tool_result(sent), output=kind)


@dataclasses.dataclass
class Loose:
    more: object
    many: dict[str, object]
    perhaps: object | None = None


@pytest.mark.parametrize(
    ("sent", "kind", "value"),
    [
        ({"a": [1, None]}, object, {"a": [1, None]}),
        ([1, "a"], object, [1, "a"]),
        ({"a": [1]}, dict[str, object], {"a": [1]}),
        ([1, {"a": 2}], list[object], [1, {"a": 2}]),
        ([1, "a"], tuple[int, object], (1, "a")),
        ({"a": 1}, object | None, {"a": 1}),
        ({"a": 1}, Annotated[object, "any"], {"a": 1}),
        ({"more": 1, "many": {"a": []}}, Loose, Loose(1, {"a": []})),
        ([{"more": "x", "many": {}, "perhaps": [0]}], list[Loose], [Loose("x", {}, [0])]),
    ],
)
async def test_object_is_any_json_wherever_it_stands(sent, kind, value):
    assert (await answered(tool_result(sent), output=kind)).value == value


class Stranger:
    pass


class Changing(msgspec.Struct):
    x: int


class Fixed(msgspec.Struct, frozen=True):
    x: int


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Stranger, "nothing here reads JSON into Stranger"),
        (list[Stranger | None], "nothing here reads JSON into Stranger"),
        (dict[Stranger, int], "nothing here reads JSON into Stranger"),
        (collections.abc.Iterator[Stranger], "nothing here reads JSON into"),
        (set[dict[str, int]], "a set cannot hold dict, because that can change"),
        (frozenset[list[int]], "a set cannot hold list, because that can change"),
        (set[Changing], "a set cannot hold Changing, because that can change"),
        (set[Point], "a set cannot hold Point, because that can change"),
        (list[set[tuple[int, list[int]]]], "a set cannot hold tuple, because that can change"),
        (dict[tuple[int, int], int], "a member of an object has a string for its name, and tuple is none"),
        (dict[str, dict[Point, int]], "a member of an object has a string for its name, and Point is none"),
    ],
)
async def test_a_type_that_nothing_reads_is_refused_before_anything_is_sent(kind, said):
    async with connected() as (client, channel):
        with pytest.raises(ConfigurationError, match=re.escape(said)):
            await client.call_tool("t", output=kind)
        assert len(channel.sent) == 1  # the probe


@pytest.mark.parametrize(
    ("sent", "kind", "value"),
    [
        ([{"x": 1}], set[Fixed], {Fixed(1)}),
        ([[1, 2]], set[tuple[int, ...]], {(1, 2)}),
        ({"1": 2}, dict[int | None, int], {1: 2}),
        ({"a": 2}, dict[str | float, int], {"a": 2}),
        ({"1.5": 2}, dict[float, int], {1.5: 2}),  # by pydantic
    ],
)
async def test_sets_and_mappings_of_what_can_be_in_them_are_read(sent, kind, value):
    assert (await answered(tool_result(sent), output=kind)).value == value


async def test_a_type_whose_annotations_say_nothing_is_refused_before_anything_is_sent():
    odd = dataclasses.make_dataclass("Odd", [("x", "dataclasses.nothing.there")])
    odd.__module__ = __name__
    async with connected() as (client, channel):
        with pytest.raises(ConfigurationError, match="values of the type Odd cannot be read"):
            await client.call_tool("t", output=odd)
        assert len(channel.sent) == 1


@dataclasses.dataclass
class Choosy:
    x: int

    def __post_init__(self):
        raise KeyError("no such x")


class ChoosyModel(pydantic.BaseModel):
    x: int

    @pydantic.field_validator("x")
    @classmethod
    def _known(cls, x: int) -> int:
        raise LookupError(f"no such x: {x}")


@pytest.mark.parametrize("kind", [Choosy, list[Choosy], ChoosyModel, list[ChoosyModel]])
async def test_what_a_type_raises_of_an_answer_is_told_with_the_whole_answer(kind):
    sent = {"x": 1} if isinstance(kind, type) and kind in (Choosy, ChoosyModel) else [{"x": 1}]
    with pytest.raises(ResponseInvalid, match=r"reading it raised (Key|Lookup)Error\('no such x") as caught:
        await answered(tool_result(sent), output=kind)
    assert caught.value.evidence is Evidence.ANSWERED
    assert msgspec.json.decode(caught.value.raw)["structuredContent"] == sent


LONG = {"lines": ["x" * 50] * 100, "receipt": "R-1"}


@pytest.mark.parametrize("carry", [lambda error: error, copy.copy, lambda error: pickle.loads(pickle.dumps(error))])  # noqa: S301
async def test_an_answer_of_another_type_is_whole_in_the_error_and_not_in_its_text(carry):
    result = tool_result(LONG) | {"_meta": {"trace": "t-1"}}
    with pytest.raises(ResponseInvalid) as caught:
        await answered(result, output=Point)
    error = carry(caught.value)
    assert msgspec.json.decode(error.raw) == result
    assert len(str(error)) < 400
    assert len(error.excerpt) == 1024


@pytest.mark.parametrize(
    "result",
    [
        {"resultType": "complete", "content": "R-1", "more": "x" * 2000},
        {"resultType": "complete", "_meta": {"receipt": "R-1"}, "more": "x" * 2000},
        {"resultType": "unheard of", "more": "x" * 2000},
    ],
)
async def test_a_result_that_is_none_is_whole_in_the_error(result):
    with pytest.raises(ResponseInvalid) as caught:
        await answered(result)
    assert msgspec.json.decode(caught.value.raw) == result


async def test_a_contract_gives_name_arguments_and_type():
    add = define("add", input=Point, output=int)
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool(add, Point(1, 2)))
        request = await channel.expect("tools/call")
        assert request["params"]["name"] == "add"
        assert request["params"]["arguments"] == {"x": 1, "y": 2}
        channel.reply(request, tool_result(3))
        assert (await calling).value == 3


# --- what cannot be sent


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"a": float("nan")}, r"\$\.a"),
        ({"a": [1.0, float("inf")]}, r"\$\.a\[1\]"),
        ([1], "mapping"),
        ("x", "mapping"),
        ({"a": object()}, "object"),
        ({"a": "\ud800"}, "cannot be sent"),
    ],
)
async def test_arguments_that_json_cannot_carry_are_refused_before_anything_is_sent(arguments, said):
    async with connected() as (client, channel):
        with pytest.raises(ConfigurationError, match=said):
            await client.call_tool("t", arguments)
        assert len(channel.sent) == 1  # the probe


async def test_arguments_may_be_anything_with_fields():
    async with connected() as (client, channel):
        for arguments in (Point(1), Model(a=1), {"p": Point(1), "m": Model(a=1), "none": None}):
            calling = asyncio.ensure_future(client.call_tool("t", arguments))
            channel.reply(await channel.expect("tools/call"), tool_result())
            await calling
        sent = [msgspec.json.decode(data)["params"]["arguments"] for data in channel.sent[1:]]
        assert sent == [{"x": 1, "y": 0}, {"a": 1}, {"p": {"x": 1, "y": 0}, "m": {"a": 1}, "none": None}]


@dataclasses.dataclass
class Upload:
    data: bytes


async def test_bytes_go_out_as_base64_and_a_server_reads_them_as_what_they_were():
    server = Server("files")

    @server.tool
    def store(data: bytes) -> list[int]:
        """Keep a file."""
        return list(data)

    async with Client(server) as client:
        for arguments in ({"data": b"\x00\xff"}, Upload(b"\x00\xff")):
            assert (await client.call_tool("store", arguments, output=list[int])).value == [0, 255]
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("t", {"data": b"\x00\xff"}))
        request = await channel.expect("tools/call")
        assert request["params"]["arguments"] == {"data": "AP8="}
        channel.reply(request, tool_result())
        await calling


@pytest.mark.parametrize("key", ["", "a b", "ü", "x" * 256, "new\nline", 0, False, 7])
async def test_an_idempotency_key_that_is_none_is_refused(key):
    async with connected() as (client, channel):
        with pytest.raises(ConfigurationError, match="idempotency_key"):
            await client.call_tool("t", idempotency_key=key)
        assert len(channel.sent) == 1


async def test_a_correlation_id_that_is_none_is_replaced():
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("t", correlation_id="two words", meta={"traceparent": "x"}))
        request = await channel.expect("tools/call")
        meta = request["params"]["_meta"]
        assert meta["mcprelay.dev/correlationId"].isalnum()
        assert meta["traceparent"] == "x"
        channel.reply(request, tool_result())
        await calling


@pytest.mark.parametrize("id", ["", "ü", "x" * 200])
async def test_the_log_says_what_goes_out_in_place_of_a_correlation_id_that_is_none(id, caplog):
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("t", correlation_id=id))
        request = await channel.expect("tools/call")
        sent = request["params"]["_meta"]["mcprelay.dev/correlationId"]
        channel.reply(request, tool_result())
        await calling
    (message,) = [record.getMessage() for record in caplog.records if "correlation_id" in record.getMessage()]
    assert message.startswith(f"correlation_id={id[:90]!r}"[:-1])
    assert message.endswith(f"1 to 128 visible ASCII characters, so the call goes out with {sent} in its place")
    assert len(message) < 250


@pytest.mark.parametrize("id", [5, 0, False, b"c-1", ["c-1"]])
async def test_a_correlation_id_that_is_no_string_is_refused_before_anything_is_sent(id):
    async with connected() as (client, channel):
        with pytest.raises(ConfigurationError, match="correlation_id is a string of 1 to 128 visible ASCII characters"):
            await client.call_tool("t", correlation_id=id)
        assert len(channel.sent) == 1


@pytest.mark.parametrize(
    "name", ["progressToken", "io.modelcontextprotocol/protocolVersion", "mcprelay.dev/idempotencyKey"]
)
async def test_metadata_of_the_protocol_cannot_be_overwritten(name):
    async with connected() as (client, channel):
        with pytest.raises(ConfigurationError, match=name):
            await client.call_tool("t", meta={name: "x"})
        assert len(channel.sent) == 1


# --- the output schema of a tool that was listed


def listed(schema):
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}
    return {"resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "private"}


async def checked(schema, value, **options):
    async with connected(**options) as (client, channel):
        listing = asyncio.ensure_future(client.list_tools())
        channel.reply(await channel.expect("tools/list"), listed(schema))
        await listing
        calling = asyncio.ensure_future(client.call_tool("t"))
        channel.reply(await channel.expect("tools/call"), tool_result(value))
        return (await calling).value


async def test_structured_content_is_checked_against_a_schema_that_is_known():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert await checked(schema, {"n": 1}) == {"n": 1}
    with pytest.raises(ResponseInvalid, match="output schema") as caught:
        await checked(schema, {"n": "one", "long": "x" * 2000})
    assert msgspec.json.decode(caught.value.raw)["structuredContent"]["long"] == "x" * 2000
    assert await checked(schema, {"n": "one"}, check_output=False) == {"n": "one"}


async def test_a_schema_that_refers_to_the_network_is_not_fetched_and_allows_nothing():
    with pytest.raises(ResponseInvalid, match="cannot be used"):
        await checked({"$ref": "http://127.0.0.1:9/schema.json"}, {"n": 1})
