"""Changes: coalesced, in order, from any thread, and a graceful end."""

from __future__ import annotations

import asyncio
import json
import threading

from mcprelay.ports import Session
from mcprelay.server.subscription import PROMPTS, TOOLS, UPDATED, Changes, Listener, SessionListener, notice
from mcprelay.types import SubscriptionFilter


async def test_a_listener_hears_only_what_it_asked_for() -> None:
    changes, listener = (
        Changes(),
        Listener.of(SubscriptionFilter(tools_list_changed=True, resource_subscriptions=("x:1",))),
    )
    changes.add(listener)
    for kind, uri in ((PROMPTS, None), (TOOLS, None), (UPDATED, "x:2"), (UPDATED, "x:1")):
        changes.publish(kind, uri)

    assert await listener.changes() == [(TOOLS, None), (UPDATED, "x:1")]


async def test_the_same_change_twice_is_heard_once_until_it_is_heard() -> None:
    changes, listener = Changes(), Listener.of(SubscriptionFilter(tools_list_changed=True))
    changes.add(listener)
    for _ in range(1000):
        changes.publish(TOOLS)

    assert await listener.changes() == [(TOOLS, None)]
    changes.publish(TOOLS)
    assert await listener.changes() == [(TOOLS, None)]


async def test_a_waiting_listener_is_woken_from_another_thread() -> None:
    changes, listener = Changes(), Listener.of(SubscriptionFilter(tools_list_changed=True))
    changes.add(listener)
    waiting = asyncio.ensure_future(listener.changes())
    thread = threading.Thread(target=changes.publish, args=(TOOLS,))
    thread.start()

    assert await asyncio.wait_for(waiting, 5) == [(TOOLS, None)]
    thread.join()


async def test_what_is_pending_is_heard_before_the_end() -> None:
    changes, listener = Changes(), Listener.of(SubscriptionFilter(tools_list_changed=True))
    changes.add(listener)
    changes.publish(TOOLS)
    changes.close()

    assert await listener.changes() == [(TOOLS, None)]
    assert await listener.changes() == []


async def test_a_listener_that_left_is_not_told_and_leaving_twice_is_leaving_once() -> None:
    changes, listener = Changes(), Listener.of(SubscriptionFilter(tools_list_changed=True))
    changes.add(listener)
    changes.discard(listener)
    changes.discard(listener)
    changes.publish(TOOLS)

    assert len(changes) == 0


async def test_a_listener_whose_loop_is_gone_does_no_harm() -> None:
    changes = Changes()

    async def make() -> None:
        changes.add(Listener.of(SubscriptionFilter(tools_list_changed=True)))

    thread = threading.Thread(target=asyncio.run, args=(make(),))
    thread.start()
    thread.join()
    changes.publish(TOOLS)

    assert len(changes) == 1


async def test_a_session_hears_of_every_list_and_of_what_it_subscribes_to_meanwhile() -> None:
    session = Session(id="s", revision="r")
    listener = SessionListener(session)

    assert listener.wants((PROMPTS, None))
    assert not listener.wants((UPDATED, "x:1"))
    session.subscriptions.add("x:1")
    assert listener.wants((UPDATED, "x:1"))


def test_a_notice_says_what_changed_and_for_which_subscription() -> None:
    assert json.loads(notice((TOOLS, None))) == {"jsonrpc": "2.0", "method": TOOLS}
    assert json.loads(notice((UPDATED, "x:1"), b'{"s":1}'))["params"] == {"_meta": {"s": 1}, "uri": "x:1"}
