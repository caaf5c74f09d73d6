"""What a client makes of lists, results and errors, and what it keeps."""

from typing import Any

import pytest

from mcprelay import CallFailed, RemoteError, ToolError
from mcprelay.client.cache import Cache
from tests.clauses.script import (
    URL,
    Error,
    asks,
    cacheable,
    complete,
    form,
    over_http,
    text,
    tool,
    tools,
)

CALL = {"tools/call": text("done")}


# ------------------------------------------------------------------------------------------------------- server/* pages


@pytest.mark.clause("resources.former-not-found", "index.former-not-found")
@pytest.mark.parametrize("code", [-32602, -32002])
async def test_both_codes_say_that_a_resource_does_not_exist(scripted: Any, code: int):
    _, client = scripted({"resources/read": Error(code, "Resource not found", {"uri": "a://b"})})
    async with client:
        with pytest.raises(RemoteError) as caught:
            await client.read_resource("a://b")
    assert caught.value.code == code


@pytest.mark.clause("tools.output-validated", "tools.results-validated")
async def test_structured_content_that_breaks_its_schema_is_an_error(scripted: Any):
    definition = tool("t") | {"outputSchema": {"type": "object", "required": ["a"]}}
    _, client = scripted({"tools/list": tools(definition), "tools/call": complete(content=[], structuredContent={})})
    async with client:
        await client.list_tools()
        with pytest.raises(CallFailed):
            await client.call_tool("t")


@pytest.mark.clause("tools.ref-not-followed", "index.schema-ref-not-fetched")
async def test_a_reference_in_a_schema_is_never_fetched():
    far = {"type": "object", "properties": {"a": {"$ref": "https://scripted.example/schema.json"}}}
    definition = tool("t") | {"inputSchema": far, "outputSchema": far}
    server, client = over_http(
        {"tools/list": tools(definition), "tools/call": complete(content=[], structuredContent={"a": 1})}
    )
    async with client:
        await client.list_tools()
        with pytest.raises(CallFailed):
            await client.call_tool("t", {"a": 1})
    assert {request.url for request in server.sent} == {URL}


async def test_what_a_tool_says_when_it_fails_is_in_the_error(scripted: Any):
    _, client = scripted({"tools/call": text("not today") | {"isError": True}})
    async with client:
        with pytest.raises(ToolError, match="not today"):
            await client.call_tool("t")


@pytest.mark.clause(
    "pagination.end", "pagination.both", "pagination.opaque", "pagination.empty-cursor", "prompts.pagination"
)
async def test_pages_are_read_to_the_end_with_cursors_as_they_came(scripted: Any):
    cursors = ["", "opaque \u2028 ü", '{"page": 3}']
    pages = [tools(tool(f"t{number}"), nextCursor=cursor) for number, cursor in enumerate(cursors)]
    server, client = scripted({"tools/list": [*pages, tools(tool("last"))]})
    async with client:
        assert [found.name for found in await client.list_tools()] == ["t0", "t1", "t2", "last"]
    assert [message["params"].get("cursor") for message in server.of("tools/list")] == [None, *cursors]


# -------------------------------------------------------------------------------------------------------------- caching


@pytest.mark.clause("caching.zero", "caching.absent", "caching.negative")
@pytest.mark.parametrize("ttl", [0, -5, None])
async def test_what_is_not_fresh_is_asked_for_again(scripted: Any, ttl: int | None):
    page = tools(tool("t"))
    page |= {"ttlMs": ttl} if ttl is not None else {}
    if ttl is None:
        del page["ttlMs"]
    server, client = scripted({"tools/list": page})
    async with client:
        await client.list_tools()
        await client.list_tools()
    assert len(server.of("tools/list")) == 2


@pytest.mark.clause("caching.positive", "caching.no-polling")
async def test_what_is_fresh_is_not_asked_for_again(scripted: Any):
    server, client = scripted({"tools/list": tools(tool("t"), ttlMs=60_000)})
    async with client:
        assert [found.name for found in await client.list_tools()] == ["t"]
        assert [found.name for found in await client.list_tools()] == ["t"]
    assert len(server.of("tools/list")) == 1


@pytest.mark.clause("caching.key")
async def test_a_kept_result_answers_only_its_own_request(scripted: Any):
    def read(message: dict[str, Any]) -> dict[str, Any]:
        uri = message["params"]["uri"]
        return cacheable(contents=[{"uri": uri, "text": uri}], ttlMs=60_000)

    server, client = scripted({"resources/read": read})
    async with client:
        for uri in ("a://b", "a://c", "a://b", "A://b"):
            assert (await client.read_resource(uri)).contents[0].text == uri
    assert [message["params"]["uri"] for message in server.of("resources/read")] == ["a://b", "a://c", "A://b"]


@pytest.mark.clause("caching.retries")
async def test_what_was_made_of_answers_is_not_kept(scripted: Any):
    contents = cacheable(contents=[{"uri": "a://b", "text": "yours"}], ttlMs=60_000)
    server, client = scripted(
        {"resources/read": [asks("s", q=form()), contents, asks("s", q=form()), contents]},
        on_elicit=lambda _: {"name": "Ada"},
    )
    async with client:
        await client.read_resource("a://b")
        await client.read_resource("a://b")
    assert len(server.of("resources/read")) == 4


@pytest.mark.clause("caching.private")
async def test_a_private_result_is_not_shared_between_authorizations():
    who = ["ada"]
    server, client = over_http(
        {"tools/list": lambda _: tools(tool(who[0]), ttlMs=60_000)}, auth=lambda: who[0], cache=Cache(now=lambda: 0.0)
    )
    counts = []
    async with client:
        for who[0] in ("ada", "bob", "ada"):
            assert [found.name for found in await client.list_tools()] == [who[0]]
            counts.append(len(server.of("tools/list")))
    assert counts == [1, 2, 2]


@pytest.mark.clause("caching.page-expired")
async def test_of_a_list_only_the_pages_that_expired_are_read_again_by_their_cursors():
    now = [1000.0]

    def page(message: dict[str, Any]) -> dict[str, Any]:
        if "cursor" in message["params"]:
            return tools(tool("second"), ttlMs=1000)
        return tools(tool("first"), ttlMs=60_000, nextCursor="c")

    server, client = over_http({"tools/list": page}, cache=Cache(now=lambda: now[0]))
    async with client:
        await client.list_tools()
        now[0] += 2.0
        assert [found.name for found in await client.list_tools()] == ["first", "second"]
    assert [message["params"].get("cursor") for message in server.of("tools/list")] == [None, "c", "c"]


@pytest.mark.clause("caching.cursor-invalid")
async def test_when_a_cursor_is_refused_the_list_is_read_again_from_its_beginning():
    now = [1000.0]
    answers: dict[str | None, list[Any]] = {
        None: [
            tools(tool("old"), ttlMs=60_000, nextCursor="gone"),
            tools(tool("new"), ttlMs=60_000, nextCursor="next"),
        ],
        "gone": [tools(tool("old too"), ttlMs=1000), Error(-32602, "Invalid cursor")],
        "next": [tools(tool("newer"), ttlMs=1000)],
    }
    server, client = over_http(
        {"tools/list": lambda message: answers[message["params"].get("cursor")].pop(0)}, cache=Cache(now=lambda: now[0])
    )
    async with client:
        assert [found.name for found in await client.list_tools()] == ["old", "old too"]
        now[0] += 2.0
        assert [found.name for found in await client.list_tools()] == ["new", "newer"]
    assert [message["params"].get("cursor") for message in server.of("tools/list")] == [
        None,
        "gone",
        "gone",
        None,
        "next",
    ]
