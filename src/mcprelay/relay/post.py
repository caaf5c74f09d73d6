"""Where a guarded tool calls from: one server, for one principal, under the settings and pins of this moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec.structs import replace

from mcprelay.errors import CallFailed
from mcprelay.relay.errors import DefinitionRefused, NotTrusted
from mcprelay.relay.pins import define
from mcprelay.relay.redaction import Redaction, secrets_of
from mcprelay.relay.reveal import legible
from mcprelay.relay.selection import pin
from mcprelay.relay.settings import Secret
from mcprelay.relay.stations import Reached
from mcprelay.relay.unreached import unreached

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.client import Client
    from mcprelay.relay.budget import Ledger
    from mcprelay.relay.frame import Funnel
    from mcprelay.relay.listed import Listed
    from mcprelay.relay.lock import Lock
    from mcprelay.relay.lockfile import LockFile
    from mcprelay.relay.pins import Definition
    from mcprelay.relay.selection import Pinned
    from mcprelay.relay.settings import ServerSettings, TokenSource
    from mcprelay.relay.station import Station
    from mcprelay.relay.stations import Stations


class Standing(NamedTuple):
    """By which lock and which list a tool was found to be what was reviewed and offered, and where it is called.

    `spent` is how many seconds of the call the function for its token took.
    """

    station: Station
    lock: Lock
    listed: Listed
    spent: float = 0.0


class Post:
    """See the module.

    Args:
        settings: The server.
        stations: Where it is reached.
        lock: What was reviewed.
        token: In place of the configured one.
        principal: For whom calls are made.
        funnels: Makes the way of its texts to a model, on the account of a run.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        stations: Stations,
        lock: LockFile,
        token: Secret | TokenSource | None,
        principal: Any,
        funnels: Callable[[ServerSettings, Ledger, Redaction | None], Funnel],
    ) -> None:
        self.settings = settings
        self.principal = principal
        self._stations = stations
        self._lock = lock
        self._token = token
        self._funnels = funnels
        self._redaction = _redaction(settings, token)
        self._station: Station | None = None

    def calls_like(self, other: Post) -> bool:
        """Whether a call from here and one from there are the same call."""
        mine, theirs = (replace(post.settings, where="") for post in (self, other))  # which say the same anywhere
        if mine != theirs:
            return False
        return (self._token, self.principal, self._stations) == (other._token, other.principal, other._stations)

    def funnel(self, ledger: Ledger) -> Funnel:
        """The way of its texts to a model."""
        return self._funnels(self.settings, ledger, self._redaction)

    def require(self, tool: str) -> None:
        """See that a tool may be used, before anything is sent.

        Raises:
            NotTrusted: It may not.
            SettingWrong: The relay is closed.
        """
        name, trust = self.settings.name, self.settings.allow
        if self._stations.closed:
            self._stations.require_open(name)
        if not trust.everything and not trust.allows(tool):
            trust.require(name)
            raise NotTrusted(
                f"allow of the server {name!r} does not name {legible(tool)}, so it is not called; name it there, if it"
                " may be",
                server=name,
            )

    async def reached(self) -> Reached:
        """The server's station. Where a function gives the token, it is asked for anew.

        Raises:
            TokenFailed: The function failed, took longer than a call may, or gave no token.
            SettingWrong: The relay is closed.
        """
        known = self._station
        if known is not None and not known.closed:
            return Reached(known)
        reached = await self._stations.of(self.settings, token=self._token)
        if self._redaction is not None:
            self._redaction.learn(reached.station.redaction.secrets)
        if not callable(self._token) and not callable(self.settings.token):
            self._station = reached.station
        return reached

    async def ask(self, question: Callable[[Client, float], Any], *, ledger: Ledger) -> Any:
        """Ask the server what is no call of a tool; the time for the token is part of the time for the answer.

        Args:
            ledger: What pays for the questions that the server asks on its part.
        """
        reached = await self.reached()
        answer = reached.station.ask(question, spent=reached.spent)
        return await reached.station.askers.charged(ledger, answer)

    @property
    def clock(self) -> Callable[[], float]:
        """The time in seconds."""
        return self._stations.shelves.clock

    def stands(self, before: Standing) -> bool:
        """Whether neither the lock nor the list is another one than when a tool was found to be still the same.

        Raises:
            LockUnreadable: The lock file cannot be read any more.
        """
        station, lock, listed, _ = before
        return (
            self._station is station and not station.closed and station.recent is listed and self._lock.lately() is lock
        )

    async def still(
        self, offered: Definition, *, pinned: Pinned, before: Standing | None, at: Standing | None = None
    ) -> Standing:
        """See that a definition is still what was reviewed and what was offered.

        Args:
            pinned: Whether it was pinned when it was offered. Then it has to be still: a lock file that has lost the
                section of its server says less than it did.
            before: What was found the last time. What still stands of it is not looked at again.
            at: Where this call has found itself already, for whose token nobody is asked again.

        Raises:
            DefinitionRefused: It is not, or the server has it no more.
            RelayError: The list had to be asked for again, and could not be had.
        """
        reached = Reached(at.station, at.spent) if at is not None and not at.station.closed else await self.reached()
        station = reached.station
        recent = station.recent or await station.listed()
        found = Standing(station, self._lock.lately(), recent, reached.spent)
        if before is not None and before.lock is found.lock and before.listed is recent:
            return found
        section = found.lock.section(self.settings.name)
        now = pin(offered, settings=self.settings, section=section, revision=recent.revision)
        if now == "new" or (now == "unpinned" and pinned == "pinned"):
            raise self._withdrawn(offered, now="unreviewed")
        for name, raw in recent.tools:
            if name == offered.name and _digest(raw) == offered.digest:
                return found
        raise self._withdrawn(offered, now="changed")

    def failed(self, error: Exception) -> Exception:
        """What a program gets that wants the failure of a call raised; as it is, where the server answered."""
        if not isinstance(error, CallFailed):
            return error
        by_token = self._token is not None or self.settings.token is not None
        return unreached(error, self.settings, by_token=by_token) or error

    def _withdrawn(self, offered: Definition, *, now: Literal["unreviewed", "changed"]) -> DefinitionRefused:
        """A tool that is not what it was when it was offered."""
        tool, server = legible(offered.name), self.settings.name
        if now == "unreviewed":
            return DefinitionRefused(
                f"{tool} of the server {server!r} is not in the lock file, or not any more, so it is not called;"
                f" `mcprelay lock {server}` reviews it",
                server=server,
                withdrawn="No review of this tool is on record any more, so this application has withdrawn it.",
            )
        return DefinitionRefused(
            f"{tool} of the server {server!r} has another definition there now, or none, so it is not called; ask for"
            " tools() again, whose report says what became of it",
            server=server,
            withdrawn="The server of this tool has changed it, or offers it no more, so this application has withdrawn"
            " it.",
        )


def _digest(raw: bytes) -> str:
    """The digest of a tool's own JSON; empty where it is no definition any more."""
    try:
        return define(raw).digest
    except DefinitionRefused:
        return ""


def _redaction(settings: ServerSettings, token: Secret | TokenSource | None) -> Redaction | None:
    """What takes secrets out of answers, where there are any: it costs every answer its time."""
    secrets = secrets_of(settings, token.value if isinstance(token, Secret) else None)
    return Redaction(secrets) if secrets or callable(token) or callable(settings.token) else None
