"""Calls that take a while: progress, log messages, cancellation."""

import asyncio

import pytest

from mcprelay import Progress
from mcprelay.revisions import Feature
from tests.matrix.conftest import House

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_progress_is_told_before_the_result(house: House):
    heard: list[Progress] = []
    result = await house.client.call_tool("work", {"steps": 3}, on_progress=heard.append)
    assert result.text == "worked"
    assert [(one.progress, one.total) for one in heard] == [(1, 3), (2, 3), (3, 3)]
    words = [one.message for one in heard]
    assert words == (["step 1", "step 2", "step 3"] if house.has(Feature.PROGRESS_MESSAGE) else [None] * 3)


async def test_who_does_not_ask_for_progress_gets_none(house: House):
    await house.client.call_tool("work", {"steps": 3})
    assert house.tape.said("server", "notifications/progress") == []


async def test_a_call_that_is_given_up_is_cancelled_on_the_server(house: House):
    begun = asyncio.Event()
    if house.transport == "stateless":
        pytest.skip("a client cannot say what is cancelled where nothing connects its requests")
    call = asyncio.ensure_future(house.client.call_tool("wait", on_progress=lambda _: begun.set()))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await house.client.call_tool("given_up", output=bool)).value is True


async def test_other_calls_go_on_while_one_takes_its_time(house: House):
    if house.transport == "stateless":
        pytest.skip("a client cannot say what is cancelled where nothing connects its requests")
    begun = asyncio.Event()
    call = asyncio.ensure_future(house.client.call_tool("wait", on_progress=lambda _: begun.set()))
    await begun.wait()
    assert (await house.client.call_tool("say", {"text": "meanwhile"})).text == "meanwhile"
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await house.client.call_tool("given_up", output=bool)).value is True


def levels(house: House) -> list[str]:
    return [message["params"]["level"] for message in house.tape.said("server", "notifications/message")]


async def test_log_messages_come_from_the_level_on_that_was_asked_for(house: House):
    heard = []
    if not house.has(Feature.LOG_PER_REQUEST):
        await house.client.request("logging/setLevel", {"level": "warning"})
    await house.client.call_tool("chat", log_level="warning", on_log=heard.append)
    if not house.has(Feature.LOG_PER_REQUEST):
        await house.client.request("logging/setLevel", {"level": "info"})
    if house.transport == "stateless":
        return  # there is no session that could remember the level
    assert [(one.level, one.data) for one in heard] == [("warning", {"a": "warning"}), ("error", "an error")]
    assert levels(house) == ["warning", "error"]


async def test_the_least_level_lets_everything_through(house: House):
    heard = []
    if not house.has(Feature.LOG_PER_REQUEST):
        await house.client.request("logging/setLevel", {"level": "debug"})
    await house.client.call_tool("chat", log_level="debug", on_log=heard.append)
    if not house.has(Feature.LOG_PER_REQUEST):
        await house.client.request("logging/setLevel", {"level": "info"})
    if house.transport == "stateless":
        return  # there is no session that could remember the level
    assert [one.level for one in heard] == ["debug", "info", "warning", "error"]
    assert [one.logger for one in heard] == [None, "house", None, None]
