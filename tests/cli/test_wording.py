"""Errors that advise arguments of Python say on the command line what is to be done there."""

from ssl import SSLCertVerificationError
from types import SimpleNamespace

import pytest
from aiohttp import ClientConnectorCertificateError
from aiohttp.client_reqrep import ConnectionKey

from mcprelay import Client, Context, NeedsInput, RemoteError, Server
from mcprelay.auth import Headless, OAuth
from mcprelay.auth.address import parse
from mcprelay.auth.courier import Courier
from mcprelay.auth.failure import StepFailed
from mcprelay.auth.login import login
from mcprelay.cli import account
from mcprelay.cli.exit import explain
from mcprelay.cli.option import Options
from mcprelay.cli.target import open_client
from mcprelay.cli.wording import reworded
from mcprelay.client.failure import ADVICE_FOR, expired, proxy_refusal
from mcprelay.client.http import _sentence
from mcprelay.errors import AuthorizationRequired, ConfigurationError, Evidence, ToolError
from mcprelay.server.listening import HttpOptions
from tests.auth.world import MCP, Issuer, Resource, World, public, world

PYTHON = ("=[", "=True", "auth=)", "=...", "client.", "timeout=")


def said(error):
    failure = explain(error, login_helps=False)
    assert failure.facts["message"] in failure.sentence
    assert not any(each in failure.sentence for each in PYTHON)
    return failure.sentence


async def test_where_credentials_may_not_go_no_argument_of_python_is_advised():
    with pytest.raises(ConfigurationError) as refused:
        await account.login("http://far.example/mcp")
    assert said(refused.value).endswith(
        ". Use https, or where nobody can listen set allow_plaintext = true for the server in mcprelay.toml"
    )
    with pytest.raises(ConfigurationError) as refused:
        open_client("http://far.example/mcp", Options(token="t"))
    assert "or allow_plaintext = true for the server in mcprelay.toml, where nobody" in said(refused.value)
    with pytest.raises(ConfigurationError) as refused:
        open_client("https://me:pw@far.example/mcp", Options())
    assert said(refused.value).endswith("give them with --token or --header")


async def test_what_a_server_may_not_name_is_allowed_by_an_option_of_login():
    courier = Courier(World(), parse("https://mcp.example.com/mcp"), resolver=public)
    with pytest.raises(StepFailed) as refused:
        await courier.get("https://10.1.2.3/x", step="a step")
    assert said(refused.value).endswith("If it is right, allow it: mcprelay login --allow-host 10.1.2.3")
    with pytest.raises(StepFailed) as refused:
        await courier.get("http://as.example.com/x", step="a step")
    assert said(refused.value).endswith("allow_plaintext is for the MCP server itself. Only https will do")


def test_a_server_that_everybody_could_reach_is_allowed_by_an_option():
    with pytest.raises(ConfigurationError) as refused:
        HttpOptions(host="192.0.2.1", port=0).check(protected=False)
    assert explain(refused.value).sentence.endswith("or say --allow-unauthenticated.")


async def test_what_a_server_does_not_offer_is_told_with_the_commands_that_list_what_it_does():
    async with Client(Server("bare")) as client:
        with pytest.raises(RemoteError) as refused:
            await client.read_resource("a:b")
    assert said(refused.value).endswith("`mcprelay tools`, `resources` and `prompts` list what it offers")


def test_a_time_that_is_over_is_told_with_the_option_that_gives_more():
    call = SimpleNamespace(
        method="tools/call", name="slow", deadline=3.0, limit=None, bound=("request_timeout", 2.5), strays=0,
        request_id=1, correlation_id="c", garbage=b"",
    )  # fmt: skip
    sentence = said(expired(call, Evidence.MAYBE_SENT))
    assert "no answer came within 2.5 seconds (--timeout, or timeout in mcprelay.toml)" in sentence


@pytest.mark.parametrize(("status", "words"), [(403, "(--token, --header)"), (407, "of proxy in mcprelay.toml")])
def test_credentials_are_given_by_options_and_settings(status, words):
    assert reworded(ADVICE_FOR[status]).endswith(words)


def test_what_is_wrong_with_a_proxy_or_a_certificate_is_told_with_the_settings_of_the_file():
    assert reworded(proxy_refusal(vouched=True)).endswith("those in the address of proxy in mcprelay.toml")
    untrusted = SSLCertVerificationError(1, "self-signed certificate")
    key = ConnectionKey("far.example", 443, True, True, None, None, None)
    sentence = reworded(_sentence(ClientConnectorCertificateError(key, untrusted)))
    assert sentence.endswith("is named with ca_file in mcprelay.toml, or SSL_CERT_FILE")


@pytest.mark.parametrize(
    ("resource", "metadata", "words"),
    [
        ({}, {"registration_endpoint": None}, "Register one by hand and give it with --client-id"),
        ({}, {"code_challenge_methods_supported": None}, "(code_challenge_methods_supported is missing)"),
        ({"resource": "https://other.example.com/mcp"}, {}, "connect to the address that the server names"),
    ],
)
async def test_what_only_a_program_can_say_of_a_login_is_not_advised(resource, metadata, words):
    network, _, _ = world(Resource(**resource), Issuer(**metadata))
    auth = OAuth(interaction=Headless(network), resolver=public)
    with pytest.raises(AuthorizationRequired) as refused:
        await login(MCP, auth=auth, sender=network)
    assert words in said(refused.value)


def test_what_a_tool_says_is_not_changed():
    words = "client.server says what it offers"
    assert explain(ToolError(words)).sentence == f"the tool said no: {words}"


async def test_a_question_that_nobody_answers_advises_no_handler():
    server = Server("desk")

    @server.tool
    async def greet(ctx: Context) -> str:
        """Greet somebody."""
        return (await ctx.elicit("Your name?", str, key="name")).action

    async with Client(server) as client:
        with pytest.raises(NeedsInput) as asked:
            await client.call_tool("greet")
    assert reworded(str(asked.value)) == "the server asks, and nobody is at a terminal to answer: Your name?"
