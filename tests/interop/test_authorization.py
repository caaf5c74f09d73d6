"""Authorization against authorization servers that others have made: the official SDK's, and one of authlib.

Each runs in a process and an environment of its own, which the first run makes.
"""

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mcprelay import Client
from mcprelay.auth import FileStore, Headless, Loopback, MemoryStore, OAuth, Refuse
from mcprelay.auth.login import account, login, logout
from mcprelay.client.http import HttpSender
from mcprelay.errors import AuthorizationRequired, MCPRelayError
from mcprelay.ports import Request

pytestmark = pytest.mark.interop

HERE = Path(__file__).parent
HOME = HERE.parents[1] / ".tools" / "interop-authorization"
PACKAGES = ["mcp>=2", "authlib>=1.6", "flask>=3"]
START_SECONDS = 30


class ShiftedClock:
    """The real time, moved on by `shift` seconds."""

    shift = 0.0

    def time(self) -> float:
        return time.time() + self.shift

    def monotonic(self) -> float:
        return time.monotonic() + self.shift


@pytest.fixture(scope="session")
def python() -> Path:
    """The Python of an environment with the other projects."""
    folder = "Scripts" if os.name == "nt" else "bin"
    found = HOME / folder / "python"
    if not (HOME / ".installed").exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True, capture_output=True)
            subprocess.run([str(found), "-m", "pip", "install", "-q", *PACKAGES], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"{', '.join(PACKAGES)} could not be installed: {error}")
        (HOME / ".installed").touch()
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def running(python: Path, program: str, *arguments: str):
    """A program, from when it says that it serves until the end of the test."""
    process = await asyncio.create_subprocess_exec(
        str(python),
        str(HERE / program),
        *arguments,
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        env={**os.environ, "AUTHLIB_INSECURE_TRANSPORT": "1"},
    )
    assert process.stderr is not None
    said = []

    async def listen() -> None:
        async for line in process.stderr:
            said.append(line.decode())
            if "Uvicorn running" in said[-1]:
                started.set()

    started = asyncio.Event()
    listening = asyncio.ensure_future(listen())
    try:
        async with asyncio.timeout(START_SECONDS):
            await started.wait()
        yield said
    except TimeoutError:
        pytest.fail(f"{program} did not start: {''.join(said)}")
    finally:
        process.kill()
        await process.wait()
        await listening


@pytest.fixture
async def url(request, python):
    """The URL of an MCP server whose tokens come from `sdk`, its own authorization server, or from `authlib`."""
    ports = [free_port() for _ in range({"sdk": 1, "authlib": 2}[request.param])]
    async with running(python, f"{request.param}_authorization.py", *map(str, ports)):
        yield f"http://127.0.0.1:{ports[-1]}/mcp"


both = pytest.mark.parametrize("url", ["sdk", "authlib"], indirect=True)
sdk = pytest.mark.parametrize("url", ["sdk"], indirect=True)
authlib = pytest.mark.parametrize("url", ["authlib"], indirect=True)


@pytest.fixture
async def sender():
    sender = HttpSender()
    yield sender
    await sender.aclose()


async def whoami(url: str, auth: OAuth) -> str:
    async with Client(url, auth=auth) as client:
        return (await client.call_tool("whoami")).text


@both
async def test_a_call_gets_its_token_and_is_answered(url, sender):
    assert await whoami(url, OAuth(interaction=Headless(sender))) == "someone with a token"


@both
async def test_a_token_is_refreshed_after_a_restart_without_asking(url, sender, tmp_path):
    store = FileStore(tmp_path / "tokens.json")
    await whoami(url, OAuth(interaction=Headless(sender), store=store))
    clock = ShiftedClock()
    for _ in range(3):  # each time with the refresh token that the one before got
        clock.shift += 3700
        assert await whoami(url, OAuth(interaction=Refuse(), store=store, clock=clock)) == "someone with a token"


@both
async def test_many_calls_with_an_expired_token_refresh_once(url, sender):
    clock = ShiftedClock()
    auth = OAuth(interaction=Headless(sender), clock=clock)
    async with Client(url, auth=auth) as client:
        await client.call_tool("whoami")
        auth.settings.interaction.ask = None  # a second login would fail
        clock.shift += 3700
        results = await asyncio.gather(*(client.call_tool("whoami") for _ in range(10)))
    assert {result.text for result in results} == {"someone with a token"}


@both
async def test_a_person_is_asked_through_a_page_on_this_machine(url, sender):
    visits = []

    async def visit(address: str) -> None:
        async with sender.send(Request(method="GET", url=address)) as reply:
            location = reply.headers["location"]
        async with sender.send(Request(method="GET", url=location)) as reply:
            assert b"Thank you" in await reply.read(10_000)

    def write(text: str) -> None:
        (address,) = re.findall(r"http://127\S+", text)
        visits.append(asyncio.ensure_future(visit(address)))

    assert await whoami(url, OAuth(interaction=Loopback(write=write))) == "someone with a token"
    await asyncio.gather(*visits)


@authlib
async def test_logging_out_makes_the_token_worthless(url, sender):
    store = MemoryStore()
    auth = OAuth(interaction=Headless(sender), store=store)
    found = await login(url, auth=auth, sender=sender)
    assert found.scope == ("files:read",)
    kept = dict(store._values)
    assert await logout(url, auth=auth, sender=sender) == "revoked"
    assert await account(url, auth=auth, sender=sender) is None
    store._values.update(kept)
    with pytest.raises(AuthorizationRequired, match="no person can be asked here"):
        await whoami(url, OAuth(interaction=Refuse(), store=store))


@sdk
async def test_logging_out_forgets_even_where_the_server_does_not_understand(url, sender):
    auth = OAuth(interaction=Headless(sender))
    await login(url, auth=auth, sender=sender)
    with pytest.raises(MCPRelayError, match=r"token revocation failed: \S+/revoke answered 400"):
        await logout(url, auth=auth, sender=sender)
    assert await account(url, auth=auth, sender=sender) is None


@sdk
async def test_without_credentials_the_error_says_what_is_missing(url):
    with pytest.raises(AuthorizationRequired, match="401"):
        async with Client(url) as client:
            await client.call_tool("whoami")
