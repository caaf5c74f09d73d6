"""The era of a server is remembered for clients that would find out the same, and for no others."""

import gc
import sys
from pathlib import Path

import pytest

from mcprelay import Server
from mcprelay.client import identity
from mcprelay.client.memory import Memory
from mcprelay.revisions import Era
from tests.client.peer import LEGACY, MODERN, fresh, known

PROGRAM = """
import sys
from mcprelay import Server

server = Server("dual")
server.run()
"""


@pytest.fixture
def command(tmp_path):
    program = tmp_path / "dual.py"
    program.write_text(PROGRAM, encoding="utf-8")
    return [sys.executable, str(program)]


async def revision(target, **options):
    async with fresh(target, **options) as client:
        await client.discover()
        return client.server.revision


async def test_a_client_that_may_speak_one_revision_alone_decides_for_no_other_over_stdio(command):
    memory = Memory()
    assert await revision(command, memory=memory, revision=LEGACY) == LEGACY
    assert await revision(command, memory=memory) == MODERN
    assert await revision(command, memory=memory, revision=LEGACY) == LEGACY


async def test_a_client_that_may_speak_one_revision_alone_decides_for_no_other_over_http():
    memory = Memory()
    async with Server("dual").serve("http", port=0) as running:
        assert await revision(running.url, memory=memory, revision=LEGACY) == LEGACY
        assert await revision(running.url, memory=memory) == MODERN
        assert await revision(running.url, memory=memory, revision=LEGACY) == LEGACY


class Token:
    """A way of getting tokens."""

    def __call__(self):
        return "token"


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"x-tenant": "b"}},
        {"headers": dict},
        {"auth": "another"},
        {"auth": Token()},
        {"proxy": "http://127.0.0.1:9"},
        {"trust_env": True},
        {"probe_timeout": 0.001},
        {"connect_timeout": 0.5},
        {"response_bytes": 100},
        {"response_values": 100},
        {"depth": 5},
        {"revision": LEGACY},
        {"on_sample": lambda _: ""},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_another_client_found_out_in_another_way_is_not_known(options):
    memory = Memory()
    url = "http://127.0.0.1/mcp"
    known(fresh(url, memory=memory, **options)).keep(Era.HANDSHAKE)
    assert known(fresh(url, memory=memory)).recall() is None
    assert known(fresh(url, memory=memory, **options)).recall() is Era.HANDSHAKE


@pytest.mark.parametrize("options", [{"env": {"FLAVOR": "b"}}, {"cwd": "/"}], ids=["env", "cwd"])
def test_a_command_in_another_environment_is_another_server(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    memory = Memory()
    known(fresh(["server"], memory=memory, **options)).keep(Era.HANDSHAKE)
    assert known(fresh(["server"], memory=memory)).recall() is None
    assert known(fresh(["server"], memory=memory, **options)).recall() is Era.HANDSHAKE
    known(fresh(["server"], memory=memory, cwd=Path.cwd())).keep(Era.STATELESS)
    assert known(fresh(["server"], memory=memory)).recall() is Era.STATELESS


def test_what_only_settings_of_no_weight_tell_apart_is_known_to_both():
    memory = Memory()
    known(fresh("http://127.0.0.1/mcp", memory=memory, request_timeout=1)).keep(Era.HANDSHAKE)
    assert known(fresh("http://127.0.0.1/mcp", memory=memory, list_items=5)).recall() is Era.HANDSHAKE


def test_no_secret_is_kept_as_it_is():
    memory = Memory()
    client = fresh("http://127.0.0.1/mcp?key=hush", memory=memory, auth="hush", headers={"x-key": "hush"})
    known(client).keep(Era.HANDSHAKE)
    assert "hush" not in repr(vars(memory))


def test_an_object_keeps_its_name_and_nothing_else_ever_gets_it():
    first = Token()
    name = identity.named(first)
    assert identity.named(first) == name
    before = len(identity._named)
    del first
    gc.collect()
    assert len(identity._named) < before
    assert identity.named(Token()) != name


def test_an_object_that_cannot_be_watched_gets_a_name_each_time():
    unwatched = object()
    assert identity.named(unwatched) != identity.named(unwatched)


def test_what_is_no_unicode_tells_servers_apart_too():
    paths = ["/srv/\udcff.py", "/srv/\udcfe.py", "/srv/x.py"]
    assert len({identity.digest(["command", path]) for path in paths}) == 3
    assert identity.digest(["command", paths[0]]) == identity.digest(["command", paths[0]])


@pytest.mark.skipif(sys.platform == "win32", reason="there the environment is Unicode")
async def test_a_server_is_started_in_an_environment_that_is_no_unicode(command, monkeypatch):
    monkeypatch.setenv("HOME", "/home/\udcff")
    assert await revision(command, env={"PLACE": "\udcfe"}) == MODERN


async def test_an_era_that_was_wrong_is_forgotten(command):
    client = fresh(command)
    async with client:
        pass
    assert known(client).recall() is Era.STATELESS
    known(client).forget()
    assert known(client).recall() is None


def test_a_server_of_this_process_is_not_remembered():
    client = fresh(Server("near"))
    known(client).keep(Era.HANDSHAKE)
    known(client).forget()
    assert known(client).recall() is None
