"""Whether a `Sender` keeps its promises."""

from __future__ import annotations

import asyncio
import gzip
import socket
from typing import TYPE_CHECKING

from mcprelay.errors import ConnectionLost, Evidence, LimitExceeded, NotSent
from mcprelay.ports import Request, Sender
from mcprelay.testing.kit.promise import PATIENCE, Make, close, made, promise, turns, within
from mcprelay.testing.kit.site import Respond, Seen, Site, chunk, reply, site

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


_LIMIT = 2**24


async def check_sender(make: Make[Sender], *, patience: float = PATIENCE) -> None:
    """Hold an HTTP client against the promises of `ports.Sender`, on a server on this machine.

    Args:
        make: Gives a new one each time, with its usual settings.
        patience: Seconds that may pass before something that should happen counts as not happening.

    Raises:
        AssertionError: A promise is broken; the message says which.
    """
    for respond, check in _CHECKS:
        sender = await made(make)
        try:
            async with site(respond) as where:
                await check(_Trial(sender, where, patience))
        finally:
            await close(sender)
    await _nobody_listens(make, patience)
    await _closes(make, patience)


class _Trial:
    """A sender, and the site it is tried on."""

    def __init__(self, sender: Sender, where: Site, patience: float) -> None:
        self.sender = sender
        self.site = where
        self.patience = patience

    def request(self, path: str = "/", *, body: bytes | None = b"{}", method: str = "POST") -> Request:
        headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]
        return Request(url=self.site.url + path, body=body, method=method, headers=headers)

    async def fetch(self, request: Request, *, limit: int = _LIMIT) -> tuple[int, dict[str, str], bytes]:
        async with self.sender.send(request) as answer:
            return answer.status, dict(answer.headers), await answer.read(limit)

    async def get(self, request: Request, what: str) -> tuple[int, dict[str, str], bytes]:
        before = len(self.site.seen)
        try:
            answer = await within(self.patience, self.fetch(request), f"{what}: there is no reply")
            promise(len(self.site.seen) > before, f"{what}: there is a reply, and the server never saw the request")
            return answer
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{what}: {error!r} was raised instead") from error

    async def fails(self, work: Awaitable[object], error: type[Exception], what: str) -> None:
        try:
            await within(self.patience, work, f"{what}: nothing happens")
        except error:
            return
        except AssertionError:
            raise
        except Exception as other:
            raise AssertionError(f"{what} is {error.__name__}, and not {other!r}") from other
        raise AssertionError(f"{what} is {error.__name__}, and nothing was raised")


# ------------------------------------------------------------------------------------------------- request and reply


async def _echo(seen: Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    status = int(seen.target.partition("status=")[2] or 200)
    headers = (
        ("X-Several", "one"),
        ("Content-Type", "text/Plain"),
        ("x-several", "two"),
        ("Set-Cookie", "a=b; Path=/"),
    )
    body = b"" if status == 204 else seen.body
    writer.write(reply(status, body, *headers, length=-1 if status == 204 else None))


async def _sends_what_it_was_given(trial: _Trial) -> None:
    body = b'{"text": "\xc3\xa9\xe6\xbc\xa2"}' + b" " * 300_000
    request = trial.request("/a/b%20c?d=e%2Ff&g", body=body)
    request.headers += [("Mcp-Name", "x y"), ("MCP-Protocol-Version", "any")]
    status, headers, got = await trial.get(request, "a request is answered")
    seen = trial.site.seen[0]
    promise(seen.method == "POST", f"the method is the one given, and not {seen.method}")
    promise(seen.target == "/a/b%20c?d=e%2Ff&g", f"the target is the URL's, as it was written, and not {seen.target}")
    promise(seen.body == body, "the body arrives as it was given")
    for name, value in request.headers:
        promise(seen.header(name.lower()) == [value], f"the header {name} arrives once, as it was given")
    promise((status, got) == (200, body), "status and body of the reply are what the server sent")
    promise(all(name == name.lower() for name in headers), f"header names are in lower case: {sorted(headers)}")
    several = [part.strip() for part in headers.get("x-several", "").split(",")]
    promise(several == ["one", "two"], f"the values of a repeated header are joined with a comma, not {several}")
    promise(headers.get("content-type") == "text/Plain", "the value of a header stays as it is")
    promise(request.evidence is not Evidence.NOT_SENT, "request.evidence is not NOT_SENT once the request was sent")


async def _gives_every_status(trial: _Trial) -> None:
    for status in (200, 202, 204, 400, 401, 403, 404, 405, 409, 500, 503):
        got, _, _ = await trial.get(trial.request(f"/?status={status}"), f"a reply with status {status} is a reply")
        promise(got == status, f"the status of a reply is given as it is: {status}, not {got}")


async def _uses_every_method(trial: _Trial) -> None:
    for method in ("GET", "DELETE"):
        await trial.get(trial.request(method=method, body=None), f"{method} is answered")
        seen = trial.site.seen[-1]
        promise((seen.method, seen.body) == (method, b""), f"{method} without a body is sent as that")


async def _keeps_no_cookie(trial: _Trial) -> None:
    for _ in range(2):
        await trial.get(trial.request(), "a request is answered")
    promise(not trial.site.seen[1].header("cookie"), "no cookie is kept")


async def _takes_many_at_once(trial: _Trial) -> None:
    bodies = [b"%d" % number for number in range(20)]
    replies = await asyncio.gather(*(trial.get(trial.request(body=body), "requests at once") for body in bodies))
    promise([body for _, _, body in replies] == bodies, "each of several requests at once gets its own reply")


async def _redirect(_seen: Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(307, b"elsewhere", ("Location", "/other")))


async def _follows_no_redirect(trial: _Trial) -> None:
    status, headers, _ = await trial.get(trial.request(), "a redirect is a reply")
    promise(status == 307, f"a redirect is given as it is, and not followed (got {status})")
    promise(headers.get("location") == "/other", "the location of a redirect is given as it is")
    promise(len(trial.site.seen) == 1, "no redirect is followed")


async def _compressed(_seen: Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, gzip.compress(b"x" * 1_000_000), ("Content-Encoding", "gzip")))


async def _decompresses_nothing_unasked(trial: _Trial) -> None:
    async with trial.sender.send(trial.request()) as answer:
        if trial.site.seen[0].header("accept-encoding") not in ([], ["identity"]):
            return  # it asked
        try:
            body = await within(trial.patience, answer.read(100_000), "a body that comes compressed can be read")
        except LimitExceeded:
            return
        promise(len(body) <= 100_000, "a body that was compressed unasked is not unpacked beyond the limit")


# ------------------------------------------------------------------------------------------------------- long bodies


async def _endless(_seen: Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(200, b"", ("Transfer-Encoding", "chunked"), ("Content-Type", "text/event-stream"), length=-1))
    while True:
        writer.write(chunk(b"x" * 50_000))
        await writer.drain()


async def _bounds_what_it_reads(trial: _Trial) -> None:
    await trial.fails(trial.fetch(trial.request(), limit=100_000), LimitExceeded, "a body over the limit")


class _Doors:
    """An answer in two pieces, the second when the test says so; and whether the client was seen to leave."""

    def __init__(self) -> None:
        self.second = asyncio.Event()
        self.left = asyncio.Event()

    async def respond(self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            reply(200, b"", ("Transfer-Encoding", "chunked"), ("Content-Type", "text/event-stream"), length=-1)
        )
        writer.write(chunk(b"first"))
        leaving = asyncio.ensure_future(reader.read(1))
        opening = asyncio.ensure_future(self.second.wait())
        await asyncio.wait([leaving, opening], return_when=asyncio.FIRST_COMPLETED)
        opening.cancel()
        if leaving.done():
            self.left.set()
            raise EOFError
        writer.write(chunk(b"second") + chunk(b""))
        await leaving


async def _streams(sender: Sender, patience: float) -> None:
    doors = _Doors()
    async with site(doors.respond) as where:
        trial = _Trial(sender, where, patience)
        async with sender.send(trial.request()) as answer:
            chunks = answer.chunks()
            got = await within(patience, anext(chunks), "a piece of the body is given as it comes")
            promise(got == b"first", f"a piece of the body is given as it comes, not {got!r}")
            doors.second.set()
            rest = await within(patience, _joined(chunks), "the body ends when the server ends it")
            promise(rest == b"second", f"the rest of the body follows, and not {rest!r}")


async def _leaves_early(sender: Sender, patience: float) -> None:
    doors = _Doors()
    async with site(doors.respond) as where:
        trial = _Trial(sender, where, patience)
        async with sender.send(trial.request()) as answer:
            await within(patience, anext(answer.chunks()), "a piece of the body is given as it comes")
        await within(patience, doors.left.wait(), "leaving the context early closes the stream")


async def _joined(chunks: object) -> bytes:
    return b"".join([each async for each in chunks])  # type: ignore[attr-defined]


async def _on_doors(trial: _Trial) -> None:
    await _streams(trial.sender, trial.patience)
    await _leaves_early(trial.sender, trial.patience)


# --------------------------------------------------------------------------------------------------- what breaks, where


async def _short_body(seen: Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if seen.target == "/length":
        writer.write(reply(200, b"short", length=1_000))
    else:
        writer.write(reply(200, chunk(b"short"), ("Transfer-Encoding", "chunked"), length=-1))
    await writer.drain()
    raise EOFError


async def _tells_a_body_that_ended_early(trial: _Trial) -> None:
    for path in ("/length", "/chunked"):
        await trial.fails(trial.fetch(trial.request(path)), ConnectionLost, "read() of a body that ended early")

        async def chunks(path: str = path) -> None:
            async with trial.sender.send(trial.request(path)) as answer:
                await _joined(answer.chunks())

        await trial.fails(chunks(), ConnectionLost, "chunks() of a body that ended early")


async def _hangs_up(seen: Seen, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if seen.target != "/well":
        raise EOFError
    writer.write(reply(200))


async def _tells_a_reply_that_never_came(trial: _Trial) -> None:
    what = "a connection that ended before the head of the reply"
    request = trial.request()
    await trial.fails(trial.fetch(request), ConnectionLost, what)
    promise(request.evidence is Evidence.MAYBE_SENT, f"request.evidence is MAYBE_SENT after {what}")
    await trial.get(trial.request("/well"), "a request that follows is answered")
    again = trial.request()
    await trial.fails(trial.fetch(again), ConnectionLost, f"{what}, on a connection that was used before,")
    promise(again.evidence is Evidence.MAYBE_SENT, f"request.evidence is MAYBE_SENT after {what}, used before")
    promise(
        len(trial.site.seen) == 3, f"no request is repeated on its own: 3 were sent, {len(trial.site.seen)} arrived"
    )


async def _silent(_seen: Seen, reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read(1)


async def _is_right_when_it_is_cancelled(trial: _Trial) -> None:
    request = trial.request()
    sending = asyncio.ensure_future(trial.fetch(request))
    for _ in range(round(trial.patience / 0.01)):
        if trial.site.seen:
            break
        await asyncio.sleep(0.01)
    promise(trial.site.seen, "a request arrives")
    sending.cancel()
    await within(trial.patience, asyncio.wait([sending]), "a request that waits can be cancelled")
    promise(request.evidence is Evidence.MAYBE_SENT, "request.evidence is MAYBE_SENT once the request has left")


async def _is_right_when_it_is_cancelled_while_connecting(trial: _Trial) -> None:
    """The site speaks no TLS, and never answers a greeting."""
    request = trial.request()
    request.url = request.url.replace("http:", "https:")
    sending = asyncio.ensure_future(trial.fetch(request))
    for _ in range(round(trial.patience / 0.01)):
        if trial.site.connections or sending.done():
            break
        await asyncio.sleep(0.01)
    await turns(50)
    sending.cancel()
    await within(trial.patience, asyncio.wait([sending]), "a request whose connection is being made can be cancelled")
    what = "request.evidence is NOT_SENT while the connection (TLS included) is being made"
    promise(request.evidence is Evidence.NOT_SENT, what)


async def _nobody_listens(make: Make[Sender], patience: float) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sender = await made(make)
    request = Request(url=f"http://127.0.0.1:{port}/", body=b"{}")

    async def fetch() -> None:
        async with sender.send(request):
            pass

    try:
        await within(patience, fetch(), "a refused connection is told")
    except NotSent:
        promise(request.evidence is Evidence.NOT_SENT, "request.evidence is NOT_SENT when NotSent was raised")
        return
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"a refused connection is NotSent, and not {error!r}") from error
    finally:
        await close(sender)
    raise AssertionError("a refused connection is NotSent, and nothing was raised")


async def _closes(make: Make[Sender], patience: float) -> None:
    ended = asyncio.Event()

    async def respond(_seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(200, b"{}"))
        await reader.read(1)
        ended.set()

    async with site(respond) as where:
        sender = await made(make)
        await _Trial(sender, where, patience).get(Request(url=where.url, body=b"{}"), "a request is answered")
        for _ in range(2):
            await within(patience, sender.aclose(), "aclose() returns")
        await within(patience, ended.wait(), "aclose() closes every connection")


_CHECKS: tuple[tuple[Respond, Callable[[_Trial], Awaitable[None]]], ...] = (
    (_echo, _sends_what_it_was_given),
    (_echo, _gives_every_status),
    (_echo, _uses_every_method),
    (_echo, _keeps_no_cookie),
    (_echo, _takes_many_at_once),
    (_redirect, _follows_no_redirect),
    (_compressed, _decompresses_nothing_unasked),
    (_endless, _bounds_what_it_reads),
    (_echo, _on_doors),
    (_short_body, _tells_a_body_that_ended_early),
    (_hangs_up, _tells_a_reply_that_never_came),
    (_silent, _is_right_when_it_is_cancelled),
    (_silent, _is_right_when_it_is_cancelled_while_connecting),
)
