"""Settings: read strictly, all mistakes told at once, secrets shown nowhere."""

import json
import tomllib
from pathlib import Path

import pytest

from mcprelay import Relay
from mcprelay.errors import ConfigurationError
from mcprelay.relay.budget import Limits
from mcprelay.relay.config import from_mapping, load, parse
from mcprelay.relay.errors import SettingWrong
from mcprelay.relay.pins import define
from mcprelay.relay.settings import CacheSettings, Config, Secret, ServerSettings, shown_url
from mcprelay.relay.template import TEMPLATE
from tests.relay.far import Far

EXAMPLE = """
[servers.github]
url   = "https://mcp.example.com/mcp"
token = "${GITHUB_TOKEN}"
allow = ["list_issues", "create_issue"]

[servers.puppeteer]
command = ["npx", "-y", "@modelcontextprotocol/server-puppeteer"]
allow   = "*"
timeout = 60

[limits]
result_bytes = 65536
"""
PLAIN = (
    "would go over plain HTTP to another machine (x.example): use https, or set allow_plaintext = true for the server"
    " where nobody can listen"
)
DIGEST = define({"name": "t"}).digest


def read(text, *, name="/etc/app/mcprelay.toml", **env):
    return parse(text, source=Path(name), env=env)


def server(text="", **env):
    """The one server of a table with a url."""
    return read(f'[servers.s]\nurl = "https://x.example/mcp"\n{text}', **env).servers["s"]


def mistakes(text, **env):
    with pytest.raises(SettingWrong) as caught:
        read(text, **env)
    assert isinstance(caught.value, ConfigurationError)
    return [problem.removeprefix("/etc/app/mcprelay.toml: ") for problem in caught.value.problems]


# --- what is read -----------------------------------------------------------------------------------------------------


def test_the_example_of_the_documentation_is_read():
    config = read(EXAMPLE, GITHUB_TOKEN="gh-secret")
    github, puppeteer = config.servers.values()
    assert (github.transport, github.url, github.token) == ("http", "https://mcp.example.com/mcp", Secret("gh-secret"))
    assert github.allow.names == {"list_issues", "create_issue"}
    assert github.timeout == 30.0
    assert (puppeteer.transport, puppeteer.command[0], puppeteer.timeout) == ("stdio", "npx", 60.0)
    assert puppeteer.allow.everything
    assert github.limits.result_bytes == config.limits.result_bytes == 65_536
    assert config.lock == Path("/etc/app/mcprelay.lock")


def test_every_key_is_read():
    found = server(
        'transport = "sse"\nheaders = { X-Team = "search", X-N = 5 }\ntimeout = 0.5\ncache = 0\nprompts = ["p"]\n'
        'resources = "*"\ninstructions = true\npins = "optional"\nprefix = "gh"\n'
        "limits = { result_bytes = 9, run_bytes = 8, run_tokens = false }\n"
    )
    assert (found.transport, found.timeout, found.cache, found.prefix) == ("sse", 0.5, 0.0, "gh")
    assert found.headers == {"X-Team": Secret("search"), "X-N": Secret("5")}
    assert (found.prompts.names, found.resources.everything, found.instructions) == ({"p"}, True, True)
    assert found.unpinned == "offered"
    assert (found.limits.result_bytes, found.limits.run_bytes, found.limits.run_tokens) == (9, 8, None)
    assert found.allow.is_declared is False
    assert found.limits.schema.schema_nodes == Limits().schema_nodes


def test_every_key_of_a_process_is_read():
    text = (
        '[servers.s]\ncommand = ["run", { debug = true, n = [1] }, 5]\ncwd = "sub"\n'
        'env = { A = "${X}", N = 1 }\ninherit = ["HOME"]'
    )
    found = read(text, X="x").servers["s"]
    assert found.command == ("run", '{"debug":true,"n":[1]}', "5")
    assert found.cwd == Path("/etc/app/sub")
    assert found.env == {"A": Secret("x"), "N": Secret("1")}
    assert found.inherit == ("HOME",)
    assert found.address == "run"


def test_pins_may_be_digests():
    found = server(f'pins = {{ t = "{DIGEST}" }}')
    assert found.pins.check("t", DIGEST) is True
    assert found.unpinned == "withheld"
    assert server('pins = "required"').unpinned == "refused"
    assert server("").unpinned == "withheld"


def test_how_a_server_is_reached_over_http():
    config = read(
        """
        [servers.s]
        url = "https://s.example/mcp"
        proxy = "${PROXY}"
        trust_env = true
        ca_file = "certificates/ca.pem"
        client_cert = "/etc/cert.pem"
        client_key = "key.pem"
        allow_plaintext = true
        [servers.t]
        url = "https://t.example/mcp"
        proxy = "${NO_PROXY_HERE:-}"
        """,
        PROXY="http://user:SECRET@proxy.example:3128",
    )
    one, other = config.servers.values()
    assert one.proxy == Secret("http://user:SECRET@proxy.example:3128")
    assert "SECRET" not in repr(config)
    assert (one.trust_env, one.allow_plaintext) == (True, True)
    assert (one.ca_file, one.client_cert) == (Path("/etc/app/certificates/ca.pem"), Path("/etc/cert.pem"))
    assert one.client_key == Path("/etc/app/key.pem")
    assert (other.proxy, other.ca_file, other.trust_env) == (None, None, False)
    again = from_mapping({"s": {"url": "https://s.example/mcp", "proxy": one.proxy, "ca_file": Path("ca.pem")}})
    assert (again.server("s").proxy, again.server("s").ca_file) == (one.proxy, Path("ca.pem"))


def test_pins_of_tools_that_are_allowed_are_read():
    pins = f'pins = {{ a = "sha256:{64 * "0"}" }}'
    for allow in ('allow = "*"', 'allow = ["a", "b"]', ""):
        assert set(read(f'[servers.s]\nurl = "https://x"\n{allow}\n{pins}').server("s").pins.digests) == {"a"}


def test_where_and_how_long_lists_are_kept():
    config = read('[cache]\npath = ".mcprelay/lists.sqlite"\nhintless = 0')
    assert config.cache == CacheSettings(path=Path("/etc/app/.mcprelay/lists.sqlite"), hintless=0.0)
    assert read("").cache == CacheSettings(path=None, hintless=60.0)


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("${A}", "a"),
        ("x${A}y${B}", "xay"),
        ("${EMPTY:-d}", "d"),
        ("${NOPE:-d}", "d"),
        ("${NOPE:-}", ""),
        ("${A:-d}", "a"),
        ("$${A}", "${A}"),
        ("$A $", "$A $"),
        ("${env:A}", "a"),
    ],
)
def test_variables_are_filled_in(written, filled):
    assert server(f"headers = {{ X = '{written}' }}", A="a", B="", EMPTY="").headers["X"] == Secret(
        filled.replace("xay", "xay")
    )


def test_a_token_that_may_be_missing_is_none():
    assert server('token = "${NOPE:-}"').token is None


# --- mistakes ---------------------------------------------------------------------------------------------------------


def test_all_mistakes_are_told_at_once_with_file_key_and_what_would_be_right():
    text = """
[servers.a]
url = "https://x/y"
tokn = "x"
allow = "search"
[servers.b]
command = "npx -y 'a b'"
[limit]
"""
    with pytest.raises(SettingWrong) as caught:
        read(text)
    assert str(caught.value).split("\n") == [
        "/etc/app/mcprelay.toml: servers.a.allow: 'search' is one text and no list of names; write [\"search\"]",
        "/etc/app/mcprelay.toml: servers.a.tokn: is not known here; did you mean 'token'?",
        (
            "/etc/app/mcprelay.toml: servers.b.command: expected a list, since no shell takes part;"
            ' write ["npx", "-y", "a b"]'
        ),
        "/etc/app/mcprelay.toml: limit: is not known here; did you mean 'limits'?",
    ]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("", "url: is missing; a server has a url or a command"),
        ('url = "https://x"\ncommand = ["a"]', "url: stands beside command; a server is reached in one way"),
        ('command = ["a"]\ntoken = "t"', "token: stdio has no requests to carry it; give the server its secret by env"),
        (
            'command = ["a"]\nheaders = {}',
            "headers: stdio has no requests to carry it; give the server its secret by env",
        ),
        ('url = "https://x"\nenv = {}', "env: only a command has it"),
        ('url = "https://x"\ntransport = "stdio"', "transport: 'stdio' starts a command, and there is none"),
        ('command = ["a"]\ntransport = "http"', "transport: 'http' needs a url"),
        (
            'url = "https://x"\ntransport = "stdoi"',
            "transport: expected 'http' or 'sse' or 'stdio', not 'stdoi'; did you mean 'stdio'?",
        ),
        ('url = "ftp://x"', "url: expected an address that begins with https:// or http://"),
        ('url = "http://["', "url: expected an address that begins with https:// or http://"),
        ('url = "https:///x"', "url: expected an address that begins with https:// or http://"),
        (
            'url = "https://u:p@x"',
            "url: holds a user or a password; use token or headers, which are kept out of messages",
        ),
        ("url = 5", "url: expected a text, not a number"),
        (
            'url = "https://x/${NOPE}"',
            "url: the variable NOPE is not set; set it, or write ${NOPE:-} where it may be missing",
        ),
        (
            'url = "https://x/${"',
            "url: ${ without a name and a brace after it; write ${NAME}, or $${ for the characters",
        ),
        ("command = []", "command: expected a list that begins with a program"),
        ("command = [5]", "command: expected a list that begins with a program"),
        ('command = "a \'b"', 'command: expected a list, since no shell takes part; write ["a", "\'b"]'),
        ('url = "https://x"\ntimeout = "5"', "timeout: expected a number of seconds above 0, not '5'"),
        ('url = "https://x"\ntimeout = 0', "timeout: expected a number of seconds above 0, not 0"),
        ('url = "https://x"\ntimeout = -1.5', "timeout: expected a number of seconds above 0, not -1.5"),
        ('url = "https://x"\ntimeout = nan', "timeout: expected a number of seconds above 0, not nan"),
        ('url = "https://x"\ntimeout = true', "timeout: expected a number of seconds above 0, not True"),
        ('url = "https://x"\ncache = nan', "cache: expected a number of at least 0, not nan"),
        (
            'url = "https://x"\nallow = ["*"]',
            'allow: "*" among names would hide what it does; for everything write "*" alone, without a list',
        ),
        ('url = "https://x"\npins = ["x"]', "pins: expected 'required' or 'optional', not ['x']"),
        (
            'url = "https://x"\npins = { t = "x" }',
            "pins: t: a pin is sha256: and 64 (or 32) hexadecimal digits, not 'x'",
        ),
        (
            'url = "https://x"\nprefix = "9"',
            "prefix: expected at most 40 letters, digits, _ and -, not beginning with a digit; or nothing",
        ),
        ('url = "https://x"\nheaders = 5', "headers: expected a table, not a number"),
        ('url = "https://x"\nheaders = { "a b" = "x" }', "headers.a b: is no name of a header"),
        ('url = "https://x"\nheaders = { a = "x\\ny" }', "headers.a: holds a character that no header has"),
        ('url = "https://x"\ntoken = "a b"', "token: holds a character that no token has"),
        ('url = "https://x"\ntoken = 5', "token: expected a text, not a number"),
        ('url = "https://x"\ninstructions = "yes"', "instructions: expected true or false, not a text"),
        ('command = ["a"]\ninherit = "HOME"', "inherit: expected a list of texts, not a text"),
        (
            'url = "https://x"\nlimits = { result_byte = 5 }',
            "limits.result_byte: is not known here; did you mean 'result_bytes'?",
        ),
        (
            'url = "https://x"\nlimits = { result_bytes = false }',
            "limits.result_bytes: expected a number of at least 1, not False",
        ),
        ('url = "https://x"\nlimits = 2024-01-01', "limits: expected a table, not date"),
        (
            'command = ["x"]\nargs = ["y"]',
            (
                "args: is not known here: all that a command takes stands in the list of command: "
                'command = ["npx", "-y", "some-server"]'
            ),
        ),
        (
            'url = "https://x"\ntype = "http"',
            (
                "type: is not known here: a server with a url is spoken to over http; "
                'what speaks the old transport has transport = "sse"'
            ),
        ),
        (
            'url = "https://x"\nproxy = "socks5://u:SECRET@p:1"',
            "proxy: expected the address of an HTTP proxy (http://host:port), and not 'socks5'",
        ),
        ('url = "https://x"\nproxy = 3', "proxy: expected a text, not a number"),
        ('url = "https://x"\ntrust_env = 1', "trust_env: expected true or false, not a number"),
        ('url = "https://x"\nca_file = ""', "ca_file: is empty; expected the path of a file"),
        ('url = "https://x"\nclient_key = "k"', "client_key: is the key of a certificate, and client_cert names none"),
        ('command = ["x"]\nca_file = "a"', "ca_file: only a server with a url is reached by it"),
        (
            'url = "http://x.example"\ntoken = "t"',
            f"token: {PLAIN}",
        ),
        (
            'url = "http://x.example"\nauth = "oauth"',
            f"auth: {PLAIN}",
        ),
        (
            'url = "https://x"\nallow = ["search"]\npins = { serch = "sha256:' + "0" * 64 + '" }',
            "pins.serch: allow does not name it; did you mean 'search'?",
        ),
        ('url = "http://["\ntoken = "t"', "url: expected an address that begins with https:// or http://"),
        ('url = "https://x"\nlimits = { tools = inf }', "limits.tools: expected a whole number, not inf"),
    ],
)
def test_a_mistake_is_told_with_its_key(table, problem):
    assert f"servers.s.{problem}" in mistakes(f"[servers.s]\n{table}\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("servers = 5", "servers: expected a table, not a number"),
        ("[servers]\na = 5", "servers.a: expected a table"),
        (
            '[servers."a\u200b"]\nurl="https://x"',
            "servers.a⟨U+200B ZERO WIDTH SPACE⟩: a server's name is a text that one can see",
        ),
        ('[servers." a"]\nurl="https://x"', "servers.a: a server's name is a text that one can see"),
        ("[cache]\npath = 5", "cache.path: expected a text, not a number"),
        ("[cache]\nhintles = 5", "cache.hintles: is not known here; did you mean 'hintless'?"),
        ("[limits]\nrun_bytes = 0", "limits.run_bytes: expected a number of at least 1, not 0"),
    ],
)
def test_a_mistake_outside_of_a_server_is_told_too(text, problem):
    assert any(found.startswith(problem) for found in mistakes(text))


def test_no_two_servers_names_begin_alike():
    text = '[servers.a]\nurl="https://x"\n[servers.b]\nurl="https://x"\nprefix="a"'
    assert mistakes(text) == ["servers.b.prefix: 'a' is what the names of a begin with already"]


def test_a_file_that_is_none_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingWrong, match=r"mcprelay\.toml: there is no such file; `mcprelay init` writes one"):
        load()
    (tmp_path / "mcprelay.toml").write_bytes(b"\xff")
    with pytest.raises(SettingWrong, match="cannot be read"):
        load()
    (tmp_path / "mcprelay.toml").write_text("a = \nb = 1")
    with pytest.raises(SettingWrong, match=r"this is no TOML: .*line 1"):
        load()
    (tmp_path / "x.json").write_text('{"a": }')
    with pytest.raises(SettingWrong, match=r"this is no JSON: .*line 1"):
        load(tmp_path / "x.json")
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(SettingWrong, match="expected an object"):
        load(tmp_path / "x.json")


def test_a_file_is_read_with_this_processs_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("A_TOKEN", "t")
    (tmp_path / "mcprelay.toml").write_text('[servers.s]\nurl = "https://x"\ntoken = "${A_TOKEN}"')
    assert load(tmp_path / "mcprelay.toml").servers["s"].token == Secret("t")


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_secrets_are_shown_nowhere():
    config = read(
        '[servers.s]\nurl = "https://x.example/p?key=q-secret#f-secret"\ntoken = "t-secret"\n'
        'headers = { X = "h-secret" }\n'
        '[servers.c]\ncommand = ["run"]\nenv = { A = "e-secret" }'
    )
    assert "secret" not in repr(config)
    assert "secret" not in str(config.servers["s"].token)
    assert config.servers["s"].address == "https://x.example/p"
    assert shown_url("https://u:p@x.example:8/a?b") == "https://x.example:8/a"
    assert Secret("a") == Secret("a")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1


# --- in code ----------------------------------------------------------------------------------------------------------


def test_settings_in_code_have_the_same_keys_and_a_token_may_be_a_function():
    def token():
        return "t"

    made = ServerSettings(name="made", transport="http", url="https://y")
    config = from_mapping(
        {
            "a": {"url": "https://x", "token": token, "headers": {"X": Secret("${not a variable}")}, "allow": {"t"}},
            "b": {"url": "https://x", "token": Secret("t")},
            "made": made,
        },
        limits=Limits(result_bytes=5),
        env={},
    )
    assert config.servers["a"].token is token
    assert config.servers["a"].headers == {"X": Secret("${not a variable}")}
    assert config.servers["a"].limits.result_bytes == 5
    assert config.servers["b"].token == Secret("t")
    assert config.servers["made"] is made
    assert config.lock is None


def test_mistakes_in_code_say_where_they_are():
    with pytest.raises(SettingWrong, match=r"inline: servers[.]a[.]url: is missing"):
        from_mapping({"a": {}}, source="inline")
    with pytest.raises(SettingWrong, match=r"settings in code: servers\.5"):
        from_mapping({5: {}})


def test_a_server_that_is_not_there_is_told_with_those_that_are():
    config = from_mapping({"a": {"url": "https://x"}})
    assert config.server("a").name == "a"
    with pytest.raises(SettingWrong, match=r"there is no server 'b'\. It has 'a'\."):
        config.server("b")
    with pytest.raises(SettingWrong, match=r"It has none\."):
        Config().server("b")


# --- desktop clients --------------------------------------------------------------------------------------------------


def desktop(servers, key="mcpServers", **env):
    return read(json.dumps({key: servers}), name="/home/mcp.json", **env)


@pytest.mark.parametrize("key", ["mcpServers", "servers"])
def test_a_desktop_clients_file_is_read_with_trust_undeclared(key):
    config = desktop(
        {
            "files": {
                "command": "npx",
                "args": ["-y", "x"],
                "env": {"A": "${HOME}"},
                "autoApprove": ["*"],
                "allow": "*",
            },
            "web": {"type": "streamable-http", "url": "https://x", "headers": {"Authorization": "Bearer t"}},
            "old": {"transport": "SSE", "url": "https://x/sse"},
            "off": {"command": "x", "disabled": True},
        },
        key=key,
        HOME="/h",
    )
    files, web, old = config.servers.values()
    assert files.command == ("npx", "-y", "x")
    assert files.env == {"A": Secret("/h")}
    assert (web.transport, old.transport) == ("http", "sse")
    assert not any(server.allow.is_declared for server in config.servers.values())
    assert config.notes == (
        "files.autoApprove is not read",
        "files.allow is not read",
        "off is left out, because it is disabled",
    )
    with pytest.raises(SettingWrong, match=rf"the server 'off' is disabled there, by {key}\.off\.disabled"):
        config.server("off")
    with pytest.raises(SettingWrong, match="there is no server 'of'"):
        config.server("of")


def test_trust_for_a_desktop_clients_file_is_declared_in_code():
    config = desktop({"a": {"url": "https://x"}, "b": {"url": "https://x"}})
    trusting = config.trusting({"a": ["t"], "b": "*"})
    assert trusting.servers["a"].allow.allows("t")
    assert trusting.servers["b"].allow.everything
    assert not config.servers["a"].allow.is_declared
    with pytest.raises(SettingWrong, match="one text"):
        config.trusting({"a": "t"})
    with pytest.raises(SettingWrong, match="no server 'c'"):
        config.trusting({"c": "*"})


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ({"mcpServers": []}, "mcpServers: expected an object of servers"),
        ({}, "mcpServers: expected an object of servers"),
        ({"mcpServers": {"a": 5}}, "mcpServers.a: expected an object"),
        ({"mcpServers": {"a": {}}}, "mcpServers.a.url: is missing"),
        ({"servers": {"a": {}}}, "servers.a.url: is missing"),
        ({"servers": {"a": 5}}, "servers.a: expected an object"),
        ({"mcpServers": {"a": {"url": "https://x", "type": "ws"}}}, "mcpServers.a.transport: expected 'http'"),
        ({"mcpServers": {"a": {"command": 5}}}, "mcpServers.a.command: expected a list that begins with a program"),
        (
            {"mcpServers": {"a": {"command": "x", "env": {"K": "${input:key}"}}}},
            "mcpServers.a.env.K: ${ without a name",
        ),
    ],
)
def test_mistakes_in_a_desktop_clients_file_are_told(tree, problem):
    with pytest.raises(SettingWrong) as caught:
        read(json.dumps(tree), name="/home/mcp.json")
    assert any(found.startswith(f"/home/mcp.json: {problem}") for found in caught.value.problems)


def test_an_argument_that_is_no_list_is_one_argument():
    assert desktop({"a": {"command": "x", "args": "y z"}}).servers["a"].command == ("x", "y z")


# --- init -------------------------------------------------------------------------------------------------------------


def test_the_template_is_read_as_it_is_and_with_everything_in_it_switched_on():
    assert read(TEMPLATE).servers == {}
    on = "\n".join(
        line.removeprefix("# ")
        if line.startswith(("# [", "# ")) and (" = " in line or line.startswith("# ["))
        else line
        for line in TEMPLATE.splitlines()
        if not line.startswith("# $")
    )
    assert tomllib.loads(on)
    config = read(on, GITHUB_TOKEN="t")
    assert list(config.servers) == ["github", "files"]
    assert config.limits.result_tokens == 20_000


@pytest.mark.parametrize(
    ("name", "text"),
    [("mcprelay.toml", '[servers.a]\ncommand = ["x"]\n'), ("mcp.json", '{"mcpServers": {"a": {"command": "x"}}}')],
)
def test_a_byte_order_mark_before_the_settings_is_no_part_of_them(name, text, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert list(load(tmp_path / name).servers) == ["a"]
    (tmp_path / name).write_text(text, encoding="utf-16")
    with pytest.raises(SettingWrong, match="cannot be read: it is no UTF-8; save it as that"):
        load(tmp_path / name)


def test_settings_that_may_not_be_read_say_so(tmp_path):
    with pytest.raises(
        SettingWrong,
        match="cannot be read: Is a directory; see that the path is right, and that this process may read it",
    ):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("mcprelay.toml", "", "[servers]"),
        ("mcp.json", '{"servers": {}}', '{"servers": {…}}'),
        ("mcp.json", '{"mcpServers": {}}', '{"mcpServers": {…}}'),
    ],
)
async def test_settings_without_a_server_say_where_one_is_named(tmp_path, name, text, where):
    (tmp_path / name).write_text(text)
    async with Relay.load(tmp_path / name) as relay:
        with pytest.raises(SettingWrong) as caught:
            await relay.tools()
    assert str(caught.value) == f"{tmp_path / name}: there is no server at all; name one in {where}"


async def test_a_certificate_that_is_not_there_is_told_once_with_the_file_and_the_key_that_name_it(tmp_path):
    file = tmp_path / "mcprelay.toml"
    file.write_text('[servers.far]\nurl = "https://x"\nallow = "*"\nca_file = "gone.pem"\n')
    async with Relay.load(file) as relay:
        with pytest.raises(SettingWrong) as caught:
            await relay.tools()
    assert str(caught.value) == (
        f"{file}: servers.far.ca_file: {tmp_path / 'gone.pem'} cannot be used: No such file or directory"
    )


async def test_a_tool_is_the_same_wherever_the_same_is_said_of_its_server():
    said = {"target": Far(), "allow": "*"}
    async with Relay(servers={"far": said}, lock=None) as relay:
        both = await relay.tools() + await relay.tools("far", said)
        assert list(both.keys()) == ["far__search", "far__add"]
        other = await relay.tools("far", {**said, "timeout": 5})
        assert len(both + other) == 4
