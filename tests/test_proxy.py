"""A proxy: what it offers is another server's, what passes is what came, in every pair of eras."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from mcprelay import Client, Context, Image, ProtocolError, Server, ToolError
from mcprelay.proxy import proxy
from mcprelay.revisions import NEWEST, NEWEST_HANDSHAKE
from tests.server.ask import call, connected, error, names, result


def behind(**options: Any) -> Server:
    server = Server("behind", instructions="Be kind.", **options)

    @server.tool(meta={"example.com/x": 1})
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @server.tool
    def picture() -> Image:
        return Image(b"\x00\x01", "image/png")

    @server.tool
    def fail(kind: str) -> str:
        if kind == "tool":
            raise ToolError("no")
        raise ProtocolError(-31000, "protocol", {"a": 1})

    @server.tool
    async def slow(ctx: Context) -> str:
        ctx.progress(1, 2, "half")
        ctx.info("working")
        return "done"

    @server.resource("config://app", mime_type="text/plain", ttl_ms=50, cache_scope="public")
    def config() -> str:
        return "config"

    @server.resource("user://{name}")
    def user(name: str) -> str:
        return name

    @server.prompt
    def review(tone: str) -> str:
        return tone

    return server


@pytest.fixture
def back() -> Server:
    return behind()


@pytest.fixture(params=["stateless", "handshake"])
def front(request: Any, back: Server) -> Server:
    revision = NEWEST if request.param == "stateless" else NEWEST_HANDSHAKE
    return proxy(Client(back, revision=revision.name), name="front")


async def test_it_offers_what_the_other_server_offers_in_the_other_servers_words(front: Server, back: Server):
    assert await names(front) == await names(back)
    assert await names(front, "resources") == ["config://app"]
    assert await names(front, "templates") == ["user://{name}"]
    assert await names(front, "prompts") == ["review"]
    [tool, *_] = (await result(front, "tools/list"))["tools"]
    assert tool["_meta"] == {"example.com/x": 1}
    found = await result(front, "server/discover")
    assert found["instructions"] == "Be kind."
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "front"


async def test_calls_reach_the_other_server_and_come_back_whole(front: Server):
    answer = await result(front, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    assert (answer["content"], answer["resultType"]) == ([{"type": "text", "text": "3"}], "complete")
    assert answer["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "front"
    assert answer["structuredContent"] in (3, {"result": 3})
    picture = await result(front, "tools/call", {"name": "picture", "arguments": {}})
    assert picture["content"] == [{"type": "image", "data": "AAE=", "mimeType": "image/png"}]
    got = await result(front, "prompts/get", {"name": "review", "arguments": {"tone": "kind"}})
    assert got["messages"][0]["content"]["text"] == "kind"
    assert (await result(front, "resources/read", {"uri": "user://ada"}))["contents"][0]["text"] == "ada"


async def test_errors_are_the_other_servers(front: Server):
    assert await call(front, "fail", {"kind": "tool"}) == "error: no"
    wrong = await error(front, "tools/call", {"name": "fail", "arguments": {"kind": "x"}})
    assert wrong == {"code": -31000, "message": "protocol", "data": {"a": 1}}
    missing = await error(front, "resources/read", {"uri": "nothing:here"})
    assert (missing["code"], missing["data"]) == (-32602, {"uri": "nothing:here"})
    assert (await error(front, "tools/call", {"name": "nothing"}))["message"] == "Unknown tool: nothing"


async def test_progress_and_log_messages_pass(front: Server):
    async with connected(front) as client:
        extra = {"progressToken": "p", "io.modelcontextprotocol/logLevel": "info"}
        await client.result("tools/call", {"name": "slow", "arguments": {}}, **extra)
    progress = [notice["params"] for notice in client.notices if notice["method"] == "notifications/progress"]
    logged = [notice["params"]["data"] for notice in client.notices if notice["method"] == "notifications/message"]
    assert [(told["progressToken"], told["progress"], told["message"]) for told in progress] == [("p", 1, "half")]
    assert logged == ["working"]


async def test_what_is_beyond_the_lists_can_be_read(back: Server, front: Server):
    @back.middleware
    async def hidden(call: Any, call_next: Any) -> Any:
        if call.method.name == "resources/read" and call.params.uri == "secret:x":
            call.params = type(call.params)(uri="config://app")
        return await call_next(call)

    assert (await result(front, "resources/read", {"uri": "secret:x"}))["contents"][0]["text"] == "config"


async def test_freshness_is_the_other_servers_where_it_says_so():
    front = proxy(Client(behind()), ttl_ms=7)
    read = await result(front, "resources/read", {"uri": "config://app"})
    assert (read["ttlMs"], read["cacheScope"]) == (50, "public")
    read = await result(front, "resources/read", {"uri": "user://ada"})
    assert read["ttlMs"] == 0, "the other server said so"
    front = proxy(Client(behind(), revision=NEWEST_HANDSHAKE.name), ttl_ms=7)
    assert (await result(front, "resources/read", {"uri": "user://ada"}))["ttlMs"] == 7


async def test_what_changes_there_is_told_here(front: Server, back: Server):
    async with connected(front) as client:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["config://app"]}
        await client.request("subscriptions/listen", {"notifications": wanted})
        await client.receive()

        back.add_tool(lambda: "late", name="late")
        assert (await client.receive())["method"] == "notifications/tools/list_changed"
        assert "late" in [tool["name"] for tool in (await client.result("tools/list"))["tools"]]

        await back.resource_updated("config://app")
        told = await client.receive()
        assert (told["method"], told["params"]["uri"]) == ("notifications/resources/updated", "config://app")


async def test_completions_pass():
    from typing import Annotated

    from mcprelay import Complete

    back = Server("back")

    @back.prompt
    def p(x: Annotated[str, Complete(["aa", "ab", "b"])]) -> str:
        return x

    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": "a"}}
    completed = await result(proxy(Client(back)), "completion/complete", params)
    assert completed["completion"] == {"values": ["aa", "ab"], "total": 2, "hasMore": False}


# --- questions


def asking() -> Server:
    server = Server("asking")

    @server.tool
    async def choose(ctx: Context) -> str:
        answer = await ctx.elicit("Which?", str, key="k")
        return f"{answer.value} in round {ctx.round}"

    return server


ELICITS = {"elicitation": {"form": {}}}


async def test_a_question_passes_with_its_state_and_so_does_the_answer():
    front = proxy(Client(asking()))
    asked = await result(front, "tools/call", {"name": "choose", "arguments": {}}, capabilities=ELICITS)
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"]["k"]["method"] == "elicitation/create"
    params = {
        "name": "choose",
        "arguments": {},
        "requestState": asked["requestState"],
        "inputResponses": {"k": {"action": "accept", "content": {"value": "blue"}}},
    }
    answered = await result(front, "tools/call", params, capabilities=ELICITS)
    assert answered["content"][0]["text"] == "blue in round 2"


async def test_a_client_of_the_handshake_era_is_asked_in_its_own_way():
    front = proxy(Client(asking()))
    async with connected(front) as client:
        hello = {
            "protocolVersion": NEWEST_HANDSHAKE.name,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "c", "version": "1"},
        }
        await client.send({"jsonrpc": "2.0", "id": "h", "method": "initialize", "params": hello})
        await client.receive()
        await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        params = {"name": "choose", "arguments": {}}
        await client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        question = await client.receive()
        assert question["method"] == "elicitation/create"
        answer = {"action": "accept", "content": {"value": "red"}}
        await client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        answered = await client.receive()
    assert answered["result"]["content"][0]["text"] == "red in round 2"
    assert "resultType" not in answered["result"]


async def test_a_server_of_the_handshake_era_asks_the_handlers_of_the_client():
    async def on_elicit(question: Any) -> dict[str, Any]:
        return {"value": "green"}

    front = proxy(Client(asking(), revision=NEWEST_HANDSHAKE.name, on_elicit=on_elicit))
    assert await call(front, "choose") == {"result": "green in round 1"}, "it only knows objects"


# --- what came is what passes


class Scripted:
    """A server behind, of which every word is written here."""

    def __init__(self, **answers: str) -> None:
        self._answers = answers
        self.heard: list[dict[str, Any]] = []
        self._out: asyncio.Queue[bytes] = asyncio.Queue()

    async def send(self, data: bytes) -> None:
        message = json.loads(data)
        if "id" not in message or "method" not in message:
            return
        self.heard.append(message)
        key = message["method"].replace("/", "_")
        text = self._answers.get(key, '"result":{"resultType":"complete"}')
        await self._out.put(f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},{text}}}'.encode("latin-1"))

    async def receive(self) -> bytes:
        return await self._out.get()

    async def aclose(self) -> None:
        await self._out.put(b"")


TOOLS = (
    '"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":'
    '[{"name":"t","inputSchema":{"type":"object"},"later":{"b":1,"a":1.50}}]}'
)
DISCOVER = (
    f'"result":{{"resultType":"complete","supportedVersions":["{NEWEST.name}"],"capabilities":{{"tools":{{}}}},'
    '"ttlMs":0,"cacheScope":"private"}'
)
CALLED = (
    '"result":{"resultType":"complete","content":[{"type":"hologram","x":1.50}],"later":1e400,'
    '"_meta":{"their.own/x":[1]}}'
)


@pytest.mark.off_schema
async def test_members_that_nobody_knows_pass_in_both_directions_as_they_came():
    script = Scripted(server_discover=DISCOVER, tools_list=TOOLS, tools_call=CALLED)
    front = proxy(Client(script))
    channel = front.connect()
    raw: list[bytes] = []
    for number, (method, members) in enumerate(
        [("tools/list", ""), ("tools/call", '"name":"t","arguments":{"n":1.50},"unheard":{"of":2},')]
    ):
        meta = (
            f'{{"io.modelcontextprotocol/protocolVersion":"{NEWEST.name}",'
            '"io.modelcontextprotocol/clientCapabilities":{},"my.own/x":true}'
        )
        request = f'{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{{{members}"_meta":{meta}}}}}'
        await channel.send(request.encode())
        raw.append(await channel.receive())
    await channel.aclose()

    assert b'{"name":"t","inputSchema":{"type":"object"},"later":{"b":1,"a":1.50}}' in raw[0]
    assert b'[{"type":"hologram","x":1.50}]' in raw[1]
    assert b'"later":1e400' in raw[1]
    assert json.loads(raw[1])["result"]["_meta"]["their.own/x"] == [1]
    sent = script.heard[-1]["params"]
    assert (sent["arguments"], sent["unheard"], sent["_meta"]["my.own/x"]) == ({"n": 1.5}, {"of": 2}, True)


@pytest.mark.parametrize(
    "text",
    [
        '"result":5',
        '"result":{"resultType":"complete","content":5}',
        '"result":{"resultType":"complete","content":[{"type":"text","text":"\xff"}]}',
        '"result":{"resultType":"other","content":[]}',
    ],
)
async def test_nonsense_is_an_error_that_says_so(text: str):
    script = Scripted(server_discover=DISCOVER, tools_list=TOOLS, tools_call=text)
    wrong = await error(proxy(Client(script)), "tools/call", {"name": "t", "arguments": {}})
    assert wrong["message"] in (
        "The server behind this one answered nonsense",
        "The server behind this one did not answer (the request: answered)",
    )


async def test_a_server_that_is_gone_is_an_error_with_what_is_known_of_the_request(caplog):
    class Dying(Scripted):
        async def send(self, data: bytes) -> None:
            if b"tools/call" in data:
                await self.aclose()
            else:
                await super().send(data)

    script = Dying(server_discover=DISCOVER, tools_list=TOOLS)
    wrong = await error(proxy(Client(script)), "tools/call", {"name": "t", "arguments": {}})
    assert wrong["message"] == "The server behind this one did not answer (the request: maybe sent)"


async def test_a_proxy_of_a_server_that_cannot_be_reached_does_not_start():
    from mcprelay import CallFailed

    front = proxy(Client(["/no/such/program"]))
    with pytest.raises(CallFailed):
        await front.start()
    assert not front.started


# --- mounted


async def test_a_proxy_can_be_mounted_in_a_server(back: Server):
    outer = Server("outer")
    outer.mount("gh", proxy(Client(back)))
    async with connected(outer) as client:
        listed = [tool["name"] for tool in (await client.result("tools/list"))["tools"]]
        assert listed == ["gh_add", "gh_picture", "gh_fail", "gh_slow"]
        called = await client.result("tools/call", {"name": "gh_add", "arguments": {"a": 1, "b": 2}})
        assert called["structuredContent"] == 3
        read = await client.result("resources/read", {"uri": "gh+config://app"})
        assert read["contents"][0]["uri"] == "gh+config://app"
        read = await client.result("resources/read", {"uri": "gh+user://ada"})
        assert (read["contents"][0]["uri"], read["contents"][0]["text"]) == ("gh+user://ada", "ada")
        missing = await client.error("resources/read", {"uri": "gh+nothing:x"})
        assert missing["data"] == {"uri": "gh+nothing:x"}
        wanted = {"notifications": {"resourceSubscriptions": ["gh+config://app"]}}
        await client.request("subscriptions/listen", wanted)
        await client.receive()
        await back.resource_updated("config://app")
        assert (await client.receive())["params"]["uri"] == "gh+config://app"


async def test_its_calls_pass_middleware_and_events_like_any_others(back: Server):
    front = proxy(Client(back))
    seen: list[str] = []

    @front.middleware
    async def look(call: Any, call_next: Any) -> Any:
        seen.append(call.method.name)
        if call.arguments:
            call.with_arguments({**call.arguments, "a": 40})
        return await call_next(call)

    assert await call(front, "add", {"a": 1, "b": 2}) == 42
    assert seen == ["tools/call"]
    front.disable("add")
    front.observe(lambda event: seen.append(event.name))
    assert (await error(front, "tools/call", {"name": "add"}))["message"] == "Unknown tool: add"


async def test_an_upstream_that_promised_changes_and_tells_of_none_is_served_all_the_same(back: Server, caplog):
    async def deaf(call: Any, call_next: Any) -> Any:
        if call.method.name == "subscriptions/listen":
            raise ProtocolError(-32601, "not here")
        return await call_next(call)

    back.middleware(deaf)
    async with Client(proxy(Client(back))) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).value == 3
    assert "changes of the other server will not be seen" in caplog.text


async def test_that_changes_are_not_seen_any_more_is_said_once_listening_has_been_given_up(back: Server):
    said: list[str] = []
    ended = asyncio.Event()

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())
            ended.set()

    channels: list[Any] = []

    class Source:
        def connect(self) -> Any:
            channels.append(back.connect())
            return channels[-1]

    logger = logging.getLogger("tests.proxy.given_up")
    logger.addHandler(Ear())
    async with Client(proxy(Client(Source(), reconnections=0), logger=logger)) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).value == 3
        await channels[0].aclose()
        await asyncio.wait_for(ended.wait(), 5)
        assert (await client.call_tool("add", {"a": 1, "b": 2})).value == 3
    assert [line.partition(":")[0] for line in said] == ["changes of the other server will not be seen any more"]
    assert "reconnections=0" in said[0]
