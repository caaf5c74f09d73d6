"""So many at once, and the others in their order."""

import asyncio

import pytest

from mcprelay.relay.turns import Turns
from tests.relay.far import settle


async def test_turns_that_are_free_are_taken_at_once_and_no_more_than_there_are():
    turns = Turns(2)
    assert not turns.taken
    assert [turns.take() for _ in range(3)] == [True, True, False]
    turns.give()
    assert turns.taken
    await turns.wait()
    assert not turns.take()
    turns.give()
    turns.give()
    assert not turns.taken


async def test_who_waits_longest_is_next_and_nobody_overtakes():
    turns, order = Turns(1), []

    async def waiter(name):
        await turns.wait()
        order.append(name)

    assert turns.take()
    tasks = [asyncio.ensure_future(waiter(name)) for name in "abc"]
    await settle()
    turns.give()
    assert not turns.take()  # it is already that of the first
    await settle()
    assert order == ["a"]
    turns.give()
    turns.give()
    await asyncio.gather(*tasks)
    assert order == ["a", "b", "c"]
    turns.give()
    assert turns.take()


@pytest.mark.parametrize("given_first", [False, True])
async def test_who_goes_while_waiting_takes_no_turn_along(given_first):
    turns = Turns(1)
    assert turns.take()
    gone, stays = (asyncio.ensure_future(turns.wait()) for _ in range(2))
    await settle()
    if given_first:
        turns.give()
    gone.cancel()
    await settle()
    if not given_first:
        turns.give()
    await stays
    assert not turns.take()
    turns.give()
    assert turns.take()


async def test_one_that_was_cancelled_before_it_heard_of_it_is_passed_over():
    turns = Turns(1)
    assert turns.take()
    gone, stays = (asyncio.ensure_future(turns.wait()) for _ in range(2))
    await settle()
    gone.cancel()
    turns.give()  # before the cancelled one has run
    await stays
    with pytest.raises(asyncio.CancelledError):
        await gone
    turns.give()
    assert turns.take()
