"""Why a list cannot be had: local words in the sentence, the server's beside it, and nothing of it for a model."""

import ssl
import sys

import pytest

from mcprelay.errors import (
    AuthorizationRequired,
    CallLimitExceeded,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    Evidence,
    HttpError,
    RemoteError,
    ResponseInvalid,
    RevisionUnsupported,
)
from mcprelay.relay import DefinitionRefused, Relay, ServerUnreachable, Unauthorized
from mcprelay.relay.settings import Secret, ServerSettings
from mcprelay.relay.unreached import refused, unreached
from mcprelay.wire.challenge import Challenge

EVIL = "EVIL\u202e\x1b[2J"
MOVED = "Redirects are not followed: the notes of this error have where it leads"


def over_http(**more):
    return ServerSettings(name="far", transport="http", url="https://far.example/mcp", **more)


def started(**more):
    return ServerSettings(name="far", transport="stdio", command=("no-such-program",), **more)


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (307, f"{MOVED}; if that is to be trusted, set url to it."),
        (403, "It does not allow this to the credentials that it got: set others, as token or headers."),
        (404, "Is there an MCP endpoint at this address? If not, correct url."),
        (407, "The proxy wants credentials: put them into the address of proxy."),
        (413, "The request is longer than the server takes."),
        (418, "The notes of this error have what it said."),
        (500, "The notes of this error have what it said. The server's log may say more."),
        (503, "The server is not ready: try again later."),
    ],
)
def test_a_status_is_told_with_what_to_do_about_it(status, advice):
    error = refused(HttpError(EVIL, status=status, body=EVIL), over_http())
    assert isinstance(error, ServerUnreachable)
    assert str(error) == (
        f"the server 'far' (https://far.example/mcp): The server answered with HTTP status {status}. {advice}"
    )


@pytest.mark.parametrize(
    "proxy", ["http://me:secret@proxy.example:3128", Secret("http://me:secret@proxy.example:3128")]
)
def test_a_proxy_that_was_shown_credentials_does_not_accept_them(proxy):
    told = str(refused(HttpError(EVIL, status=407, body=EVIL), over_http(proxy=proxy)))
    assert told.endswith("HTTP status 407. The proxy does not accept the credentials in the address of proxy.")
    assert str(refused(HttpError(EVIL, status=407, body=EVIL), over_http(proxy="http://proxy.example"))).endswith(
        "The proxy wants credentials: put them into the address of proxy."
    )


@pytest.mark.parametrize(
    ("code", "what", "then"),
    [
        (9, "is not valid yet", "See whether the clock of this machine is right; else the server needs another one."),
        (10, "has expired", "See whether the clock of this machine is right; else the server needs another one."),
        (62, "is for another host", "Use the address that it names, or give the server one for this address."),
        (64, "is for another host", "Use the address that it names, or give the server one for this address."),
        (18, "is not trusted", "An authority of one's own is trusted by ca_file in its settings."),
    ],
)
def test_a_certificate_that_is_not_accepted_is_told_with_what_is_wrong_with_it(code, what, then):
    cause = ssl.SSLCertVerificationError(1, "EVIL")
    cause.verify_code, cause.verify_message = code, "what OpenSSL says"
    failed = ConnectFailed(EVIL, evidence=Evidence.NOT_SENT)
    failed.__cause__ = cause
    told = str(refused(failed, over_http()))
    assert told.endswith(f"The system says: the certificate {what}: what OpenSSL says. {then}")


def test_what_the_server_said_is_a_note_that_can_be_shown_anywhere():
    error = refused(ResponseInvalid(EVIL), over_http())
    assert isinstance(error, DefinitionRefused)
    assert "EVIL" not in str(error)
    (note,) = error.__notes__
    assert note.startswith("the client says, perhaps in words of the server: EVIL")
    assert "\x1b" not in note
    assert "\u202e" not in note


def unauthorized(status=401, **settings):
    by_token = settings.pop("by_token", False)
    scope = Challenge(scheme="bearer", params={"scope": "a"}) if settings.pop("scope", False) else None
    error = AuthorizationRequired(EVIL, status=status, challenge=scope)
    made = refused(error, over_http(**settings), by_token=by_token)
    assert isinstance(made, Unauthorized)
    assert "EVIL" not in str(made)
    return str(made).removeprefix("the server 'far' (https://far.example/mcp) ")


def test_a_server_that_asks_for_credentials_is_told_apart_from_one_that_takes_none_of_ours(tmp_path):
    nothing = (
        'asks for credentials, and none are configured: give it a token, or auth = "oauth"'
        " and then `mcprelay login far`"
    )
    assert unauthorized() == nothing
    assert unauthorized(ca_file=tmp_path / "a", proxy=Secret("http://p:1")) == nothing
    wrong = "does not accept the credentials: give it another token, or other headers"
    assert unauthorized(by_token=True) == wrong
    assert unauthorized(headers={"x": Secret("y")}) == wrong
    assert unauthorized(client_cert=tmp_path / "a") == wrong
    assert unauthorized(auth="oauth", by_token=True) == wrong
    assert unauthorized(auth="oauth") == "does not accept the credentials: `mcprelay login far` gets new ones"
    assert unauthorized(403) == (
        "says that the credentials do not reach: give it a token, or headers, that reach further"
    )
    assert unauthorized(403, auth="oauth", scope=True) == (
        "says that the credentials do not reach: `mcprelay login far --scope …` gets new ones;"
        " the error's scopes names what it takes"
    )


def failed(cause, **known):
    error = ConnectFailed(EVIL, evidence=Evidence.NOT_SENT, **known)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (
            FileNotFoundError(2, "No such file or directory", "no-such-program"),
            "there is no such program on PATH. Is it installed? Its settings say command and cwd.",
        ),
        (
            PermissionError(13, "Permission denied", "x"),
            "Cannot start 'no-such-program': Permission denied. Its settings say command and cwd.",
        ),
        (
            BrokenPipeError(32, "Broken pipe"),
            "The system says: Broken pipe. Is it running, and is command in its settings right?",
        ),
        (None, "The server cannot be reached. Is it running, and is command in its settings right?"),
    ],
)
def test_why_a_process_did_not_start_is_told(cause, said):
    assert str(refused(failed(cause), started())).endswith(said)


def test_a_process_that_ended_did_start():
    cause = FileNotFoundError(2, "No such file or directory", "x")
    error = refused(failed(cause, exit_code=1, stderr=EVIL), started())
    assert str(error).endswith(
        "exited with code 1 before it answered. The system says: No such file or directory. What its process wrote last"
        " is in `stderr` of this error."
    )
    assert error.stderr == EVIL
    assert "\x1b" not in "".join(error.__notes__)


def test_a_process_that_ended_without_a_word_is_run_by_hand():
    said = "exited with code 1 before it answered. Run its command in a terminal to see why."
    assert str(refused(failed(None, exit_code=1), started())).endswith(said)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            DeadlineExceeded(EVIL, evidence=Evidence.MAYBE_SENT),
            "The call was not answered in time. It has timeout=30 seconds: raise timeout, if it only takes longer.",
        ),
        (
            ConnectionLost(EVIL, evidence=Evidence.MAYBE_SENT),
            "The connection to the server was lost. Look at the server's log, and at the notes of this error.",
        ),
        (
            ConnectFailed(EVIL, evidence=Evidence.NOT_SENT),
            "The server cannot be reached. Is it running, and is url in its settings right?",
        ),
        (
            ResponseInvalid(EVIL),
            "that is not the protocol. Is it an MCP server? The notes of this error have what it said.",
        ),
        (
            RevisionUnsupported(EVIL),
            "speaks. Update the older one of the two: the notes of this error have the revisions of both.",
        ),
        (RemoteError(-1, EVIL), "The server answered with error -1. The notes of this error have what it said."),
        (
            CallLimitExceeded("list_pages", 3, evidence=Evidence.ANSWERED),
            "is over a limit of this application: list_pages=3. Raise list_pages to allow more.",
        ),
    ],
)
def test_whatever_is_wrong_with_a_list_is_told_with_what_to_do_next(error, said):
    made = str(refused(error, over_http()))
    assert "the server 'far' (https://far.example/mcp)" in made
    assert made.endswith(said)


def test_a_server_that_speaks_no_tls_and_one_that_is_not_trusted_are_told_by_their_settings(tmp_path):
    plain = ssl.SSLError(1, "EVIL")
    plain.reason = "WRONG_VERSION_NUMBER"
    assert str(refused(failed(plain), over_http())).endswith(
        "The system says: wrong version number. Does it speak HTTP without TLS? Then its url begins with http://."
    )
    wrong = ssl.SSLCertVerificationError(1, "EVIL")
    wrong.verify_message = "self-signed certificate"
    assert str(refused(failed(wrong), over_http())).endswith(
        "An authority of one's own is trusted by ca_file in its settings."
    )
    assert str(refused(failed(wrong), over_http(ca_file=tmp_path / "ca.pem"))).endswith(
        "ca_file in its settings has other authorities."
    )


@pytest.mark.parametrize(("url", "hint"), [("http://a/", True), ("https://a/", False)])
def test_a_connection_that_is_lost_over_plain_http_may_be_one_of_tls(url, hint):
    lost = ConnectionLost(EVIL, evidence=Evidence.MAYBE_SENT)
    said = str(refused(lost, ServerSettings(name="far", transport="http", url=url)))
    assert said.endswith(" If it speaks TLS, its url begins with https://.") is hint
    assert str(refused(lost, started())).endswith("at the notes of this error.")


def test_a_call_that_was_not_answered_says_the_same_and_what_became_of_the_call():
    lost = ConnectionLost(EVIL, evidence=Evidence.MAYBE_SENT, stderr=EVIL)
    error = unreached(lost, over_http())
    assert str(error) == (
        "the server 'far' (https://far.example/mcp): The connection to the server was lost. It may have been carried"
        " out all the same: look before it is made again. Look at the server's log, and at the notes of this error."
        " What its process wrote last is in `stderr` of this error."
    )
    assert (error.stderr, error.__cause__) == (EVIL, lost)
    assert type(unreached(AuthorizationRequired(EVIL, status=401), over_http())) is Unauthorized
    assert type(unreached(ResponseInvalid(EVIL), over_http())) is ServerUnreachable
    assert unreached(RemoteError(-1, EVIL), over_http()) is None
    assert unreached(CallLimitExceeded("depth", 3, evidence=Evidence.ANSWERED), over_http()) is None


async def test_what_is_written_in_place_of_the_protocol_is_beside_the_sentence():
    program = "import sys; print('EVIL garbage'); sys.exit('EVIL: set API_KEY')"
    one = {"command": [sys.executable, "-c", program], "allow": "*"}
    async with Relay(servers={"far": one}) as relay:
        with pytest.raises(ServerUnreachable) as caught:
            await relay.tools()
    assert "EVIL" not in str(caught.value)
    beside = "\n".join(caught.value.__notes__)
    assert "what the server said is not the protocol: 'EVIL garbage'" in beside
    assert "EVIL: set API_KEY" in beside
    assert caught.value.stderr.strip() == "EVIL: set API_KEY"
