"""What our own sides say, held against the schema of its revision, wherever a test lets them say it.

Stands on the wires that tests use most: in process (both sides), and the scripted channel and HTTP server of the
client's tests (our client; what a script says may be any nonsense). The other wires have their own watch:
`tests/server/wire.py` and `rawclient.py`, `tests/clauses`, and the tape of `tests/matrix`, which speaks every revision
over stdio, Streamable HTTP, HTTP+SSE and in process.

Knows messages, as `Watch`, and where they pass, as `installed`. A method that no revision has is an extension's, or a
test's own, and not looked at.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock

from mcprelay.client.line import Line
from mcprelay.server.inprocess import Pipe, ServedChannel
from mcprelay.testing import ScriptedChannel
from tests.client.scripted_http import Exchange
from tests.wire_schema import REVISIONS, Sender, WireViolation, schema_of, validate_message

VERSION = "io.modelcontextprotocol/protocolVersion"
OLDER = REVISIONS[-2]
"""What is spoken where nothing says otherwise: the newest revision that begins with a handshake."""

FAULTS: list[str] = []
"""What was wrong since somebody last looked."""


class Watch:
    """The messages of one conversation.

    Attributes:
        revision: What was agreed on by a handshake.
    """

    def __init__(self) -> None:
        self.revision = OLDER
        self._last: str | None = None  # what a request said last: a notification does not say it
        self._asked: dict[tuple[Sender, Any], tuple[str, str]] = {}

    def hear(self, sender: Sender, data: bytes) -> None:
        """Take note of what is not judged: what was asked, and what was agreed on."""
        try:
            message = json.loads(data)
        except ValueError:
            return
        for one in message if isinstance(message, list) else [message]:
            if isinstance(one, dict):
                self._note(sender, one)

    def judge(self, sender: Sender, data: bytes) -> None:
        """Hold what one of our sides says against the schema."""
        try:
            message = json.loads(data)
        except ValueError as error:
            FAULTS.append(f"the {sender} says what is no JSON: {error}: {data[:200]!r}")
            return
        for one in message if isinstance(message, list) else [message]:
            revision, method = self._note(sender, one)
            if method not in known() or revision not in REVISIONS:
                continue
            try:
                validate_message(revision, one, sender=sender, request_method=None if "method" in one else method)
            except WireViolation as error:
                FAULTS.append(str(error))

    def _note(self, sender: Sender, message: dict[str, Any]) -> tuple[str, str | None]:
        """The revision of a message, and the method that it has or answers."""
        method = message.get("method")
        if isinstance(method, str):
            revision = self._said(method, message.get("params"), calls="id" in message)
            if "id" in message:
                self._asked[sender, _key(message["id"])] = (method, revision)
            return revision, method
        asker: Sender = "server" if sender == "client" else "client"
        method, revision = self._asked.pop((asker, _key(message.get("id"))), (None, self.revision))
        result = message.get("result")
        if method == "initialize" and isinstance(result, dict) and result.get("protocolVersion") in REVISIONS:
            self.revision = result["protocolVersion"]
            revision = self.revision
        return revision, method

    def _said(self, method: str, params: Any, *, calls: bool) -> str:
        if method == "initialize":
            self._last = None
            asked = params.get("protocolVersion") if isinstance(params, dict) else None
            return asked if asked in REVISIONS else OLDER
        meta = params.get("_meta") if isinstance(params, dict) else None
        said = meta.get(VERSION) if isinstance(meta, dict) else None
        if isinstance(said, str):
            self._last = said
            return said
        return self.revision if calls else self._last or self.revision


def _key(request_id: Any) -> str:
    return json.dumps(request_id)


@cache
def known() -> frozenset[str]:
    """Every method of every revision."""
    found = set()
    for revision in REVISIONS:
        for definition in schema_of(revision).definitions.values():
            method = definition.get("properties", {}).get("method", {}).get("const")
            if method is not None:
                found.add(method)
    return frozenset(found)


# ---------------------------------------------------------------------------------------------------------------- wires


@contextmanager
def installed() -> Iterator[None]:
    """Watch the wires, while this lasts."""
    with _in_process(), _scripted_channel(), _scripted_http():
        yield


@contextmanager
def _in_process() -> Iterator[None]:
    """A test may be the client itself, and say any nonsense: only a `Line` of ours is judged on that side."""
    made, put, begun = ServedChannel.__init__, Pipe.put_nowait, Line.__init__

    def make(self: ServedChannel, *given: Any, **named: Any) -> None:
        made(self, *given, **named)
        watch = Watch()
        self._near.told = lambda data: watch.judge("server", data)  # type: ignore[attr-defined]
        self._far.told = lambda data: watch.hear("client", data)  # type: ignore[attr-defined]
        self.watch = watch  # type: ignore[attr-defined]

    def begin(self: Line, channel: Any, *given: Any, **named: Any) -> None:
        if isinstance(channel, ServedChannel):
            watch = channel.watch  # type: ignore[attr-defined]
            channel._far.told = lambda data: watch.judge("client", data)  # type: ignore[attr-defined]
        elif isinstance(channel, ScriptedChannel):
            channel.ours = True  # type: ignore[attr-defined]
        begun(self, channel, *given, **named)

    def put_watched(self: Pipe, data: bytes) -> int:
        if (told := getattr(self, "told", None)) is not None:
            told(data)
        return put(self, data)

    with (
        mock.patch.object(ServedChannel, "__init__", make),
        mock.patch.object(Pipe, "put_nowait", put_watched),
        mock.patch.object(Line, "__init__", begin),
    ):
        yield


@contextmanager
def _scripted_channel() -> Iterator[None]:
    made, send, say = ScriptedChannel.__init__, ScriptedChannel.send, ScriptedChannel.say

    def make(self: ScriptedChannel) -> None:
        made(self)
        self.watch = Watch()  # type: ignore[attr-defined]

    async def send_watched(self: ScriptedChannel, data: bytes) -> None:
        if getattr(self, "ours", False):
            self.watch.judge("client", data)  # type: ignore[attr-defined]
        await send(self, data)

    def say_watched(self: ScriptedChannel, data: bytes) -> None:
        self.watch.hear("server", data)  # type: ignore[attr-defined]
        say(self, data)

    patches = {"__init__": make, "send": send_watched, "say": say_watched}
    with mock.patch.multiple(ScriptedChannel, **patches):
        yield


@contextmanager
def _scripted_http() -> Iterator[None]:
    made, event = Exchange.__init__, Exchange.event
    answered: dict[Any, str] = {}

    def make(self: Exchange, method: str, path: str, headers: Any, body: bytes, **named: Any) -> None:
        made(self, method, path, headers, body, **named)
        if not body or not headers.get("content-type", "").startswith("application/json"):
            return
        watch = Watch()
        watch.revision = headers.get("mcp-protocol-version", OLDER)
        for request, asked in answered.items():
            watch.hear("server", json.dumps({"id": json.loads(request), "method": asked}).encode())
        watch.judge("client", body)

    async def event_watched(self: Exchange, data: Any = None, **named: Any) -> None:
        if isinstance(data, dict) and isinstance(data.get("method"), str) and "id" in data:
            answered[_key(data["id"])] = data["method"]
        await event(self, data, **named)

    with mock.patch.multiple(Exchange, __init__=make, event=event_watched):
        yield
