"""Bodies on their way in: bounded in length, in time and in number, each limit by its own name."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.routing import Mount

from mcprelay import Limits, Server
from mcprelay.errors import LimitExceeded
from mcprelay.server.event import LimitHit, Refusal
from mcprelay.server.intake import Intake
from tests.server.wire import INFO, Http, request, until

if TYPE_CHECKING:
    from tests.server.wire import Response

PING = json.dumps(request("initialize", {"protocolVersion": "x", "capabilities": {}, "clientInfo": INFO})).encode()


def served(**limits: Any) -> tuple[Http, list[Any]]:
    server = Server("intake", limits=Limits(**limits))
    server.tool(lambda: None, name="nothing")  # type: ignore[call-overload]
    events: list[Any] = []
    server.observe(events.append)
    http = Http(server.asgi())
    http.asked[1] = "initialize"
    return http, events


def slow(http: Http, *parts: bytes, **headers: Any) -> Response:
    return http.send("POST", chunks=parts or [b""], whole=False, content_type="application/json", **headers)


@pytest.mark.parametrize("parts", [(), (b"{",), (PING[:10], PING[10:20])])
async def test_a_body_that_does_not_come_in_time_is_given_up(parts: tuple[bytes, ...]) -> None:
    http, events = served(body_seconds=0.01)
    response = slow(http, *parts)
    refused = await http.refusal(response, 408)
    assert "body_seconds=0.01" in refused["message"]
    assert response.headers["connection"] == "close"
    assert events == [LimitHit(limit="body_seconds", allowed=0.01), Refusal(reason="too_slow", status=408)]


async def test_bodies_on_their_way_are_counted_and_one_too_many_is_refused() -> None:
    http, events = served(pending_bodies=2)
    waiting = [slow(http, PING[:5]) for _ in range(2)]
    app = http.app
    await until(lambda: len(app.here().intake) == 2)
    refused = slow(http, PING[:5])
    assert "pending_bodies=2" in (await http.refusal(refused, 503))["message"]
    assert refused.headers["retry-after"] == "1"
    assert events == [LimitHit(limit="pending_bodies", allowed=2), Refusal(reason="busy", status=503)]
    for response in waiting:
        response.feed(PING[5:], last=True)
        assert (await http.result(response))["serverInfo"]["name"] == "intake"
    assert len(app.here().intake) == 0
    await http.result(http.post(PING))


async def test_slow_bodies_take_no_place_among_the_requests_that_are_worked_on() -> None:
    http, _ = served(concurrent_requests=1)
    waiting = [slow(http, b"{") for _ in range(3)]
    await until(lambda: len(http.app.here().intake) == 3)
    await http.result(http.post(PING))
    for response in waiting:
        response.hang_up()
        await response.done()
        assert response.status == 0
    assert len(http.app.here().intake) == 0


async def test_whoever_cancels_a_reader_cancels_it() -> None:
    intake = Intake(Limits(body_seconds=1000))

    async def never() -> Any:
        return await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(intake.read(never))
    await until(lambda: len(intake) == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(intake) == 0


async def test_only_what_is_late_is_given_up() -> None:
    intake = Intake(Limits(body_seconds=0.02))
    future = asyncio.get_running_loop().create_future()

    async def never() -> Any:
        return await asyncio.get_running_loop().create_future()

    async def later() -> Any:
        return await future

    first = asyncio.create_task(intake.read(never))
    await until(lambda: len(intake) == 1)

    async def second() -> bytes | None:
        with pytest.raises(LimitExceeded, match="body_seconds"):
            await first
        reading = asyncio.create_task(intake.read(later))
        await until(lambda: len(intake) == 1)
        future.set_result({"type": "http.request", "body": b"whole"})
        return await reading

    assert await second() == b"whole"


async def test_zero_seconds_is_as_long_as_it_takes() -> None:
    intake = Intake(Limits(body_seconds=0))
    future = asyncio.get_running_loop().create_future()

    async def receive() -> Any:
        return await future

    reading = asyncio.create_task(intake.read(receive))
    await until(lambda: len(intake) == 1)
    assert intake._timer is None
    future.set_result({"type": "http.request"})
    assert await reading == b""


async def test_a_late_body_is_given_up_behind_a_hosts_middleware_too() -> None:
    async def dispatch(asked: Any, call_next: Any) -> Any:
        return await call_next(asked)

    server = Server("intake", limits=Limits(body_seconds=0.01))
    host = Starlette(routes=[Mount("/", server.asgi())], middleware=[Middleware(BaseHTTPMiddleware, dispatch=dispatch)])
    http = Http(host)
    assert "body_seconds" in (await http.refusal(slow(http, b"{"), 408))["message"]
    http.asked[1] = "initialize"
    await http.result(http.post(PING))
