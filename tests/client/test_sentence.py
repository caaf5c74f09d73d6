"""Every failure reads as one bounded sentence that says what to do; what is cut from it is whole in the attributes."""

import asyncio
import contextlib
import socket

import pytest

from mcprelay import CallFailed, ConnectionLost, HttpError, RemoteError, ResponseInvalid, RevisionUnsupported
from mcprelay.client import failure
from mcprelay.client.call import Call
from mcprelay.errors import SENTENCE, ConnectFailed, Evidence, told
from mcprelay.wire.jsonrpc import ErrorObject
from tests.client.peer import LEGACY, connected, fresh
from tests.client.scripted_http import ScriptedHttp

LONG = "word\n\x1b[31m" * 100_000
"""What a peer says that wants to fill a screen, or to color it."""


def is_a_sentence(error):
    """One line that a terminal is safe from, of a length that somebody reads."""
    text = str(error)
    return text.isprintable() and len(text) < 1500


@contextlib.asynccontextmanager
async def saying(data, *, at_once=False):
    """An address at which each request, or whatever comes, is answered with these bytes, and the connection closed."""

    async def answer(reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await (reader.read(1) if at_once else reader.readuntil(b"\r\n\r\n"))
            writer.write(data)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


async def failure_at(url, **options):
    """How a call there fails."""
    async with fresh(url, **options) as client:
        with pytest.raises(CallFailed) as caught:
            await client.call_tool("x", timeout=30)
    assert is_a_sentence(caught.value)
    return caught.value


async def test_a_servers_own_words_are_cut_in_the_text_and_whole_in_the_attribute():
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        channel.refuse(await channel.expect("tools/call"), -32603, LONG)
        with pytest.raises(RemoteError) as caught:
            await calling
    assert is_a_sentence(caught.value)
    assert str(caught.value).startswith(r"tools/call 'x': word \x1b[31mword")
    assert "(code -32603)" in str(caught.value)
    assert caught.value.message == LONG


async def test_a_long_content_type_and_a_long_body_are_cut():
    media_type = "text/" + "x" * 4000

    async def respond(exchange):
        await exchange.reply(200, LONG.encode()[:50_000], headers={"content-type": media_type})

    async with ScriptedHttp(respond) as http:
        error = await failure_at(http.url)
    assert type(error) is ResponseInvalid
    assert "no answer to a request" in str(error)
    assert len(error.excerpt) == failure.EXCERPT


async def test_the_body_of_a_refusal_is_cut_and_what_commands_a_terminal_is_an_escape():
    async def respond(exchange):
        await exchange.reply(500, LONG.encode()[:50_000])

    async with ScriptedHttp(respond) as http:
        error = await failure_at(http.url)
    assert type(error) is HttpError
    assert r"\x1b[31m" in str(error)
    assert error.body.startswith("word\n\x1b[31m")


async def test_revisions_that_a_server_makes_up_do_not_make_the_text_long():
    error = failure.unsupported(Call("x"), [LONG, "1"], ["2"])
    assert type(error) is RevisionUnsupported
    assert is_a_sentence(error)
    assert error.supported == (LONG, "1")


@pytest.mark.parametrize("name", ["n" * 100_000, "a\nb"])
def test_a_long_name_of_a_tool_is_cut(name):
    assert is_a_sentence(failure.expired(Call("tools/call", name=name), Evidence.MAYBE_SENT))


@pytest.mark.parametrize(
    "fail",
    [
        lambda call: failure.remote(call, ErrorObject(-32603, "no")),
        lambda call: failure.expired(call, Evidence.MAYBE_SENT),
        lambda call: failure.lost(call, Evidence.MAYBE_SENT, "gone"),
        lambda call: failure.unconnected(call, "no way"),
        lambda call: failure.too_many(call, "pending_calls", 1),
        lambda call: failure.too_long(call, "response_bytes", 1),
        lambda call: failure.invalid(call, "none"),
        lambda call: failure.unsupported(call, ["1"], ["2"]),
        lambda call: failure.http(call, 500, {}, b""),
        lambda call: failure.http(call, 401, {}, b""),
    ],
)
@pytest.mark.parametrize(
    ("name", "shown"), [("pay", "'pay'"), ("\x1b[31m\n", r"'\x1b[31m\n'"), ("n" * 9999, f"'{'n' * 99}…")]
)
def test_every_failure_of_a_call_names_what_was_called(fail, name, shown):
    error = fail(Call("tools/call", name=name))
    assert str(error).startswith(f"tools/call {shown}: ")
    assert error.method == "tools/call"


async def test_a_cancelled_call_names_the_tool_in_its_note():
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("pay"))
        await channel.expect("tools/call")
        calling.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await calling
    assert caught.value.__notes__ == ["tools/call 'pay' was cancelled by its caller: maybe sent"]


def test_no_failure_is_longer_than_a_page_whoever_raises_it():
    error = ConnectionLost(LONG, evidence=Evidence.MAYBE_SENT)
    assert str(error).isprintable()
    assert len(str(error)) <= SENTENCE + 1
    assert [len(note) < 6000 for note in ConnectFailed("x", evidence=Evidence.NOT_SENT, stderr=LONG).__notes__] == [
        True
    ]


@pytest.mark.parametrize(
    ("text", "shown"), [("plain", "plain"), ("a\r\n  b", "a b"), ("\u202e\ud800", r"\u202e\ud800")]
)
def test_words_are_told_in_one_line_without_what_commands_a_terminal(text, shown):
    assert told(text) == shown


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the server closed the connection without an answer"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "what the server sent is no HTTP"),
        (b"HTTP/1.1 200 OK\r\nbad\x00: x\r\n\r\n", "what the server sent is no HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{", "the body ended early"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\r\nno", "be decompressed"),
    ],
)
async def test_what_is_wrong_with_an_answer_is_one_line_in_plain_words(data, said):
    async with saying(data) as url:
        error = await failure_at(url)
    assert type(error) is ConnectionLost
    assert said in str(error)
    assert "repeat it only if that does no harm" in str(error)


async def test_where_nobody_listens_is_told_in_the_words_of_the_system_and_with_a_question():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    error = await failure_at(f"http://127.0.0.1:{port}/mcp")
    assert str(error) == f"tools/call 'x': cannot connect to 127.0.0.1:{port} (Connection refused). Is it running?"


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (302, {"location": "http://x/"}, "redirects are not followed: use the address 'http://x/' if you trust it"),
        (429, {"retry-after": "5"}, "it says Retry-After: 5, so try again then"),
        (429, {}, "the server wants fewer requests"),
        (503, {}, "try again later"),
        (413, {}, "longer than the server takes"),
    ],
)
@pytest.mark.parametrize("revision", [None, LEGACY])
async def test_a_status_says_what_to_do_once_also_to_a_client_that_shakes_hands(status, headers, said, revision):
    async with ScriptedHttp(lambda exchange: exchange.reply(status, headers=headers)) as http:
        assert str(await failure_at(http.url, revision=revision)).count(said) == 1


async def test_a_status_that_is_no_redirect_is_not_called_one():
    async with saying(b"HTTP/1.1 304 Not Modified\r\n\r\n") as url:
        assert "redirect" not in str(await failure_at(url))


async def test_a_wrong_address_asks_once_whether_there_is_a_server():
    async with ScriptedHttp(lambda exchange: exchange.reply(404)) as http:
        assert str(await failure_at(http.url)).count("is there an MCP endpoint at this address?") == 1


def page(status):
    """What answers each request with a web page."""
    body = b"<html><title>Welcome</title></html>"
    return lambda exchange: exchange.reply(status, body, headers={"content-type": "text/html; charset=utf-8"})


@pytest.mark.parametrize("status", [400, 404, 405, 500, 501])
async def test_a_web_page_is_shown_once_and_asks_whether_there_is_a_server(status):
    async with ScriptedHttp(page(status)) as http:
        said = str(await failure_at(http.url))
    assert said.count("<title>Welcome</title>") == 1
    assert said.count("is there an MCP endpoint at this address?") == 1
    assert said.endswith("?")


async def test_a_web_page_in_the_place_of_an_answer_asks_the_same():
    async with ScriptedHttp(page(200)) as http:
        said = str(await failure_at(http.url))
    assert "is no answer to a request (is there an MCP endpoint at this address?)" in said
    assert said.endswith("; if there is, it may have been carried out: repeat it only if that does no harm")
    assert "most likely" not in said


@pytest.mark.parametrize("revision", [None, LEGACY])
@pytest.mark.parametrize("media_type", [None, "application/json", "text/html"])
@pytest.mark.parametrize("status", [200, 202, 204])
async def test_an_empty_body_is_called_one_with_its_status(status, media_type, revision):
    headers = {} if media_type is None else {"content-type": media_type}
    async with ScriptedHttp(lambda exchange: exchange.reply(status, headers=headers)) as http:
        said = str(await failure_at(http.url, revision=revision))
    assert f": HTTP {status} came with an empty body, and not with an answer" in said
    assert "JSON" not in said


async def test_a_body_of_line_ends_alone_is_empty():
    json = {"content-type": "application/json"}
    async with ScriptedHttp(lambda exchange: exchange.reply(200, b"\r\n", headers=json)) as http:
        assert "HTTP 200 came with an empty body" in str(await failure_at(http.url))


async def test_what_a_server_says_in_place_of_an_answer_is_kept_whole():
    body = b"<html>" + b"x" * 3000
    html = {"content-type": "text/html"}
    async with ScriptedHttp(lambda exchange: exchange.reply(200, body, headers=html)) as http:
        error = await failure_at(http.url)
    assert (bytes(error.raw), len(error.excerpt)) == (body, 1024)


async def test_a_status_that_accepts_is_not_read_where_its_body_need_not_end():
    async def respond(exchange):
        await exchange.head(202, {"transfer-encoding": "chunked", "content-type": "text/plain"})
        await exchange.chunk(b"Accepted")
        await exchange.left()

    async with ScriptedHttp(respond) as http:
        said = str(await failure_at(http.url))
    assert "HTTP 202 with the content type 'text/plain' is no answer to a request" in said


async def test_a_server_that_speaks_no_tls_is_told_with_the_address_that_would_be_right():
    async with saying(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", at_once=True) as url:
        error = await failure_at(url.replace("http://", "https://"))
    assert type(error) is ConnectFailed
    assert str(error).endswith("). The server seems to speak plain HTTP there: write http://")
