"""`serve --reload` as a shell starts it, with files that change."""

import asyncio
import contextlib
import os
import re
import select
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcprelay import Client, ToolsChanged
from mcprelay.cli.reload import watched
from mcprelay.revisions import NEWEST, NEWEST_HANDSHAKE
from tests.cli.test_command import COMMAND, ENVIRONMENT

BEFORE = "from mcprelay import Server\nserver = Server('edited')\n@server.tool\ndef before() -> str:\n    return 'x'\n"
AFTER = BEFORE.replace("before", "after")


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "edited.py"
    file.write_text(BEFORE)
    return file


@contextmanager
def over_http(source):
    command = [*COMMAND, "serve", str(source), "--reload", "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        try:
            yield process, lambda words: until(process.stderr, words)
        finally:
            process.terminate()
            process.communicate(timeout=30)


def until(lines, words: str) -> str:
    """Read lines until one has these words."""
    read = []
    for line in lines:
        read.append(line)
        if words in line:
            return "".join(read)
    raise AssertionError(f"{words!r} was not said: {''.join(read)}")


def replace(file: Path, text: str, *, at: float | None = None) -> None:
    """Save a file in one step, as if at a time of the clock."""
    new = file.with_suffix(".new")
    new.write_text(text)
    if at is not None:
        os.utime(new, (at, at))
    new.replace(file)


async def names(client: Client) -> set[str]:
    return {tool.name for tool in await client.list_tools()}


async def test_over_http_the_address_stays_and_what_is_served_follows_the_file(source):
    with over_http(source) as (process, said):
        url = re.search(r"http://\S+", said("is served at"))[0]
        said("are watched")
        async with Client(url) as client:
            assert await names(client) == {"before"}
            source.write_text(BEFORE + "x = (\n")
            assert "line 6: SyntaxError" in await asyncio.to_thread(said, "did not start")
            assert await names(client) == {"before"}, "what ran goes on"
            source.write_text(AFTER)
            await asyncio.to_thread(said, "edited.py changed: reloaded")
            assert await names(client) == {"after"}
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


@pytest.mark.parametrize("revision", [NEWEST.name, NEWEST_HANDSHAKE.name])
async def test_over_stdio_the_client_stays_connected_and_goes_on_listening(source, revision):
    said = []
    command = [*COMMAND, "serve", str(source), "--reload"]
    async with Client(command, env=ENVIRONMENT, revision=revision, stderr=said.append) as client:
        assert await names(client) == {"before"}
        async with client.listen(tools=True) as events:
            for text, name in [(AFTER, "after"), (BEFORE, "before")]:
                replace(source, text)
                assert await anext(events) == ToolsChanged()
                assert await names(client) == {name}
    assert "edited.py changed: reloaded" in said


async def test_changes_within_a_second_that_leave_the_size_are_all_served(source):
    environment = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("PYTHONDONTWRITE")}
    part = source.with_name("part.py")
    replace(part, "NAME = 'one'\n", at=1_000_000_000)
    source.write_text(BEFORE.replace("@server.tool", "from part import NAME\n@server.tool(NAME)"))
    command = [*COMMAND, "serve", str(source), "--reload"]
    async with Client(command, env=environment) as client:
        assert await names(client) == {"one"}
        assert list((source.parent / "__pycache__").glob("part.*")), "there is bytecode that could be taken"
        async with client.listen(tools=True) as events:
            replace(part, "NAME = 'two'\n", at=1_000_000_000)
            await anext(events)
        assert await names(client) == {"two"}


def test_the_folder_that_is_watched_is_the_one_the_source_is_in(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert watched(str(source)) == tmp_path
    assert watched(f"{source}:server") == tmp_path
    assert watched(str(tmp_path)) == tmp_path
    assert watched("package.module:server") == tmp_path


def test_an_address_that_is_taken_is_told_before_anything_starts(source):
    with over_http(source) as (_, said):
        port = re.search(r":(\d+)/", said("is served at"))[1]
        command = [*COMMAND, "serve", str(source), "--reload", "--http", f"127.0.0.1:{port}"]
        done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=30)
        assert done.returncode == 2
        assert "cannot listen" in done.stderr


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="asks /proc who the child is")
def test_a_killed_supervisor_leaves_no_process_behind(source):
    with over_http(source) as (process, said):
        said("are watched")
        worker = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        process.kill()
        process.wait()
        with contextlib.suppress(ProcessLookupError):  # it was faster
            ended = os.pidfd_open(worker)
            assert select.select([ended], [], [], 30)[0]
            os.close(ended)


@pytest.mark.parametrize("port", ["99999", "65536", "9" * 5000])
def test_a_port_that_is_none_is_told_with_what_a_port_is(source, port):
    command = [*COMMAND, "serve", str(source), "--http", f"127.0.0.1:{port}"]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=30)
    assert done.returncode == 2
    assert "a port is a number from 0 to 65535" in done.stderr


def test_the_package_itself_is_the_command_for_python_m(source):
    for words, code, said in [(["--help"], 0, "Serve Python"), (["tools", "nothing.py"], 2, "nothing.py")]:
        command = [sys.executable, "-m", "mcprelay", *words]
        done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=30)
        assert (done.returncode, said in done.stdout + done.stderr) == (code, True)
