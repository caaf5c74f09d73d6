import os
import sys

import pytest

from mcprelay.cli.app import run
from mcprelay.cli.exit import Exit
from mcprelay.cli.locking import _fitting
from mcprelay.cli.option import Options
from mcprelay.cli.target import _meaning, forgotten, marked, open_client
from mcprelay.errors import ConfigurationError, MCPRelayError
from mcprelay.relay import config

PLAIN = Options()


def test_a_url_is_an_address():
    options = Options(token="t", header=("X-A: b", "X-C:d:e"))
    assert _meaning("https://example.com/mcp", options) == (
        "https://example.com/mcp",
        {"auth": "t", "headers": {"X-A": "b", "X-C": "d:e"}},
    )


def test_what_stands_behind_two_dashes_is_a_command_word_by_word():
    command = ["npx", "-y", "some server", "--flag=a b", "it's"]
    assert _meaning(marked(command), PLAIN) == (command, {"env": {}})


def test_a_file_is_served_by_a_process_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("MINE", "1")
    path = tmp_path / "server.py"
    path.write_text("")
    for target in (str(path), f"{path}:server"):
        command, options = _meaning(target, Options(env=("GIVEN=2",)))
        assert command == [sys.executable, "-m", "mcprelay.cli", "serve", target]
        assert (options["env"]["MINE"], options["env"]["GIVEN"]) == ("1", "2")
    assert _meaning("package.module:server", PLAIN)[0][-1] == "package.module:server"


def test_variables_are_given_or_passed_on(monkeypatch):
    monkeypatch.setenv("MINE", "1")
    _, options = _meaning(marked(["server"]), Options(env=("MINE", "GIVEN=a=b")))
    assert options["env"] == {"MINE": "1", "GIVEN": "a=b"}


@pytest.mark.parametrize(
    ("target", "options", "sentence"),
    [
        ("nowhere", PLAIN, "is no URL, no .py file, no ./folder and no module:server"),
        ("no/such/file.py", PLAIN, "there is no file no/such/file.py"),
        ("./none", PLAIN, "there is no folder ./none"),
        ("https://example.com", Options(header=("nonsense",)), "write it as 'Name: value'"),
        (marked(["server"]), Options(env=("NO_SUCH_VARIABLE_X",)), "there is no such variable to pass on"),
    ],
)
def test_what_means_nothing_is_told(monkeypatch, tmp_path, target, options, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError) as caught:
        open_client(target, options)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("target", "options", "sentence"),
    [
        ("https://example.com", Options(env=("A=b",)), "--env is for a server that is a command"),
        (marked(["server"]), Options(header=("A: b",)), "--header is for a server with a URL"),
        (marked(["server"]), Options(token="t"), "--token is for a server with a URL"),
        ("package.module:server", Options(token="t"), "--token is for a server with a URL"),
        (marked(["server"]), Options(timeout=0.0), "--timeout 0: it is more than 0 seconds"),
        ("https://example.com", Options(timeout=float("nan")), "--timeout nan"),
    ],
)
def test_an_option_that_would_do_nothing_is_told(target, options, sentence):
    with pytest.raises(ConfigurationError, match=sentence):
        open_client(target, options)


@pytest.mark.usefixtures("settings_file")
def test_what_is_said_for_all_servers_counts_for_those_of_its_kind():
    options = Options(env=("A=b",), header=("X: y",), token="t", timeout=3.0)
    remote, local = (config.load().server(name) for name in ("remote", "local"))
    assert _fitting(options, remote) == Options(header=("X: y",), token="t", timeout=3.0)
    assert _fitting(options, local) == Options(env=("A=b",), timeout=3.0)
    for server in (remote, local):
        open_client(server.name, _fitting(options, server))


def test_a_token_of_the_environment_is_for_whoever_takes_one(monkeypatch):
    monkeypatch.setenv("MCPRELAY_TOKEN", "t")
    assert repr(open_client(marked(["server"]), Options(token="t"))) == "Client('server')"
    with pytest.raises(ConfigurationError, match="token"):
        open_client(marked(["server"]), Options(token="another"))


def test_the_time_that_a_call_may_take_is_the_limit_of_connecting_too(monkeypatch):
    given = {}
    monkeypatch.setattr("mcprelay.client.Client", lambda _target, **options: given.update(options))
    open_client(marked(["server"]), Options(timeout=3.0))
    assert (given["request_timeout"], given["connect_timeout"]) == (3.0, 3.0)
    given.clear()
    open_client(marked(["server"]), PLAIN)
    assert not {"request_timeout", "connect_timeout"} & given.keys()


def test_two_dashes_need_a_command():
    with pytest.raises(ConfigurationError, match="after --"):
        marked([])


SETTINGS = """
[servers.remote]
url = "https://example.com/mcp"
token = "${SECRET}"
headers = { X-A = "b" }
timeout = 60

[servers.local]
command = ["npx", "-y", "some-server"]
env = { KEY = "${SECRET}" }
inherit = ["MINE"]
"""


@pytest.fixture
def settings_file(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECRET", "s3cret")
    monkeypatch.setenv("MINE", "1")
    (tmp_path / "mcprelay.toml").write_text(SETTINGS)


@pytest.mark.usefixtures("settings_file")
def test_a_name_is_looked_up_in_the_settings_file():
    assert _meaning("remote", PLAIN) == (
        "https://example.com/mcp",
        {"auth": "s3cret", "headers": {"X-A": "b"}, "request_timeout": 60.0, "connect_timeout": 60.0},
    )
    command, options = _meaning("local", Options(timeout=5.0, env=("MORE=2",)))
    assert command == ["npx", "-y", "some-server"]
    assert options["env"] == {"MINE": os.environ["MINE"], "KEY": "s3cret", "MORE": "2"}
    assert options["request_timeout"] == 5.0


@pytest.mark.usefixtures("settings_file")
def test_a_name_that_is_not_in_the_settings_file_is_told_with_those_that_are():
    with pytest.raises(MCPRelayError, match=r"there is no server 'other'\. It has 'remote', 'local'"):
        open_client("other", PLAIN)


DASHES = [
    (["tools", "python", "own.py"], ". A command goes behind --: mcprelay tools -- python own.py"),
    (["tools", "npx", "-y", "a b"], ". A command goes behind --: mcprelay tools -- npx -y 'a b'"),
    (["resources", "uvx", "x"], ". A command goes behind --: mcprelay resources -- uvx x"),
    (["call", "npx", "-y", "x", "add", "a=1"], ". A command goes behind --: mcprelay call … -- npx …"),
    (["serve", "python", "own.py"], ". serve runs a Server of yours itself: mcprelay serve own.py"),
    (["tools", "own.py", "x"], ""),
    (["tools", "https://example.com", "x"], ""),
    (["tools", "package.module:server", "x"], ""),
    (["tools", "nothing-of-this-name", "x"], ""),
    (["tools", "--", "python", "own.py"], ""),
    (["tools"], ""),
]


@pytest.mark.parametrize(("words", "told"), DASHES)
def test_a_command_without_its_dashes_is_told_where_they_go(words, told, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert forgotten(words) == told


def test_the_name_of_a_server_is_no_forgotten_command(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mcprelay.toml").write_text('[servers.python]\nurl = "https://example.com"\n')
    assert forgotten(["tools", "python", "x"]) == ""
    (tmp_path / "mcprelay.toml").write_text("nonsense")
    assert forgotten(["tools", "python", "x"])


@pytest.mark.usefixtures("settings_file")
def test_a_program_that_is_not_in_the_settings_file_may_be_a_command():
    with pytest.raises(
        MCPRelayError, match=r"It has 'remote', 'local'\. A command goes behind --: mcprelay tools -- npx"
    ):
        open_client("npx", PLAIN)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tools", "python", "own.py"], "there is no place for 'own.py'. A command goes behind --: mcprelay tools -- "),
        (["call", "npx", "-y", "x"], "Unknown option: -y. A command goes behind --: mcprelay call … -- npx …"),
        (["serve", "python", "own.py"], "there is no place for 'own.py'. serve runs a Server of yours itself"),
        (["init", "x"], "there is no place for 'x' (--help tells more)"),
    ],
)
def test_a_command_line_that_does_not_fit_says_where_the_dashes_go(words, told, capsys):
    assert run(words) is Exit.USAGE
    assert told in capsys.readouterr().err


def test_a_server_of_the_settings_is_reached_as_they_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mcprelay.toml").write_text(
        '[servers.far]\nurl = "http://far.example/mcp"\ntoken = "t"\nallow_plaintext = true\n'
        'proxy = "http://proxy.example:3128"\ntrust_env = true\n'
    )
    _, options = _meaning("far", Options())
    assert (options["proxy"], options["trust_env"]) == ("http://proxy.example:3128", True)
    assert options["allow_plaintext"] is True
    assert "ssl" not in options
    open_client("far", Options())
    (tmp_path / "mcprelay.toml").write_text('[servers.far]\nurl = "https://far.example/mcp"\nca_file = "gone.pem"\n')
    with pytest.raises(ConfigurationError, match=r"servers\.far\.ca_file: gone\.pem cannot be used"):
        open_client("far", Options())
