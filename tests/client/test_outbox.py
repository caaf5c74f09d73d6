"""What waits for a channel that may never take it."""

import asyncio
import itertools

import pytest

from mcprelay.client.outbox import Answer, Outbox
from mcprelay.core.peer import Peer
from mcprelay.errors import NotSent


class Broken:
    """A channel in a hurry that has broken, and says so to whoever waits for room, each time."""

    async def room(self):
        raise NotSent("not sent: it broke")


@pytest.mark.timeout(10)
async def test_all_that_waits_for_a_channel_that_broke_is_given_back_and_not_counted_any_more():
    peer, failed = Peer(ids=itertools.count(1)), []

    def fail(pending, error):
        failed.append((pending.id, str(error)))

    box = Outbox(Broken(), peer, hasty=True, put=None, failed=fail)
    for _ in range(2):
        box.add(peer.expect("m"), b"a request")
    box.add(None, b"a notice")
    box.add(None, Answer(b"an answer"))
    assert (box.unsaid, box.answers) == (8, 1)
    sending = asyncio.ensure_future(box.run())
    await asyncio.sleep(0)
    assert failed == [(1, "not sent: it broke"), (2, "not sent: it broke")]
    assert (box.unsaid, box.answers, len(box.waiting)) == (0, 0, 0)
    sending.cancel()


async def test_what_was_given_up_while_it_waited_is_not_sent():
    class Takes:
        congested = False

        async def room(self):
            """There is some."""

        send_nowait = None

    peer, sent = Peer(ids=itertools.count(1)), []
    box = Outbox(Takes(), peer, hasty=True, put=lambda pending, data, _: sent.append(data), failed=None)
    kept, dropped, settled = (peer.expect("m") for _ in range(3))
    for pending, data in ((dropped, b"dropped"), (settled, b"settled"), (kept, b"kept")):
        box.add(pending, data)
    box.drop(dropped)
    del peer.pending[settled.id]
    sending = asyncio.ensure_future(box.run())
    await asyncio.sleep(0)
    assert sent == [b"kept"]
    sending.cancel()
