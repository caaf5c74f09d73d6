"""Changes of a server as they happen: `async with client.listen(...) as events`.

A change that waits to be read is not told twice, so what waits is bounded by what can change. In the stateless era this
is one long request; in the handshake era the same events are gathered from the session's notices. Only what the server
agreed to tell is told, and one that agrees to nothing is an error. A graceful end by the server ends the iteration, of
everybody who iterates, and a connection that is lost raises. Where that was asked for, both are listened to again, as
long as what fails may pass.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcprelay.client import failure, misuse
from mcprelay.client.notice import CANCELLED, UPDATED
from mcprelay.client.retry import Retry
from mcprelay.errors import CallFailed, CallLimitExceeded, ConfigurationError, Evidence, LocalFault, RemoteError
from mcprelay.types import SubscriptionFilter
from mcprelay.wire import percent
from mcprelay.wire.field import shown
from mcprelay.wire.jsonrpc import METHOD_NOT_FOUND
from mcprelay.wire.params import AcknowledgedParams

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType

    from mcprelay.client.call import Call

LISTEN = "subscriptions/listen"
AGAIN = Retry(backoff=0.5, most=30.0)
"""After which waits it is listened again."""
_ASKED_MOST = 600.0
"""How many seconds a server may ask to wait: it could else name a time that never comes."""


class ToolsChanged(Struct, frozen=True):
    """The list of tools changed."""


class PromptsChanged(Struct, frozen=True):
    """The list of prompts changed."""


class ResourcesChanged(Struct, frozen=True):
    """The list of resources or of templates changed."""


class ResourceUpdated(Struct, frozen=True):
    """What is in a resource changed. It may lie below one that was asked for."""

    uri: str


Event: TypeAlias = ToolsChanged | PromptsChanged | ResourcesChanged | ResourceUpdated

_EVENTS: dict[str, Event] = {
    "notifications/tools/list_changed": ToolsChanged(),
    "notifications/prompts/list_changed": PromptsChanged(),
    "notifications/resources/list_changed": ResourcesChanged(),
}
_decode_acknowledged = msgspec.json.Decoder(AcknowledgedParams).decode


class _Uri(Struct):
    uri: str


_decode_uri = msgspec.json.Decoder(_Uri).decode


class Listening:
    """What `client.listen(...)` gives: a context, and inside it an iterator of events.

    Attributes:
        wanted: What was asked for.
        honored: What the server agreed to tell, which may be less. In the handshake era that is what it declares; list
            changes that it tells without having declared so, as many do, are told all the same.
        ended: Whether the server ended it gracefully, and it is not listened to again.
    """

    def __init__(
        self,
        wanted: SubscriptionFilter,
        *,
        begin: Callable[[Listening], Coroutine[Any, Any, None]],
        left: Callable[[Listening], None],
        missed: Callable[[str, str | None], None],
        pending_events: float,
        reconnections: float | None,
    ) -> None:
        if wanted == SubscriptionFilter():
            raise ConfigurationError("listen: say what to listen for: tools=, prompts=, resources= or updates=")
        _check_wanted(wanted)
        self.wanted = wanted
        self.honored = SubscriptionFilter()
        self._hears = SubscriptionFilter()
        self._named_uris: tuple[str, ...] = ()
        self.ended = False
        self._begin = begin
        self._left = left
        self._missed = missed
        self._most = pending_events
        self._reconnections = reconnections  # None: it is not listened to again
        self._waiting: dict[Event, None] = {}
        self._wake = asyncio.Event()
        self._acknowledged: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._over = False
        self._since: float | None = None  # when the server agreed to what is listened to now
        self._task: asyncio.Task[None] | None = None

    # --- the user's side

    async def __aenter__(self) -> Self:
        """Begin, and wait until the server has agreed.

        Raises:
            RemoteError: It does not tell of changes, or of none that was asked for.
            CallFailed: It did not agree for another reason.
            LocalFault: The client is open in another event loop, or in the process that this one was forked from.
        """
        if self._task is not None:
            raise LocalFault("a Listening is entered once; call client.listen() again")
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a fork goes on in the middle of a coroutine, and without a loop: the client says so
            try:
                await self._begin(self)
            finally:
                self._left(self)
            raise
        self._acknowledged = loop.create_future()
        self._task = loop.create_task(self._run())
        try:
            await asyncio.wait([self._acknowledged, self._task], return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            await self.aclose()
            raise
        if not self._acknowledged.done() and self._error is not None:
            raise self._error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Listen no more, and tell the server so."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    def __aiter__(self) -> Listening:
        return self

    async def __anext__(self) -> Event:
        """The next event, in the order in which the changes were first told.

        Raises:
            StopAsyncIteration: The server ended it gracefully, or it was closed here.
            ConnectionLost: It was cut off.
            CallFailed: It could not begin again after it was cut off.
            CallLimitExceeded: More different events wait than `pending_events`.
            LocalFault: It was not entered.
        """
        if self._task is None:
            raise LocalFault("a Listening is entered before it is read: async with client.listen(...) as events")
        while not self._waiting:
            if self._error is not None:
                raise self._error
            if self._over:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        event = next(iter(self._waiting))
        del self._waiting[event]
        return event

    # --- the client's side

    async def _run(self) -> None:
        vain, wait = -1, 0.0
        loop = asyncio.get_running_loop()
        try:
            while True:
                self._since = None
                try:
                    await self._begin(self)
                    if self._reconnections is None:
                        self.ended = True
                        return
                    ending: CallFailed = failure.deaf("the server ended the subscription")
                except CallFailed as error:
                    ending = error
                # Beginning anew is in vain, too, where it does not last as long as was waited for it.
                vain = 0 if vain < 0 or self._lasted(loop.time(), wait) else vain + 1
                if not self._may_repeat(ending, vain):
                    self._error = ending
                    return
                wait = min(AGAIN.wait(vain + 1, ending), _ASKED_MOST)
                await asyncio.sleep(wait)
        except Exception as error:  # noqa: BLE001 - it is for whoever listens, and nobody else sees this task
            self._error = error
        finally:
            self._over = True
            self._left(self)
            self._wake.set()

    def _lasted(self, now: float, wait: float) -> bool:
        """Whether the server had agreed, and for as long as was waited for it."""
        return self._since is not None and now - self._since >= wait

    def _may_repeat(self, error: CallFailed, vain: int) -> bool:
        """What may pass is tried again, where that was asked for and the server has once agreed; not for ever."""
        established = self._acknowledged is not None and self._acknowledged.done()
        most = self._reconnections
        if most is None or not established or not _may_pass(error):
            return False
        if vain < most:
            return True
        error.args = (f"{error}; it was tried again {vain} times in a row: reconnections={most:g}",)
        return False

    def promised(self, honored: SubscriptionFilter, *, besides: SubscriptionFilter | None = None) -> None:
        """From now on this may be told.

        Args:
            honored: What the server promises.
            besides: What it may tell without having promised it.
        """
        self.honored = self._hears = _both(self.wanted, honored)
        self._named_uris = tuple(map(_plain, self.honored.resource_subscriptions))
        if besides is not None:
            self._hears = _either(self.honored, _both(self.wanted, besides))

    def agreed(self) -> None:
        """The server has agreed. After an interruption everything may have changed meanwhile, so everything is told."""
        if self._hears == SubscriptionFilter():
            self.fail(untold(self.wanted))
            return
        if self._since is None:
            self._since = asyncio.get_running_loop().time()
        if self._acknowledged is not None and not self._acknowledged.done():
            self._acknowledged.set_result(None)
            return
        for event in _everything(self._hears):
            self._missed(*_notice(event))
            self.put(event)

    def put(self, event: Event) -> None:
        """Tell an event, unless it waits to be read already."""
        if self._error is not None or event in self._waiting:
            return
        if len(self._waiting) >= self._most:
            what = "listen: the number of different events that wait to be read"
            self.fail(CallLimitExceeded("pending_events", self._most, what=what, evidence=Evidence.ANSWERED))
            return
        self._waiting[event] = None
        self._wake.set()

    def fail(self, error: CallFailed) -> None:
        """End it from this side: the server is told, and whoever reads gets the error."""
        self._error = error
        if self._task is not None:
            self._task.cancel()

    def told(self, event: Event | None) -> bool:
        """Tell an event that came on a subscription, and say whether it belongs there: servers send no others."""
        if (
            event is None
            or not self._wants(event)
            or (isinstance(event, ResourceUpdated) and not self.names(event.uri))
        ):
            return False
        self.put(event)
        return True

    def overheard(self, event: Event) -> None:
        """Tell an event of a session, in which nothing says who asked for it."""
        if self._wants(event):
            self.put(event)

    def _wants(self, event: Event) -> bool:
        hears = self._hears
        if isinstance(event, ToolsChanged):
            return hears.tools_list_changed
        if isinstance(event, PromptsChanged):
            return hears.prompts_list_changed
        if isinstance(event, ResourcesChanged):
            return hears.resources_list_changed
        return bool(hears.resource_subscriptions)

    def names(self, uri: str) -> bool:
        """Whether it asked for the updates of this resource, or of one that it lies below (`uri` of the schema)."""
        told = _plain(uri)
        return any(
            told == asked or told.startswith((f"{asked}/", f"{asked}?", f"{asked}#")) for asked in self._named_uris
        )


def _check_wanted(wanted: SubscriptionFilter) -> None:
    """What can be asked for; a constructor looks at no types."""
    misuse.switch("tools", wanted.tools_list_changed)
    misuse.switch("prompts", wanted.prompts_list_changed)
    misuse.switch("resources", wanted.resources_list_changed)
    for uri in wanted.resource_subscriptions:
        if not uri or uri != uri.encode(errors="ignore").decode():
            raise ConfigurationError(f"listen: updates= names resources by their URIs, and {shown(uri)} is none")


def _plain(uri: str) -> str:
    """A URI in a spelling that does not depend on whose it is (RFC 3986 section 6.2.2)."""
    scheme, _, rest = uri.partition(":")
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = f"//{authority.lower()}{slash}{path}"
    return f"{scheme.lower()}:{percent.decode(rest) or rest}".rstrip("/")


def acknowledgement(params: Raw | UnsetType) -> SubscriptionFilter:
    """What a server agrees to tell.

    Raises:
        ValueError: It is malformed.
    """
    return _decode_acknowledged(b"{}" if params is UNSET else params).notifications


def _may_pass(error: CallFailed) -> bool:
    """Whether it may be otherwise later: no connection, one that was lost, or a server that is not ready."""
    status = getattr(error, "status", None)
    if status is not None:
        from mcprelay.client.stream import FOR_THE_MOMENT

        return status in FOR_THE_MOMENT
    return error.evidence is not Evidence.ANSWERED


def event_of(method: str, params: Raw | UnsetType) -> Event | None:
    """The event that a notice tells, or None where it tells none.

    Raises:
        ValueError: It is malformed.
    """
    if method == UPDATED:
        return ResourceUpdated(_decode_uri(b"{}" if params is UNSET else params).uri)
    return _EVENTS.get(method)


def _everything(honored: SubscriptionFilter) -> list[Event]:
    events: list[Event] = []
    if honored.tools_list_changed:
        events.append(ToolsChanged())
    if honored.prompts_list_changed:
        events.append(PromptsChanged())
    if honored.resources_list_changed:
        events.append(ResourcesChanged())
    return events + [ResourceUpdated(uri) for uri in honored.resource_subscriptions]


def _notice(event: Event) -> tuple[str, str | None]:
    """The notice that would have told an event: its method, and its URI."""
    if isinstance(event, ResourceUpdated):
        return UPDATED, event.uri
    return next(method for method, one in _EVENTS.items() if one == event), None


def _both(wanted: SubscriptionFilter, honored: SubscriptionFilter) -> SubscriptionFilter:
    """What was asked for and is agreed to. More than that was not asked for; URIs are spelled as the server does."""
    uris = {_plain(uri) for uri in wanted.resource_subscriptions}
    return SubscriptionFilter(
        tools_list_changed=wanted.tools_list_changed and honored.tools_list_changed,
        prompts_list_changed=wanted.prompts_list_changed and honored.prompts_list_changed,
        resources_list_changed=wanted.resources_list_changed and honored.resources_list_changed,
        resource_subscriptions=tuple(uri for uri in honored.resource_subscriptions if _plain(uri) in uris),
    )


def _either(one: SubscriptionFilter, other: SubscriptionFilter) -> SubscriptionFilter:
    return SubscriptionFilter(
        tools_list_changed=one.tools_list_changed or other.tools_list_changed,
        prompts_list_changed=one.prompts_list_changed or other.prompts_list_changed,
        resources_list_changed=one.resources_list_changed or other.resources_list_changed,
        resource_subscriptions=one.resource_subscriptions or other.resource_subscriptions,
    )


def untold(wanted: SubscriptionFilter, why: str = "it agrees to none of it") -> RemoteError:
    """The server does not tell of what somebody wants to hear."""
    kinds = {
        "tools": wanted.tools_list_changed,
        "prompts": wanted.prompts_list_changed,
        "resources": wanted.resources_list_changed,
        "updates": bool(wanted.resource_subscriptions),
    }
    asked = ", ".join(kind for kind, is_wanted in kinds.items() if is_wanted)
    return RemoteError(METHOD_NOT_FOUND, f"the server does not tell of changes ({asked}: {why})", method=LISTEN)


def is_end(method: str) -> bool:
    """Whether a notice ends a subscription."""
    return method == CANCELLED


def unacknowledged(call: Call) -> CallFailed:
    """The server ended a subscription before it agreed to one."""
    return failure.invalid(call, "the server ended the subscription without acknowledging it")


def misacknowledged(call: Call, error: ValueError, params: Raw | UnsetType) -> CallFailed:
    """The server agreed to something that nobody can read."""
    said = b"" if params is UNSET else bytes(params)
    return failure.invalid(call, f"the acknowledgement of the subscription cannot be read: {error}", said)
