"""Why a list cannot be had: local words in the sentence, the server's beside it, and nothing of it for a model."""

import sys

import pytest

from mcprelay.errors import AuthorizationRequired, ConnectFailed, Evidence, HttpError, ResponseInvalid
from mcprelay.relay import DefinitionRefused, Relay, ServerUnreachable, Unauthorized
from mcprelay.relay.settings import Secret, ServerSettings
from mcprelay.relay.unreached import noted, refused
from mcprelay.wire.challenge import Challenge

EVIL = "EVIL\u202e\x1b[2J"


def over_http(**more):
    return ServerSettings(name="far", transport="http", url="https://far.example/mcp", **more)


def started(**more):
    return ServerSettings(name="far", transport="stdio", command=("no-such-program",), **more)


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (404, " Is there an MCP endpoint at this address?"),
        (413, " The request is longer than the server takes."),
        (503, " The server is not ready: try again later."),
        (418, ""),
    ],
)
def test_a_status_is_told_with_what_to_do_about_it(status, advice):
    error = refused(HttpError(EVIL, status=status, body=EVIL), over_http())
    assert isinstance(error, ServerUnreachable)
    assert str(error) == (
        f"the server 'far' (https://far.example/mcp): The server answered with HTTP status {status}.{advice}"
    )


def test_what_the_server_said_is_a_note_that_can_be_shown_anywhere():
    error = refused(ResponseInvalid(EVIL), over_http())
    assert isinstance(error, DefinitionRefused)
    assert "EVIL" not in str(error)
    (note,) = error.__notes__
    assert note.startswith("the client says, perhaps in words of the server: EVIL")
    assert "\x1b" not in note
    assert "\u202e" not in note


def test_an_error_without_a_client_behind_it_has_no_notes():
    assert not hasattr(noted(ServerUnreachable("x"), KeyError(EVIL)), "__notes__")
    assert not hasattr(noted(ServerUnreachable("x"), None), "__notes__")


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
    wrong = "does not accept the credentials: its token or headers are wrong"
    assert unauthorized(by_token=True) == wrong
    assert unauthorized(headers={"x": Secret("y")}) == wrong
    assert unauthorized(client_cert=tmp_path / "a") == wrong
    assert unauthorized(auth="oauth", by_token=True) == wrong
    assert unauthorized(auth="oauth") == "does not accept the credentials: `mcprelay login far` gets new ones"
    assert unauthorized(403) == "says that the credentials do not reach: it takes others"
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
            "Cannot start 'no-such-program': there is no such program on PATH. Is it installed?",
        ),
        (PermissionError(13, "Permission denied", "x"), "Cannot start 'no-such-program': Permission denied."),
        (BrokenPipeError(32, "Broken pipe"), "The system says: Broken pipe."),
        (None, "The server cannot be reached."),
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
