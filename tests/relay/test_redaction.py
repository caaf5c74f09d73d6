"""A server that repeats a secret of ours tells it to no model, no log and no traceback."""

import traceback

import pytest

from mcprelay import Context, Server
from mcprelay.client.elicitation import Elicitation
from mcprelay.errors import AuthorizationRequired, Evidence, HttpError, RemoteError
from mcprelay.relay import Relay, RelayError
from mcprelay.relay.dial import dial
from mcprelay.relay.errors import ServerUnreachable
from mcprelay.relay.redaction import MARK, Redaction, secrets_of
from mcprelay.relay.settings import Secret, ServerSettings
from mcprelay.wire.challenge import Challenge
from tests.clauses.script import complete
from tests.client.scripted_http import ScriptedHttp

TOKEN = 's3cr3t"TOKEN'


@pytest.fixture
async def echo():
    server = Server("echo", context=lambda request: dict(request.headers), ttl_ms=60_000)

    @server.tool
    def whoami(ctx: Context) -> str:
        """Say who calls."""
        return f"{ctx.state.get('authorization')} {ctx.state.get('x-key')}"

    async with server.serve("http", host="127.0.0.1", port=0) as running:
        yield {"url": running.url, "allow": "*"}


def settings(**known):
    return ServerSettings(name="s", transport="http", url="https://x/mcp", **known)


def test_what_is_kept_out_is_the_token_and_headers_that_say_who_calls_if_they_are_long_enough():
    headers = {
        "Authorization": Secret("Basic YWRhOmxvdmVsYWNl"),
        "X-Key": Secret("12345678"),
        "X-Id": Secret("1234567"),
        "Accept": Secret("application/json"),
    }
    assert secrets_of(settings(headers=headers)) == ("YWRhOmxvdmVsYWNl", "12345678")
    assert secrets_of(settings(token=Secret(TOKEN))) == (TOKEN,)
    assert secrets_of(settings(token=Secret(TOKEN)), "a-users-own") == ("a-users-own",)
    assert secrets_of(settings(token=lambda: TOKEN)) == ()
    assert secrets_of(settings(token=Secret("short"))) == ()


def test_of_secrets_that_are_learned_the_last_are_remembered_and_those_that_were_given_always():
    redaction = Redaction(("given-header",))
    for number in range(300):
        redaction.learn(("given-header", f"token-{number:03}"))
        redaction.learn((f"token-{number:03}",))
    assert redaction.text("token-000 token-250 token-299 given-header") == f"token-000 {MARK} {MARK} {MARK}"
    assert len(redaction.secrets) == 257


def test_each_cookie_is_a_secret_of_its_own_and_slashes_are_found_however_json_writes_them():
    headers = {"Cookie": Secret("session=abc/def+123=; theme=dark; bare")}
    assert secrets_of(settings(headers=headers)) == ("abc/def+123=",)
    assert Redaction(("abc/def+123=",)).text(r"x abc\/def+123= abc/def+123=") == f"x {MARK} {MARK}"


def test_an_error_is_without_them_and_so_is_all_that_led_to_it():
    error = HttpError(
        f"said {TOKEN}", status=500, body=TOKEN, headers={"x": TOKEN, "y": "z"}, evidence=Evidence.ANSWERED
    )
    error.add_note(f"note {TOKEN}")
    cause = RemoteError(1, TOKEN, {"deep": [TOKEN, 1]}, evidence=Evidence.ANSWERED)
    context = AuthorizationRequired("no", status=401, challenge=Challenge("Bearer", {"scope": TOKEN}))
    context.other, context.strange, error.__cause__, cause.__context__ = ("a", 5), {TOKEN, object}, cause, context
    Redaction().error(error)
    assert error.body == TOKEN
    Redaction((TOKEN,)).error(error)
    assert "s3cr3t" not in "".join(traceback.format_exception(error))
    assert (error.body, error.headers, error.status) == (MARK, {"x": MARK, "y": "z"}, 500)
    assert (cause.message, cause.data) == (MARK, {"deep": [MARK, 1]})
    assert context.challenge == Challenge("Bearer", {"scope": MARK})
    assert (context.other, context.strange) == (("a", 5), {MARK, object})


def shown(error):
    return "".join(traceback.format_exception(error))


def test_what_pythons_own_errors_keep_apart_from_their_arguments_is_looked_at_too():
    system = OSError(2, f"no {TOKEN}", f"/tmp/{TOKEN}", None, f"/to/{TOKEN}")
    text = UnicodeDecodeError("utf-8", TOKEN.encode(), 0, 2, f"not {TOKEN}")
    source = SyntaxError(f"at {TOKEN}", (f"{TOKEN}.py", 1, 1, TOKEN))
    for error in (system, text, source):
        Redaction((TOKEN,)).error(error)
        assert "s3cr3t" not in shown(error)
    assert (system.errno, system.strerror) == (2, f"no {MARK}")
    assert (system.filename, system.filename2) == (f"/tmp/{MARK}", f"/to/{MARK}")
    assert (text.object, text.reason, text.start) == (MARK.encode(), f"not {MARK}", 0)
    assert (source.msg, source.filename, source.text, source.lineno) == (f"at {MARK}", f"{MARK}.py", MARK, 1)


def test_the_members_of_a_group_are_looked_at_and_so_are_errors_that_another_one_holds():
    inner, held = OSError(1, TOKEN), KeyError(TOKEN)
    group = ExceptionGroup("several", [ExceptionGroup("more", [inner]), ValueError(TOKEN)])
    outer = RuntimeError(held)
    outer.__cause__, outer.found = group, LookupError(TOKEN)
    Redaction((TOKEN,)).error(outer)
    assert "s3cr3t" not in shown(outer)
    assert (inner.strerror, held.args, outer.found.args) == (MARK, (MARK,), (MARK,))


def test_what_is_named_after_two_secrets_is_kept_under_two_names():
    error = RemoteError(1, "x", {TOKEN: 1, "other-token": 2, f"{MARK} (2)": 3, MARK: 4}, evidence=Evidence.ANSWERED)
    Redaction((TOKEN, "other-token")).error(error)
    assert error.data == {MARK: 1, f"{MARK} (2)": 2, f"{MARK} (2) (2)": 3, f"{MARK} (3)": 4}


def test_what_has_no_end_is_left_as_it_is():
    endless = [TOKEN]
    endless.append(endless)
    error = ValueError(endless)
    Redaction((TOKEN,)).error(error)
    assert error.args[0] is endless


@pytest.mark.parametrize(
    ("secrets", "text", "left"),
    [
        (("abcdefghij", "efghijklmn"), "x abcdefghijklmn y", f"x {MARK} y"),
        (("abcdefghij", "cdefghij"), "abcdefghij cdefghij", f"{MARK} {MARK}"),
        (("cdefghij", "abcdefghij", "ghijklmnop"), "abcdefghijklmnop", MARK),
        (("abababab",), "abababababab!", f"{MARK}!"),
        (("abcdefgh",), "abcdefghabcdefgh", f"{MARK}{MARK}"),
        (("application", "abcdefgh"), "abcdefgh application", f"{MARK} {MARK}"),
    ],
)
def test_of_secrets_that_overlap_nothing_is_left(secrets, text, left):
    assert Redaction(secrets).text(text) == left


async def test_a_tool_that_is_named_as_the_token_is_in_no_warning(caplog):
    listed = [{"name": TOKEN}, {"name": TOKEN, "inputSchema": {}}, {"name": TOKEN, "inputSchema": {}}]

    async def respond(exchange):
        await exchange.result(complete(tools=listed, nextCursor={"next": TOKEN}))

    async with ScriptedHttp(respond) as http:
        one = {"url": http.url, "allow": "*", "token": TOKEN}
        async with Relay(servers={"far": one}) as relay:
            report = (await relay.tools()).report()
    assert len(caplog.records) == 3
    assert caplog.text.count(MARK) == 3
    assert "s3cr3t" not in caplog.text
    assert "s3cr3t" not in str(report.notes)


def test_a_chain_of_errors_without_an_end_is_followed_so_far():
    first, second = ValueError(TOKEN), ValueError(TOKEN)
    first.__cause__, second.__cause__ = second, first
    Redaction((TOKEN,)).error(first)
    assert (str(first), str(second)) == (MARK, MARK)


@pytest.mark.parametrize(
    "made",
    [
        lambda one: Relay(servers={"echo": {**one, "token": TOKEN, "headers": {"X-Key": "another-secret"}}}),
        lambda one: Relay(servers={"echo": {**one, "token": lambda: TOKEN, "headers": {"X-Key": "another-secret"}}}),
        lambda one: Relay(servers={"echo": {**one, "headers": {"X-Key": "another-secret"}}}).with_token(TOKEN),
        lambda one: Relay(servers={"echo": {**one, "headers": {"X-Key": "another-secret"}}}).with_token(lambda: TOKEN),
    ],
)
async def test_a_server_that_repeats_what_it_got_tells_it_to_nobody(echo, made, caplog, monkeypatch):
    async def refuse(*_, **__):
        raise HttpError(f"it says {TOKEN}", status=500, body=TOKEN)

    async with made(echo) as relay:
        tools = await relay.tools("echo")
        framed = await tools["echo__whoami"]()
        assert framed.text.count(MARK) == 2
        shown = [framed.text]
        [station] = relay._stations._open.values()
        monkeypatch.setattr(station._client, "try_call_tool", refuse)
        monkeypatch.setattr(station._client, "list_tools", refuse)
        monkeypatch.setattr(station._client, "read_resource", refuse)
        framed = await tools["echo__whoami"]()
        assert MARK in framed.text
        with pytest.raises(RelayError) as failed:
            framed.require()
        station._kept = False
        with pytest.raises(ServerUnreachable) as unlisted:
            await relay.tools("echo")
        with pytest.raises(HttpError) as unread:
            await station.ask(lambda client, _: client.read_resource("a:b"))
    shown += ["".join(traceback.format_exception(one.value)) for one in (failed, unlisted, unread)]
    assert not any("s3cr3t" in text or "another-secret" in text for text in (*shown, caplog.text))
    assert all(MARK in text for text in shown)


async def test_what_a_person_is_asked_is_without_the_token_of_the_one_who_calls():
    asked = []

    async with Relay(on_elicit=lambda one: asked.append(one.framed.text) or one.question.decline()) as relay:
        askers = relay._stations._askers

        class Seen:
            def of(self, settings):
                self.elicit, _ = askers.of(settings)
                return None, None

        for given, token in ((settings(token=Secret("of-us-all")), TOKEN), (settings(token=Secret(TOKEN)), None)):
            seen = Seen()
            dial(given, token=token, askers=seen, cache=None, on_log=print, said=str)
            await seen.elicit(Elicitation(message=f"Is {TOKEN} yours?"))
    assert len(asked) == 2
    assert all(f"Is {MARK} yours?" in text for text in asked)
