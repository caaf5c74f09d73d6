"""The command as a shell starts it, with real servers."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import mcprelay
from mcprelay.revisions import NEWEST

SERVED = str(Path(__file__).with_name("served.py"))
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(mcprelay.__file__).parents[1]), "COLUMNS": "100"}
COMMAND = [sys.executable, "-m", "mcprelay.cli"]


def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], **{"capture_output": True, "text": True, "timeout": 60, "env": ENVIRONMENT, **options},
        check=False,
    )  # fmt: skip


@contextmanager
def served(*words: str):
    """The server over HTTP; gives its address and its process."""
    command = [*COMMAND, "serve", SERVED, "--http", "127.0.0.1:0", *words]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as server:
        try:
            line = server.stderr.readline()
            yield re.search(r"http://\S+", line)[0], server
        finally:
            server.terminate()
            server.communicate(timeout=20)


# ------------------------------------------------------------------------------------------------------------- calling


def test_help_tells_the_commands_and_the_exit_codes():
    done = run("--help")
    assert done.returncode == 0
    for word in ("serve", "tools", "resources", "prompts", "call", "read", "prompt", "complete", "listen", "TARGET"):
        assert word in done.stdout
    assert "3 there was no connection" in done.stdout
    assert run("--version").stdout.strip() == mcprelay.__version__


def test_tools_are_listed_for_people_and_for_programs():
    done = run("tools", SERVED)
    assert "add a=integer [b=integer]\n    Add." in done.stdout
    assert "noise" not in done.stdout
    listed = json.loads(run("tools", SERVED, "--json").stdout)
    assert {"add", "refuse", "book"} < {tool["name"] for tool in listed}


def test_a_tool_is_called_with_words_whose_types_are_the_schemas():
    assert run("call", SERVED, "add", "a=40").stdout == "42\n"
    assert run("call", SERVED, "add", "--arguments", '{"a": 1, "b": 1}', "b=5").stdout == "6\n"
    whole = json.loads(run("call", "--json", SERVED, "add", "a=1").stdout)
    assert whole["structuredContent"] == 3


def test_a_command_behind_two_dashes_is_a_target():
    done = run("call", "add", "a=40", "--json", "--env", "PYTHONPATH", "--", *COMMAND, "serve", SERVED)
    assert json.loads(done.stdout)["structuredContent"] == 42


def test_resources_prompts_and_completion():
    assert "data://bytes  data  application/octet-stream" in run("resources", SERVED).stdout
    listed = json.loads(run("resources", SERVED, "--json").stdout)
    assert [each["uriTemplate"] for each in listed["resourceTemplates"]] == ["city://{name}/weather"]
    assert run("read", SERVED, "city://Rome/weather").stdout == "rain in Rome\n"
    assert run("read", SERVED, "data://bytes", text=False).stdout == bytes(range(256))
    assert "review language=… [focus=…]\n    Ask for a review." in run("prompts", SERVED).stdout
    assert run("prompt", SERVED, "review", "language=python").stdout == "user:\nReview python, general\n"
    assert run("complete", SERVED, "review", "language", "py").returncode == 0
    assert json.loads(run("complete", SERVED, "review", "language", "py", "--json").stdout)["values"] == []


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["call", SERVED, "refuse"], 1, "mcprelay: the tool said no: not today"),
        (["read", SERVED, "data://none"], 1, "data://none"),
        (["call", SERVED, "add", "a=x"], 2, "a is a whole number, and not 'x'"),
        (["call", SERVED, "ad", "a=1"], 2, "the server has no tool 'ad'; did you mean add?"),
        (["call", SERVED, "add", "--arguments", "[1]"], 2, "--arguments must be a JSON object"),
        (["nonsense"], 2, "there is no command 'nonsense'; there are serve, tools"),
        (["tools"], 2, "TARGET"),
        (["tools", SERVED, "--nonsense"], 2, "--nonsense"),
        (["serve", "no/such/file.py"], 2, "there is no file"),
        (["serve", SERVED, "--http", "nowhere"], 2, "write HOST:PORT"),
        (["serve", SERVED, "--http", "0.0.0.0:0"], 2, "reachable from other machines"),
        (["tools", "http://127.0.0.1:1/mcp"], 3, "127.0.0.1"),
        (["tools", "--", "no-such-program-x"], 3, "no such program on PATH"),
        (["call", SERVED, "slow", "--timeout", "4"], 4, "within 4 seconds (--timeout, or timeout in mcprelay.toml)"),
        (["tools", "--", "no-such-program-x", "--json"], 3, "no such program on PATH"),
        (["tolos", SERVED], 2, "there is no command 'tolos'; did you mean tools?"),
        (["serve", f"{SERVED}:nothing"], 2, f"there is no 'nothing' in 'served'; there is {SERVED}:server"),
        (["call", SERVED, "book"], 5, "nobody is at a terminal to answer: Which seat?"),
    ],
)
def test_a_failure_is_one_sentence_and_an_exit_code(words, code, sentence):
    done = run(*words, stdin=subprocess.DEVNULL)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == code


def test_a_failure_is_json_where_json_was_asked_for():
    done = run("call", SERVED, "refuse", "--json")
    assert json.loads(done.stdout)["error"]["message"] == "not today"
    assert done.returncode == 1


def test_whoever_reads_only_the_beginning_is_no_failure():
    with subprocess.Popen([*COMMAND, "tools", SERVED, "--json"], stdout=subprocess.PIPE, env=ENVIRONMENT) as command:
        assert command.stdout.read(1) == b"["
        command.stdout.close()
        assert command.wait(20) == 0


# ------------------------------------------------------------------------------------------------- at a terminal


class Terminal:
    """A command that runs in a terminal of its own."""

    def __init__(self, *words: str):
        self.fd, end = pty.openpty()
        self.process = subprocess.Popen([*COMMAND, *words], stdin=end, stdout=end, stderr=end, env=ENVIRONMENT)
        os.close(end)
        self.seen = ""

    def until(self, text: str):
        while text not in self.seen:
            assert select.select([self.fd], [], [], 20)[0], f"{text!r} did not come: {self.seen!r}"
            try:
                self.seen += os.read(self.fd, 65536).decode().replace("\r\n", "\n")
            except OSError:
                raise AssertionError(f"{text!r} did not come: {self.seen!r}") from None

    def type(self, line: str):
        os.write(self.fd, line.encode())

    def end(self) -> int:
        code = self.process.wait(20)
        os.close(self.fd)
        return code


def test_what_a_server_says_cannot_command_a_terminal():
    terminal = Terminal("call", SERVED, "hostile")
    terminal.until("[image: image/png, 4 bytes]")
    assert "⟨U+001B⟩[2Jcleared ⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩gnol" in terminal.seen
    assert "\x1b[2J" not in terminal.seen
    assert terminal.end() == 0


def test_a_servers_question_is_asked_at_the_terminal():
    terminal = Terminal("call", SERVED, "book")
    terminal.until("The server asks: Which seat?")
    terminal.until("row (integer")
    terminal.type("front\n")
    terminal.until("row is a whole number, and not 'front'")
    terminal.type("7\n")
    terminal.until("side (string; default left)")
    terminal.type("\n")
    terminal.until("row 7 left")
    assert terminal.end() == 0


def test_the_end_of_input_declines_a_question():
    terminal = Terminal("call", SERVED, "book")
    terminal.until("> ")
    terminal.type("\x04")
    terminal.until("nothing booked")
    assert terminal.end() == 0


def test_somebody_who_starts_a_server_by_hand_is_told_what_it_is():
    terminal = Terminal("serve", SERVED)
    terminal.until("served speaks MCP on standard input and output.")
    terminal.type("{nonsense\n")
    terminal.until("-32700")
    terminal.type("\x04")
    assert terminal.end() == 0


# ------------------------------------------------------------------------------------------------------------- serving


META = {
    "io.modelcontextprotocol/protocolVersion": NEWEST.name,
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(id: int, tool: str) -> str:
    params = {"name": tool, "arguments": {}, "_meta": META}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}) + "\n"


@pytest.fixture
def stdio():
    with subprocess.Popen(
        [*COMMAND, "serve", SERVED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=ENVIRONMENT,
    ) as server:  # fmt: skip
        yield server
        server.kill()


def test_nothing_but_the_protocol_reaches_the_client(stdio):
    stdio.stdin.write(call(1, "noisy"))
    stdio.stdin.flush()
    answer = json.loads(stdio.stdout.readline())
    assert answer["result"]["content"][0]["text"] == "quiet"
    out, err = stdio.communicate(timeout=20)
    assert out == ""
    for noise in ("noise while importing", "x1", "x2", "x3", "x4"):
        assert noise in err
    assert stdio.returncode == 0


def test_a_malformed_line_is_answered_and_the_next_one_served(stdio):
    stdio.stdin.write("{not json}\n" + call(41, "refuse"))
    stdio.stdin.flush()
    first, second = (json.loads(stdio.stdout.readline()) for _ in range(2))
    assert first["error"]["code"] == -32700
    assert second["id"] == 41


@pytest.mark.clause("stdio.exit-on-eof")
def test_a_server_exits_soon_after_its_input_ends_although_a_handler_blocks(stdio):
    stdio.stdin.write(call(1, "block") + call(2, "refuse"))
    stdio.stdin.flush()
    assert json.loads(stdio.stdout.readline())["id"] == 2
    since = time.monotonic()
    stdio.stdin.close()
    assert stdio.wait(20) == 0
    assert time.monotonic() - since < 4  # two seconds, and those that a busy machine takes


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_over_http_ends_cleanly_when_it_is_told_to(number):
    with served() as (url, server):
        assert run("call", url, "add", "a=1").stdout == "3\n"
        server.send_signal(number)
        assert server.wait(20) == 0


def test_changes_are_printed_as_they_happen():
    with served() as (url, _):
        command = [*COMMAND, "listen", url, "--json"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
        ) as listener:
            assert "listening" in listener.stderr.readline()
            assert run("call", url, "grow").stdout == "grown\n"
            assert json.loads(listener.stdout.readline()) == {"event": "ToolsChanged"}
            listener.send_signal(signal.SIGINT)
            assert listener.wait(20) == 130


def test_a_listener_ends_when_the_server_does():
    with served() as (url, server):
        with subprocess.Popen(
            [*COMMAND, "listen", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
        ) as listener:
            assert "listening" in listener.stderr.readline()
            server.terminate()
            _, err = listener.communicate(timeout=20)
            assert (listener.returncode, err) == (0, "the server ended it\n")


def test_why_a_server_did_not_start_is_said_once(tmp_path):
    done = run("tools", "there_is_none.such:server", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.count("there_is_none.such cannot be imported") == 1


def test_a_word_that_stands_behind_the_command_is_told_where_to_go():
    done = run("call", "--", *COMMAND, "serve", SERVED, "add", "a=1")
    assert done.returncode == 2
    assert "goes before --" in done.stderr


def test_help_says_what_a_target_is_and_no_default_that_says_nothing():
    said = " ".join(run("tools", "--help").stdout.replace("│", " ").split())
    assert "A URL, a .py file, ./folder, module:server or a name in mcprelay.toml" in said
    assert "default: False" not in said
    assert "default: ()" not in said


def test_what_a_server_logs_begins_no_line_of_its_own(tmp_path):
    source = tmp_path / "logs.py"
    source.write_text(
        "from mcprelay import Context, Server\nserver = Server('logs')\n@server.tool\n"
        "async def t(ctx: Context) -> str:\n"
        "    ctx.warning('one\\nmcprelay: forged \\x1b[2J')\n    return 'x'\n"
    )
    done = run("call", str(source), "t", "--log", "info")
    assert done.stderr == "[warning] one⟨U+000A⟩mcprelay: forged ⟨U+001B⟩[2J\n"
