"""A listening socket that somebody else made, as socket activation hands it over."""

import socket

import pytest

from mcprelay import Client, Server
from mcprelay.errors import ConfigurationError
from mcprelay.server.listening import HttpOptions


@pytest.mark.parametrize("descriptor", [-1, 10**6, "x", 2**70])
def test_what_is_no_inherited_socket_is_told(descriptor):
    with pytest.raises(ConfigurationError, match="fd: .* is no"):
        HttpOptions(fd=descriptor).check(protected=True)


def test_an_inherited_socket_that_does_not_listen_is_told():
    with socket.socket() as idle, pytest.raises(ConfigurationError, match="no socket that listens"):
        HttpOptions(fd=idle.fileno()).check(protected=True)


def test_an_inherited_socket_that_others_can_reach_wants_protection():
    with socket.create_server(("0.0.0.0", 0)) as public:  # noqa: S104 - that is the point
        with pytest.raises(ConfigurationError, match=r"0\.0\.0\.0 is reachable from other machines"):
            HttpOptions(fd=public.fileno()).check(protected=False)
        HttpOptions(fd=public.fileno()).check(protected=True)


async def test_a_server_answers_on_a_socket_that_it_inherits_and_leaves_it_open():
    server = Server("inherits")
    server.add_tool(lambda: "here", name="where", description="Where.")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        for _ in range(2):
            async with server.serve("http", fd=listening.fileno()) as running, Client(running.url) as client:
                assert running.url == f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
                assert (await client.call_tool("where")).text == "here"
