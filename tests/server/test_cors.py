"""One switch for browsers: preflights, and answers that a page may read."""

from __future__ import annotations

from typing import Any

import pytest

from mcprelay import Server
from tests.server.wire import Http, request

PAGE = "https://app.example"


def served(**options: Any) -> Http:
    server = Server("cors", allowed_origins=[PAGE], **options)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return Http(server.asgi())


def preflight(http: Http, origin: str = PAGE) -> Any:
    asked = {"access_control_request_method": "POST", "access_control_request_headers": "content-type,mcp-session-id"}
    return http.send("OPTIONS", origin=origin, **asked)


async def test_a_preflight_of_an_allowed_origin_is_answered() -> None:
    response = preflight(served(cors=True))
    assert (await response.body(), response.status) == (b"", 204)
    assert response.headers["access-control-allow-origin"] == PAGE
    assert response.headers["access-control-allow-headers"] == "content-type,mcp-session-id"
    assert "DELETE" in response.headers["access-control-allow-methods"]
    assert response.headers["vary"] == "origin"


async def test_a_page_may_read_answers_and_the_session_id() -> None:
    http = served(cors=True)
    params = {"protocolVersion": http.revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    response = http.request("initialize", params, origin=PAGE)
    await http.result(response)
    assert response.headers["access-control-allow-origin"] == PAGE
    assert "mcp-session-id" in response.headers["access-control-expose-headers"]
    refused = http.post(request("ping"), origin=PAGE)
    assert await refused.begun() == 400
    assert refused.headers["access-control-allow-origin"] == PAGE


async def test_streams_are_marked_too() -> None:
    http = served(cors=True)
    await http.initialize()
    stream = http.get(origin=PAGE)
    assert await stream.begun() == 200
    assert stream.headers["access-control-allow-origin"] == PAGE
    stream.hang_up()
    await stream.done()


@pytest.mark.parametrize("cors", [True, False])
async def test_another_origin_gets_nothing(cors: bool) -> None:
    http = served(cors=cors)
    for response in (
        preflight(http, "https://evil.example"),
        http.post(request("ping"), origin="https://evil.example"),
    ):
        assert await response.begun() == 403
        assert "access-control-allow-origin" not in response.headers


async def test_without_the_switch_there_are_no_such_headers() -> None:
    http = served()
    response = preflight(http)
    assert await response.begun() == 204
    assert response.headers["allow"] == "GET, POST, DELETE, OPTIONS"
    assert not any(name.startswith("access-control") for name in response.headers)


async def test_requests_that_no_page_sent_are_answered_as_always() -> None:
    http = served(cors=True)
    await http.initialize()
    response = http.request("ping")
    await http.result(response)
    assert not any(name.startswith("access-control") for name in response.headers)
