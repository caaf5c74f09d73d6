"""What a client reads of a server again and again: lists and resources, from the cache where that is fresh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from mcprelay.client import failure
from mcprelay.client.answer import question
from mcprelay.client.argument import encode
from mcprelay.client.cache import READ, Cache
from mcprelay.client.listing import Kind, Listing, Walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.client.call import Call
    from mcprelay.client.caller import Caller
    from mcprelay.client.option import CallOptions

T = TypeVar("T")


class _Freshness(Struct, rename="camel"):
    ttl_ms: Any = None
    cache_scope: Any = None


_decode_freshness = msgspec.json.Decoder(_Freshness).decode


class Shelf:
    """Reads and keeps results of one server.

    Args:
        caller: Carries the calls through.
        cache: Gives where fresh results are kept.
        server: What the server is called there.
        authorization: Whose private results are kept.

    Attributes:
        generation: Counts the changes that the server told of.
    """

    def __init__(self, caller: Caller, *, cache: Callable[[], Cache], server: str, authorization: Any) -> None:
        self._caller = caller
        self._cache = cache
        self._server = server
        self._authorization = authorization
        self.generation = 0

    def changed(self, notice: str, uri: str | None) -> None:
        """The server said that something changed."""
        self.generation += 1
        self._cache().changed(self._server, notice, uri)

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
            kept = None if fresh else self._recall(kind.method, cursor)
            if kept is not None:
                return kept, None
            members = b"" if cursor is None else b'"cursor":%b' % encode(cursor)
            call = self._caller.call(kind.method, members, **options)
            result = await self._caller.send(call)
            if self._caller.read(call, result, question) is not None:
                raise failure.invalid(call, "a list cannot be answered with a question")
            self.keep(kind.method, cursor, result)
            return result, call

        return Walk(
            kind,
            settings=self._caller.settings,
            fetch=fetch,
            drop=lambda: self._cache().drop(self._server, kind.method),
            generation=lambda: self.generation,
            admit=admit,
            done=done,
        )

    def _recall(self, method: str, key: str | None) -> Raw | None:
        return self._cache().get(self._server, method, key, authorization=self._authorization)

    def recall_resource(self, uri: str) -> Raw | None:
        """A resource that is still fresh, or None."""
        return self._recall(READ, uri)

    def keep(self, method: str, key: str | None, result: Raw) -> None:
        """Keep a result for as long as its server says that it is fresh."""
        try:
            freshness = _decode_freshness(result)
        except msgspec.DecodeError:  # a number that is too large
            freshness = _Freshness()
        self._cache().put(
            self._server,
            method,
            key,
            result,
            ttl_ms=freshness.ttl_ms,
            scope=freshness.cache_scope,
            authorization=self._authorization,
        )
