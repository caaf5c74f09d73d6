"""Subscriptions: telling one client of changes, in both eras, for as long as it wants to hear of them."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING

from mcprelay.errors import LimitExceeded
from mcprelay.server.observation import listening_to
from mcprelay.server.subscription import Listener, notice
from mcprelay.types import EmptyResult, SubscriptionFilter
from mcprelay.wire import jsonrpc
from mcprelay.wire.params import SUBSCRIPTION_ID, AcknowledgedParams

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.server import Server
    from mcprelay.server.call import Call
    from mcprelay.server.subscription import Change


class CallerListener(Listener):
    """A listener that hears nothing of resources that its caller may not see."""

    __slots__ = ("hides",)
    hides: Callable[[str], bool] | None

    def wants(self, change: Change) -> bool:
        """Whether it asked to hear of that, and may."""
        return super().wants(change) and (self.hides is None or change[1] is None or not self.hides(change[1]))


async def listen(server: Server, call: Call) -> EmptyResult:
    """Acknowledge first, then tell what changes until either side ends it (patterns/subscriptions)."""
    honored = _honored(server, call.params.notifications)
    uris = honored.resource_subscriptions
    _check_number(server, len(uris))
    meta = jsonrpc.encode({SUBSCRIPTION_ID: call.id})
    listener = CallerListener.of(honored)
    listener.hides = partial(server.catalog.hides, call.principal) if uris else None
    listening = listening_to(server.events, honored) if call.observed else None
    followed = await _followed(server, uris) if uris and server.follow else None
    server.changes.add(listener)
    try:
        acknowledged = jsonrpc.splice(jsonrpc.encode(AcknowledgedParams(notifications=honored)), b'"_meta":' + meta)
        call.link.notify(jsonrpc.notification("notifications/subscriptions/acknowledged", acknowledged))
        while changed := await listener.changes():
            for change in changed:
                call.link.notify(notice(change, meta))
            await call.link.drain()
    finally:
        server.changes.discard(listener)
        if listening is not None:
            listening.close()
        if followed is not None:
            await followed.aclose()
    return EmptyResult(meta={SUBSCRIPTION_ID: call.id})


def _check_number(server: Server, subscriptions: int) -> None:
    allowed = server.limits.subscriptions
    if subscriptions > allowed:
        what = "the number of resources to listen to"
        raise LimitExceeded("subscriptions", allowed, actual=subscriptions, what=what)


def _check_size(server: Server, uris: tuple[str, ...]) -> None:
    allowed, size = server.limits.session_bytes, sum(map(len, uris))
    if size > allowed:
        raise LimitExceeded("session_bytes", allowed, actual=size, what="what the session subscribes to")


def _honored(server: Server, wanted: SubscriptionFilter) -> SubscriptionFilter:
    """The part of a filter that a server can honor."""
    offered = server.capabilities
    tools, prompts, resources = offered.tools or {}, offered.prompts or {}, offered.resources or {}
    return SubscriptionFilter(
        tools_list_changed=wanted.tools_list_changed and bool(tools.get("listChanged")),
        prompts_list_changed=wanted.prompts_list_changed and bool(prompts.get("listChanged")),
        resources_list_changed=wanted.resources_list_changed and bool(resources.get("listChanged")),
        resource_subscriptions=wanted.resource_subscriptions if resources.get("subscribe") else (),
    )


async def _followed(server: Server, uris: tuple[str, ...]) -> contextlib.AsyncExitStack:
    """Let those who have to follow these resources follow them, until what this gives is closed."""
    stack = contextlib.AsyncExitStack()
    for follow in server.follow:
        try:
            await stack.enter_async_context(follow(uris))
        except Exception:
            server.logger.exception("resources that somebody subscribed to cannot be followed")
    return stack


async def subscribe(server: Server, call: Call) -> EmptyResult:
    """Remember a subscription of a session."""
    session = call.session
    assert session is not None, "only sessions subscribe"  # noqa: S101 - the transport's promise
    uri = call.params.uri
    if uri not in session.subscriptions and not server.catalog.hides(call.principal, uri):
        _check_number(server, len(session.subscriptions) + 1)
        _check_size(server, (*session.subscriptions, uri))
        call.amend(lambda session: session.subscriptions.add(uri))
        if server.follow and uri not in server.followed:
            server.followed.add(uri)
            await server.keep(await _followed(server, (uri,)))
    return EmptyResult()


async def unsubscribe(_server: Server, call: Call) -> EmptyResult:
    """Forget a subscription of a session."""
    session = call.session
    assert session is not None, "only sessions subscribe"  # noqa: S101 - the transport's promise
    uri = call.params.uri
    if uri in session.subscriptions:
        call.amend(lambda session: session.subscriptions.discard(uri))
    return EmptyResult()
