"""A handler of the user's that raises while a server asks: who is told, and of which call (client/answering, link)."""

import asyncio

import pytest

from mcprelay import CallFailed, Client, ConnectFailed, Context, Evidence, Refused, RemoteError, Server, ToolError
from tests.client.peer import LEGACY, connected, in_session
from tests.client.test_question import ELICIT, ROOTS, SAMPLE, asked

HANDLERS = {"on_elicit": ELICIT, "on_sample": SAMPLE, "on_roots": ROOTS}


def failing(error):
    """A handler of any question that raises."""

    def handler(*_):
        raise error

    return handler


@pytest.mark.parametrize("option", HANDLERS)
async def test_what_it_raises_reaches_the_caller_with_a_note_that_says_of_which_call(option):
    mine = ZeroDivisionError("mine")
    async with connected(**{option: failing(mine)}) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        channel.reply(await channel.expect("tools/call"), asked({"q": HANDLERS[option]}))
        with pytest.raises(ZeroDivisionError) as caught:
            await calling
    assert caught.value is mine
    (note,) = mine.__notes__
    assert note.startswith(f"{option} raised it while tools/call 'book' was asked something: the server has begun")


async def test_what_is_raised_again_and_again_gathers_no_notes():
    mine = ZeroDivisionError("mine")
    async with connected(on_elicit=failing(mine)) as (client, channel):
        for tool in ("book", "book", "cancel"):
            calling = asyncio.ensure_future(client.call_tool(tool))
            channel.reply(await channel.expect("tools/call"), asked({"q": ELICIT}))
            with pytest.raises(ZeroDivisionError):
                await calling
    assert [("'book'" in note, "'cancel'" in note) for note in mine.__notes__] == [(True, False), (False, True)]


class Mute(Exception):
    """One that cannot say what it is."""

    def __repr__(self):
        raise RuntimeError("unsaid")


async def test_in_a_session_a_call_ends_though_what_a_handler_raised_cannot_be_shown():
    async with in_session(on_elicit=failing(Mute())) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        request = await channel.expect("tools/call")
        channel.call("q", ELICIT["method"], ELICIT.get("params"))
        await channel.expect()
        channel.refuse(request, -32603, "Internal error")
        with pytest.raises(RemoteError, match=r"on_elicit of this client failed \(Mute\)"):
            await asyncio.wait_for(calling, 5)


@pytest.mark.parametrize(
    "error",
    [ConnectFailed("no host", evidence=Evidence.NOT_SENT), ToolError("no such row")],
    ids=["failed", "refused"],
)
async def test_the_end_of_a_call_that_it_made_itself_is_not_taken_for_the_end_of_this_one(error):
    async with connected(on_elicit=failing(error)) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        channel.reply(await channel.expect("tools/call"), asked({"q": ELICIT}))
        with pytest.raises(CallFailed, match="^tools/call 'book': on_elicit failed: ") as caught:
            await calling
    assert caught.value.evidence is Evidence.ANSWERED
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("option", HANDLERS)
async def test_in_a_session_the_error_of_the_call_says_that_a_handler_of_ours_failed(option):
    mine = ZeroDivisionError("mine")
    async with in_session(**{option: failing(mine)}) as (client, channel):
        calling = asyncio.ensure_future(client.call_tool("book"))
        request = await channel.expect("tools/call")
        channel.call("q", HANDLERS[option]["method"], HANDLERS[option].get("params"))
        assert (await channel.expect())["error"]["code"] == -32603
        channel.refuse(request, -32603, "Internal error")
        with pytest.raises(RemoteError) as caught:
            await calling
    assert caught.value.__cause__ is mine
    assert f"{option} of this client failed (ZeroDivisionError('mine'))" in str(caught.value)
    assert "log" not in str(caught.value)


async def test_in_a_session_a_refusal_of_the_tool_has_it_as_its_cause():
    mine = ZeroDivisionError("mine")
    async with in_session(on_elicit=failing(mine)) as (client, channel):

        async def stumbled(call):
            calling = asyncio.ensure_future(call("book"))
            request = await channel.expect("tools/call")
            channel.call("q", ELICIT["method"], ELICIT["params"])
            assert "error" in await channel.expect()
            channel.reply(request, {"content": [{"type": "text", "text": "nobody answers"}], "isError": True})
            return await calling

        refused = await stumbled(client.try_call_tool)
        assert isinstance(refused, Refused)
        assert refused.cause is mine
        with pytest.raises(ToolError, match="^nobody answers$") as caught:
            await stumbled(client.call_tool)
        assert caught.value.__cause__ is mine


async def test_of_several_calls_in_a_session_none_is_said_to_be_the_one():
    async with in_session(on_elicit=failing(ZeroDivisionError("mine"))) as (client, channel):
        calls = [asyncio.ensure_future(client.call_tool("book")) for _ in range(2)]
        requests = [await channel.expect("tools/call") for _ in calls]
        channel.call("q", ELICIT["method"], ELICIT["params"])
        assert "error" in await channel.expect()
        for request in requests:
            channel.refuse(request, -32603, "Internal error")
        for failed in await asyncio.gather(*calls, return_exceptions=True):
            assert failed.__cause__ is None
            assert "on_elicit" not in str(failed)


async def test_a_server_of_this_process_is_no_other_case():
    desk = Server("desk")

    @desk.tool
    async def greet(ctx: Context) -> str:
        """Greet somebody."""
        return (await ctx.elicit("Your name?", str, key="name")).action

    mine = ZeroDivisionError("mine")
    async with Client(desk, on_elicit=failing(mine)) as client:
        with pytest.raises(ZeroDivisionError):
            await client.call_tool("greet")
    async with Client(desk, on_elicit=failing(mine), revision=LEGACY) as client:
        with pytest.raises(RemoteError, match="on_elicit of this client failed") as caught:
            await client.call_tool("greet")
    assert caught.value.__cause__ is mine
