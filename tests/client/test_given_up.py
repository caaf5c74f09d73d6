"""A request that is given up in the moment between its being handed to aiohttp and its being written by it."""

import asyncio

import aiohttp
import pytest

from mcprelay import DeadlineExceeded, Evidence
from tests.client.peer import fresh, tool_result
from tests.client.scripted_http import ScriptedHttp
from tests.client.test_posting import Inline


class Moment:
    """Does something once, when aiohttp has a request and has not returned to the loop since."""

    def __init__(self, monkeypatch):
        self.act = None
        send = aiohttp.ClientRequest.send

        async def handed(request, connection):
            response = await send(request, connection)
            act, self.act = self.act, None
            if act is not None:
                act()
            return response

        monkeypatch.setattr(aiohttp.ClientRequest, "send", handed)


def stateless():
    async def respond(exchange):
        await exchange.result(tool_result())

    return respond


@pytest.mark.parametrize("server", [stateless, Inline], ids=["http", "pair"])
@pytest.mark.parametrize("how", ["deadline", "caller"])
async def test_what_is_told_of_it_is_what_becomes_of_it(clock, monkeypatch, server, how):
    moment = Moment(monkeypatch)
    async with ScriptedHttp(server()) as http, fresh(http.url) as client:
        await client.call_tool("warm")
        del http.exchanges[:]
        link = client._connection.current
        link = link.pair or link

        def act():
            if how == "caller":
                calling.cancel()
            else:
                clock._now += 3
                link.watch._ring()

        moment.act = act
        calling = asyncio.ensure_future(client.call_tool("charge", timeout=3))
        with pytest.raises(DeadlineExceeded if how == "deadline" else asyncio.CancelledError) as caught:
            await calling
        assert moment.act is None
        known = caught.value.evidence if how == "deadline" else caught.value.__notes__[0]
        await client.call_tool("next")
        came = [e.message["params"]["name"] for e in http.exchanges if e.asks == "tools/call"]
        assert (str(Evidence.NOT_SENT) in known) is ("charge" not in came)
