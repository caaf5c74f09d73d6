"""What is known of a call over the HTTP+SSE pair at each moment at which its POST or the stream may be cut."""

import asyncio
import contextlib

import msgspec
import pytest

from mcprelay import CallFailed, ConnectFailed, ConnectionLost, DeadlineExceeded, Evidence
from mcprelay.testing import Answer, Cut, ScriptedSender
from tests.client.peer import INITIALIZED, fresh, tool_result

OLDEST = "2024-11-05"
URL = "http://server.example/mcp"


class Stream:
    """The reply to the GET: what is said comes, until it ends."""

    def __init__(self):
        self.status = 200
        self.headers = {"content-type": "text/event-stream"}
        self._said = asyncio.Queue()

    def say(self, data, *, event="message"):
        data = data if isinstance(data, bytes) else msgspec.json.encode({"jsonrpc": "2.0", **data})
        self.raw(b"event: %b\ndata: %b\n\n" % (event.encode(), data))

    def raw(self, data):
        self._said.put_nowait(data)

    def end(self):
        self._said.put_nowait(None)

    def cut(self, error=None):
        self._said.put_nowait(error or ConnectionLost("it was cut", evidence=Evidence.MAYBE_SENT))

    async def chunks(self):
        while (data := await self._said.get()) is not None:
            if isinstance(data, BaseException):
                raise data
            yield data


class PairSender:
    """An HTTP client whose server has only the pair. `steps` are what becomes of the next calls' POSTs.

    Attributes:
        stream: The latest stream.
        asked: What was asked by POST, in order.
        posted: Set when a call's POST has come as far as it will.
    """

    def __init__(self):
        self.stream = None
        self.streams = 0
        self.steps = []
        self.asked = []
        self.posted = asyncio.Event()
        self.left = asyncio.Event()

    @contextlib.asynccontextmanager
    async def send(self, request):
        request.evidence = Evidence.NOT_SENT
        if request.method == "GET":
            self.streams += 1
            request.evidence = Evidence.MAYBE_SENT
            self.stream = stream = Stream()
            stream.say(b"/messages", event="endpoint")
            yield stream
            return
        if not request.url.endswith("/messages"):
            async with ScriptedSender(Answer(status=405)).send(request) as reply:
                yield reply
            return
        message = msgspec.json.decode(request.body)
        self.asked.append(message.get("method"))
        step = self.steps.pop(0) if self.steps and message.get("method") == "tools/call" else None
        if step is None:
            self.answer(message)
        try:
            if step is not None:
                self.posted.set()
            async with ScriptedSender(step or Answer(status=202)).send(request) as reply:
                yield reply
        finally:
            if step is not None:
                self.left.set()

    def answer(self, message):
        if message.get("method") == "initialize":
            self.stream.say({"id": message["id"], "result": {**INITIALIZED, "protocolVersion": OLDEST}})
        elif "id" in message and "method" in message:
            self.stream.say({"id": message["id"], "result": tool_result()})

    async def aclose(self):
        pass


@contextlib.asynccontextmanager
async def paired(*steps, **options):
    """A client that has shaken hands: `(client, sender)`. `steps` are for the calls that follow."""
    sender = PairSender()
    async with fresh(URL, sender=sender, **options) as client:
        await client.call_tool("warm")
        sender.steps += steps
        yield client, sender


async def failure_of(awaitable):
    with pytest.raises(CallFailed) as caught:
        await awaitable
    return caught.value


BEFORE_THE_ANSWER = [cut for cut in Cut if cut is not Cut.IN_ANSWER]


@pytest.mark.parametrize("cut", BEFORE_THE_ANSWER, ids=lambda cut: cut.name)
async def test_a_post_that_is_cut_fails_its_call_with_what_is_known_of_it(cut):
    async with paired(Answer(cut=cut)) as (client, sender):
        error = await failure_of(client.call_tool("charge"))
        assert type(error) is (ConnectFailed if cut.evidence is Evidence.NOT_SENT else ConnectionLost)
        assert error.evidence is cut.evidence
        assert error.method == "tools/call"
        assert cut.value in str(error)
        assert (await client.call_tool("next")).value == "ok"
        assert sender.streams == 1


@pytest.mark.parametrize("cut", BEFORE_THE_ANSWER, ids=lambda cut: cut.name)
async def test_a_deadline_while_the_post_hangs_tells_what_is_known_of_it(clock, cut):
    async with paired(Answer(cut=cut, then="hang"), close_timeout=2) as (client, sender):
        calling = asyncio.ensure_future(client.call_tool("charge", timeout=3))
        await sender.posted.wait()
        await clock.advance(3)
        error = await failure_of(calling)
        assert type(error) is DeadlineExceeded
        assert error.evidence is cut.evidence
        told = ["notifications/cancelled"] if cut.evidence is Evidence.MAYBE_SENT else []
        assert sender.asked[-1 - len(told) :] == ["tools/call", *told]
        assert sender.left.is_set() is (cut.evidence is Evidence.NOT_SENT)  # what has not left never does
        await clock.advance(2)
        assert sender.left.is_set()


@pytest.mark.parametrize("cut", BEFORE_THE_ANSWER, ids=lambda cut: cut.name)
async def test_a_caller_that_gives_up_while_the_post_hangs_is_told_what_is_known_of_it(clock, cut):
    async with paired(Answer(cut=cut, then="hang")) as (client, sender):
        calling = asyncio.ensure_future(client.call_tool("charge"))
        await sender.posted.wait()
        await clock.advance(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await calling
        assert str(cut.evidence) in caught.value.__notes__[0]
        await clock.advance(0)
        assert ("notifications/cancelled" in sender.asked) is (cut.evidence is Evidence.MAYBE_SENT)


@pytest.mark.parametrize("cut", BEFORE_THE_ANSWER, ids=lambda cut: cut.name)
@pytest.mark.parametrize("how", ["end", "cut"])
async def test_a_stream_that_ends_while_the_post_hangs_tells_what_is_known_of_it(cut, how):
    async with paired(Answer(cut=cut, then="hang")) as (client, sender):
        calling = asyncio.ensure_future(client.call_tool("charge"))
        await sender.posted.wait()
        getattr(sender.stream, how)()
        error = await failure_of(calling)
        assert type(error) is ConnectionLost
        assert error.evidence is cut.evidence
        assert ("it was cut" in str(error)) is (how == "cut")
        await sender.left.wait()
        assert (await client.call_tool("next")).value == "ok"
        assert sender.streams == 2


@pytest.mark.parametrize("how", ["end", "cut"])
async def test_a_stream_that_ends_in_the_middle_of_the_answer_leaves_the_call_maybe_sent(how):
    async with paired(Answer(status=202)) as (client, sender):
        calling = asyncio.ensure_future(client.call_tool("charge"))
        await sender.posted.wait()
        sender.stream.raw(b'event: message\ndata: {"jsonrpc":"2.0","id":')
        getattr(sender.stream, how)()
        error = await failure_of(calling)
        assert type(error) is ConnectionLost
        assert error.evidence is Evidence.MAYBE_SENT
        assert error.method == "tools/call"


async def test_a_stream_that_is_cancelled_from_inside_of_the_http_client_has_ended():
    async with paired(Answer(status=202)) as (client, sender):
        calling = asyncio.ensure_future(client.call_tool("charge"))
        await sender.posted.wait()
        sender.stream.cut(asyncio.CancelledError("inner"))
        error = await failure_of(calling)
        assert type(error) is ConnectionLost
        assert error.evidence is Evidence.MAYBE_SENT
        assert "the HTTP client gave up" in str(error)


async def test_a_post_that_is_cancelled_from_inside_of_the_http_client_fails_its_call():
    def gives_up(request):
        request.evidence = Evidence.NOT_SENT
        raise asyncio.CancelledError("inner")

    async with paired(gives_up) as (client, _):
        error = await failure_of(client.call_tool("charge"))
        assert type(error) is ConnectionLost
        assert "the HTTP client gave up" in str(error)
        assert (await client.call_tool("next")).value == "ok"


async def test_a_notice_whose_post_is_cancelled_from_inside_of_the_http_client_is_lost_and_nothing_else():
    class GivesUp(PairSender):
        def answer(self, message):
            if "id" not in message:
                raise asyncio.CancelledError("inner")
            super().answer(message)

    async with fresh(URL, sender=GivesUp()) as client:
        assert (await client.call_tool("charge")).value == "ok"


async def test_what_becomes_of_the_body_of_a_posts_answer_matters_to_nobody():
    async with paired(Answer(status=202, chunks=(b"Acc",), cut=Cut.IN_ANSWER)) as (client, sender):
        calling = asyncio.ensure_future(client.call_tool("charge"))
        await sender.left.wait()
        call = next(iter(client._connection.current.pair.peer.pending.values()))
        sender.stream.say({"id": call.id, "result": tool_result()})
        assert (await calling).value == "ok"


async def test_the_stream_ends_before_the_client_is_greeted():
    class Hasty(PairSender):
        def answer(self, message):
            self.stream.end()

    async with fresh(URL, sender=Hasty()) as client:
        error = await failure_of(client.call_tool("charge"))
        assert type(error) is ConnectFailed
        assert error.evidence is not Evidence.MAYBE_SENT  # the call was refused, and not sent again
