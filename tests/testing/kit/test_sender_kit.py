import asyncio
import re
from contextlib import asynccontextmanager
from typing import ClassVar

import pytest

from mcprelay.client.http import HttpSender
from mcprelay.errors import ConnectionLost, Evidence, LimitExceeded, NotSent
from mcprelay.ports import Request
from mcprelay.testing import check_sender


async def test_the_sender_of_the_package_passes():
    await check_sender(HttpSender)


class Wrapped:
    """A sender that behaves, around the package's own."""

    def __init__(self):
        self.inner = HttpSender()

    @asynccontextmanager
    async def send(self, request: Request):
        async with self.inner.send(request) as reply:
            yield self.reply(reply)

    def reply(self, reply):
        return reply

    async def aclose(self):
        await self.inner.aclose()


class WrappedReply:
    def __init__(self, inner):
        self.inner = inner
        self.status = inner.status
        self.headers = inner.headers

    async def read(self, limit: int) -> bytes:
        return await self.inner.read(limit)

    async def chunks(self):
        async for chunk in self.inner.chunks():
            yield chunk


class FollowsRedirects(Wrapped):
    @asynccontextmanager
    async def send(self, request):
        async with self.inner.send(request) as reply:
            if reply.status != 307:
                yield reply
                return
        request.url += reply.headers["location"].lstrip("/")
        async with self.inner.send(request) as reply:
            yield reply


class RaisesOnErrors(Wrapped):
    def reply(self, reply):
        if reply.status >= 400:
            raise ConnectionLost("an error", evidence=Evidence.ANSWERED)
        return reply


class KeepsCookies(Wrapped):
    cookie = None

    @asynccontextmanager
    async def send(self, request):
        if self.cookie:
            request.headers.append(("Cookie", self.cookie))
        async with self.inner.send(request) as reply:
            self.cookie = reply.headers.get("set-cookie")
            yield reply


class KeepsTheCaseOfHeaders(Wrapped):
    class Reply(WrappedReply):
        def __init__(self, inner):
            super().__init__(inner)
            self.headers = {name.title(): value for name, value in inner.headers.items()}

    reply = Reply


class KeepsTheLastOfRepeatedHeaders(Wrapped):
    class Reply(WrappedReply):
        def __init__(self, inner):
            super().__init__(inner)
            self.headers = {name: value.rpartition(", ")[2] for name, value in inner.headers.items()}

    reply = Reply


class Unpacks(Wrapped):
    @asynccontextmanager
    async def send(self, request):
        request.headers.append(("Accept-Encoding", "identity"))
        async with super().send(request) as reply:
            yield reply

    class Reply(WrappedReply):
        async def read(self, limit):
            if "content-encoding" not in self.headers:
                return await self.inner.read(limit)
            return b"".join([chunk async for chunk in self.inner.chunks()])

    reply = Reply


class ReadsWhatEver(Wrapped):
    class Reply(WrappedReply):
        async def read(self, limit):
            return await self.inner.read(10**9)

    reply = Reply


class CutsToTheLimit(Wrapped):
    class Reply(WrappedReply):
        async def read(self, limit):
            try:
                return await self.inner.read(limit)
            except LimitExceeded:
                return b"x" * limit

    reply = Reply


class TakesAnEarlyEndForAnEnd(Wrapped):
    class Reply(WrappedReply):
        async def chunks(self):
            try:
                async for chunk in self.inner.chunks():
                    yield chunk
            except ConnectionLost:
                return

    reply = Reply


class Hoards(Wrapped):
    """Gives the pieces of a body when all are there."""

    class Reply(WrappedReply):
        async def chunks(self):
            for chunk in [chunk async for chunk in self.inner.chunks()]:
                yield chunk

    reply = Reply


class Optimistic(Wrapped):
    """Says that nothing was sent until there is a reply."""

    @asynccontextmanager
    async def send(self, request):
        inner = Request(url=request.url, method=request.method, headers=request.headers, body=request.body)
        request.evidence = Evidence.NOT_SENT
        async with self.inner.send(inner) as reply:
            request.evidence = Evidence.MAYBE_SENT
            yield reply


class Pessimistic(Wrapped):
    @asynccontextmanager
    async def send(self, request):
        inner = Request(url=request.url, method=request.method, headers=request.headers, body=request.body)
        async with self.inner.send(inner) as reply:
            yield reply


class CallsAllFailuresNotSent(Wrapped):
    @asynccontextmanager
    async def send(self, request):
        try:
            async with self.inner.send(request) as reply:
                yield reply
        except ConnectionLost as error:
            raise NotSent(str(error)) from error


class Repeats(Wrapped):
    @asynccontextmanager
    async def send(self, request):
        exchange = self.inner.send(request)
        try:
            reply = await exchange.__aenter__()
        except ConnectionLost:
            exchange = self.inner.send(request)
            reply = await exchange.__aenter__()
        yield reply
        await exchange.__aexit__(None, None, None)


class KeepsStreamsOpen(Wrapped):
    @asynccontextmanager
    async def send(self, request):
        exchange = self.inner.send(request)
        yield await exchange.__aenter__()


class KeepsConnectionsOpen(Wrapped):
    kept: ClassVar[list[HttpSender]] = []

    async def aclose(self):
        self.kept.append(self.inner)


class AnswersInTurn(Wrapped):
    """Gives the bodies of requests at once in the wrong order."""

    last = b""

    def reply(self, reply):
        outer = self

        class Reply(WrappedReply):
            async def read(self, limit):
                outer.last, body = await self.inner.read(limit), outer.last
                return body or outer.last

        return Reply(reply)


class DropsTheBody(Wrapped):
    @asynccontextmanager
    async def send(self, request):
        request.body = (request.body or b"")[:1000] or request.body
        async with self.inner.send(request) as reply:
            yield reply


class DecodesTheTarget(Wrapped):
    @asynccontextmanager
    async def send(self, request):
        request.url = request.url.replace("%2F", "/")
        async with self.inner.send(request) as reply:
            yield reply


BROKEN = [
    (FollowsRedirects, "no redirect is followed"),
    (RaisesOnErrors, "a reply with status 400 is a reply"),
    (KeepsCookies, "no cookie is kept"),
    (KeepsTheCaseOfHeaders, "header names are in lower case"),
    (KeepsTheLastOfRepeatedHeaders, "the values of a repeated header are joined with a comma"),
    (Unpacks, "a body that was compressed unasked is not unpacked beyond the limit"),
    (ReadsWhatEver, "a body over the limit"),
    (CutsToTheLimit, "a body over the limit is LimitExceeded, and nothing was raised"),
    (TakesAnEarlyEndForAnEnd, "chunks() of a body that ended early"),
    (Hoards, "a piece of the body is given as it comes"),
    (Optimistic, "request.evidence is MAYBE_SENT"),
    (Pessimistic, "request.evidence is NOT_SENT"),
    (
        CallsAllFailuresNotSent,
        "is ConnectionLost, and not NotSent",
    ),
    (Repeats, "no request is repeated on its own"),
    (KeepsStreamsOpen, "leaving the context early closes the stream"),
    (KeepsConnectionsOpen, "aclose() closes every connection"),
    (AnswersInTurn, "each of several requests at once gets its own reply"),
    (DropsTheBody, "the body arrives as it was given"),
    (DecodesTheTarget, "the target is the URL's, as it was written"),
]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(("broken", "sentence"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
async def test_a_sender_that_breaks_a_promise_is_found_out(broken, sentence):
    with pytest.raises(AssertionError, match=re.escape(sentence)):
        await check_sender(broken, patience=0.5)
    for inner in KeepsConnectionsOpen.kept:
        await inner.aclose()
    await asyncio.sleep(0)


class Invented:
    """A sender that never asks anybody."""

    @asynccontextmanager
    async def send(self, request: Request):
        class Reply:
            status = 200
            headers: ClassVar = {"content-type": "application/json"}

            async def read(self, limit):
                return b"{}"

        yield Reply()

    async def aclose(self):
        """Nothing to do."""


async def test_a_sender_that_makes_its_replies_up_is_found_out():
    with pytest.raises(AssertionError, match="there is a reply, and the server never saw the request"):
        await check_sender(Invented)
