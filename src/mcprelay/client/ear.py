"""How a client listens, in each era: one long request, or the session's own notices and subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcprelay.client import failure, handshake
from mcprelay.client.listening import (
    LISTEN,
    Listening,
    ResourceUpdated,
    acknowledgement,
    event_of,
    is_end,
    misacknowledged,
    unacknowledged,
    untold,
)
from mcprelay.client.notice import ACKNOWLEDGED
from mcprelay.client.progress import logger
from mcprelay.errors import CallFailed, RemoteError, told
from mcprelay.revisions import Era
from mcprelay.types import SubscriptionFilter
from mcprelay.wire.jsonrpc import METHOD_NOT_FOUND

if TYPE_CHECKING:
    from mcprelay.client.call import Call
    from mcprelay.client.caller import Caller
    from mcprelay.client.link import Link

_encode = msgspec.json.Encoder().encode


class Ear:
    """Everything that one client listens to.

    Attributes:
        open: What is listened to, also while that waits to begin again.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._in_session: dict[Listening, None] = {}
        self.open: dict[Listening, None] = {}

    async def listen(self, listening: Listening) -> None:
        """Serve a listening until it ends gracefully.

        Raises:
            CallFailed: It does not begin, or is cut off.
        """
        self.open[listening] = None
        link = await self._known()
        if link.revision is not None and link.revision.era is Era.STATELESS:
            await self._by_request(listening, link)
        else:
            await self._by_session(listening, link)

    def leave(self, listening: Listening) -> None:
        """It is over, and is not begun again."""
        self.open.pop(listening, None)

    async def _known(self) -> Link:
        """A link of which it is known what it speaks."""
        call = self._caller.call(handshake.DISCOVER)
        link = await self._caller.connection.link(call)
        if not link.settled:
            await self._caller.send(call)
        return link

    async def _by_request(self, listening: Listening, link: Link) -> None:
        call = self._caller.call(LISTEN, b'"notifications":%b' % _encode(listening.wanted))
        call.patient = False
        agreed = False

        def acknowledged(params: Raw | UnsetType) -> None:
            nonlocal agreed
            if agreed:
                link.peer.dropped += 1
                return
            try:
                honored = acknowledgement(params)
            except ValueError as error:
                listening.fail(misacknowledged(call, error, params))
                return
            agreed = True
            call.deadline = None
            if (pending := link.owed(call)) is not None:
                link.peer.extend(pending, None)
            listening.promised(honored)
            listening.agreed()

        def noticed(method: str, params: Raw | UnsetType) -> None:
            if is_end(method):
                link.finish(call)
            elif method == ACKNOWLEDGED:
                acknowledged(params)
            elif not listening.told(event_of(method, params)):
                link.peer.dropped += 1
                logger.debug("%s came on a subscription that did not ask for it", method)

        call.notice = noticed
        try:
            await link.call(call)
        except RemoteError as error:
            if error.code == METHOD_NOT_FOUND:
                raise untold(listening.wanted, told(error.message)) from error
            raise
        if not agreed:
            raise unacknowledged(call)

    # --- the handshake era

    def heard(self, method: str, uri: str | None) -> None:
        """A notice of the session. The update of a resource is for those who asked for it, as far as that is told."""
        if not self._in_session:
            return
        try:
            event = event_of(method, Raw(_encode({"uri": uri})) if uri is not None else UNSET)
        except ValueError:
            logger.debug("%s is malformed", method)
            return
        if event is not None:
            named = [one for one in self._in_session if isinstance(event, ResourceUpdated) and one.names(event.uri)]
            for listening in named or list(self._in_session):
                listening.overheard(event)

    async def _by_session(self, listening: Listening, link: Link) -> None:
        """Serve a listening in a session and, when it was lost, in the one after it."""
        link.stand()
        self._in_session[listening] = None
        generation = link.generation
        try:
            while link.revision is None or link.revision.era is Era.HANDSHAKE:
                generation = link.generation
                listening.promised(_honored(link, listening.wanted), besides=_offered(link))
                for uri in listening.honored.resource_subscriptions:
                    await self._caller.send(self._subscription("resources/subscribe", uri))
                listening.agreed()
                await link.until_renewed(generation)
            raise failure.deaf("the server speaks another revision now")
        finally:
            del self._in_session[listening]
            if link.alive and link.settled and link.generation == generation:
                await self._unsubscribe(listening.honored.resource_subscriptions, link)

    def _subscription(self, method: str, uri: str, *, deadline: float | None = None) -> Call:
        return self._caller.call(method, b'"uri":%b' % _encode(uri), options={"deadline": deadline})

    async def _unsubscribe(self, uris: tuple[str, ...], link: Link) -> None:
        """Take back the subscriptions that nobody else has, and soon."""
        due = link.loop.time() + link.settings.close_timeout
        for uri in uris:
            if any(uri in other.honored.resource_subscriptions for other in self._in_session):
                continue
            try:
                await self._caller.send(self._subscription("resources/unsubscribe", uri, deadline=due))
            except CallFailed as error:
                logger.debug("%s", error)


def _offered(link: Link) -> SubscriptionFilter:
    """The lists that a server of the handshake era has. Many tell that they changed without having declared so."""
    capabilities = link.face.capabilities
    if capabilities is None:
        return SubscriptionFilter()
    return SubscriptionFilter(
        tools_list_changed=capabilities.tools is not None,
        prompts_list_changed=capabilities.prompts is not None,
        resources_list_changed=capabilities.resources is not None,
    )


def _honored(link: Link, wanted: SubscriptionFilter) -> SubscriptionFilter:
    """What a server of the handshake era will tell, by its capabilities."""
    capabilities = link.face.capabilities

    def declares(member: dict[str, Any] | None, what: str) -> bool:
        return member is not None and member.get(what) is True

    if capabilities is None:
        return SubscriptionFilter()
    resources = capabilities.resources
    return SubscriptionFilter(
        tools_list_changed=wanted.tools_list_changed and declares(capabilities.tools, "listChanged"),
        prompts_list_changed=wanted.prompts_list_changed and declares(capabilities.prompts, "listChanged"),
        resources_list_changed=wanted.resources_list_changed and declares(resources, "listChanged"),
        resource_subscriptions=wanted.resource_subscriptions if declares(resources, "subscribe") else (),
    )
