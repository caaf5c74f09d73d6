"""One server as the relay reaches it for one principal: its client, its list of tools, and what it says unasked.

A station is made without sending anything; the first list or call connects. Two principals never share one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from mcprelay.client.listing import Listing
from mcprelay.errors import CallFailed, ConnectFailed, DeadlineExceeded, Evidence, LocalFault, RemoteError
from mcprelay.relay.dial import accounts, dial, has_secrets
from mcprelay.relay.listed import Listed, lifetime
from mcprelay.relay.notice import Notices
from mcprelay.relay.redaction import Redaction, secrets_of
from mcprelay.relay.reveal import reveal
from mcprelay.relay.turns import Turns
from mcprelay.relay.unreached import refused
from mcprelay.types import Tool
from mcprelay.wire.jsonrpc import METHOD_NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.client import Client
    from mcprelay.client.outcome import Refused, Succeeded
    from mcprelay.client.progress import LogMessage
    from mcprelay.relay.question import Askers
    from mcprelay.relay.settings import ServerSettings, TokenSource
    from mcprelay.relay.stations import Shelves

log = logging.getLogger("mcprelay.relay")
_LONGEST_NOTE = 300
_ELSEWHERE = (
    "the relay is open in another event loop, or in the process that this one was forked from; a relay, and the tools"
    " that it gave, belong to one loop at a time: make one for each, or close it there first"
)
NO_TOOLS = "the server has no tools: it does not know tools/list"


class Station:
    """See the module.

    Args:
        settings: The server.
        token: The bearer token of this principal, or None.
        key: What the list is kept by.
        shelves: Where lists are kept.
        askers: Who answers the server's questions, if anybody.
        listening: Whether changes of the list are listened for between calls.
        rested: Told of this station whenever somebody who asked it for something has got it, or has gone.
        source: The function that gave the token, if one did.

    Attributes:
        used_at: When it was last asked for, as the shelves' clock told it.
        askers: Who answers the questions that come over this connection.
        redaction: Takes out what the server gets of secrets.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        token: str | None,
        key: str,
        shelves: Shelves,
        askers: Askers,
        listening: Literal["on", "off"],
        rested: Callable[[Station], None],
        source: TokenSource | None = None,
    ) -> None:
        self.settings = settings
        self.key = key
        self.source = source
        self.used_at = 0.0
        self.closed = False
        self.heard: Counter[str] = Counter()
        self._shelves = shelves
        self._rested = rested
        self._notices = Notices(self._changed)
        self.askers = askers.apart()
        self.redaction = Redaction(secrets_of(settings, token))
        self._client = dial(
            settings,
            token=token,
            askers=self.askers,
            cache=self._notices,
            on_log=self._logged,
            said=self.redaction.text,
        )
        self._opened: asyncio.Task[Any] | None = None
        self._connected = False
        self._listing = Turns(1)  # no lock, which is free for a moment on its way to who waits for it
        self._turns = Turns(settings.limits.calls)
        self._listens = listening == "on" and settings.cache != 0
        self._listener: asyncio.Task[None] | None = None
        self._last: Listed | None = None
        self._last_place = ""
        self._kept = True  # there may be a list of an earlier run, or of another process
        self._last_until = self._heard_until = 0.0
        self._answers = 0
        self._hears = False
        self._by_token = token is not None
        self._accounts = accounts(settings, token)
        self._secret = token is not None or has_secrets(settings)

    @property
    def busy(self) -> bool:
        """Whether something waits for the server."""
        return self._listing.taken or self._turns.taken or self._client.busy

    @property
    def said(self) -> Counter[str]:
        """How much the server said unasked: changes and logs, and what was thrown away over the present connection."""
        thrown = self._client.discarded
        return self.heard + Counter(unasked=thrown.unasked, unreadable=thrown.unreadable)

    async def client(self, deadline: float) -> Client:
        """The client, connected.

        Raises:
            CallFailed: There is no connection, or none in time.
        """
        if self._connected:  # from then on the client itself sees to its connection
            return self._client
        opened = self._opened
        if opened is not None and opened.done() and (opened.cancelled() or opened.exception() is not None):
            opened = None
        if opened is None:
            opened = self._opened = asyncio.ensure_future(self._client.connect())
            opened.add_done_callback(_looked_at)
        # Whoever waits here may go; the others want the connection all the same.
        await asyncio.wait([opened], timeout=deadline - asyncio.get_running_loop().time())
        if not opened.done():
            what = f"no connection within timeout={self.settings.timeout:g}"
            raise DeadlineExceeded(what, evidence=Evidence.NOT_SENT)
        if opened.cancelled():
            raise ConnectFailed("the relay was closed before there was a connection", evidence=Evidence.NOT_SENT)
        opened.result()
        self._connected = True
        return self._client

    async def aclose(self) -> None:
        """Let go of the server."""
        self.closed = True
        for task in (self._listener, self._opened):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])
        await self._client.aclose()
        if self.settings.target is not None:
            self._shelves.drop(self.key)  # from now on another object may be told by the same identity

    # --- the list

    async def listed(self) -> Listed:
        """The server's list of tools, kept or asked for.

        Raises:
            Unauthorized: The server does not accept the credentials.
            ServerUnreachable: No answer came.
            DefinitionRefused: The answer is no list of tools.
        """
        place, before = self._place, self._answers
        kept = self._shelved(place)
        if kept is not None:
            return self._remembered(kept, place)
        try:
            await self._listing.wait()
            try:
                return await self._asked(before)
            finally:
                self._listing.give()
        finally:
            self._rested(self)

    async def _asked(self, before: int) -> Listed:
        """The list, for whom so many answers were there when they began to wait for their turn."""
        place = self._place
        kept = self._shelved(place)
        if kept is None and self._answers > before and self._last_place == place:
            kept = self._last  # somebody else has just asked: one answer is for all who wait at the same moment
        return kept if kept is not None else await self._ask()

    def _shelved(self, place: str) -> Listed | None:
        """The list that is kept, unless a change was heard of since: another process may have kept it before that."""
        return self._shelves.get(place) if self._kept else None

    @property
    def recent(self) -> Listed | None:
        """The list that was seen last, unless it may have changed since.

        It may not for as long as the settings or the server say. Where the settings leave that to the server, and it
        tells of changes, a list that was asked for while they are heard holds without a notice for a while, too.
        """
        last = self._last
        if self._accounts is not None and self._last_place != self._place:
            return None
        until = self._heard_until if self._hears else self._last_until
        return last if last is not None and self._shelves.clock() < until else None

    def _remembered(self, listed: Listed, place: str, *, heard: bool = False) -> Listed:
        self._last, self._last_place, self._kept = listed, place, True
        self._last_until = self._heard_until = listed.fresh_until
        if heard and self.settings.cache is None:
            self._heard_until = max(listed.fresh_until, listed.read_at + self._shelves.hintless)
        return listed

    async def _ask(self) -> Listed:
        place, heard = self._place, self._hears
        try:
            client, found = await self._listing_of()
        except CallFailed as error:
            self.redaction.error(error)
            raise refused(error, self.settings, by_token=self._by_token) from error
        except LocalFault as fault:
            raise LocalFault(_ELSEWHERE) from fault
        now, hints, stale = self._shelves.clock(), self._notices.hints, self._notices.stale
        kept_for = lifetime(hints, setting=self.settings.cache, hintless=self._shelves.hintless)
        scopes = [hint.scope for hint in hints]
        listed = Listed(
            tools=tuple((tool.name, bytes(tool.raw or b"")) for tool in found),
            left_out=tuple((item.name, item.limit or "") for item in found.excluded),
            notes=tuple(reveal(self.redaction.text(note), of="name")[:_LONGEST_NOTE] for note in found.warnings),
            revision=client.server.revision,
            read_at=now,
            # What changed once more while it was read for the last time is good for who waits for it, and nobody else.
            fresh_until=now if stale else now + kept_for,
            private="private" in scopes or (self._secret and set(scopes) != {"public"}),
        )
        self._remembered(listed, place, heard=heard and not stale)
        self._answers += 1
        if place == self._place:  # else somebody logged in, or out, while it was read
            self._shelves.put(place, listed, of=self.settings)
        self._listen()
        return listed

    async def _listing_of(self) -> tuple[Client, Listing[Tool]]:
        """The client, and what its server lists: nothing, where it does not know the question."""
        deadline = self._deadline()
        client = await self.client(deadline)
        try:
            return client, await client.list_tools(fresh=True, deadline=deadline)
        except RemoteError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
        none: Listing[Tool] = Listing()
        none.warnings = (NO_TOOLS,)
        return client, none

    @property
    def _place(self) -> str:
        """What the list is kept by now: where a stored account calls, never beyond a change of the accounts."""
        if self._accounts is None:
            return self.key
        try:
            found = os.stat(self._accounts)  # noqa: PTH116 - asked before every call
        except OSError:
            return f"{self.key} without account"
        return f"{self.key} {found.st_mtime_ns} {found.st_size} {found.st_ino}"

    def _deadline(self, spent: float = 0.0) -> float:
        return asyncio.get_running_loop().time() + self.settings.timeout - spent

    # --- calls

    async def call(self, tool: str, arguments: dict[str, Any], *, spent: float = 0.0) -> Succeeded[Any] | Refused:
        """The outcome of a call. Waiting for a turn is part of its time.

        It is never a question: what is declared is answered by `Askers`, and the client refuses what is not declared.

        Args:
            spent: Seconds of its time that are over, less than all of it.

        Raises:
            CallFailed: There is none.
        """
        outcome: Any
        if not self._connected or not self._turns.take():
            outcome = await self.ask(
                lambda client, deadline: client.try_call_tool(tool, arguments, deadline=deadline), spent=spent
            )
            return outcome  # type: ignore[no-any-return]
        try:  # a turn that is free on a connection that stands: without the price of waiting for either
            outcome = await self._client.try_call_tool(tool, arguments, timeout=self.settings.timeout - spent)
            return outcome  # type: ignore[no-any-return]
        except LocalFault as fault:
            raise LocalFault(_ELSEWHERE) from fault
        except Exception as error:
            self.redaction.error(error)
            raise
        finally:
            self._turns.give()
            self._rested(self)

    async def ask(self, question: Callable[[Client, float], Any], *, spent: float = 0.0) -> Any:
        """Any other question to the server, with the same bounds."""
        deadline = self._deadline(spent)
        await self._turn(deadline)
        try:
            return await question(await self.client(deadline), deadline)
        except LocalFault as fault:
            raise LocalFault(_ELSEWHERE) from fault
        except Exception as error:
            self.redaction.error(error)
            raise
        finally:
            self._turns.give()
            self._rested(self)

    async def _turn(self, deadline: float) -> None:
        """Wait for a turn."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._turns.wait()
        except TimeoutError:
            what = f"no turn within timeout={self.settings.timeout:g}: calls={self.settings.limits.calls}"
            raise DeadlineExceeded(what, evidence=Evidence.NOT_SENT) from None

    # --- what is said unasked

    def _changed(self) -> None:
        """The list changed, says the server. However often it says so, the list is asked for when it is needed."""
        self.heard["changes"] += 1
        self._last = None
        if self._kept:  # else it was dropped already: there may be many notices
            self._kept = False
            self._shelves.drop(self._place)

    def _logged(self, _: LogMessage) -> None:
        self.heard["logs"] += 1
        if self.heard["logs"].bit_count() == 1:  # 1, 2, 4, 8, …: a flood makes a few lines
            log.debug("the server %r has sent %d log messages", self.settings.name, self.heard["logs"])

    def _listen(self) -> None:
        if self._listens and self._listener is None:
            self._listener = asyncio.ensure_future(self._hear())

    async def _hear(self) -> None:
        """Listen for changes, where the server tells them. Where it does not, the list's lifetime has to do."""
        with contextlib.suppress(CallFailed):
            client = self._client
            face = client.server if client.server.capabilities is not None else await client.discover()
            offered = None if face.capabilities is None else face.capabilities.tools
            if offered and offered.get("listChanged") is True:
                async with client.listen(tools=True, reconnect=True) as events:
                    self._hears = True
                    try:
                        async for _ in events:
                            pass  # the client told `Notices` already, and tells it after an interruption, too
                    finally:
                        self._hears = False


def _looked_at(opened: asyncio.Task[Any]) -> None:
    """Look at how connecting ended, so that nothing is logged where everybody who waited for it has gone."""
    if not opened.cancelled():
        opened.exception()
