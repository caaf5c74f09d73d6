"""What a failed call raises in a program that asks for it."""

import asyncio
import ssl

import pytest

from mcprelay.errors import AuthorizationRequired, ConnectFailed, Evidence, HttpError, NeedsInput, RemoteError
from mcprelay.relay import (
    CallDenied,
    CallRefused,
    DefinitionRefused,
    Limits,
    Relay,
    RelayError,
    ResultTooLarge,
    ServerUnreachable,
    ToolFailed,
    Unauthorized,
    deny,
)
from mcprelay.relay.failure import scopes_of, system_reason
from mcprelay.relay.frame import Funnel
from mcprelay.types import Text, ToolResult
from mcprelay.wire.challenge import Challenge
from tests.clauses.script import Error, complete
from tests.relay.far import Far, servers, tool

NEEDY = {**tool("f"), "inputSchema": {"type": "object", "required": ["q"]}}


async def called(far, arguments=None, *, name="far__f", **options):
    async with Relay(servers=servers(far=far), **options) as relay:
        return await (await relay.tools()).run(name, {} if arguments is None else arguments)


def raised(framed, kind):
    with pytest.raises(kind) as caught:
        framed.require()
    assert type(caught.value) is kind
    assert caught.value.framed is framed
    assert "EVIL" not in str(caught.value)
    return caught.value


async def test_an_answer_that_is_none_of_a_failure_is_given_back():
    framed = await called(Far(tool("f")))
    assert framed.require() is framed
    assert framed.code is None


FAILED = complete(content=[{"type": "text", "text": "EVIL"}], isError=True)


@pytest.mark.parametrize("answer", [FAILED, Error(-32000, "EVIL")])
async def test_what_a_server_says_to_have_failed_is_a_tool_that_failed(answer):
    framed = await called(Far(tool("f"), **{"tools/call": lambda _: answer}))
    error = raised(framed, ToolFailed)
    assert (error.code, error.server, framed.code) == ("tool_failed", "far", "tool_failed")
    assert "EVIL" in framed.text


async def test_a_denial_is_the_gates():
    def closed(_):
        return deny("not today")

    error = raised(await called(Far(tool("f")), gate=closed), CallDenied)
    assert error.reason == "not today"
    assert str(error) == "far__f: the call to the server 'far' is not allowed by closed: not today"


@pytest.mark.parametrize(
    ("tools", "arguments", "name", "code"),
    [
        ([tool("f")], "[]", "far__f", "arguments"),
        ([NEEDY], {}, "far__f", "arguments"),
        ([tool("f")], {}, "far__g", "unknown_tool"),
    ],
)
async def test_what_was_not_sent_says_why(tools, arguments, name, code):
    assert raised(await called(Far(*tools), arguments, name=name), CallRefused).code == code


async def test_what_a_filter_withheld_and_a_question_without_an_answer_say_so():
    assert raised(await called(Far(tool("f")), filters=[lambda text, origin: None]), CallRefused).code == "withheld"
    asked = Funnel("far").failure(NeedsInput(None, "EVIL"))
    assert raised(asked, CallRefused).code == "needs_input"


async def test_what_is_too_large_says_which_limit():
    error = raised(await called(Far(tool("f")), limits=Limits(result_bytes=3)), ResultTooLarge)
    assert (error.limit, error.allowed, error.actual) == ("result_bytes", 3, 5)
    deep = {"a": []}
    for _ in range(30):
        deep = {"a": deep}
    far = Far(tool("f"), **{"tools/call": complete(content=[], structuredContent=deep)})
    error = raised(await called(far, limits=Limits(message_depth=30)), ResultTooLarge)
    assert (error.limit, error.allowed, error.actual) == ("message_depth", 30, 31)


async def test_a_definition_that_changed_is_refused_as_one():
    far = Far(tool("f"), ttl_ms=60_000)
    async with Relay(servers=servers(far=far)) as relay:
        tools = await relay.tools()
        far.tools = [{**tool("f"), "description": "EVIL"}]
        far.changed()
        await far.read_by_all()
        framed = await tools["far__f"]()
    assert raised(framed, DefinitionRefused).code == framed.code == "definition"


@pytest.fixture
async def failing(monkeypatch):
    """What a call comes to that fails so: by a tool whose server does not get it."""
    async with Relay(servers=servers(far=Far(tool("f")))) as relay:
        tools = await relay.tools()
        [station] = relay._stations._open.values()

        async def fail(error):
            async def refuse(*_, **__):
                raise error

            monkeypatch.setattr(station._client, "try_call_tool", refuse)
            return await tools["far__f"]()

        yield fail


async def test_a_server_that_does_not_answer_is_unreachable_with_its_last_words(failing):
    lost = ConnectFailed("x", evidence=Evidence.NOT_SENT, stderr="EVIL")
    error = raised(await failing(lost), ServerUnreachable)
    assert (error.stderr, error.__cause__) == ("EVIL", lost)
    http = HttpError("x", status=500, body="EVIL")
    error = raised(await failing(http), ServerUnreachable)
    assert (error.framed.code, error.__cause__) == ("transport", http)
    assert str(error).startswith("far__f: the server 'far' (Far): The server answered with HTTP status 500.")


async def test_what_was_raised_on_the_way_to_the_list_is_raised():
    framed = Funnel("far").failure(
        ConnectFailed("x", evidence=Evidence.NOT_SENT), cause=(cause := ServerUnreachable("words", server="far"))
    )
    assert raised(framed, ServerUnreachable) is cause


def test_anything_else_is_a_refusal_with_the_code_failed():
    cause = KeyError("EVIL")
    error = raised(Funnel("far").failure(cause), CallRefused)
    assert (error.code, error.__cause__) == ("failed", cause)


def challenged(scope, status=403):
    challenge = Challenge("Bearer", {"error": "insufficient_scope", **({} if scope is None else {"scope": scope})})
    return AuthorizationRequired("x", status=status, challenge=challenge)


async def test_the_scopes_of_a_step_up_are_named_and_nothing_but_scopes(failing):
    error = raised(await failing(challenged('read:x "EVIL" files\\ \u202e write')), Unauthorized)
    assert error.scopes == ("read:x", "write")
    assert str(error) == (
        "far__f: the server 'far' (Far) says that the credentials do not reach: give it a token, or headers, that reach"
        " further; the error's scopes names what it takes"
    )
    assert error.__notes__[0] == "the server says that it takes the scopes: read:x write"
    assert [note.partition(":")[0] for note in error.__notes__[1:]] == [
        "the client says, perhaps in words of the server"
    ]


@pytest.mark.parametrize("error", [None, challenged(None), AuthorizationRequired("x", status=401)])
def test_where_nothing_is_said_of_scopes_none_are_named(error):
    assert scopes_of(error) == ()


def test_as_many_scopes_are_named_as_can_be_read():
    assert len(scopes_of(challenged("a " * 1000))) == 50
    assert scopes_of(challenged("a" * 101)) == ()


def test_an_error_of_a_tool_that_was_raised_here_is_one_too():
    result = ToolResult(content=(Text("EVIL"),), is_error=True)
    assert raised(Funnel("far").result(result), ToolFailed).framed.result is result


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (FileNotFoundError(2, "EVIL"), "No such file or directory"),
        (OSError("EVIL"), ""),
        (OSError(-2, "Name or service not known"), "Name or service not known"),
        (OSError(-2, None), ""),
        (None, ""),
    ],
)
def test_the_system_says_why(cause, said):
    error = RemoteError(1, "EVIL")
    error.__cause__ = cause
    assert system_reason(error) == said


def test_a_certificate_that_is_not_accepted_is_told_as_one():
    error = ssl.SSLError(1, "EVIL")
    error.reason = "TLSV1_ALERT_UNKNOWN_CA"
    wrapped = OSError(1, "EVIL")  # as HTTP clients do: the number is that of TLS, in which the system has no part
    wrapped.__cause__ = error
    assert system_reason(wrapped) == "tlsv1 alert unknown ca"
    refused = ssl.SSLCertVerificationError(1, "EVIL")
    refused.verify_message = "self-signed certificate"
    wrapped.__cause__ = refused
    assert system_reason(wrapped) == "the certificate is not trusted: self-signed certificate"
    assert system_reason(ssl.SSLCertVerificationError(1, "EVIL")) == "TLS failed"


def test_a_chain_of_causes_without_end_is_not_followed():
    first, second = ValueError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    assert system_reason(first) == ""


async def test_whoever_runs_the_application_is_told_more_than_a_model(failing):
    refused = ConnectFailed("EVIL\x1b", evidence=Evidence.NOT_SENT, exit_code=None, stderr="EVIL words")
    refused.__cause__ = ConnectionRefusedError(111, "EVIL")
    framed = await failing(refused)
    error = raised(framed, ServerUnreachable)
    assert str(error) == (
        "far__f: the server 'far' (Far): The server cannot be reached. Nothing was sent, so the call can be made again."
        " The system says: Connection refused. Is it running, and is target in its settings right?"
        " What its process wrote last is in `stderr` of this error."
    )
    assert framed.text == "The server cannot be reached. Nothing was sent, so the call can be made again."
    assert [note.startswith("the client says, perhaps in words of the server: EVIL") for note in error.__notes__] == [
        True,
        False,
    ]
    assert "\x1b" not in "".join(error.__notes__)
    assert error.stderr == "EVIL words"


async def test_concurrent_calls_raise_each_its_own():
    far = Far(tool("f"), **{"tools/call": lambda _: Error(-32000, "EVIL")})
    async with Relay(servers=servers(far=far)) as relay:
        tools = await relay.tools()
        framed = await asyncio.gather(*(tools["far__f"]() for _ in range(5)))
    assert len({id(raised(one, ToolFailed)) for one in framed}) == 5


async def test_what_was_refused_is_told_with_the_server_the_tool_and_what_to_do_next():
    async def sentence(far, *arguments, **options):
        framed = await called(far, *arguments, **options)
        with pytest.raises(RelayError) as caught:
            framed.require()
        return str(caught.value)

    assert await sentence(Far(NEEDY)) == (
        "far__f: the server 'far': The arguments do not fit the tool's schema, so nothing was sent. Correct them and"
        " call again: `framed.text` of this error says what is wrong with them."
    )
    assert await sentence(Far(tool("f")), "[]") == (
        "far__f: the server 'far': The arguments are no JSON object. Nothing was sent; call again with an object."
        " `framed.text` of this error says what is wrong with them."
    )
    assert await sentence(Far(tool("f")), name="far__\u200bg") == (
        "far__⟨U+200B ZERO WIDTH SPACE⟩g: There is no tool of this name. Call only tools that you were given."
        " `report()` of the set says what became of others."
    )
    assert await sentence(Far(tool("f")), filters=[lambda text, origin: None]) == (
        "far__f: the server 'far': The answer is withheld, because a check of this application failed."
        " `__cause__` of this error, and the log, say which one."
    )
    assert await sentence(Far(tool("f")), limits=Limits(result_bytes=3)) == (
        "far__f: an answer of the server 'far' is too large: 5 where result_bytes=3 allows less; raise result_bytes to"
        " allow more"
    )
    assert await sentence(Far(tool("f")), limits=Limits(run_bytes=3)) == (
        "far__f: nothing more of the server 'far' can be shown in this run (run_bytes allows 3), so the call was not"
        " made; another set, from tools(), has an account of its own, or raise run_bytes"
    )
    assert await sentence(Far(tool("f"), **{"tools/call": lambda _: FAILED})) == (
        "far__f: the server 'far' answered that the call failed; `framed.text` of this error has its words"
    )


async def test_what_was_read_is_named_in_the_error_too():
    refused = dict.fromkeys(("resources/read", "prompts/get"), Error(-1, "EVIL"))
    one = {"target": Far(**refused), "resources": "*", "prompts": "*"}
    async with Relay(servers={"far": one}) as relay:
        [message] = await relay.prompt("far", "sum")
        framed = await relay.read("far", "a://b")
    assert str(raised(message.framed, ToolFailed)).startswith("the prompt sum: the server 'far' answered")
    assert str(raised(framed, ToolFailed)).startswith("the resource a://b: the server 'far' answered")
    gone = {"command": ["/nowhere/at/all"], "instructions": True}
    async with Relay(servers={"gone": gone}) as relay:
        error = raised(await relay.instructions("gone"), ServerUnreachable)
    assert str(error).startswith("the instructions: the server 'gone' (/nowhere/at/all): The server cannot be reached.")


def test_a_question_that_nobody_answers_says_who_could():
    error = raised(Funnel("far").failure(NeedsInput(None, "EVIL"), tool="far__f"), CallRefused)
    assert str(error).endswith(
        "answer it. Relay(on_elicit=…) answers questions to a person, and Relay(on_sample=…) those to a model."
    )
