"""Whoever comes from another package is told what an option is called here."""

import inspect

import pytest

from mcprelay import Client, ConfigurationError, Server
from mcprelay.client import elsewhere
from mcprelay.client.option import CallOptions
from mcprelay.client.setting import Settings

CLIENT = {*inspect.signature(Client).parameters, *Settings.__struct_fields__}
CALL = {*CallOptions.__annotations__, *inspect.signature(Client.call_tool).parameters}


@pytest.mark.parametrize(
    ("word", "option"),
    [
        ("timeout", "request_timeout"),
        ("read_timeout_seconds", "request_timeout"),
        ("init_timeout", "connect_timeout"),
        ("sampling_handler", "on_sample"),
        ("elicitation_callback", "on_elicit"),
        ("roots", "on_roots"),
        ("log_handler", "on_log"),
        ("verify", "ssl"),
        ("proxies", "proxy"),
        ("httpx_client_factory", "sender"),
        ("api_key", "auth"),
        ("protocol_version", "revision"),
    ],
)
def test_a_client_says_what_a_word_of_another_package_is_here(word, option):
    with pytest.raises(ConfigurationError) as caught:
        Client("https://example.com/mcp", **{word: None})
    assert str(caught.value) == f"Client has no option {word!r}; it is called {option!r} here"


@pytest.mark.parametrize(
    ("word", "told"),
    [("transport", "what comes first says it"), ("message_handler", "client.listen()"), ("args", "one list")],
)
def test_a_client_says_what_takes_the_place_of_what_is_no_option(word, told):
    with pytest.raises(ConfigurationError, match=word) as caught:
        Client("https://example.com/mcp", **{word: None})
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("read_timeout_seconds", "it is called 'timeout' here"),
        ("progress_handler", "it is called 'on_progress' here"),
        ("raise_on_error", "try_call_tool() returns it"),
    ],
)
async def test_a_call_says_what_a_word_of_another_package_is_here(word, told):
    server = Server("shop")
    server.add_tool(lambda: "tea", name="buy", description="Buy tea.")
    async with Client(server) as client:
        with pytest.raises(TypeError, match=word) as caught:
            await client.call_tool("buy", {}, **{word: None})
    assert told in str(caught.value)


def test_what_is_only_misspelled_is_asked_for():
    with pytest.raises(ConfigurationError, match="did you mean 'request_timeout'"):
        Client("https://example.com/mcp", request_timeut=3)


def test_every_option_that_is_named_exists_and_every_word_leads_somewhere():
    for word, options in elsewhere._OURS.items():
        assert set(options) <= CLIENT | CALL
        assert elsewhere.ours(word, CLIENT | CALL)
    assert elsewhere.ours("anything", CLIENT) is None
    assert not set(elsewhere._NONE) & CLIENT
