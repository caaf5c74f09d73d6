"""What a client believes of a server: nothing that it says of its tools, and not its name."""

from typing import Any

import pytest

from mcprelay import Relay
from mcprelay.client.retry import Retry
from mcprelay.errors import ConnectionLost, Evidence
from tests.clauses.http import PREFIX
from tests.clauses.script import ChannelScript, asks, discovered, form, over_http, text, tool, tools

HARMLESS = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False, "openWorldHint": False}


def named(name: str, **script: Any) -> ChannelScript:
    """A server that says this name of itself, and has the tool `search`."""
    answer = discovered()
    answer["_meta"][PREFIX + "serverInfo"] = {"name": name, "version": "1"}
    answer["capabilities"] = {"tools": {}}
    return ChannelScript({"server/discover": answer, "tools/list": tools(tool("search")), **script})


@pytest.mark.clause("tools.annotations-untrusted")
async def test_a_call_is_not_repeated_because_the_server_calls_its_tool_harmless():
    listed = tools({**tool("pay"), "annotations": HARMLESS})
    lost = ConnectionLost("cut", evidence=Evidence.MAYBE_SENT)
    server, client = over_http({"tools/list": listed, "tools/call": [lost, text("paid")]}, retry=Retry(backoff=0))
    async with client:
        await client.list_tools()
        with pytest.raises(ConnectionLost):
            await client.call_tool("pay")
        assert len(server.of("tools/call")) == 1
        assert (await client.call_tool("pay", idempotency_key="once")).text == "paid"


@pytest.mark.clause("tools.names-disambiguated", "tools.server-name-not-unique")
async def test_tools_of_servers_that_call_themselves_the_same_are_told_apart_by_what_the_application_calls_them():
    near, far = (named("acme", **{"tools/call": text(where)}) for where in ("near", "far"))
    settings = {"one": {"target": near, "allow": "*"}, "two": {"target": far, "allow": "*"}}
    async with Relay(servers=settings) as relay:
        offered = await relay.tools()
        assert sorted(each.name for each in offered) == ["one__search", "two__search"]
        assert "near" in (await offered["one__search"]()).text
        assert "far" in (await offered["two__search"]()).text


@pytest.mark.clause("elicitation.who-asks")
async def test_whoever_shows_a_question_is_told_which_server_asks_whatever_it_calls_itself():
    seen = []

    async def answer(asked: Any) -> Any:
        seen.append(asked.server)
        return asked.question.accept(name="Ada")

    servers = {
        name: {"target": named("bank", **{"tools/call": [asks(q=form()), text("done")]}), "allow": "*"}
        for name in ("one", "two")
    }
    async with Relay(servers=servers, on_elicit=answer) as relay:
        offered = await relay.tools()
        for name in ("two", "one"):
            await offered[f"{name}__search"]()
    assert seen == ["two", "one"]
