import io
import sys

import pytest

from mcprelay.cli.app import run
from mcprelay.cli.exit import Exit, ended, explain
from mcprelay.errors import (
    AuthorizationRequired,
    ConfigurationError,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    DefinitionError,
    Evidence,
    HttpError,
    LimitExceeded,
    NeedsInput,
    RemoteError,
    ToolError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ToolError("no"), Exit.REFUSED),
        (RemoteError(-32602, "no"), Exit.REFUSED),
        (HttpError("no", status=500), Exit.REFUSED),
        (LimitExceeded("list_items", 1), Exit.REFUSED),
        (ConfigurationError("no"), Exit.USAGE),
        (DefinitionError("no"), Exit.USAGE),
        (FileNotFoundError("no"), Exit.USAGE),
        (ConnectFailed("no", evidence=Evidence.NOT_SENT), Exit.UNREACHED),
        (ConnectionLost("no", evidence=Evidence.NOT_SENT), Exit.UNREACHED),
        (ConnectionLost("no", evidence=Evidence.MAYBE_SENT), Exit.UNKNOWN),
        (DeadlineExceeded("no", evidence=Evidence.MAYBE_SENT), Exit.UNKNOWN),
        (HttpError("no", status=502, may_have_run=True), Exit.UNKNOWN),
        (HttpError("no", status=403), Exit.REFUSED),
        (NeedsInput(None, "which seat?"), Exit.ASKED),
        (RuntimeError("a bug"), Exit.REFUSED),
    ],
)
def test_the_exit_code_says_what_happened(error, code):
    assert explain(error).code is code


def test_every_exit_code_says_what_it_means():
    assert {code.value for code in Exit} == {0, 1, 2, 3, 4, 5, 130}
    assert all(code.meaning for code in Exit)


def test_a_failure_tells_a_program_what_is_known():
    error = HttpError("the server answered 503", status=503)
    assert explain(error).facts == {
        "kind": "HttpError", "message": "the server answered 503", "evidence": "answered", "status": 503,
        "may_have_run": False,
    }  # fmt: skip


def test_the_last_words_of_a_process_are_shown():
    stderr = "".join(f"line {number}\n" for number in range(30))
    error = ConnectionLost("the process exited with code 3", evidence=Evidence.MAYBE_SENT, exit_code=3, stderr=stderr)
    sentence = explain(error).sentence
    assert sentence.startswith("the process exited with code 3. The server's last words:\n    line 20\n")
    assert sentence.endswith("\n    line 29")


@pytest.mark.parametrize("said", ["it answered 401", "it answered 401."])
def test_who_has_no_token_is_told_how_to_get_one(said):
    error = AuthorizationRequired(said, status=401)
    assert explain(error).sentence.startswith("it answered 401. `mcprelay login TARGET` gets a token")


def test_a_login_that_fails_does_not_advise_to_log_in(monkeypatch, capsys):
    async def login(target, _):
        raise AuthorizationRequired("it answered 401.", status=401)

    monkeypatch.setattr("mcprelay.cli.account.login", login)
    assert run(["login", "https://example.com/mcp"]) is Exit.REFUSED
    assert capsys.readouterr().err == "mcprelay: it answered 401.\n"


def test_work_ends_with_its_own_code_or_with_done():
    assert ended(lambda: Exit.ASKED, as_json=False) is Exit.ASKED
    assert ended(lambda: None, as_json=False) is Exit.DONE


def failing(error):
    def work():
        raise error

    return work


def test_a_failure_is_one_sentence_without_a_traceback(capsys):
    assert ended(failing(ToolError("not today")), as_json=False) is Exit.REFUSED
    assert capsys.readouterr() == ("", "mcprelay: the tool said no: not today\n")


def test_a_failure_in_json_goes_where_the_answer_would(capsys):
    assert ended(failing(ConfigurationError("wrong")), as_json=True) is Exit.USAGE
    out, err = capsys.readouterr()
    assert err == ""
    assert '"kind": "ConfigurationError"' in out


def test_an_interruption_is_no_failure(capsys):
    assert ended(failing(KeyboardInterrupt()), as_json=False) is Exit.INTERRUPTED
    assert capsys.readouterr() == ("", "")


def test_what_a_peer_says_cannot_command_the_terminal(capsys):
    ended(failing(RemoteError(-1, "\x1b[2Jgone")), as_json=False)
    assert "\x1b" not in capsys.readouterr().err


def test_whoever_debugs_sees_everything(monkeypatch):
    monkeypatch.setenv("MCPRELAY_DEBUG", "1")
    with pytest.raises(RuntimeError, match="a bug"):
        ended(failing(RuntimeError("a bug")), as_json=False)


def test_output_that_nobody_reads_to_the_end_is_no_failure(monkeypatch):
    monkeypatch.setattr("os.dup2", lambda *_: None)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert ended(failing(BrokenPipeError()), as_json=False) is Exit.DONE
