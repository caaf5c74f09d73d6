"""What others bring along (senders, channels, handlers, functions for headers) fails in the words of the client."""

import asyncio
import contextlib
from types import MappingProxyType

import pytest

from mcprelay import CallFailed, Client, ConnectFailed, ConnectionLost, Evidence
from tests.client.peer import MODERN, connected, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp


class Reply:
    """A reply whose body breaks."""

    status = 200
    headers = MappingProxyType({"content-type": "application/json"})

    async def read(self, limit):
        raise RuntimeError("kaput")


class Sender:
    """An HTTP client that breaks where the test says, and in no agreed way."""

    def __init__(self, where):
        self._where = where
        self.closed = False

    def send(self, request):
        request.evidence = Evidence.NOT_SENT
        if self._where == "sending":
            raise OSError("kaput")
        return self._reply()

    @contextlib.asynccontextmanager
    async def _reply(self):
        if self._where == "entering":
            raise TimeoutError("kaput")
        yield Reply()

    async def aclose(self):
        self.closed = True


@pytest.mark.parametrize("where", ["sending", "entering", "reading"])
async def test_an_http_client_that_breaks_in_no_agreed_way_fails_the_call_and_is_not_believed(where):
    sender = Sender(where)
    async with fresh("http://server.example/mcp", sender=sender, revision=MODERN) as client:
        with pytest.raises(ConnectionLost, match=r"the HTTP client failed \(.*kaput") as caught:
            await client.call_tool("x")
        assert caught.value.evidence is Evidence.MAYBE_SENT
        assert str(caught.value.__cause__) == "kaput"
    assert not sender.closed  # it is the user's


async def test_a_function_for_headers_that_gives_nothing_is_told():
    async def respond(exchange):
        await exchange.result(tool_result("ok"))

    async with ScriptedHttp(respond) as http, fresh(http.url, headers=lambda: None, revision=MODERN) as client:
        with pytest.raises(ConnectFailed, match=r"headers \(.*lambda>\): the function gave None in place of a mapping"):
            await client.call_tool("x")
        assert not http.exchanges


class Texts:
    """A channel that gives texts."""

    async def send(self, data):
        """Take anything."""

    async def receive(self):
        """Not bytes."""
        return "{}"

    async def aclose(self):
        """Nothing to do."""


async def test_a_channel_that_gives_no_bytes_is_told_at_once():
    with pytest.raises(ConnectFailed, match=r"a message is bytes, and not '\{\}' \(str\)"):
        await Client(Texts()).connect()


@pytest.mark.parametrize("answer", [{}, {"name": 5}, "Ada", 5, []])
async def test_an_answer_of_a_handler_that_does_not_fit_its_form_is_told_as_such(answer):
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    question = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": form}}
    async with connected(on_elicit=lambda _: answer) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        request = await channel.expect("tools/call")
        channel.reply(request, {"resultType": "input_required", "inputRequests": {"q": question}})
        with pytest.raises(CallFailed, match="what on_elicit answered does not fit: .*(form|mapping)"):
            await calling


async def test_what_a_handler_raises_itself_goes_through():
    question = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}

    def broken(_):
        raise ValueError("mine")

    async with connected(on_elicit=broken) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("x"))
        request = await channel.expect("tools/call")
        channel.reply(request, {"resultType": "input_required", "inputRequests": {"q": question}})
        with pytest.raises(ValueError, match=r"^mine\n"):  # and a note
            await calling
