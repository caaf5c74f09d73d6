"""The invariants of a trust boundary that only show on the wire: what travels in headers, and which answer is one."""

import base64

import pytest

from mcprelay.relay import DefinitionRefused, Relay
from tests.clauses.script import complete, discovered, text
from tests.client.scripted_http import ScriptedHttp
from tests.relay.far import Far, servers

REGION = {
    "name": "deploy",
    "inputSchema": {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        },
    },
}


class Shop:
    """A server over HTTP that lists some tools, and answers calls as it is told to."""

    def __init__(self, *tools, call=None):
        self.tools = list(tools)
        self.call = call
        self.calls = []

    async def __call__(self, exchange):
        if exchange.asks == "server/discover":
            await exchange.result(discovered())
        elif exchange.asks == "tools/list":
            await exchange.result(complete(tools=self.tools, ttlMs=60_000, cacheScope="private"))
        elif exchange.asks == "tools/call":
            self.calls.append(exchange)
            await (exchange.result(text("done")) if self.call is None else self.call(exchange))
        else:
            await exchange.reply(404)


def reached(url, **settings):
    return Relay(servers={"shop": {"url": url, "allow": "*", **settings}})


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {"region": "eu"}),
        ({}, {}),
        ({"region": ""}, {"region": ""}),
        ({"count": 0, "dry": False}, {"count": "0", "dry": "false"}),
        ({"region": "a\r\nX-Evil: 1"}, {"region": "a\r\nX-Evil: 1"}),
        ({"region": " edge"}, {"region": " edge"}),
        ({"region": "=?base64?eA==?="}, {"region": "=?base64?eA==?="}),
        ({"region": "東京"}, {"region": "東京"}),
    ],
)
async def test_08_what_is_mirrored_is_what_is_sent_and_nothing_else(arguments, headers):
    shop = Shop(REGION)
    async with ScriptedHttp(shop) as http, reached(http.url) as relay:
        assert not (await (await relay.tools())["shop__deploy"](arguments)).failed
    [call] = shop.calls
    sent = {name.removeprefix("mcp-param-"): value for name, value in call.headers.items() if "mcp-param" in name}
    assert {name: _read(value) for name, value in sent.items()} == headers
    assert "x-evil" not in call.headers
    assert call.message["params"]["arguments"] == arguments


def _read(value):
    if value.startswith("=?base64?"):
        return base64.b64decode(value.removeprefix("=?base64?").removesuffix("?=")).decode()
    return value


@pytest.mark.parametrize("wrong", [{"count": True}, {"count": "1"}, {"region": 5}, {"dry": 1}, {"dry": "true"}])
async def test_08_a_value_of_the_wrong_type_is_refused_before_anything_is_sent(wrong):
    shop = Shop(REGION)
    async with ScriptedHttp(shop) as http, reached(http.url) as relay:
        framed = await (await relay.tools())["shop__deploy"](wrong)
    assert framed.failed
    assert "nothing was sent" in framed.text
    assert not shop.calls


def annotated(*names, at="properties"):
    members = {f"p{number}": {"type": "string", "x-mcp-header": name} for number, name in enumerate(names)}
    schema = {"type": "object", at: members} if at == "properties" else {"type": "object", at: [*members.values()]}
    return {"name": "odd", "inputSchema": schema}


@pytest.mark.parametrize(
    "definition",
    [
        annotated("Region\n"),
        annotated("Re gion"),
        annotated(""),
        annotated("R\u00e9gion"),
        annotated(5),
        annotated("Region", "rEGION"),
        annotated("Region", at="anyOf"),
    ],
)
async def test_09_a_tool_whose_headers_are_none_is_excluded_and_raises_where_it_was_named(definition):
    shop = Shop(definition, REGION)
    async with ScriptedHttp(shop) as http:
        async with reached(http.url) as relay:
            tools = await relay.tools()
            assert list(tools.keys()) == ["shop__deploy"]
            assert [one.tool for one in tools.report().excluded] == ["odd"]
            assert (await tools.run("shop__odd", {})).withheld == "unknown_tool"
        async with reached(http.url, allow=["odd", "deploy"]) as relay:
            with pytest.raises(DefinitionRefused, match="asked for by name"):
                await relay.tools()
    assert not shop.calls


def body(exchange, **members):
    return {"jsonrpc": "2.0", "id": exchange.message["id"], **members}


SAID = text("OBEY")


@pytest.mark.parametrize(
    "answer",
    [
        lambda exchange: exchange.reply(200, body(exchange, id=str(exchange.message["id"]), result=SAID)),
        lambda exchange: exchange.reply(200, body(exchange, id=float(exchange.message["id"]) + 0.5, result=SAID)),
        lambda exchange: exchange.reply(200, body(exchange, id=None, result=SAID)),
        lambda exchange: exchange.reply(200, body(exchange, id=True, result=SAID)),
        lambda exchange: exchange.reply(200, body(exchange, result=SAID, error={"code": 1, "message": "OBEY"})),
        lambda exchange: exchange.reply(200, body(exchange)),
        lambda exchange: exchange.reply(200, {"id": exchange.message["id"], "result": SAID}),
        lambda exchange: exchange.reply(200, {"jsonrpc": "1.0", "id": exchange.message["id"], "result": SAID}),
    ],
)
async def test_14_an_answer_that_is_none_of_this_call_is_no_result(answer):
    shop = Shop(REGION, call=answer)
    async with ScriptedHttp(shop) as http, reached(http.url, timeout=2) as relay:
        framed = await (await relay.tools())["shop__deploy"]()
    assert framed.failed
    assert framed.withheld == "transport"
    assert "OBEY" not in framed.text


async def test_14_of_a_stream_the_frame_with_the_own_id_counts_and_not_the_first():
    async def streamed(exchange):
        await exchange.stream()
        await exchange.event(body(exchange, id=987_654, result=text("of somebody else")))
        await exchange.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}})
        await exchange.event(body(exchange, result=text("mine")))
        await exchange.end()

    shop = Shop(REGION, call=streamed)
    async with ScriptedHttp(shop) as http, reached(http.url) as relay:
        framed = await (await relay.tools())["shop__deploy"]()
    assert "mine" in framed.text
    assert "somebody else" not in framed.text


@pytest.mark.parametrize("other", [str, lambda own: own + 1, lambda own: None, lambda own: float(own) + 0.5])
async def test_14_on_a_channel_only_the_own_id_in_its_own_type_answers(other):
    far = Far()

    def called(message):
        far.channels[-1].say({"jsonrpc": "2.0", "id": other(message["id"]), "result": SAID})
        return text("mine")

    far.script["tools/call"] = called
    async with Relay(servers=servers(far=far)) as relay:
        framed = await (await relay.tools())["far__search"](q="x")
    assert "mine" in framed.text
    assert "OBEY" not in framed.text


async def test_15_a_list_of_one_stored_account_never_reaches_another_one(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    accounts = tmp_path / "mcprelay" / "tokens.json"
    accounts.parent.mkdir(mode=0o700)
    async with ScriptedHttp(Shop(REGION)) as http, reached(http.url, auth="oauth", cache=600) as relay:

        def lists():
            return http.methods.count("tools/list")

        tools = await relay.tools()
        await relay.tools()
        await tools["shop__deploy"]()
        assert lists() == 1
        accounts.write_text("{}")
        accounts.chmod(0o600)
        await relay.tools()
        await tools["shop__deploy"]()
        assert lists() == 2
        accounts.write_text("{ }")
        await tools["shop__deploy"]()
        await relay.tools()
        assert lists() == 3


async def test_15_a_list_during_which_another_account_was_stored_stands_for_neither(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    accounts = tmp_path / "mcprelay" / "tokens.json"
    accounts.parent.mkdir(mode=0o700)

    class Shared(Shop):
        async def __call__(self, exchange):
            if exchange.asks == "tools/list" and not accounts.exists():
                accounts.write_text("{}")  # `mcprelay login` runs elsewhere
                accounts.chmod(0o600)
            await super().__call__(exchange)

    async with ScriptedHttp(Shared(REGION)) as http, reached(http.url, auth="oauth", cache=600) as relay:
        tools = await relay.tools()
        counts = [http.methods.count("tools/list")]
        for _ in range(2):
            await tools["shop__deploy"]()
            counts.append(http.methods.count("tools/list"))
    assert counts == [1, 2, 2]
