"""How a server is reached: with the limits of its settings, and without asking for what nobody reads."""

import json
from pathlib import Path

import pytest

from mcprelay.relay import DefinitionRefused, Relay, ResultTooLarge
from mcprelay.relay.config import parse
from mcprelay.revisions import ALL, Feature
from mcprelay.wire import prune
from tests.clauses.script import complete
from tests.client.scripted_http import ScriptedHttp
from tests.client.test_session import Forgetful
from tests.relay.far import ADD, SEARCH, Far, servers


async def test_no_call_asks_for_log_messages_and_those_that_come_are_counted():
    far = Far()
    async with Relay(servers=servers(far=far)) as relay:
        tools = await relay.tools()
        await tools["far__search"](q="x")
        far.channels[-1].say(
            {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
        )
        await far.read_by_all()
        assert (await relay.tools()).report().heard == {"far": {"logs": 1}}
    assert far.of("tools/call")
    assert "logLevel" not in json.dumps([channel.requests for channel in far.channels])


async def test_a_definition_that_is_too_long_is_left_out_by_the_name_of_the_limit_before_it_is_decoded():
    # given a definition that no decoder takes, and that is too long, and one whose rest is
    far = Far()
    far.tools = b'[{"name":"long","inputSchema":{"x":[%b]}},{"name":"b","inputSchema":{},"_meta":{"x":"%b"}}]' % (
        b",".join([b"1e999"] * 1_000),
        b"q" * 5_000,
    )
    async with Relay(servers=servers(far=far), limits={"definition_bytes": 1_000}) as relay:
        tools = await relay.tools()
    assert list(tools.keys()) == ["far__b"]
    (left,) = tools.report().excluded
    assert (left.tool, left.reason) == (
        "long",
        "its definition is too long: definition_bytes=1,000; raise definition_bytes to allow more",
    )


def paged(pages, cursor="c"):
    """A list of so many pages."""
    asked = []

    def page(_):
        asked.append(1)
        rest = {} if len(asked) >= pages else {"nextCursor": f"{cursor}{len(asked)}"}
        return complete(tools=[{**ADD, "name": f"t{len(asked)}"}], **rest)

    return Far(**{"tools/list": page})


@pytest.mark.parametrize(
    ("limit", "far"), [("list_pages", lambda: paged(3)), ("cursor_bytes", lambda: paged(2, cursor="c" * 50))]
)
async def test_bounds_on_the_pages_of_a_list_are_settings_of_the_server(limit, far):
    for value, fits in ((2, False), (100, True)):
        one = {**servers(far=far())["far"], "limits": {limit: value}}
        async with Relay(servers={"far": one}) as relay:
            if fits:
                assert await relay.tools()
            else:
                with pytest.raises(DefinitionRefused, match=rf"{limit}=2\. Raise {limit}"):
                    await relay.tools()


def test_every_limit_of_a_client_can_be_written_in_the_file():
    text = '[servers.far]\nurl = "https://x/mcp"\nlimits = { list_pages = 9, cursor_bytes = 99, connections = 7 }\n'
    limits = parse(text, source=Path("mcprelay.toml"), env={}).server("far").limits
    assert (limits.client["list_pages"], limits.client["cursor_bytes"], limits.client["connections"]) == (9, 99, 7)


async def test_a_list_too_long_for_leaving_out_what_nests_too_deep_is_told_as_that(monkeypatch):
    deep = b'{"name":"deep","inputSchema":{"type":"object","x":%b%b}}' % (b"[" * 200, b"]" * 200)
    far = Far()
    far.tools = b"[%b,%b,%b]" % (json.dumps(ADD).encode(), deep, json.dumps(SEARCH).encode())
    async with Relay(servers=servers(far=far)) as relay:
        tools = await relay.tools()
        assert list(tools.keys()) == ["far__add", "far__search"]
        [left] = tools.report().excluded
        assert left.tool == "deep"
    monkeypatch.setattr(prune, "LOOK", 100)
    async with Relay(servers=servers(far=far)) as relay:
        report = (await relay.tools(skip_unavailable=True)).report()
    assert "message_depth=100" in str(report.unreachable["far"])
    assert "None of the list can be read, because the message holds too many" in str(report.unreachable["far"])


BATCHED = next(name for name, revision in ALL.items() if revision.has(Feature.BATCH))


async def test_a_batch_of_too_many_values_is_refused_by_the_name_of_the_limit_in_a_list_and_in_a_call():
    session, crowded = Forgetful(version=BATCHED), ["tools/call"]

    async def respond(exchange):
        if exchange.asks in crowded:
            answer = {"jsonrpc": "2.0", "id": exchange.message["id"], "result": {"content": [0] * 2_000}}
            await exchange.reply(200, [answer])
        elif exchange.asks == "tools/list":
            await exchange.result({"tools": [SEARCH]})
        else:
            await session(exchange)

    async with ScriptedHttp(respond) as http:
        one = {"url": http.url, "allow": "*", "cache": 5, "limits": {"message_values": 1_000}}
        async with Relay(servers={"far": one}) as relay:
            framed = await (await relay.tools())["far__search"](q="x")
            assert framed.withheld == "too_large"
            assert "message_values=1,000" in framed.text
            with pytest.raises(ResultTooLarge, match="far__search: .* message_values=1,000 allows less"):
                framed.require()
        crowded.append("tools/list")
        async with Relay(servers={"far": one}) as relay:
            with pytest.raises(DefinitionRefused, match=r"message_values=1,000\. Raise message_values to allow more"):
                await relay.tools()
