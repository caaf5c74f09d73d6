"""Answers that cannot be read: whoever waits for one is told at once, on every wire, and the connection goes on."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

import pytest

from mcprelay import CallLimitExceeded, Client, Evidence, RemoteError, ResponseInvalid
from mcprelay.testing import ScriptedChannel
from tests.client.peer import DISCOVERED, INITIALIZED, connected, fresh, in_session, tool_result
from tests.client.scripted_http import ScriptedHttp

BROKEN = {
    "NaN": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"x":NaN}}}',
    "infinity": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":-Infinity}}',
    "a lone surrogate": b'{"result":{"content":[{"type":"text","text":"\\ud83d"}]},"jsonrpc":"2.0","id":%d}',
    "a raw surrogate": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xed\xa0\xbd"}]}}',
    "a bad escape": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"C:\\windows"}]}}',
    "latin-1": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"caf\xe9"}]}}',
    "a comma too many": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],}}',
    "a cut": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"te',
    "a broken error": b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":NaN}}',
    "no version": b'{"id":%d,"result":{}}',
    "neither result nor error": b'{"jsonrpc":"2.0","id":%d}',
}
TOO_DEEP = b'{"jsonrpc":"2.0","id":%d,"result":{"tools":[{"name":"a","inputSchema":{}},{"name":"b","inputSchema":' + (
    b'{"a":' * 150 + b"1" + b"}" * 150 + b"}]}}"
)
broken = pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN.keys())


async def spoiled(calling):
    """What a call raises whose answer cannot be read."""
    with pytest.raises(ResponseInvalid) as caught:
        await calling
    assert caught.value.evidence is Evidence.ANSWERED
    assert caught.value.excerpt.startswith('{"')
    return caught.value


@broken
async def test_on_a_channel_the_call_fails_at_once_and_the_next_one_works(answer):
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x", timeout=60))
        channel.say(answer % (await channel.expect("tools/call"))["id"])
        await spoiled(calling)
        calling = asyncio.ensure_future(client.call_tool("x"))
        channel.reply(await channel.expect("tools/call"), tool_result("fine"))
        assert (await calling).value == "fine"


@broken
async def test_over_http_in_a_body(answer):
    async def respond(exchange):
        await exchange.reply(200, answer % exchange.message["id"], headers={"content-type": "application/json"})

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        await spoiled(client.call_tool("x", timeout=60))


@broken
async def test_over_http_on_a_stream_that_stays_open(answer):
    async def respond(exchange):
        await exchange.stream()
        await exchange.event(answer % exchange.message["id"])
        await exchange.left()

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        await spoiled(client.call_tool("x", timeout=60))


@pytest.mark.parametrize("wire", ["channel", "body", "stream"])
@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
async def test_what_nests_too_deep_costs_a_list_one_item_and_a_call_its_answer(wire, method):
    async with _answering(wire, TOO_DEEP) as client:
        if method == "tools/list":
            listing = await client.list_tools()
            assert [one.name for one in listing] == ["a"]
            [left] = listing.excluded
            assert (left.name, left.reason, left.limit) == ("b", "it nests deeper than depth=100 allows", "depth")
        else:
            with pytest.raises(CallLimitExceeded, match="depth=100") as caught:
                await client.call_tool("x", timeout=60)
            assert (caught.value.limit, caught.value.evidence) == ("depth", Evidence.ANSWERED)


@pytest.mark.parametrize("wire", ["channel", "body", "stream"])
async def test_an_answer_that_holds_too_many_values_is_not_read(wire):
    crowded = b'{"jsonrpc":"2.0","id":%%d,"result":{"resultType":"complete","content":[],"structuredContent":[%b0]}}'
    async with _answering(wire, crowded % (b"0," * 2_000), response_values=1_000) as client:
        with pytest.raises(CallLimitExceeded, match="response_values=1000") as caught:
            await client.call_tool("x", timeout=60)
        assert (caught.value.limit, caught.value.evidence) == ("response_values", Evidence.ANSWERED)


@asynccontextmanager
async def _answering(wire, answer, **options):
    """A client whose next request is answered so."""

    async def respond(exchange):
        data = answer % exchange.message["id"]
        if wire == "body":
            await exchange.reply(200, data, headers={"content-type": "application/json"})
        else:
            await exchange.stream()
            await exchange.event(data)
            await exchange.left()

    async def say(channel):
        message = None
        while message is None or message["method"] not in ("tools/call", "tools/list"):
            message = await channel.expect()
        channel.say(answer % message["id"])

    if wire != "channel":
        async with ScriptedHttp(respond) as http, fresh(http.url, **options) as client:
            yield client
        return
    async with connected(**options) as (client, channel):
        saying = asyncio.ensure_future(say(channel))
        yield client
        await saying


async def test_an_answer_with_a_key_twice_is_read_as_its_last():
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x", timeout=60))
        request = await channel.expect("tools/call")
        channel.say(
            b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":1,"structuredContent":2}}'
            % request["id"]
        )
        assert (await calling).value == 2


async def test_what_has_no_id_that_can_be_read_is_counted_and_disturbs_nothing():
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        request = await channel.expect("tools/call")
        for line in (b"Welcome!", b'{"jsonrpc":"2.0","result":{"id":%d,"x":NaN}}' % request["id"], b"\xff\xfe"):
            channel.say(line)
        channel.reply(request, tool_result("fine"))
        assert (await calling).value == "fine"
        assert client._connection.current.unreadable == 3
        assert all(b"error" not in message for message in channel.sent)


async def test_a_broken_answer_to_the_probe_means_a_handshake_as_any_other_does():
    channel = ScriptedChannel()
    client = Client(channel)
    connecting = asyncio.ensure_future(client.connect())
    channel.say(b'{"jsonrpc":"2.0","id":%d,"result":NaN}' % (await channel.expect("server/discover"))["id"])
    channel.reply(await channel.expect("initialize"), INITIALIZED)
    await connecting
    await client.aclose()


async def test_a_broken_question_of_a_session_is_answered_under_its_id():
    async with in_session() as (_, channel):
        channel.say(b'{"jsonrpc":"2.0","id":"q","method":"roots/list","params":{"x":NaN}}')
        refused = await channel.expect()
        assert (refused["id"], refused["error"]["code"]) == ("q", -32700)


async def test_more_questions_at_once_than_a_session_allows_are_refused_by_the_name_of_the_limit():
    asked = asyncio.Event()

    async def wait(_):
        asked.set()
        await asyncio.Event().wait()

    async with in_session(on_elicit=wait, concurrent_requests=1) as (_, channel):
        params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        channel.call("first", "elicitation/create", params)
        await asked.wait()
        channel.call("second", "elicitation/create", params)
        refused = await channel.expect()
        assert refused["id"] == "second"
        assert "concurrent_requests=1" in refused["error"]["message"]


async def test_an_answer_over_the_limit_is_told_to_who_waits_whatever_stands_first():
    script = f"""
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    found = json.loads({json.dumps(DISCOVERED)!r})
    if message["method"] == "tools/call":
        found = {{"text": "x" * 5000}}
    if "id" in message:
        print(json.dumps({{"result": found, "id": message["id"], "jsonrpc": "2.0"}}), flush=True)
"""
    async with fresh([sys.executable, "-c", script], response_bytes=2000) as client:
        with pytest.raises(CallLimitExceeded, match="response_bytes=2000"):
            await client.call_tool("x", timeout=60)


async def test_a_request_that_is_too_long_for_a_server_of_ours_fails_at_once_by_the_name_of_the_limit():
    script = """
from mcprelay import Server
from mcprelay.server.limits import Limits
server = Server("s", limits=Limits(message_bytes=2000))
@server.tool
def echo(text: str) -> int: return len(text)
server.run()
"""
    async with fresh([sys.executable, "-c", script]) as client:
        with pytest.raises(RemoteError, match="message_bytes=2000"):
            await client.call_tool("echo", {"text": "x" * 5000}, timeout=60)
        assert (await client.call_tool("echo", {"text": "x"}, output=int)).value == 1
