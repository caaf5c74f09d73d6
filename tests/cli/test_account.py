"""`mcprelay login` and `logout` as a shell starts them, against the official SDK's authorization server."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

import mcprelay
from mcprelay.cli.account import advised

SERVER = Path(__file__).parents[1] / "interop" / "sdk_authorization.py"
COMMAND = [sys.executable, "-m", "mcprelay.cli"]
BROWSER = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20).read()"
RELAY = """
import asyncio
from mcprelay import Relay

async def main():
    async with Relay.load() as relay:
        tools = await relay.tools("clock")
        print((await tools["clock__whoami"]()).text)

asyncio.run(main())
"""
CALLS = [
    ["tools"],
    ["resources"],
    ["prompts"],
    ["call", "whoami"],
    ["read", "a:b"],
    ["prompt", "p"],
    ["complete", "p", "a"],
    ["listen"],
]


@pytest.fixture(scope="module")
def url():
    """The address of an MCP server that is its own authorization server and lets everybody in."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, str(SERVER), str(port)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as server:
        try:
            for line in server.stderr:
                if "Uvicorn running" in line:
                    break
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.kill()
            server.communicate()


@pytest.fixture
def environment(tmp_path):
    """Those of a person with an empty home, whose browser agrees to everything."""
    opens = shlex.join([sys.executable, "-c", BROWSER])
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("MCPRELAY", "XDG_"))},
        "PYTHONPATH": str(Path(mcprelay.__file__).parents[1]),
        "HOME": str(tmp_path / "home"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "BROWSER": f"{opens} %s",
    }


@pytest.fixture
def run(environment, tmp_path):
    def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
        given = {"capture_output": True, "text": True, "timeout": 60, "env": environment, "cwd": tmp_path, **options}
        return subprocess.run([*COMMAND, *words], **given, check=False)

    return run


@contextmanager
def started(environment, *words):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([*COMMAND, *words], text=True, env=environment, **pipes) as command:
        try:
            yield command
        finally:
            command.kill()


def address_in(command) -> str:
    """The first address that a command shows."""
    for line in command.stderr:
        if found := re.search(r"^ +(http\S+)$", line):
            return found[1]
    raise AssertionError("it showed no address")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def where(page: str) -> str:
    """The address to which a page sends its visitor."""
    with pytest.raises(urllib.error.HTTPError) as sent:
        urllib.request.build_opener(NoRedirect).open(page, timeout=20)
    with sent.value as answer:
        return answer.headers["location"]


def test_who_has_logged_in_is_let_in_until_logging_out(run, url, tmp_path):
    said = run("login", url)
    assert (said.returncode, said.stdout) == (0, "")
    assert f"logged in at {url} by http://127.0.0.1:" in said.stderr
    assert "scope: mcp" in said.stderr
    (kept,) = [path for path in tmp_path.rglob("tokens.json") if path.is_file()]
    assert kept.stat().st_mode & 0o777 == 0o600
    for secret in re.findall(r'\\"(?:access|refresh)_token\\":\\"([^"\\]+)', kept.read_text()):
        assert secret not in said.stderr
    let_in = run("call", url, "whoami")
    assert (let_in.returncode, let_in.stdout) == (0, "someone with a token\n")
    left = run("logout", url)  # this authorization server refuses to revoke
    assert left.returncode == 1
    assert left.stderr.endswith("The token is forgotten here all the same\n")
    assert run("call", url, "whoami").returncode == 1
    assert "there was no token" in run("logout", url).stderr


@pytest.mark.parametrize("words", CALLS, ids=lambda words: words[0])
def test_every_command_that_is_not_let_in_says_which_to_run(run, url, words):
    said = run(words[0], url, *words[1:])
    assert said.returncode == 1
    assert said.stderr.startswith(f"mcprelay: {url} answered 401")
    assert said.stderr.endswith(f"run: mcprelay login {url}.\n")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--token", "wr0ng-t0ken"], "give another; or give none, and run: mcprelay login"),
        (
            ["--header", "Authorization: Bearer wr0ng-t0ken"],
            "The header Authorization is not what it wants: give another; or give none, and",
        ),
        (["--header", "X-Mine: 1"], "no person can be asked here; run: mcprelay login"),
    ],
)
def test_credentials_that_are_not_accepted_are_told_with_what_to_run_and_not_shown(run, url, options, sentence):
    said = run("tools", url, *options)
    assert said.returncode == 1
    assert sentence in said.stderr
    assert f"mcprelay login {url}" in said.stderr
    assert "wr0ng" not in said.stderr
    as_json = json.loads(run("tools", url, *options, "--json").stdout)
    assert as_json["error"]["status"] == 401
    assert f"mcprelay login {url}" in as_json["error"]["message"]


def test_a_name_of_the_settings_file_is_logged_in_at_and_used_by_the_relay(run, environment, url, tmp_path):
    (tmp_path / "mcprelay.toml").write_text(
        f'[servers.clock]\nurl = "{url}"\nauth = "oauth"\nallow = ["whoami"]\n'
        f'[servers.bare]\nurl = "{url}"\nallow = ["whoami"]\n'
        f'[servers.fixed]\nurl = "{url}"\ntoken = "wr0ng"\nallow = ["whoami"]\n'
    )
    for words in (["tools", "clock"], ["lock", "clock", "--yes"]):
        assert "run: mcprelay login clock." in run(*words).stderr
    for name in ("bare", "fixed"):
        assert f'set auth = "oauth" for it in mcprelay.toml and run: mcprelay login {name}' in run("tools", name).stderr
    assert "set auth" not in run("login", "clock").stderr
    assert 'set auth = "oauth" for [servers.bare]' in run("login", "bare").stderr
    assert run("tools", "clock").returncode == 0
    assert run("lock", "clock", "--yes").returncode == 0
    relayed = subprocess.run(
        [sys.executable, "-c", RELAY], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert "someone with a token" in relayed.stdout, relayed.stderr


def test_an_address_can_be_pasted_where_no_browser_is(environment, url, run):
    with started(environment, "login", url, "--paste", "--port", "8765") as command:
        page = address_in(command)
        answer = where(page)
        assert answer.startswith("http://127.0.0.1:8765/callback?")
        _, said = command.communicate(answer + "\n", timeout=30)
    assert command.returncode == 0
    assert "logged in at" in said
    assert run("call", url, "whoami").returncode == 0


def test_where_no_browser_opens_the_address_is_shown_and_what_to_do_without_one(environment, url):
    with started({**environment, "BROWSER": "false %s"}, "login", url) as command:
        assert "with --paste one on another machine will do" in command.stderr.readline()
        with urllib.request.build_opener().open(address_in(command), timeout=20) as page:
            assert b"Thank you" in page.read()
        assert command.wait(timeout=30) == 0


def test_a_login_that_is_interrupted_ends_at_once_without_a_traceback(environment, url):
    for words in ([], ["--paste"]):
        with started({**environment, "BROWSER": "true %s"}, "login", url, *words) as command:
            address_in(command)
            begun = time.monotonic()
            command.send_signal(signal.SIGINT)
            command.wait(timeout=20)
            assert time.monotonic() - begun < 15
            assert command.returncode == 130
            assert "Traceback" not in command.stderr.read()


def test_a_login_without_an_answer_on_standard_input_fails(run, url):
    said = run("login", url, "--paste", stdin=subprocess.DEVNULL)
    assert said.returncode == 1
    assert "the input ended before an address was pasted" in said.stderr


def test_a_server_that_is_not_there_is_told_by_the_exit_code(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        said = run("login", f"http://127.0.0.1:{taken.getsockname()[1]}/mcp")
    assert said.returncode == 3
    assert "cannot connect to 127.0.0.1" in said.stderr


def test_a_secret_needs_the_client_that_it_belongs_to(run):
    said = run("login", "https://example.com/mcp", "--client-secret", "s3cret")
    assert said.returncode == 2
    assert "--client-id" in said.stderr
    assert "s3cret" not in said.stderr


def test_where_nothing_may_be_shown_there_is_nothing_to_advise():
    assert advised(None, target="http://example.com", url="http://example.com", headers=()) is None
    assert advised("t", target="http://[", url="http://[", headers=()) == "t"
