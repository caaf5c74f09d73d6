"""What earlier rounds and attempts of a call sent counts in its failure and in its cancellation, wherever it ends."""

import asyncio

import msgspec
import pytest

from mcprelay import (
    CallLimitExceeded,
    ConnectFailed,
    DeadlineExceeded,
    Evidence,
    InputRequired,
    NeedsInput,
    RemoteError,
    Retry,
)
from mcprelay.core.probe import HEADER_MISMATCH
from tests.client.peer import MODERN, connected, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp

FORM = {"type": "object", "properties": {"a": {"type": "string"}}}
QUESTION = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": FORM}}
ASKED = {"resultType": "input_required", "inputRequests": {"k": QUESTION}, "requestState": "s"}
LATER = {"resultType": "input_required", "requestState": "s"}
ANSWER = {"k": {"a": "b"}}


async def failure_of(calling, kind):
    with pytest.raises(kind) as caught:
        await calling
    return caught.value


async def note_of(calling):
    """What a cancelled call says of itself."""
    calling.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await calling
    notes = caught.value.__notes__
    assert notes[0].endswith(f": {caught.value.evidence}")
    return notes


async def gone(http):
    """The server has closed, and the client had its turns to see that."""
    await http.__aexit__(None, None, None)
    for _ in range(5):
        await asyncio.sleep(0)


async def asking(exchange):
    await exchange.result(ASKED)


# --- failures of a later round


async def test_an_answer_that_is_not_sent_may_follow_a_round_that_was_whoever_gives_it():
    async with ScriptedHttp(asking) as http, fresh(http.url) as client:
        question = await client.try_call_tool("charge")
        await gone(http)
        by_hand = await failure_of(question.answer(ANSWER), ConnectFailed)

    async with ScriptedHttp(asking) as http:

        async def by_handler(_):
            await gone(http)
            return {"a": "b"}

        async with fresh(http.url, on_elicit=by_handler) as client:
            handled = await failure_of(client.call_tool("charge"), ConnectFailed)
    for error in (by_hand, handled):
        assert error.evidence is Evidence.MAYBE_SENT
        assert "nothing was sent this time, but it had been sent before" in str(error)
        assert "so it is safe to try again" not in str(error)


async def test_an_answer_after_the_calls_own_time_says_that_the_call_was_sent(clock):
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.try_call_tool("charge", timeout=5))
        channel.reply(await channel.expect("tools/call"), ASKED)
        question = await calling
        await clock.advance(6)
        error = await failure_of(question.answer(ANSWER), DeadlineExceeded)
        assert error.evidence is Evidence.MAYBE_SENT
        assert "timeout=5 seconds; nothing was sent this time, but" in str(error)
        again = asyncio.ensure_future(question.answer(ANSWER, timeout=5))
        channel.reply(await channel.expect("tools/call"), tool_result())
        assert (await again).value == "ok"


async def test_an_answer_that_a_limit_keeps_back_says_that_the_call_was_sent():
    async with connected(pending_calls=1) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("charge"))
        channel.reply(await channel.expect("tools/call"), ASKED)
        question = (await failure_of(calling, NeedsInput)).question
        other = asyncio.ensure_future(client.call_tool("other"))
        await channel.expect("tools/call")
        error = await failure_of(question.answer(ANSWER), CallLimitExceeded)
        assert error.evidence is Evidence.MAYBE_SENT
        assert "Raise pending_calls to allow more; nothing was sent this time" in str(error)
        other.cancel()


async def test_the_first_round_that_is_not_sent_says_so():
    async with connected(pending_calls=1) as (client, channel):
        other = asyncio.ensure_future(client.call_tool("other"))
        await channel.expect("tools/call")
        error = await failure_of(client.call_tool("charge"), CallLimitExceeded)
        assert error.evidence is Evidence.NOT_SENT
        other.cancel()


async def test_an_attempt_that_was_refused_is_no_attempt_that_may_have_run():
    async def respond(exchange):
        http._server.close()
        await exchange.reply(503, b"busy", headers={"connection": "close"})

    async with ScriptedHttp(respond) as http, fresh(http.url, retry=Retry(attempts=2, backoff=0)) as client:
        error = await failure_of(client.call_tool("charge"), ConnectFailed)
        assert error.evidence is Evidence.ANSWERED
        assert "nothing was sent" not in str(error)


async def test_an_attempt_that_may_have_run_counts_more_than_one_that_was_refused_after_it():
    async def respond(exchange):
        if len(http.exchanges) == 1:
            exchange.cut()
        else:
            http._server.close()
            await exchange.reply(401, b"", headers={"connection": "close"})

    tokens = iter(("first", "second", "third"))
    async with ScriptedHttp(respond) as http, fresh(http.url, auth=lambda: next(tokens)) as client:
        retry = Retry(attempts=2, backoff=0, idempotent=True)
        error = await failure_of(client.call_tool("charge", retry=retry), ConnectFailed)
        assert [exchange.headers["authorization"] for exchange in http.exchanges] == ["Bearer first", "Bearer second"]
        assert error.evidence is Evidence.MAYBE_SENT
        assert "safe to try again" not in str(error)


async def test_when_the_list_cannot_be_refreshed_the_refusal_is_what_is_known_of_the_call():
    async def respond(exchange):
        if exchange.asks == "tools/call":
            await exchange.error(HEADER_MISMATCH, "headers", status=400)
        else:
            await exchange.error(-32603, "no list")

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=MODERN) as client:
        error = await failure_of(client.call_tool("charge"), RemoteError)
        assert (error.code, error.method, error.evidence) == (HEADER_MISMATCH, "tools/call", Evidence.ANSWERED)
        assert "no list" in str(error.__cause__)
        assert http.methods == ["tools/call", "tools/list"]


# --- cancellation


class Long(Retry, frozen=True, kw_only=True):
    """A permission under which the second attempt is far away, and that tells when it is waited for."""

    awaited: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    def wait(self, attempt, error, *, roll=None):
        self.awaited.set()
        return 3600.0


async def test_a_call_that_is_cancelled_between_two_attempts_says_what_the_first_one_sent():
    async def respond(exchange):
        exchange.cut()

    async with ScriptedHttp(respond) as http, fresh(http.url) as client:
        retry = Long(idempotent=True)
        calling = asyncio.ensure_future(client.call_tool("charge", retry=retry, timeout=1e6))
        await retry.awaited.wait()
        assert await note_of(calling) == ["tools/call 'charge' was cancelled by its caller: maybe sent"]


async def test_a_call_that_is_cancelled_between_two_attempts_of_which_none_was_sent_says_so():
    async with ScriptedHttp(asking) as http:
        url = http.url
    async with fresh(url) as client:
        retry = Long()
        calling = asyncio.ensure_future(client.call_tool("charge", retry=retry, timeout=1e6))
        await retry.awaited.wait()
        assert await note_of(calling) == ["tools/call 'charge' was cancelled by its caller: not sent"]


class Never:
    """A target that does not come to connect."""

    def __init__(self):
        self.asked = asyncio.Event()

    async def connect(self):
        self.asked.set()
        await asyncio.get_running_loop().create_future()


async def test_a_call_that_is_cancelled_while_there_is_no_connection_says_that_it_was_not_sent():
    target = Never()
    client = fresh(target, connect_timeout=1e6)
    opening = asyncio.ensure_future(client.connect())
    await target.asked.wait()
    for call in (client.call_tool("charge"), client.request("tools/call"), client.read_resource("a://b")):
        calling = asyncio.ensure_future(call)
        await asyncio.sleep(0)
        (note,) = await note_of(calling)
        assert note.endswith("was cancelled by its caller: not sent")
    opening.cancel()
    await asyncio.wait([opening])
    await client.aclose()


async def test_a_call_that_is_cancelled_while_its_handler_decides_may_have_begun():
    decides = asyncio.Event()

    async def ask(_):
        decides.set()
        await asyncio.get_running_loop().create_future()

    async with connected(on_elicit=ask) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("charge"))
        channel.reply(await channel.expect("tools/call"), ASKED)
        await decides.wait()
        assert await note_of(calling) == ["tools/call 'charge' was cancelled by its caller: maybe sent"]


async def test_a_call_that_is_cancelled_while_the_server_wants_time_may_have_begun(clock):
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("charge"))
        channel.reply(await channel.expect("tools/call"), LATER)
        await clock.advance(0)
        assert await note_of(calling) == ["tools/call 'charge' was cancelled by its caller: maybe sent"]


async def test_a_call_that_is_cancelled_with_its_second_round_in_the_outbox_may_have_begun():
    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.try_call_tool("charge"))
        channel.reply(await channel.expect("tools/call"), ASKED)
        question = await calling
        assert isinstance(question, InputRequired)
        channel.hold_sends()
        before = asyncio.ensure_future(client.call_tool("before"))
        answering = asyncio.ensure_future(question.answer(ANSWER))
        first = asyncio.ensure_future(client.call_tool("first"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert await note_of(answering) == ["tools/call 'charge' was cancelled by its caller: maybe sent"]
        assert await note_of(first) == ["tools/call 'first' was cancelled by its caller: not sent"]
        assert await note_of(before) == ["tools/call 'before' was cancelled by its caller: maybe sent"]


async def test_a_call_that_is_cancelled_while_the_list_is_refreshed_says_that_it_was_answered():
    async def respond(exchange):
        if exchange.asks == "tools/call":
            await exchange.error(HEADER_MISMATCH, "headers", status=400)
        else:
            await exchange.left()

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=MODERN) as client:
        calling = asyncio.ensure_future(client.call_tool("charge"))
        await http.came(of="tools/list")
        notes = await note_of(calling)
        assert "tools/call 'charge' was cancelled by its caller: answered" in notes


async def test_a_call_that_is_cancelled_while_its_last_progress_is_called_back_was_answered():
    hears = asyncio.Event()

    async def on_progress(_):
        hears.set()
        await asyncio.get_running_loop().create_future()

    async with connected() as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("charge", on_progress=on_progress))
        request = await channel.expect("tools/call")
        token = request["params"]["_meta"]["progressToken"]
        channel.notify("notifications/progress", {"progressToken": token, "progress": 1})
        channel.reply(request, tool_result())
        await hears.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        assert await note_of(calling) == ["tools/call 'charge' was cancelled by its caller: answered"]


async def test_a_call_over_http_that_is_cancelled_says_what_left():
    async def respond(exchange):
        await exchange.left()

    async with ScriptedHttp(respond) as http, fresh(http.url, revision=MODERN) as client:
        for count, call in enumerate((client.call_tool("charge"), client.request("tools/list")), 1):
            calling = asyncio.ensure_future(call)
            await http.came(count)
            (note,) = await note_of(calling)
            assert note.endswith("was cancelled by its caller: maybe sent")
