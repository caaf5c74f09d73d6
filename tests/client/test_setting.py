"""Every setting takes `math.inf` and works, or says at once what it takes; so does what permits repetitions."""

import math

import pytest

from mcprelay import CallFailed, Client, ConfigurationError, Evidence, HttpError, Retry, Server
from mcprelay.client.http import HttpSender
from mcprelay.client.setting import DEFAULTS, Settings
from tests.client.peer import DISCOVERED, fresh, tool_result
from tests.client.scripted_http import ScriptedHttp

NAMES = Settings.__struct_fields__
COUNTS = [name for name in NAMES if isinstance(getattr(DEFAULTS, name), int)]
TOOLS = {"resultType": "complete", "tools": [{"name": "f", "inputSchema": {"type": "object"}}], "ttlMs": 60_000}


def served():
    """A server in this process."""
    server = Server("endless")

    @server.tool
    def f() -> int:
        return 1

    return server


async def use(client):
    """Do what the settings bound."""
    assert [tool.name for tool in await client.list_tools()] == ["f"]
    assert [tool.name async for tool in client.list_tools(fresh=True)] == ["f"]
    assert (await client.call_tool("f")).text
    async with client.listen(tools=True):
        pass


async def respond(exchange):
    """What a server of the newest era answers."""
    if exchange.asks == "subscriptions/listen":
        await exchange.stream()
        honored = {"notifications": {"toolsListChanged": True}}
        honored["_meta"] = {"io.modelcontextprotocol/subscriptionId": exchange.message["id"]}
        await exchange.event(
            {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": honored}
        )
        await exchange.left()
    else:
        await exchange.result({"tools/list": TOOLS, "tools/call": tool_result()}.get(exchange.asks, DISCOVERED))


@pytest.mark.parametrize("name", NAMES)
async def test_each_setting_may_be_infinite_in_process(name):
    async with fresh(served(), **{name: math.inf}) as client:
        await use(client)


@pytest.mark.parametrize("name", NAMES)
async def test_each_setting_may_be_infinite_over_http(name):
    async with ScriptedHttp(respond) as http, fresh(http.url, **{name: math.inf}) as client:
        await use(client)


def test_all_settings_may_be_infinite_at_once():
    assert set(vars_of(Settings(**dict.fromkeys(NAMES, math.inf)))) == {math.inf}


def vars_of(settings):
    return [getattr(settings, name) for name in NAMES]


@pytest.mark.parametrize("name", COUNTS)
def test_what_counts_something_is_whole(name):
    assert getattr(Settings(**{name: 3.0}), name) == 3
    with pytest.raises(ConfigurationError, match=rf"{name} is a whole number .*, and not 0\.5 \(float\)"):
        Client("http://server.example/mcp", **{name: 0.5})


@pytest.mark.parametrize("wrong", [-1, math.nan, -math.inf, True, None, "5", [5]])
@pytest.mark.parametrize("name", NAMES)
def test_a_setting_that_is_none_is_refused_where_it_is_said(name, wrong):
    with pytest.raises(ConfigurationError, match=f"{name} is a (whole )?number"):
        Settings(**{name: wrong})


def test_a_client_has_at_least_one_connection():
    with pytest.raises(ConfigurationError, match="connections is a whole number of at least 1, and not 0"):
        Settings(connections=0)


async def test_the_http_client_takes_infinity_for_no_limit():
    sender = HttpSender(connect_timeout=math.inf, connections=math.inf)
    session = await sender._open()
    assert (session.connector.limit, session.timeout.sock_connect) == (0, None)
    await sender.aclose()


# --- what permits repetitions


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"statuses": 503}, r"Retry: statuses is a tuple of HTTP statuses such as \(429, 503\), and not 503 \(int\)"),
        ({"statuses": "503"}, "Retry: statuses is a tuple of HTTP statuses .*, and not '503'"),
        ({"statuses": ("503",)}, r"Retry: statuses holds HTTP statuses, and '503' \(str\) is none"),
        ({"statuses": (5030,)}, "Retry: statuses holds HTTP statuses, and 5030"),
        ({"attempts": "3"}, "Retry: attempts is a whole number of at least 1, and not '3'"),
        ({"attempts": 0}, "Retry: attempts is a whole number of at least 1, and not 0"),
        ({"attempts": -1}, "Retry: attempts"),
        ({"attempts": 1.5}, "Retry: attempts"),
        ({"attempts": True}, "Retry: attempts"),
        ({"backoff": "1"}, "Retry: backoff is a number that is not negative, and not '1'"),
        ({"backoff": -1}, "Retry: backoff"),
        ({"backoff": math.nan}, "Retry: backoff"),
        ({"most": None}, "Retry: most"),
        ({"jitter": 5}, r"Retry: jitter is a number from 0 to 1, and not 5 \(int\)"),
        ({"jitter": -0.1}, "Retry: jitter"),
        ({"idempotent": "yes"}, "Retry: idempotent is True or False, and not 'yes'"),
    ],
)
def test_a_permission_that_cannot_be_is_refused_before_anything_is_sent(wrong, said):
    with pytest.raises(ConfigurationError, match=said):
        Retry(**wrong)


@pytest.mark.parametrize("statuses", [(), (429,), [429, 503], {503}, frozenset({502})])
def test_statuses_may_be_any_collection(statuses):
    (first, *_) = statuses or (500,)
    error = HttpError("x", status=first, body="", headers={})
    assert Retry(statuses=statuses).allows(error, idempotent=False) is bool(statuses)


@pytest.mark.parametrize("attempt", [1, 60, 1100, 10**6])
def test_the_wait_before_any_attempt_is_bounded(attempt):
    error = CallFailed("x", evidence=Evidence.NOT_SENT)
    retry = Retry(attempts=math.inf, jitter=0)
    assert retry.wait(attempt, error) <= retry.most
    assert Retry(backoff=0, most=0).wait(attempt, error) == 0
