"""`house`: a client that is connected to the server of the matrix, in one revision over one transport, and its tape.

One connection serves all tests of a revision and a transport. The transport `wire` is a recorded conversation with each
test's name, played to a client of its own; with RECORD_WIRES=1 the conversations are recorded.
"""

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from mcprelay import Client, Implementation, Server, revisions
from mcprelay.client.http import HttpSender
from mcprelay.client.memory import Memory
from mcprelay.ports import Channel
from mcprelay.revisions import Era, Feature, Revision
from mcprelay.stdio import ChildChannel
from tests.matrix import conversation
from tests.matrix.conversation import RecordedServer
from tests.matrix.house import furnished
from tests.matrix.own_channel import Serving
from tests.matrix.tape import Tape, TapedChannel, TapedSender

RECORDING = bool(os.environ.get("RECORD_WIRES"))
ROOT = Path(__file__).parents[2]

STDIO = [sys.executable, str(Path(__file__).parent / "house.py")]
IN_HANDSHAKE = ("stdio", "memory", "channel", "http", "stateless", "pair", "wire")
IN_STATELESS = ("stdio", "memory", "channel", "http", "wire")
COMBINATIONS = [
    (revision, transport)
    for revision in revisions.ALL.values()
    for transport in (IN_HANDSHAKE if revision.era is Era.HANDSHAKE else IN_STATELESS)
    if transport != "stateless"
    or revision.http.streamable  # without a session or a header, nothing says what is spoken
]


@dataclass
class House:
    """A client, its server, and everything that passes between them.

    Attributes:
        client: The client.
        revision: What is spoken.
        transport: What it is spoken over.
        tape: Every message of the test.
        elicit: What a question to a person is answered with, or a function of the question.
        sample: What a question to a model is answered with.
        logs: Log messages that belong to no call.
    """

    revision: Revision
    transport: str
    tape: Tape
    client: Client = field(init=False)
    elicit: Any = None
    sample: Any = "A sampled text."
    roots: list[str] = field(default_factory=lambda: ["file:///work", "file:///home"])
    asked: list[Any] = field(default_factory=list)
    logs: list[Any] = field(default_factory=list)

    def has(self, feature: Feature) -> bool:
        """Whether the revision has a feature."""
        return self.revision.has(feature)

    @property
    def can_be_asked(self) -> bool:
        """Whether the server has a way to ask this client: by results, or by requests of its own."""
        return self.has(Feature.MRTR) or self.keeps_a_session

    @property
    def keeps_a_session(self) -> bool:
        """Whether the server can say something outside of a call."""
        return self.revision.era is Era.HANDSHAKE and self.transport != "stateless"

    def options(self) -> dict[str, Any]:
        """How the client is made."""
        return {
            "revision": self.revision.name,
            "memory": Memory(),
            "client_info": Implementation("visitor", "0.1", title="The Visitor"),
            "on_elicit": self._elicited,
            "on_sample": self._sampled,
            "on_roots": lambda: self.roots,
            "on_log": self.logs.append,
            "request_timeout": 10.0,
        }

    def _elicited(self, question: Any) -> Any:
        self.asked.append(question)
        return self.elicit(question) if callable(self.elicit) else self.elicit

    def _sampled(self, question: Any) -> Any:
        self.asked.append(question)
        return self.sample

    def forget(self) -> None:
        """Begin a test."""
        self.tape.clear()
        self.asked.clear()
        self.logs.clear()
        self.elicit, self.sample = None, "A sampled text."


class Taped:
    """What a `Client` takes for a server: makes a taped channel to it."""

    name = "house"

    def __init__(self, channel: Callable[[], Any], tape: Tape) -> None:
        self._channel = channel
        self._tape = tape

    async def connect(self) -> Channel:
        """A channel, as of a `Server`."""
        channel = self._channel()
        return TapedChannel(await channel if hasattr(channel, "__await__") else channel, self._tape)


def spawn(among: Iterable[str] = ()) -> Any:
    """The server as a child process."""
    return ChildChannel.spawn([*STDIO, *among], env={"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))})


@contextlib.asynccontextmanager
async def moved_in(
    revision: Revision, transport: str, *, among: list[str] | None = None, open_minded: bool = False
) -> AsyncIterator[House]:
    """A house over a transport.

    Args:
        revision: What the client speaks.
        transport: How.
        among: What the server speaks; everything when left out.
        open_minded: Whether the client speaks everything. It has to, to speak a newer revision over the older pair.
    """
    if transport == "pair" and revision.http.streamable:
        among, open_minded = [revision.name], True
    house = House(revision, transport, Tape(revision.name))
    async with contextlib.AsyncExitStack() as stack:
        target: Any
        options = house.options()
        if open_minded:
            del options["revision"]
        if transport == "stdio":
            target = Taped(lambda: spawn(among or ()), house.tape)
        elif transport == "memory":
            target = Taped(furnished(among=among).connect, house.tape)
        elif transport == "channel":
            target = Taped(Serving(furnished(among=among)).connect, house.tape)
        else:
            served: Server = furnished(among=among, sessions="off" if transport == "stateless" else "required")
            running = await stack.enter_async_context(served.serve("http", port=0))
            target = running.url.removesuffix("/mcp") + "/sse" if transport == "pair" else running.url
            options["sender"] = TapedSender(HttpSender(), house.tape)
        house.client = await stack.enter_async_context(Client(target, **options))
        yield house


@contextlib.asynccontextmanager
async def recorded(revision: Revision, name: str) -> AsyncIterator[House]:
    """A client, and the server's half of a conversation."""
    messages = conversation.read(revision.name).get(name)
    if messages is None:
        pytest.fail(f"no conversation {name} in {revision.name}: run with RECORD_WIRES=1, and look at what is recorded")
    house = House(revision, "wire", Tape(revision.name))
    server = RecordedServer(messages)
    try:
        async with Client(TapedChannel(server, house.tape), **house.options()) as house.client:
            yield house
    except Exception:
        if server.fault is not None:
            raise server.fault from None
        raise
    if server.fault is not None:
        raise server.fault
    assert server.is_over, "the client did not say everything that was recorded"


@pytest_asyncio.fixture(
    scope="session", loop_scope="session", params=COMBINATIONS, ids=lambda pair: f"{pair[0].name}-{pair[1]}"
)
async def connection(request: pytest.FixtureRequest) -> AsyncIterator[House | Revision]:
    """The house of a combination; for recorded conversations only the revision."""
    revision, transport = request.param
    if transport == "wire":
        yield revision
        return
    async with moved_in(revision, transport) as house:
        yield house


@pytest_asyncio.fixture(loop_scope="session")
async def house(
    request: pytest.FixtureRequest, connection: House | Revision, recorder: dict[str, Any]
) -> AsyncIterator[House]:
    """The house, with an empty tape; afterwards everything on the tape must be what the schemas describe."""
    name = request.node.originalname
    async with contextlib.AsyncExitStack() as stack:
        if isinstance(connection, House):
            house = connection
            house.forget()
        elif RECORDING:
            house = await stack.enter_async_context(moved_in(connection, "memory"))
        else:
            house = await stack.enter_async_context(recorded(connection, name))
        yield house
    if RECORDING and isinstance(connection, Revision):
        recorder.setdefault(connection.name, {})[name] = house.tape.passed
    faults, house.tape.faults = house.tape.faults, []
    assert not faults, "\n".join(faults)


@pytest.fixture(scope="session")
def recorder() -> Any:
    """Conversations that are being recorded, by revision and name; written at the end."""
    recorded: dict[str, Any] = {}
    yield recorded
    for revision, conversations in recorded.items():
        conversation.write(revision, {**conversation.read(revision), **conversations})
