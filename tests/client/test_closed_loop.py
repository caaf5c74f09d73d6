"""A loop that is closed before the client that it serves."""

from typing import Any

import pytest

from tests.client.peer import connected


@pytest.mark.parametrize("half", ["_read", "_write"])
async def test_a_half_that_can_wait_no_more_ends_at_once_and_breaks_nothing(half: str):
    async with connected() as (client, _):
        link: Any = client._connection.current
        waiting = getattr(link, half)()
        waiting.send(None)
        waiting.close()  # as the coroutines of a closed loop are
        assert link.alive
