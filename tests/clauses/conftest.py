"""One server for the clause tests, reached over HTTP and over a channel."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from mcprelay import Server
from tests.clauses.house import Workshop
from tests.clauses.http import HttpWire
from tests.clauses.script import over_http, over_lines
from tests.server.rawclient import RawClient


@pytest.fixture
def workshop() -> Workshop:
    """The server, and what its handlers wait for."""
    return Workshop()


@pytest.fixture
def server(workshop: Workshop) -> Server:
    return workshop.server


@pytest.fixture
async def http(server: Server) -> AsyncIterator[HttpWire]:
    """The server over HTTP, by a client that can be asked for everything."""
    app = server.asgi()
    yield HttpWire(app, **EVERYTHING)
    await app.aclose()


@pytest.fixture
async def channel(server: Server) -> AsyncIterator[RawClient]:
    """The server over a channel of lines, by a client that can be asked for everything."""
    end = server.connect()
    yield RawClient(end, **EVERYTHING)
    await end.aclose()
    await server.stop()


@pytest.fixture(params=["http", "channel"])
def wire(request: pytest.FixtureRequest) -> Any:
    """The server over each."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=[over_http, over_lines], ids=["http", "channel"])
def scripted(request: pytest.FixtureRequest) -> Any:
    """Makes a client and its scripted server, over each."""
    return request.param


EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
