"""Connections to a server that binds its own socket send what they have at once."""

import socket

from mcprelay import Server


async def test_no_part_of_an_answer_waits_for_an_acknowledgement():
    async with Server("prompt").serve("http", port=0) as running:
        listening = running._socket
        assert listening is not None
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
