"""What is known of a request that has no result, at each moment at which the wire may be cut. Never optimistic."""

import asyncio
import contextlib
import itertools
import socket
import sys
import textwrap
import traceback

import pytest

from mcprelay import (
    CallFailed,
    CallLimitExceeded,
    Client,
    ConfigurationError,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    Evidence,
    HttpError,
    NotSent,
    RemoteError,
    ResponseInvalid,
)
from mcprelay.client.retry import Retry
from mcprelay.testing import ScriptedChannel
from tests.client.peer import connected, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp

MIB = 2**20


async def failure_of(awaitable):
    """What a call raises."""
    with pytest.raises(CallFailed) as caught:
        await awaitable
    return caught.value


async def cancelled(task):
    """Cancel a call, and give what is noted of its request."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return " ".join(getattr(caught.value, "__notes__", []))


# --- HTTP


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def deaf_port():
    """A port on which connecting takes for ever: nobody accepts, and the queue is full."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


async def test_nobody_listens():
    async with fresh(f"http://127.0.0.1:{free_port()}/mcp") as client:
        error = await failure_of(client.call_tool("charge"))
    assert type(error) is ConnectFailed
    assert error.evidence is Evidence.NOT_SENT


async def test_the_name_is_not_known():
    async with fresh("http://no-such-host.invalid/mcp") as client:
        error = await failure_of(client.call_tool("charge", timeout=20))
    assert error.evidence is Evidence.NOT_SENT


async def test_tls_fails():
    async def connected(reader, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        return False

    async with ScriptedHttp(lambda exchange: exchange.reply(200), connected=connected) as http:
        async with fresh(http.url.replace("http:", "https:")) as client:
            error = await failure_of(client.call_tool("charge"))
    assert http.exchanges == []
    assert type(error) is ConnectFailed
    assert error.evidence is Evidence.NOT_SENT


async def test_the_deadline_passes_while_it_connects():
    with deaf_port() as port:
        async with fresh(f"http://127.0.0.1:{port}/mcp") as client:
            error = await failure_of(client.call_tool("charge", timeout=0.05))
    assert type(error) is DeadlineExceeded
    assert error.evidence is Evidence.NOT_SENT


async def test_connecting_takes_longer_than_it_may():
    with deaf_port() as port:
        async with fresh(f"http://127.0.0.1:{port}/mcp", connect_timeout=0.05) as client:
            error = await failure_of(client.call_tool("charge"))
    assert error.evidence is Evidence.NOT_SENT


async def test_the_caller_gives_up_while_it_connects(monkeypatch):
    connecting = asyncio.Event()
    loop = asyncio.get_running_loop()
    connect = loop.sock_connect
    monkeypatch.setattr(loop, "sock_connect", lambda *address: connecting.set() or connect(*address))
    with deaf_port() as port:
        async with fresh(f"http://127.0.0.1:{port}/mcp") as client:
            calling = asyncio.ensure_future(client.call_tool("charge"))
            await connecting.wait()
            assert "not sent" in await cancelled(calling)


async def test_a_call_that_waits_for_a_connection_has_sent_nothing():
    async def respond(exchange):
        await exchange.left()

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url, connections=1) as client:
            first = asyncio.ensure_future(client.call_tool("slow"))
            await http.came()
            error = await failure_of(client.call_tool("charge", timeout=0.05))
            assert error.evidence is Evidence.NOT_SENT
            assert "it waited for its turn: connections=1 were open already" in str(error)
            await cancelled(first)


async def test_the_connection_is_closed_before_anything_is_read():
    async def connected_(reader, writer):
        return False

    async with ScriptedHttp(lambda exchange: exchange.reply(200), connected=connected_) as http:
        async with fresh(http.url) as client:
            error = await failure_of(client.call_tool("charge"))
    assert error.evidence is Evidence.MAYBE_SENT  # the bytes may be on their way


async def test_the_connection_is_cut_between_the_bytes_of_the_request():
    async def connected_(reader, writer):
        await reader.readexactly(1000)
        return False

    async with ScriptedHttp(lambda exchange: exchange.reply(200), connected=connected_) as http:
        async with fresh(http.url) as client:
            error = await failure_of(client.call_tool("charge", {"blob": "x" * 16 * MIB}))
    assert type(error) is ConnectionLost
    assert error.evidence is Evidence.MAYBE_SENT


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n",
        b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"jsonrpc"',
        b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"jso',
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
    ],
)
async def test_the_connection_is_cut_after_the_request_or_in_the_answer(said):
    async def respond(exchange):
        if len(http.exchanges) == 1:
            await exchange.raw(said)
            exchange.cut_off = True
        else:
            await exchange.result(tool_result())

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            error = await failure_of(client.call_tool("charge"))
            assert type(error) is ConnectionLost
            assert error.evidence is Evidence.MAYBE_SENT
            assert error.method == "tools/call"
            assert error.request_id == http.exchanges[0].message["id"]
            assert (await client.call_tool("charge")).value == "ok"


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{"]
)
async def test_the_deadline_passes_or_the_caller_gives_up_after_the_request(said):
    left = []

    async def respond(exchange):
        await exchange.raw(said)
        await exchange.left()
        left.append(exchange)

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url) as client:
            error = await failure_of(client.call_tool("charge", timeout=0.05))
            assert type(error) is DeadlineExceeded
            assert isinstance(error, TimeoutError)
            assert error.evidence is Evidence.MAYBE_SENT
            calling = asyncio.ensure_future(client.call_tool("charge"))
            await http.came(2)
            assert "maybe sent" in await cancelled(calling)
            async with asyncio.timeout(5):
                while len(left) < 2:  # noqa: ASYNC110 - a closed connection is the cancellation in this era
                    await asyncio.sleep(0.001)


async def test_a_deadline_that_has_passed_sends_nothing():
    async with ScriptedHttp(lambda exchange: exchange.reply(200)) as http:
        async with fresh(http.url) as client:
            error = await failure_of(client.call_tool("charge", deadline=asyncio.get_running_loop().time() - 1))
            assert error.evidence is Evidence.NOT_SENT
        assert http.exchanges == []


async def test_closing_the_client_fails_the_calls_that_wait():
    async def respond(exchange):
        await exchange.left()

    async with ScriptedHttp(respond) as http:
        client = await fresh(http.url).connect()
        calling = asyncio.ensure_future(client.call_tool("slow"))
        await http.came()
        await client.aclose()
        error = await failure_of(calling)
        assert type(error) is ConnectionLost
        assert error.evidence is Evidence.MAYBE_SENT


@pytest.mark.parametrize("encoding", ["identity", "chunked", "gzip"])
async def test_a_body_over_the_limit_is_told_while_it_is_read(encoding):
    import gzip

    body = b"x" * 5 * MIB

    async def respond(exchange):
        fields = {"content-type": "application/json"}
        if encoding == "identity":
            await exchange.reply(200, body, headers=fields)
        elif encoding == "gzip":
            await exchange.reply(200, gzip.compress(body), headers={**fields, "content-encoding": "gzip"})
        else:
            await exchange.head(200, {**fields, "transfer-encoding": "chunked"})
            while True:
                await exchange.chunk(b"x" * 65536)

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url, response_bytes=MIB) as client:
            error = await failure_of(client.call_tool("charge"))
        assert isinstance(error, CallLimitExceeded)
        assert error.limit == "response_bytes"
        assert "response_bytes=1048576" in str(error)
        assert http.exchanges[0].headers["accept-encoding"] == "identity"


async def test_a_compressed_answer_that_was_not_asked_for_is_read_all_the_same():
    import gzip
    import json

    async def respond(exchange):
        message = {"jsonrpc": "2.0", "id": exchange.message["id"], "result": tool_result()}
        fields = {"content-type": "application/json", "content-encoding": "gzip"}
        await exchange.reply(200, gzip.compress(json.dumps(message).encode()), headers=fields)

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        assert (await client.call_tool("x")).value == "ok"


async def test_what_follows_a_compressed_answer_is_not_kept():
    import gzip
    import json
    import tracemalloc

    async def respond(exchange):
        message = {"jsonrpc": "2.0", "id": exchange.message["id"], "result": tool_result()}
        fields = {"content-type": "application/json", "content-encoding": "gzip", "transfer-encoding": "chunked"}
        await exchange.head(200, fields)
        await exchange.chunk(gzip.compress(json.dumps(message).encode()))
        for _ in range(32):
            await exchange.chunk(b"x" * MIB)
        await exchange.end()

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        tracemalloc.start()
        try:
            assert (await client.call_tool("x")).value == "ok"
            assert tracemalloc.get_traced_memory()[1] < 16 * MIB
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("data", [b"1e999", b'"\xff"', b"9" * 5000])
async def test_an_error_whose_data_cannot_be_read_is_an_error_all_the_same(data):
    async def respond(exchange):
        error = b'{"jsonrpc":"2.0","id":%d,"error":{"code":7,"message":"no","data":%b}}'
        await exchange.reply(200, error % (exchange.message["id"], data), headers={"content-type": "application/json"})

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        error = await failure_of(client.call_tool("x"))
        assert error.evidence is Evidence.ANSWERED
        assert (error.code, error.data) == (7, None)


# --- a channel


async def test_a_channel_that_says_that_nothing_left_is_believed():
    async with connected() as (client, channel):
        channel.fail_sends(NotSent("the pipe is full"))
        error = await failure_of(client.call_tool("charge"))
        assert type(error) is ConnectionLost
        assert error.evidence is Evidence.NOT_SENT
        assert "the pipe is full" in str(error)


async def test_any_other_failure_to_send_may_have_sent():
    async with connected() as (client, channel):
        channel.fail_sends(OSError("broken"))
        error = await failure_of(client.call_tool("charge"))
        assert error.evidence is Evidence.MAYBE_SENT
        assert "broken" in str(error)


async def test_a_call_that_waits_in_the_outbox_has_sent_nothing_and_never_does():
    async with connected() as (client, channel):
        channel.hold_sends()
        first = asyncio.ensure_future(client.call_tool("first"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        error = await failure_of(client.call_tool("second", timeout=0.01))
        assert error.evidence is Evidence.NOT_SENT
        third = asyncio.ensure_future(client.call_tool("third"))
        await asyncio.sleep(0)
        assert "not sent" in await cancelled(third)
        assert not client._connection.current._outbox.waiting  # a server that takes nothing could fill our memory else
        channel.release_sends()
        channel.reply(await channel.expect("tools/call"), tool_result())
        await first
        fourth = asyncio.ensure_future(client.call_tool("fourth"))
        request = await channel.expect("tools/call")
        assert request["params"]["name"] == "fourth"  # neither the second nor the third, nor a notice of them
        channel.reply(request, tool_result())
        await fourth


async def test_a_call_that_was_being_sent_may_have_been(clock):
    async with connected() as (client, channel):
        channel.hold_sends()
        calling = asyncio.ensure_future(client.call_tool("charge"))
        await clock.advance(1)
        channel.end()
        error = await failure_of(calling)
        assert error.evidence is Evidence.MAYBE_SENT


async def test_a_channel_that_ends_while_calls_wait_fails_each_with_its_own_evidence(clock):
    async with connected() as (client, channel):
        sent = asyncio.ensure_future(client.call_tool("sent"))
        await channel.expect("tools/call")
        channel.hold_sends()
        leaving = asyncio.ensure_future(client.call_tool("leaving"))
        await clock.advance(1)
        waiting = asyncio.ensure_future(client.call_tool("waiting"))
        await clock.advance(1)
        channel.end()
        assert (await failure_of(sent)).evidence is Evidence.MAYBE_SENT
        assert (await failure_of(leaving)).evidence is Evidence.MAYBE_SENT
        assert (await failure_of(waiting)).evidence is Evidence.NOT_SENT
        assert (await failure_of(client.call_tool("later"))).evidence is Evidence.NOT_SENT


async def test_too_many_calls_at_once_are_refused_before_anything_is_sent():
    async with connected(pending_calls=2) as (client, channel):
        waiting = [asyncio.ensure_future(client.call_tool(f"n{n}")) for n in range(2)]
        requests = [await channel.expect("tools/call") for _ in range(2)]
        errors = [await failure_of(client.call_tool("more")) for _ in range(2)]
        assert all(isinstance(error, CallLimitExceeded) and error.limit == "pending_calls" for error in errors)
        assert all(error.evidence is Evidence.NOT_SENT for error in errors)
        for request in requests:
            channel.reply(request, tool_result())
        await asyncio.gather(*waiting)


async def test_the_deadline_of_a_call_on_a_channel_tells_the_server_and_a_late_answer_is_tolerated():
    async with connected() as (client, channel):
        error = await failure_of(client.call_tool("slow", timeout=0.01))
        assert error.evidence is Evidence.MAYBE_SENT
        request = await channel.expect("tools/call")
        notice = await channel.expect("notifications/cancelled")
        assert notice["params"]["requestId"] == request["id"]
        channel.reply(request, tool_result("late"))
        calling = asyncio.ensure_future(client.call_tool("next"))
        channel.reply(await channel.expect("tools/call"), tool_result("next"))
        assert (await calling).value == "next"
        assert client._connection.current.peer.dropped == 1


async def test_cancelling_a_call_on_a_channel_tells_the_server():
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("slow"))
        request = await channel.expect("tools/call")
        assert "maybe sent" in await cancelled(calling)
        notice = await channel.expect("notifications/cancelled")
        assert notice["params"]["requestId"] == request["id"]
        assert set(notice) == {"jsonrpc", "method", "params"}


async def test_answers_match_in_type_and_value_and_others_are_dropped_and_counted():
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        request = await channel.expect("tools/call")
        for other in (str(request["id"]), request["id"] + 1, "x"):
            channel.reply({"id": other}, tool_result("wrong"))
        channel.say(b'{"jsonrpc":"2.0","id":null,"result":{}}')
        channel.say(b"banner: hello")
        channel.reply(request, tool_result("right"))
        assert (await calling).value == "right"
        assert client._connection.current.peer.dropped == 3
        assert client._connection.current.unreadable == 2


async def test_an_answer_that_is_malformed_fails_its_call_and_no_other():
    async with connected() as (client, channel):
        one, two = (asyncio.ensure_future(client.call_tool("x")) for _ in range(2))
        first, second = [await channel.expect("tools/call") for _ in range(2)]
        channel.say(b'{"jsonrpc":"2.0","id":%d,"result":{},"error":{"code":1,"message":"x"}}' % first["id"])
        channel.reply(second, tool_result())
        error = await failure_of(one)
        assert isinstance(error, ResponseInvalid)
        assert (await two).value == "ok"


async def test_request_ids_cannot_be_guessed():
    async with connected() as (client, channel):
        ids = []
        for _ in range(50):
            calling = asyncio.ensure_future(client.call_tool("x"))
            request = await channel.expect("tools/call")
            ids.append(request["id"])
            channel.reply(request, tool_result())
            await calling
    steps = {b - a for a, b in itertools.pairwise(ids)}
    assert len(steps) == 49
    assert all(0 <= number < 2**53 for number in ids)


# --- a child process


CHILD = textwrap.dedent(
    """
    import json, os, sys, time
    def read():
        return json.loads(sys.stdin.readline())
    def say(message):
        sys.stdout.write(json.dumps(message) + "\\n"); sys.stdout.flush()
    def answer(request, result):
        say({"jsonrpc": "2.0", "id": request["id"], "result": result})
    probe = read()
    answer(probe, {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}})
    ok = {"resultType": "complete", "content": [{"type": "text", "text": "ok"}]}
    """
)


def child(script, **options):
    """A client of a child process that answers the probe and then runs `script`."""
    command = [sys.executable, "-c", CHILD + textwrap.dedent(script)]
    return fresh(command, **{"request_timeout": 20, "close_timeout": 0.1, **options})


async def test_a_command_that_does_not_exist():
    error = await failure_of(fresh(["/no/such/program"]).connect())
    assert type(error) is ConnectFailed
    assert error.evidence is Evidence.NOT_SENT


def test_a_command_in_one_string_is_no_address_and_the_error_says_how_to_write_it():
    with pytest.raises(ConfigurationError, match=r'a command is a list: \["python", "library.py"\]'):
        Client("python library.py")
    with pytest.raises(ConfigurationError) as caught:
        Client("ftp://example.com")
    assert "a command" not in str(caught.value)


async def test_a_child_that_exits_at_once_is_told_with_its_last_words():
    client = fresh([sys.executable, "-c", "import sys; sys.stderr.write('no licence\\n'); sys.exit(3)"])
    error = await failure_of(client.connect())
    assert type(error) is ConnectFailed
    assert error.evidence is Evidence.NOT_SENT
    assert error.exit_code == 3
    assert "no licence" in error.stderr


def test_an_error_of_the_server_says_which_call_it_answered():
    error = RemoteError(-32601, "Method not found", method="tools/call")
    assert str(error) == "tools/call: Method not found (code -32601)"
    assert error.message == "Method not found"
    assert str(RemoteError(-32601, "Method not found")) == "Method not found (code -32601)"


def test_the_last_lines_of_a_process_stand_in_the_traceback_and_cannot_command_the_terminal():
    stderr = "".join(f"line {number}\n" for number in range(9)) + "\x1b[2Jgone\n"
    error = ConnectFailed("no", evidence=Evidence.NOT_SENT, stderr=stderr)
    shown = "".join(traceback.format_exception(error))
    assert "    line 5\n    line 6\n    line 7\n    line 8\n    \\x1b[2Jgone" in shown
    assert "line 4" not in shown
    assert not hasattr(ConnectFailed("no", evidence=Evidence.NOT_SENT, stderr="\n"), "__notes__")


async def test_a_child_that_exits_in_the_middle_of_a_call():
    async with child("read(); sys.stderr.write('boom\\n'); sys.exit(3)") as client:
        error = await failure_of(client.call_tool("charge"))
        assert type(error) is ConnectionLost
        assert error.evidence is Evidence.MAYBE_SENT
        assert error.exit_code == 3
        assert "boom" in error.stderr
        assert "code 3" in str(error)


async def test_a_child_that_is_dead_before_the_call_is_started_again():
    async with child("sys.exit(4)") as client:
        link = client._connection.current
        while link.alive:  # noqa: ASYNC110 - a process ends when it ends
            await asyncio.sleep(0.001)
        error = await failure_of(client.call_tool("charge"))  # the next child is no better
        assert error.evidence in (Evidence.NOT_SENT, Evidence.MAYBE_SENT)
        assert client._connection.current is not link


@pytest.mark.clause("stdio.restart")
async def test_a_child_that_crashed_once_serves_again(tmp_path):
    marker = tmp_path / "crashed"
    script = f"""
    if not os.path.exists({str(marker)!r}):
        open({str(marker)!r}, "w").close()
        read(); sys.exit(1)
    while True:
        answer(read(), ok)
    """
    async with child(script) as client:
        assert (await failure_of(client.call_tool("charge"))).evidence is Evidence.MAYBE_SENT
        assert (await client.call_tool("charge")).text == "ok"


async def test_a_message_that_a_dead_child_never_took_was_not_sent():
    """It is dead when the message is written: the pipe is broken, so no byte of it left."""
    deaf = asyncio.Event()
    script = """
    os.close(0)
    say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "deaf"}})
    time.sleep(30)
    """
    async with child(script, on_log=lambda _: deaf.set()) as client:
        await deaf.wait()
        link = client._connection.current
        while not link.mute:  # noqa: ASYNC110 - the loop finds out by itself
            await asyncio.sleep(0)
        link.mute = False  # as if it was found out only now, or the call would go to another child
        error = await failure_of(client.call_tool("charge", timeout=10))
        assert error.evidence is Evidence.NOT_SENT
        assert client._connection.current is link


async def test_a_child_that_dies_during_the_write_of_a_long_message():
    async with child("os.read(0, 1000); sys.exit(2)") as client:
        error = await failure_of(client.call_tool("charge", {"blob": "x" * 8 * MIB}))
        assert error.evidence is Evidence.MAYBE_SENT


async def test_calls_behind_a_child_that_takes_nothing_have_not_been_sent(clock):
    async with child("time.sleep(30)") as client:
        long = asyncio.ensure_future(client.call_tool("long", {"blob": "x" * 8 * MIB}))
        await clock.advance(0)
        assert client._connection.current.channel.congested
        charge = asyncio.ensure_future(client.call_tool("charge", timeout=10))
        await clock.advance(0)
        await clock.advance(10)
        assert (await failure_of(charge)).evidence is Evidence.NOT_SENT
        assert "maybe sent" in await cancelled(long)
        clock.release()


async def test_nothing_is_repeated_unless_it_was_not_sent_or_the_caller_allows_it():
    async def respond(exchange):
        if len(http.exchanges) % 2:
            exchange.cut()
        else:
            await exchange.result(tool_result())

    async with ScriptedHttp(respond) as http:
        async with fresh(http.url, retry=Retry(backoff=0)) as client:
            assert (await failure_of(client.call_tool("charge"))).evidence is Evidence.MAYBE_SENT
            assert len(http.exchanges) == 1
            await client.call_tool("charge")
            assert (await client.call_tool("charge", idempotency_key="k1")).value == "ok"
            assert [e.message["params"]["_meta"]["mcprelay.dev/idempotencyKey"] for e in http.exchanges[2:]] == [
                "k1",
                "k1",
            ]


async def test_a_failure_says_how_often_the_call_was_tried():
    async def respond(exchange):
        await exchange.reply(503, b"busy")

    async with ScriptedHttp(respond) as http, fresh(http.url, retry=Retry(attempts=3, backoff=0)) as client:
        with pytest.raises(HttpError, match=r"it was tried 3 times \(Retry: attempts=3\)$"):
            await client.call_tool("x")
        with pytest.raises(HttpError) as caught:
            await client.call_tool("x", retry=Retry(attempts=1))
    assert "tried" not in str(caught.value)
    async with fresh("http://127.0.0.1:9/mcp", retry=Retry(attempts=2, backoff=0)) as client:
        with pytest.raises(ConnectFailed, match=r"it was tried 2 times"):
            await client.call_tool("x")


async def test_what_an_earlier_attempt_sent_counts_when_the_last_one_sends_nothing():
    async def respond(exchange):
        http._server.close()
        exchange.cut()

    async with ScriptedHttp(respond) as http, fresh(http.url, retry=Retry(attempts=2, backoff=0)) as client:
        error = await failure_of(client.call_tool("charge", idempotency_key="k1"))
        assert type(error) is ConnectFailed
        assert error.evidence is Evidence.MAYBE_SENT
        assert "had been sent before" in str(error)


async def test_what_an_earlier_round_sent_counts_when_the_time_is_over_between_two():
    async def respond(exchange):
        await exchange.result({"resultType": "input_required", "requestState": "later"})

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        error = await failure_of(client.call_tool("charge", timeout=0.3))
        assert type(error) is DeadlineExceeded
        assert error.evidence is Evidence.MAYBE_SENT
        assert "nothing was sent" not in str(error)


def test_a_client_can_be_made_without_a_loop():
    assert repr(Client(["server", "--secret", "x"])) == "Client('server')"


def test_a_scripted_channel_is_enough_for_a_client():
    assert isinstance(Client(ScriptedChannel()), Client)
