"""Pipes between a client and a server of one process: what waits in them is bounded."""

import pytest

from mcprelay.errors import NotSent
from mcprelay.server.inprocess import Pipe


async def test_what_would_have_to_wait_is_not_taken_at_once():
    pipe = Pipe()
    assert pipe.offer(b"one") == 1
    assert pipe.offer(b"x" * 2**22) == 2
    assert pipe.offer(b"beyond") == 0
    assert await pipe.take() == b"one"
    await pipe.take()
    assert pipe.offer(b"three") == 3
    assert await pipe.take() == b"three"


async def test_what_is_offered_to_a_pipe_that_has_ended_is_not_sent():
    pipe = Pipe()
    pipe.offer(b"x" * 2**22)
    pipe.end()
    with pytest.raises(NotSent):
        pipe.offer(b"late")
