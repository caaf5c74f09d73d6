import asyncio

import pytest

from mcprelay import CallFailed, Client, Retry
from mcprelay.client.memory import Memory
from mcprelay.errors import ConnectionLost, Evidence, LimitExceeded, NotSent
from mcprelay.ports import Request
from mcprelay.testing import Answer, Cut, ScriptedSender, ScriptFault, result


def request(body: bytes = b'{"jsonrpc":"2.0","id":7,"method":"ping"}') -> Request:
    return Request(url="http://server.example/mcp", body=body)


async def fetch(sender: ScriptedSender, asked: Request, *, limit: int = 1000) -> bytes:
    async with sender.send(asked) as reply:
        return await reply.read(limit)


async def test_requests_are_answered_in_the_order_of_the_script():
    sender = ScriptedSender(result({"a": 1}), Answer(status=401, headers={"www-authenticate": "Bearer"}))
    asked = request()
    assert await fetch(sender, asked) == b'{"jsonrpc":"2.0","id":7,"result":{"a":1}}'
    assert asked.evidence is Evidence.MAYBE_SENT
    async with sender.send(request()) as reply:
        assert (reply.status, reply.headers) == (401, {"www-authenticate": "Bearer"})
        assert sender.open == 1
    assert sender.open == 0
    assert sender.requests[0] is asked
    await sender.aclose()
    assert sender.closed


async def test_a_request_that_the_script_does_not_have_is_told():
    with pytest.raises(AssertionError, match=r"no answer for POST http://server.example/mcp"):
        await fetch(ScriptedSender(), request())


def fails(request: Request) -> Answer:
    assert request.body == b"another"
    return Answer()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ((), "the script has no answer for POST http://server.example/mcp b'{"),
        ((fails,), "the step for POST http://server.example/mcp raised AssertionError("),
        ((lambda _: {}["x"],), "the step for POST http://server.example/mcp raised KeyError('x')"),
        ((lambda _: {},), "the step for POST http://server.example/mcp gave {}, and not an Answer"),
    ],
)
async def test_a_mistake_of_the_script_goes_through_a_client_and_is_no_failure_of_the_call(script, told):
    with pytest.raises(AssertionError) as caught:
        async with Client("http://server.example/mcp", sender=ScriptedSender(*script), memory=Memory()) as client:
            await client.call_tool("pay", {"amount": 5}, retry=Retry(attempts=3, backoff=0))
    assert isinstance(caught.value, ScriptFault)
    assert not isinstance(caught.value, CallFailed)
    assert str(caught.value).startswith(told)


async def test_a_step_may_raise_what_a_sender_may():
    def refuses(_: Request) -> Answer:
        raise NotSent("nobody listens")

    with pytest.raises(NotSent):
        await fetch(ScriptedSender(refuses), request())


@pytest.mark.parametrize("cut", [cut for cut in Cut if cut is not Cut.IN_ANSWER])
async def test_an_exchange_breaks_where_it_is_cut_with_the_right_evidence(cut):
    sender = ScriptedSender(Answer(cut=cut))
    asked = request()
    with pytest.raises((NotSent, ConnectionLost)) as caught:
        await fetch(sender, asked)
    assert asked.evidence is cut.evidence
    assert isinstance(caught.value, NotSent) is (asked.evidence is Evidence.NOT_SENT)


async def test_an_answer_breaks_after_the_pieces_that_came():
    sender = ScriptedSender(Answer(chunks=(b"one", b"two"), cut=Cut.IN_ANSWER))
    got = []

    async def read():
        async with sender.send(request()) as reply:
            async for chunk in reply.chunks():
                got.append(chunk)  # noqa: PERF401 - what came before it broke is kept

    with pytest.raises(ConnectionLost):
        await read()
    assert got == [b"one", b"two"]


@pytest.mark.parametrize("cut", list(Cut))
async def test_a_cut_can_hang_until_the_caller_gives_up(cut):
    sender = ScriptedSender(Answer(cut=cut, then="hang", chunks=(b"part",)))
    asked = request()
    fetching = asyncio.ensure_future(fetch(sender, asked))
    done, _ = await asyncio.wait([fetching], timeout=0.02)
    assert not done
    assert asked.evidence is cut.evidence
    fetching.cancel()
    await asyncio.wait([fetching])
    assert fetching.cancelled()
    assert sender.open == 0


async def test_a_body_over_the_limit_is_told():
    sender = ScriptedSender()
    sender.add(Answer(chunks=(b"xx", b"xx")))
    with pytest.raises(LimitExceeded):
        await fetch(sender, request(), limit=3)
