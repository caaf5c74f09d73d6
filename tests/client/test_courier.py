"""Headers, credentials and proxies on the way to an HTTP server."""

import asyncio
import itertools

import pytest

from mcprelay import AuthorizationRequired, ConnectFailed, Evidence, HttpError, NotSent
from mcprelay.testing import ScriptedSender, result
from tests.client.peer import fresh, tool_result
from tests.client.scripted_http import ScriptedHttp


class Credentials:
    """Credentials that a test controls. One object is both the `Auth` and what it is bound to."""

    def __init__(self, *, tokens, mends=True):
        self.tokens = iter(tokens)
        self.token = next(self.tokens)
        self.mends = mends
        self.seen = []
        self.attempts = []

    def bind(self, url, *, sender):
        self.url = url
        return self

    async def headers(self, request):
        return [] if self.token is None else [("Authorization", f"Bearer {self.token}")]

    def answered(self, request, status, headers):
        self.seen.append(status)

    async def challenged(self, request, status, headers, *, attempt):
        self.attempts.append((attempt, dict(request.headers).get("Authorization"), headers.get("www-authenticate")))
        if not self.mends:
            return False
        self.token = next(self.tokens)
        return True


def guarded(token):
    async def respond(exchange):
        if exchange.headers.get("authorization") == f"Bearer {token}":
            await exchange.result(tool_result())
        else:
            await exchange.reply(401, b"who are you?", headers={"www-authenticate": 'Bearer scope="a b"'})

    return respond


async def test_a_token_is_sent_with_every_request():
    async with ScriptedHttp(guarded("t")) as http, fresh(http.url, auth="t") as client:
        assert (await client.call_tool("x")).value == "ok"


async def test_a_refused_token_is_renewed_and_the_request_sent_again():
    auth = Credentials(tokens=[None, "old", "new"])
    async with ScriptedHttp(guarded("new")) as http, fresh(http.url, auth=auth) as client:
        assert (await client.call_tool("x", timeout=5)).value == "ok"
        assert auth.url == http.url
        assert auth.attempts == [(1, None, 'Bearer scope="a b"'), (2, "Bearer old", 'Bearer scope="a b"')]
        assert auth.seen == [401, 401, 200]
        assert len({e.message["id"] for e in http.exchanges}) == 1


async def test_a_refusal_that_no_token_mends_carries_the_challenge():
    auth = Credentials(tokens=["t"], mends=False)
    async with ScriptedHttp(guarded("other")) as http, fresh(http.url, auth=auth) as client:
        with pytest.raises(AuthorizationRequired) as caught:
            await client.call_tool("x")
        error = caught.value
        assert (error.status, error.body, error.evidence) == (401, "who are you?", Evidence.ANSWERED)
        assert error.challenge.params["scope"] == "a b"
        assert "t" not in error.headers


async def test_without_credentials_a_401_says_what_to_give():
    async with ScriptedHttp(guarded("t")) as http, fresh(http.url) as client:
        with pytest.raises(AuthorizationRequired, match="auth="):
            await client.call_tool("x")
        assert len(http.exchanges) == 1


async def test_while_a_person_decides_a_default_deadline_stands_still(clock):
    class Slow(Credentials):
        async def challenged(self, request, status, headers, *, attempt):
            await clock.advance(3600)
            return await super().challenged(request, status, headers, attempt=attempt)

    auth = Slow(tokens=["old", "new"])
    async with ScriptedHttp(guarded("new")) as http, fresh(http.url, auth=auth, request_timeout=30) as client:
        assert (await client.call_tool("x")).value == "ok"


async def test_headers_of_the_user_go_with_each_request_and_may_be_made_for_each():
    numbers = itertools.count()

    async def fields():
        return {"X-Number": str(next(numbers))}

    async def respond(exchange):
        await exchange.result(tool_result())

    async with ScriptedHttp(respond) as http:
        for headers in ({"X-Number": "7"}, fields):
            async with fresh(http.url, headers=headers) as client:
                for _ in range(2):
                    await client.call_tool("x")
        assert [e.headers["x-number"] for e in http.exchanges] == ["7", "7", "0", "1"]


async def test_a_function_cannot_give_the_protocols_own_headers_either():
    async with ScriptedHttp(guarded("t")) as http:
        async with fresh(http.url, headers=lambda: {"MCP-Protocol-Version": "1"}) as client:
            with pytest.raises(ConnectFailed, match="protocol's own .* so nothing was sent") as caught:
                await client.call_tool("x")
            assert caught.value.evidence is Evidence.NOT_SENT
            assert isinstance(caught.value.__cause__, NotSent)
        assert http.exchanges == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "gave None, so nothing was sent; it gives the bearer token alone"),
        ("", "gave an empty text"),
        (5, "gave int, and no token"),
        ("se cret", "gave a text that is no token"),
    ],
)
@pytest.mark.parametrize("wait", [False, True])
async def test_a_function_that_gives_no_token_is_a_call_that_was_not_sent(given, said, wait):
    async def later():
        return given

    async with ScriptedHttp(guarded("t")) as http:
        async with fresh(http.url, auth=later if wait else lambda: given) as client:
            with pytest.raises(
                ConnectFailed, match="^tools/call 'x': auth: the function that gives the token"
            ) as caught:
                await client.call_tool("x")
        assert http.exchanges == []
    assert said in str(caught.value)
    assert "se cret" not in str(caught.value)
    assert caught.value.evidence is Evidence.NOT_SENT


async def test_a_proxy_gets_the_request_for_the_other_machine():
    async def respond(exchange):
        assert exchange.path == "http://far.example/mcp"
        assert exchange.headers["host"] == "far.example"
        await exchange.result(tool_result())

    async with ScriptedHttp(respond) as proxy:
        async with fresh("http://far.example/mcp", proxy=f"http://127.0.0.1:{proxy.port}") as client:
            assert (await client.call_tool("x")).value == "ok"


async def test_a_proxy_that_is_not_there_is_no_connection():
    async with fresh("http://far.example/mcp", proxy="http://127.0.0.1:9") as client:
        with pytest.raises(ConnectFailed) as caught:
            await client.call_tool("x")
        assert caught.value.evidence is Evidence.NOT_SENT


async def test_a_proxy_that_wants_credentials_for_a_tunnel_is_told_with_the_setting():
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with fresh("https://far.example/mcp", proxy=f"http://127.0.0.1:{port}") as client:
            with pytest.raises(ConnectFailed, match="HTTP 407: Proxy Authentication Required") as caught:
                await client.call_tool("x")
    assert str(caught.value).endswith("it wants credentials: put them into proxy=")
    assert caught.value.evidence is Evidence.NOT_SENT


async def test_the_http_client_can_be_the_users_own_who_closes_it():
    sender = ScriptedSender(result(tool_result(3)), result(tool_result(4)))
    client = fresh("http://far.example/mcp", sender=sender)
    for value in (3, 4):  # opened again, it sends by it again
        async with client:
            assert (await client.call_tool("x")).value == value
        assert not sender.closed
    assert sender.requests[0].url == "http://far.example/mcp"


async def test_the_body_of_an_error_is_kept_as_far_as_it_helps():
    async def respond(exchange):
        await exchange.reply(500, b"the disk of shard 7 is full\n" + b"x" * 100_000)

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        with pytest.raises(HttpError, match="the disk of shard 7 is full") as caught:
            await client.call_tool("x")
        assert caught.value.body.startswith("the disk of shard 7 is full\nxxx")
        assert len(caught.value.body) == 1024
        assert len(str(caught.value)) < 500


async def test_the_body_of_an_error_that_breaks_off_is_kept_as_far_as_it_came():
    async def respond(exchange):
        await exchange.head(500, {"content-type": "text/plain", "content-length": "100"})
        await exchange.raw(b"the disk of sh")
        exchange.cut()

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        with pytest.raises(HttpError) as caught:
            await client.call_tool("x")
        assert (caught.value.status, caught.value.body) == (500, "the disk of sh")
