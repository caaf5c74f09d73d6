"""Recorded conversations: `wires/<revision>.jsonl`, how they are read and written, and how one half of one is played.

A line is `{"conversation": <name>}`, or one message under the name of who says it: `{"client": …}`, `{"server": …}`.
What is made up anew each time, such as ids, stands there as a string `$kind-number`; it is whatever it turns out to be,
but the same in the whole conversation. These strings are valid values themselves, so the file holds valid messages.
"""

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.matrix.tape import Message, Passed, Side

WIRES = Path(__file__).parent / "wires"
PATIENCE = 10.0

MADE_UP = {"id": "id", "requestId": "id", "progressToken": "id", "requestState": "state"}
MADE_UP |= {"io.modelcontextprotocol/subscriptionId": "id", "cursor": "cursor", "nextCursor": "cursor"}
MADE_UP |= {"elicitationId": "elicitation"}
"""Members whose values are made up, and the kind of each. An id may be a progress token and a subscription as well."""
REFERENCE = re.compile(r"reference [0-9a-f]{8}")
"""A part of a text that is made up."""
PLACES = ("params", "_meta", "result", "inputRequests")
"""Members in which such members may be. An `id` elsewhere is somebody's data."""


class Unexpected(AssertionError):
    """The side under test said something else than what was recorded."""


@cache
def read(revision: str) -> dict[str, list[Passed]]:
    """Every conversation of a revision."""
    found: dict[str, list[Passed]] = {}
    path = WIRES / f"{revision}.jsonl"
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").strip("\n").split("\n"):
        entry = json.loads(line)
        if "conversation" in entry:
            current = found.setdefault(entry["conversation"], [])
        else:
            ((sender, message),) = entry.items()
            current.append(Passed(sender, message))
    return found


def write(revision: str, conversations: dict[str, list[Passed]]) -> None:
    """Write the file of a revision."""
    lines: list[dict[str, Any]] = []
    for name, messages in sorted(conversations.items()):
        lines.append({"conversation": name})
        lines += ({one.sender: one.message} for one in generalized(messages))
    WIRES.mkdir(exist_ok=True)
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    (WIRES / f"{revision}.jsonl").write_text(text, encoding="utf-8")


def generalized(messages: list[Passed]) -> list[Passed]:
    """A conversation in which everything that is made up has a name."""
    names: dict[Any, str] = {}
    numbers: dict[str, int] = defaultdict(int)

    def name(value: Any, kind: str) -> str:
        if value not in names:
            numbers[kind] += 1
            names[value] = f"${kind}-{numbers[kind]}"
        return names[value]

    return [Passed(one.sender, _mapped(one.message, name)) for one in messages]


def _mapped(node: Any, name: Any) -> Any:
    """The same with every made-up value mapped."""
    if isinstance(node, list):
        return [_mapped(item, name) for item in node]
    if not isinstance(node, dict):
        return node
    mapped = {}
    for key, value in node.items():
        if key in MADE_UP and isinstance(value, (str, int)):
            mapped[key] = name(value, MADE_UP[key])
        else:
            mapped[key] = _mapped(value, name) if key in PLACES else value
    return mapped


class Half:
    """One half of a conversation, which we play, while the other half is held against what was recorded.

    Args:
        messages: The conversation.
        plays: Which half we play.
    """

    def __init__(self, messages: list[Passed], *, plays: Side) -> None:
        self._messages = messages
        self._plays = plays
        self._known: dict[str, Any] = {}
        self._at = 0

    def sayable(self) -> Iterator[Any]:
        """What we say now, until the other side has a message due."""
        while self._at < len(self._messages) and self._messages[self._at].sender == self._plays:
            message = self._messages[self._at].message
            self._at += 1
            yield self._filled(message)

    @property
    def is_over(self) -> bool:
        """Whether everything was said."""
        return self._at >= len(self._messages)

    def heard(self, message: Any) -> None:
        """The other side said this. What it says in one go may come in another order.

        Raises:
            Unexpected: That is not what was recorded.
        """
        due = self._due()
        for index in due:
            bound = dict(self._known)
            if _fits(self._messages[index].message, message, bound):
                self._known = bound
                self._messages = [*self._messages[: self._at], self._messages[index], *self._rest(index)]
                self._at += 1
                return
        expected = [self._messages[index].message for index in due] or "nothing"
        raise Unexpected(f"recorded: {json.dumps(expected)}\n     heard: {json.dumps(message)}")

    def _due(self) -> list[int]:
        due = []
        for index in range(self._at, len(self._messages)):
            if self._messages[index].sender == self._plays:
                break
            due.append(index)
        return due

    def _rest(self, without: int) -> list[Passed]:
        return [one for index, one in enumerate(self._messages) if index >= self._at and index != without]

    def _filled(self, message: Any) -> Any:
        return _mapped(message, lambda value, _kind: self._known.get(value, value))


def _fits(expected: Any, heard: Any, known: dict[str, Any]) -> bool:
    """Whether a message is what was recorded; what turns out to stand for a made-up value is noted in `known`."""
    if isinstance(expected, dict):
        return (
            isinstance(heard, dict)
            and expected.keys() == heard.keys()
            and all(
                _stands_for(value, heard[key], known) if key in MADE_UP else _fits(value, heard[key], known)
                for key, value in expected.items()
            )
        )
    if isinstance(expected, list):
        return (
            isinstance(heard, list)
            and len(expected) == len(heard)
            and all(_fits(one, other, known) for one, other in zip(expected, heard, strict=True))
        )
    if isinstance(expected, str) and isinstance(heard, str):
        return REFERENCE.sub("", expected) == REFERENCE.sub("", heard)
    return type(expected) is type(heard) and bool(expected == heard)


def _stands_for(expected: Any, heard: Any, known: dict[str, Any]) -> bool:
    if isinstance(expected, str) and expected.startswith("$"):
        return bool(known.setdefault(expected, heard) == heard)
    return _fits(expected, heard, known)


class RecordedServer:
    """A `Channel` whose other end is the server's half of a recorded conversation."""

    def __init__(self, messages: list[Passed]) -> None:
        self._half = Half(messages, plays="server")
        self._ready: asyncio.Queue[bytes] = asyncio.Queue()
        self.fault: Unexpected | None = None
        self._speak()

    @property
    def is_over(self) -> bool:
        """Whether the whole conversation took place."""
        return self._half.is_over

    def _speak(self) -> None:
        for message in self._half.sayable():
            self._ready.put_nowait(json.dumps(message).encode())

    async def receive(self) -> bytes:
        """See `Channel`."""
        return await self._ready.get()

    async def send(self, data: bytes) -> None:
        """See `Channel`."""
        try:
            self._half.heard(json.loads(data))
        except Unexpected as error:
            self.fault = self.fault or error
            self._ready.put_nowait(b"")
            return
        self._speak()

    async def aclose(self) -> None:
        """See `Channel`."""
        self._ready.put_nowait(b"")


async def play_client(messages: list[Passed], channel: Any) -> list[Passed]:
    """Play the client's half to a server, and give what passed.

    Raises:
        Unexpected: The server said something else than what was recorded.
    """
    half = Half(messages, plays="client")
    passed: list[Passed] = []
    while True:
        for message in half.sayable():
            passed.append(Passed("client", message))
            await channel.send(json.dumps(message).encode())
        if half.is_over:
            return passed
        async with asyncio.timeout(PATIENCE):
            data = await channel.receive()
        if not data:
            raise Unexpected("the server ended the channel")
        heard: Message = json.loads(data)
        passed.append(Passed("server", heard))
        half.heard(heard)
