"""What a client reads of a server again and again: lists and resources, from the cache where that is fresh."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from mcprelay.client import failure, identity
from mcprelay.client.answer import question
from mcprelay.client.argument import encode
from mcprelay.client.cache import Cache, Reading
from mcprelay.client.listing import Kind, Listing, Walk
from mcprelay.client.progress import logger
from mcprelay.revisions import Era

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.client.call import Call
    from mcprelay.client.caller import Caller
    from mcprelay.client.option import CallOptions
    from mcprelay.client.party import Party
    from mcprelay.client.target import Target

T = TypeVar("T")


class _Freshness(Struct, rename="camel"):
    ttl_ms: Any = None
    cache_scope: Any = None


_decode_freshness = msgspec.json.Decoder(_Freshness).decode


class Shelf:
    """Reads and keeps results of one server.

    What is asked with a `meta=` of the caller's own is neither answered from what is kept nor kept, because what it
    means to the server is not known (utilities/caching, "Cache Key").

    Args:
        caller: Carries the calls through.
        target: The server, and for whom it is reached.
        party: What the client says of itself.
        cache: Gives where fresh results are kept.
    """

    def __init__(self, caller: Caller, target: Target, party: Party, *, cache: Callable[[], Cache]) -> None:
        self._caller = caller
        self._target = target
        self._party = party
        self._cache = cache

    @cached_property
    def place(self) -> str:
        """What the server is called in the cache: the same for clients that it answers alike."""
        parts = self._target.parts
        return identity.own() if parts is None else identity.digest([parts, *self._party.manner])

    def changed(self, notice: str, uri: str | None) -> None:
        """The server said that something changed."""
        cache = self._cache()
        cache.interrupt(self.place, notice, uri)
        cache.changed(self.place, notice, uri)

    def walk(
        self,
        kind: Kind[T],
        *,
        admit: Callable[[T], str | None],
        done: Callable[[Listing[T]], None],
        fresh: bool = False,
        options: CallOptions,
    ) -> Walk[T]:
        """A list that is about to be read."""

        async def fetch(cursor: str | None) -> tuple[Raw, Call | None]:
            members = b"" if cursor is None else b'"cursor":%b' % encode(cursor)
            call = self._caller.call(kind.method, members, options=options)
            kept = None if fresh else await self.recall(call, cursor, options)
            if kept is not None:
                return kept, None
            reading = self.begin(kind.method, cursor)
            result = await self._caller.send(call)
            if self._caller.read(call, result, question) is not None:
                raise failure.invalid(call, "a list cannot be answered with a question")
            self.keep(reading, result, call, options)
            return result, call

        return Walk(
            kind,
            settings=self._caller.settings,
            fetch=fetch,
            drop=lambda: self._cache().drop(self.place, kind.method),
            begin=lambda: self.begin(kind.method, None),
            admit=admit,
            done=done,
        )

    def begin(self, method: str, key: str | None) -> Reading:
        """What is asked for from now on, and goes stale when the server says that it changed."""
        return self._cache().begin(self.place, method, key)

    async def recall(self, call: Call, key: str | None, options: CallOptions) -> Raw | None:
        """What would answer a call and is still fresh, or None."""
        cache, place = self._cache(), self.place
        if options.get("meta") is not None or not cache.holds(place, call.method, key):
            return None
        return cache.get(place, call.method, key, authorization=await self._whose(call))

    async def _whose(self, call: Call) -> str | None:
        """Who would ask now; None where that cannot be had, which the call itself will say."""
        try:
            async with asyncio.timeout_at(call.deadline):
                return await self._target.whose(self._caller.connection.current)
        except Exception as error:  # noqa: BLE001 - it is the user's, and it is asked again for the call
            logger.debug("%s: it is not known who asks: %r", call.method, error)
            return None

    def keep(self, reading: Reading, result: Raw, call: Call, options: CallOptions) -> None:
        """Keep a result for as long as its server says that it is fresh, for whom it was sent to."""
        if options.get("meta") is not None:
            return
        try:
            freshness = _decode_freshness(result)
        except msgspec.DecodeError:  # a number that is too large
            freshness = _Freshness()
        ttl, scope = freshness.ttl_ms, freshness.cache_scope if self._target.public else None
        whose = self._target.sent(call)
        link = self._caller.connection.current
        if link is not None and link.revision is not None and link.revision.era is Era.HANDSHAKE:
            ttl = None  # a session may be answered unlike any other, and says nothing of freshness
        elif reading.stale or (whose is None and scope != "public"):
            ttl = 0
        self._cache().put(
            reading.server, reading.method, reading.key, result, ttl_ms=ttl, scope=scope, authorization=whose
        )
