"""What an application's functions are waited for ends with the call, and their cancellations are not the call's."""

import asyncio

import pytest

from mcprelay.relay import CallRefused
from mcprelay.relay.errand import Late, WaitCancelled, awaited, settled
from mcprelay.relay.frame import Funnel
from mcprelay.types import Text, ToolResult


async def test_an_answer_is_what_comes_in_time_or_is_there_at_once():
    async def answer():
        return 5

    assert await awaited(answer(), seconds=60, who="it") == 5
    assert await settled(answer(), seconds=60, who="it") == 5
    assert await settled(5, seconds=60, who="it") == 5


async def test_what_is_late_is_cancelled_and_what_it_raises_then_is_looked_at(caplog):
    ended = []

    async def slow():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
            raise ValueError

    with pytest.raises(Late):
        await awaited(slow(), seconds=0, who="it")
    assert ended == [True]
    assert not caplog.records


async def test_a_call_that_is_given_up_ends_what_it_waits_for_first():
    waits, ended = asyncio.Event(), []

    async def slow():
        try:
            waits.set()
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    task = asyncio.ensure_future(awaited(slow(), seconds=60, who="it"))
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


@pytest.mark.parametrize("place", ["filters", "tokens"])
async def test_a_filter_or_a_counter_that_raises_a_cancellation_withholds_and_cancels_nobody(place):
    def cancelled(*_):
        raise asyncio.CancelledError

    funnel = Funnel("s", **({"filters": [cancelled]} if place == "filters" else {"tokens": cancelled}))
    framed = funnel.result(ToolResult(content=(Text("secret"),)))
    assert framed.withheld == "withheld"
    with pytest.raises(CallRefused) as refused:
        framed.require()
    assert isinstance(refused.value.__cause__, WaitCancelled)
