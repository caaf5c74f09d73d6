"""Content that a handler made itself is content, or an error of the handler: never a malformed message."""

# pyright: reportArgumentType=false

import logging

import pytest

from mcprelay import (
    Audio,
    Client,
    EmbeddedResource,
    File,
    Image,
    PromptMessage,
    RemoteError,
    ResourceContents,
    ResourceLink,
    Server,
    Text,
    ToolError,
    ToolResult,
)
from mcprelay.errors import PromptError
from mcprelay.server.block import sound
from mcprelay.server.encoding import ResultInvalid
from mcprelay.server.messages import prompt_result
from mcprelay.server.results import own_content
from mcprelay.types import GetPromptResult, ReadResourceResult

TEXT = {"type": "text", "text": "x"}
NOTE = ResourceContents(uri="a:b", mime_type="text/plain", text="x")
INSIDE = ResourceContents(uri="a:b", text="x")


@pytest.mark.parametrize(
    ("given", "blocks"),
    [
        ((), ()),
        ((Text("x"),), (Text("x"),)),
        ([Text("x")], (Text("x"),)),
        ("xy", (Text("xy"),)),
        (("x", Text("y")), (Text("x"), Text("y"))),
        (Text("x"), (Text("x"),)),
        (TEXT, (Text("x"),)),
        ([TEXT], (Text("x"),)),
        ([INSIDE], (EmbeddedResource(INSIDE),)),
        (
            [File(b"x", "a.txt", uri="a:b")],
            (EmbeddedResource(ResourceContents(uri="a:b", mime_type="text/plain", text="x")),),
        ),
    ],
)
def test_strings_mappings_and_files_are_made_into_blocks(given, blocks):
    assert own_content(given) == blocks


def test_blocks_are_left_as_they_are():
    given = (Text("x"), Image(b"a", "image/png"))
    assert own_content(given) is given


WRONG = [
    Text(5),
    Text(None),
    Image("text", "image/png"),
    Image(b"a", None),
    Audio(None, "audio/wav"),
    ResourceLink(uri=5, name="x"),
    ResourceLink(uri="a:b", name=None),
    EmbeddedResource("x"),
    EmbeddedResource(ResourceContents(uri="a:b")),
    EmbeddedResource(ResourceContents(uri="a:b", text="x", blob=b"x")),
    EmbeddedResource(ResourceContents(uri="a:b", text=5)),
    EmbeddedResource(ResourceContents(uri="a:b", blob="x")),
    EmbeddedResource(ResourceContents(uri=None, text="x")),
]


@pytest.mark.parametrize("block", WRONG, ids=repr)
def test_a_block_that_holds_what_it_cannot_is_refused_wherever_it_is(block):
    for refuse in (sound, lambda one: own_content([one]), lambda one: prompt_result([one])):
        with pytest.raises(ResultInvalid, match=type(block).__name__):
            refuse(block)


@pytest.mark.parametrize("given", [None, 5, [5], [None], [{"type": "text"}], [{"type": "film"}], [{"a": 1}], [["x"]]])
def test_what_is_no_content_is_refused(given):
    with pytest.raises(ResultInvalid):
        own_content(given)


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        (PromptMessage("user", "x"), [PromptMessage.user("x")]),
        (PromptMessage("assistant", TEXT), [PromptMessage.assistant("x")]),
        (PromptMessage("user", ["x", Text("y")]), [PromptMessage.user("x"), PromptMessage.user("y")]),
        (GetPromptResult(messages=["x"]), [PromptMessage.user("x")]),
        (GetPromptResult(messages=(PromptMessage("user", "x"),)), [PromptMessage.user("x")]),
    ],
)
def test_a_message_with_a_string_or_the_like_in_it_is_made_one_of_blocks(given, messages):
    assert list(prompt_result(given).messages) == messages


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            PromptMessage("user", 5),
            "PromptMessage is a string or a content block, and not of the type int",
        ),
        (PromptMessage("user", None), "not of the type NoneType"),
        ([Text("x"), PromptMessage("user", {"a": 1})], "PromptMessage at index 1 is a string"),
        (PromptMessage("robot", Text("x")), "Invalid role 'robot'"),
        (GetPromptResult(messages=(PromptMessage("robot", Text("x")),)), "Invalid role 'robot'"),
        (GetPromptResult(messages=(5,)), "A prompt returned int at index 0"),
    ],
)
def test_what_is_no_message_is_an_error_of_the_prompt(given, said):
    with pytest.raises(PromptError, match=said):
        prompt_result(given)


async def test_a_client_never_gets_content_that_is_none(caplog):
    server = Server("wrong")
    given = {
        "result": lambda: ToolResult(content=(5,)),
        "block": lambda: Text(5),
        "beside": lambda: ToolResult(content=(Text(5),), structured_content={"a": 1}),
    }

    @server.tool
    def tool(kind: str):
        return given[kind]()

    @server.tool
    def refuses():
        raise ToolError("no", content=[5])

    @server.tool
    def says_no():
        raise ToolError("no", content=["never"])

    @server.resource("a://b")
    def contents():
        return ReadResourceResult(contents=("x",))

    @server.prompt
    def prompt():
        return PromptMessage("user", "x")

    async with Client(server) as client:
        with caplog.at_level(logging.CRITICAL, "mcprelay"):
            for name, arguments in (*(("tool", {"kind": kind}) for kind in given), ("refuses", {})):
                with pytest.raises(ToolError, match="Internal error while answering"):
                    await client.call_tool(name, arguments)
            with pytest.raises(RemoteError, match="Internal error while answering"):
                await client.read_resource("a://b")
        with pytest.raises(ToolError, match="never"):
            await client.call_tool("says_no")
        assert (await client.get_prompt("prompt")).messages == (PromptMessage.user("x"),)
