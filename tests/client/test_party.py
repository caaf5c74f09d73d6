"""From which level on a client asks for log messages: where somebody hears them, and where nobody asks for them."""

import asyncio

import pytest

from mcprelay import Client
from mcprelay.client.handler import Handlers
from mcprelay.client.party import Party
from mcprelay.client.progress import Hearing
from mcprelay.client.setting import DEFAULTS
from mcprelay.errors import ConfigurationError
from mcprelay.types import ClientCapabilities, Implementation
from tests.clauses.script import over_lines, text


def party(**options):
    return Party(
        info=Implementation("x", "1"),
        handlers=Handlers(elicit=None, sample=None, roots=None),
        settings=DEFAULTS,
        offered=(),
        capabilities=ClientCapabilities(),
        changed=lambda method, uri: None,
        **options,
    )


@pytest.mark.parametrize(
    ("heard", "said", "asked"),
    [
        (False, None, None),
        (False, "debug", None),
        (True, None, "info"),
        (True, "error", "error"),
        (True, "unasked", None),
    ],
)
def test_a_level_is_asked_for_where_somebody_hears_and_does_not_say_otherwise(heard, said, asked):
    hearing = Hearing(lambda message: None, pending_messages=10) if heard else None
    assert party(on_log=hearing, log_level=said).log_level == asked


LOG = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}


@pytest.mark.parametrize(("said", "asked"), [(None, True), ("unasked", False)])
async def test_what_comes_unasked_is_heard_all_the_same(said, asked):
    heard = []
    server, client = over_lines({"tools/call": text("done")}, on_log=heard.append, log_level=said)
    async with client:
        await client.call_tool("x")
        server.say(LOG)
        while not heard:  # noqa: ASYNC110 - it comes beside the calls
            await asyncio.sleep(0)
    assert [message.data for message in heard] == ["x"]
    (request,) = server.of("tools/call")
    assert any(name.endswith("/logLevel") for name in request["params"]["_meta"]) is asked


def test_a_call_is_told_a_level_and_nothing_else():
    with pytest.raises(ConfigurationError, match="log_level is one of"):
        Client("http://x/mcp", log_level="loud")
