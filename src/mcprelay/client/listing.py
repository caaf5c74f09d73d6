"""Lists of a server, page by page: bounded, from the cache where that is fresh, and robust against what servers do.

A list that changes while it is read is begun again, and one whose cursor is refused, without what was kept of it. What
was told already is told again only where it is another one now. A
cursor that comes twice ends the list with a warning; an item that cannot be used is left out and named. Cursors are
opaque: an empty one is a cursor (utilities/pagination).
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from mcprelay.client import failure
from mcprelay.client.answer import kept
from mcprelay.client.progress import logger
from mcprelay.errors import CallFailed, CallLimitExceeded, Evidence, LocalFault, RemoteError
from mcprelay.types import Prompt, Resource, ResourceTemplate, Tool
from mcprelay.wire.field import shown
from mcprelay.wire.jsonrpc import INVALID_PARAMS
from mcprelay.wire.prune import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Generator

    from mcprelay.client.cache import Reading
    from mcprelay.client.call import Call
    from mcprelay.client.setting import Settings

T = TypeVar("T")


class Excluded(Struct, frozen=True):
    """An item of a list that cannot be used, and why. The name is the server's word: untrusted.

    `limit` is the name of the setting that it is over, if it is over one.
    """

    name: str
    reason: str
    limit: str | None = None


class Listing(tuple[T, ...], Generic[T]):  # noqa: SLOT001 - a tuple's subclass that has attributes of its own
    """The items of a list.

    Attributes:
        warnings: What was wrong with the list, one sentence each.
        repeated: The names that came more than once, of which the first counts, each with its warning.
        excluded: The items that were left out, each with the reason.
        pages: How many pages were read.
    """

    warnings: tuple[str, ...] = ()
    repeated: Mapping[str, str] = MappingProxyType({})
    excluded: tuple[Excluded, ...] = ()
    pages: int = 0


class TooLong(Exception):
    """An item is longer than it may be, and was not read.

    Attributes:
        limit: The setting that it is over.
        name: What it calls itself. Untrusted.
    """

    def __init__(self, limit: str, allowed: int, *, name: str) -> None:
        super().__init__(f"it is longer than {limit}={allowed} allows")
        self.limit = limit
        self.name = name


class Kind(Struct, Generic[T], frozen=True):
    """One kind of list.

    Attributes:
        method: What is asked.
        member: The member of the result that holds the items.
        decode: Reads one item, and keeps how it came in `raw`.
        identity: What tells its items apart.
        noun: What an item is called.
        said: A word of the server's as warnings may have it.
    """

    method: str
    member: str
    decode: Callable[[Raw], T]
    identity: str
    noun: str
    said: Callable[[str], str] = str

    @property
    def asked_by(self) -> str:
        """The method of a client that lists it."""
        return f"list_{self.noun.replace(' ', '_')}s"


def _keeping(kind: type[T]) -> Callable[[Raw], T]:
    decode = msgspec.json.Decoder(kind).decode

    def read(raw: Raw) -> T:
        return kept(decode(raw), raw.copy())  # type: ignore[no-any-return]

    return read


TOOLS: Kind[Tool] = Kind("tools/list", "tools", _keeping(Tool), "name", "tool")
RESOURCES: Kind[Resource] = Kind("resources/list", "resources", _keeping(Resource), "uri", "resource")
TEMPLATES: Kind[ResourceTemplate] = Kind(
    "resources/templates/list", "resourceTemplates", _keeping(ResourceTemplate), "uri_template", "resource template"
)
PROMPTS: Kind[Prompt] = Kind("prompts/list", "prompts", _keeping(Prompt), "name", "prompt")


class Page(Struct, rename="camel"):
    """One page as it came. The items are read one by one, so that a bad one spoils no other."""

    items: list[Raw] = []
    next_cursor: Any = None


_decode_page: dict[str, Callable[[Raw], Any]] = {
    kind.member: msgspec.json.Decoder(
        msgspec.defstruct("Page", [("items", list[Raw], field(name=kind.member, default_factory=list))], bases=(Page,))
    ).decode
    for kind in (TOOLS, RESOURCES, TEMPLATES, PROMPTS)
}
"""Reads a page by the member that its items are in; what else is in it is not read."""
_BREATH = 1 << 18
"""Bytes of items after which others have the loop: a page is as long as its server likes."""
_LONGEST_NAME = 10_000
"""Bytes of a name that is read of an item that is not."""
decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


class _CursorRefused(Exception):
    """The server does not know a cursor any more (utilities/caching, "Interaction with Pagination")."""


def _is_refused(error: CallFailed) -> bool:
    """Whether a page was refused in the way in which a cursor is (utilities/pagination, "Error Handling")."""
    return isinstance(error, RemoteError) and error.code == INVALID_PARAMS


class Walk(Generic[T]):
    """A list that is about to be read: `await` it for all of it, or `async for` its items as they come.

    Args:
        kind: What is listed.
        settings: The bounds.
        fetch: Gives the page at a cursor, and the call that it took (None from the cache).
        drop: Forgets the pages that are kept.
        begin: Gives what goes stale when the server says that the list changed.
        admit: Why an item cannot be used, or None.
        done: Told of every complete list.
    """

    _idle = False  # not made whole yet

    def __init__(
        self,
        kind: Kind[T],
        *,
        settings: Settings,
        fetch: Callable[[str | None], Awaitable[tuple[Raw, Call | None]]],
        drop: Callable[[], None],
        begin: Callable[[], Reading],
        admit: Callable[[T], str | None],
        done: Callable[[Listing[T]], None],
    ) -> None:
        self._kind = kind
        self._settings = settings
        self._fetch = fetch
        self._drop = drop
        self._refusals = 0
        self._reading = begin
        self._admit = admit
        self._done = done
        self._begin()
        self._idle = True

    def _begin(self) -> None:
        self._items: list[T] = []
        self._known: set[Any] = set()
        self._warnings: list[str] = []
        self._repeated: dict[str, str] = {}
        self._excluded: list[Excluded] = []
        self._pages = 0
        self._met = 0  # items that came, also those that were left out
        self._bytes = 0

    def __await__(self) -> Generator[Any, None, Listing[T]]:
        self._idle = False
        return self._all().__await__()

    def __aiter__(self) -> AsyncIterator[T]:
        self._idle = False
        return self._each()

    if not TYPE_CHECKING:  # which tells of these mistakes by itself, as long as it sees nothing of them

        def __iter__(self) -> Any:
            raise self._unawaited("iterated")

        def __len__(self) -> int:
            raise self._unawaited("counted")

        def __getitem__(self, index: Any) -> Any:
            raise self._unawaited("indexed")

        def __bool__(self) -> bool:
            raise self._unawaited("asked whether it holds anything")

        def __del__(self) -> None:
            if self._idle:
                what = f"client.{self._kind.asked_by}() was never awaited, so the server was not asked"
                warnings.warn(f"{what}: `await` it, or `async for` over it", RuntimeWarning, stacklevel=2, source=self)

    def _unawaited(self, how: str) -> LocalFault:
        """A list that is treated as if it were there."""
        self._idle = False  # it is told once
        name = self._kind.asked_by
        return LocalFault(
            f"a list that was not awaited cannot be {how}: `items = await client.{name}()` reads all of it, and `async "
            f"for item in client.{name}()` item by item"
        )

    async def _each(self) -> AsyncIterator[T]:
        told: dict[Any, int] = {}
        async with aclosing(self._steady()) as pages:
            async for items in pages:
                for item in items:
                    identity = getattr(item, self._kind.identity)
                    looks = hash(bytes(item.raw))  # type: ignore[attr-defined]  # what is listed keeps how it came
                    if told.get(identity) != looks:  # else it was the same before the list began again
                        told[identity] = looks
                        yield item
        if gone := len(told.keys() - self._known):
            self._warn(f"the list changed while it was read: {gone} that came before are not in it any more")
        self._done(self._listing())

    async def _all(self) -> Listing[T]:
        async with aclosing(self._steady()) as pages:
            async for _ in pages:
                pass
        listing = self._listing()
        self._done(listing)
        return listing

    async def _steady(self) -> AsyncGenerator[list[T]]:
        """Page after page, and all of them again where the list changed meanwhile, as often as that is allowed."""
        most = self._settings.list_restarts
        changed = False
        restart = 0
        while restart <= most:
            self._begin()
            reading = self._reading()
            async with aclosing(self._walk()) as pages:
                async for items in pages:
                    changed = reading.stale
                    if changed and restart < most:
                        break
                    yield items
            if not changed:
                return
            restart += 1
        self._warn(f"the list changed while it was read, list_restarts={most} times")

    async def _walk(self) -> AsyncGenerator[list[T]]:
        """Page after page, each with the items that are new and usable."""
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            if self._pages >= self._settings.list_pages:
                raise self._over("list_pages", self._settings.list_pages)
            try:
                result, call = await self._page(cursor)
            except _CursorRefused:
                self._drop()
                self._begin()
                cursor = None
                seen.clear()
                continue
            self._bytes += len(memoryview(result))
            if self._bytes > self._settings.list_bytes:
                raise self._over("list_bytes", self._settings.list_bytes)
            page = self._read(result, call)
            self._pages += 1
            raws = page.items
            room = self._settings.list_items - self._met
            self._met += len(raws)
            fresh = await self._take(raws[: int(room)] if len(raws) > room else raws)
            if len(raws) > room:
                raise self._over("list_items", self._settings.list_items)
            yield fresh
            cursor = page.next_cursor
            if cursor is None:
                return
            if not isinstance(cursor, str):
                said = self._kind.said(shown(cursor))
                self._warn(f"a cursor is a string, not {said}: the list may be incomplete")
                return
            if len(cursor) > self._settings.cursor_bytes:
                raise self._over("cursor_bytes", self._settings.cursor_bytes, actual=len(cursor), what="a cursor of")
            if cursor in seen:
                self._warn("the server gave the same cursor twice: the list may be incomplete")
                return
            seen.add(cursor)

    async def _page(self, cursor: str | None) -> tuple[Raw, Call | None]:
        try:
            return await self._fetch(cursor)
        except CallFailed as error:
            if cursor is not None and _is_refused(error) and self._refusals < self._settings.list_restarts:
                self._refusals += 1
                raise _CursorRefused from error
            if self._pages:
                error.partial = self._listing()
                error.add_note(f"{self._pages} pages with {len(self._items)} items had been read (error.partial)")
            raise

    def _read(self, result: Raw, call: Call | None) -> Page:
        try:
            return _decode_page[self._kind.member](result)  # type: ignore[no-any-return]
        except msgspec.DecodeError as error:
            raise failure.invalid(call, f"the page cannot be read: {error}", bytes(result)) from None

    async def _take(self, raws: list[Raw]) -> list[T]:
        fresh = []
        looked_at = 0
        for raw in raws:
            looked_at += len(memoryview(raw))
            if looked_at > _BREATH:
                looked_at = 0
                await asyncio.sleep(0)
            item = self._item(raw)
            if item is None:
                continue
            identity = getattr(item, self._kind.identity)
            if identity in self._known:
                name = shown(self._kind.said(identity))
                self._repeated[identity] = f"the {self._kind.noun} {name} came twice: the first counts"
                self._warn(self._repeated[identity])
                continue
            self._known.add(identity)
            fresh.append(item)
        self._items += fresh
        return fresh

    def _item(self, raw: Raw) -> T | None:
        try:
            item = self._kind.decode(raw)
            reason = self._admit(item)
        except TooLong as long:
            self._exclude(long.name, str(long), limit=long.limit)
            return None
        except msgspec.DecodeError as error:
            if LEFT_OUT in bytes(raw):
                self._exclude(_name_in(raw), f"it nests deeper than depth={self._settings.depth} allows", limit="depth")
            else:
                self._exclude(_name_in(raw), str(error))
            return None
        if reason is not None:
            self._exclude(getattr(item, self._kind.identity), reason)
            return None
        return item

    def _exclude(self, name: str, reason: str, *, limit: str | None = None) -> None:
        self._excluded.append(Excluded(name, reason, limit))
        said = self._kind.said
        logger.warning("the %s %s is left out: %s", self._kind.noun, shown(said(name)), said(reason))

    def _warn(self, text: str) -> None:
        if text not in self._warnings:
            self._warnings.append(text)
            logger.warning("%s: %s", self._kind.method, text)

    def _over(self, limit: str, allowed: int, *, actual: int | None = None, what: str = "") -> CallLimitExceeded:
        method = self._kind.method
        said = f"{method}: {what}{' ' * bool(what)}the list"
        error = CallLimitExceeded(limit, allowed, actual=actual, what=said, evidence=Evidence.ANSWERED, method=method)
        error.partial = self._listing()
        return error

    def _listing(self) -> Listing[T]:
        listing = Listing(self._items)
        listing.warnings = tuple(self._warnings)
        listing.repeated = dict(self._repeated)
        listing.excluded = tuple(self._excluded)
        listing.pages = self._pages
        return listing


def _name_in(raw: Raw) -> str:
    """What an item that cannot be read calls itself, if it does."""
    try:
        return name_of(decode_members(raw))
    except msgspec.DecodeError:
        return "(not an object)"


def name_of(members: Mapping[str, Raw]) -> str:
    """What an item calls itself by its members, of which no other is read."""
    for member in ("name", "uri", "uriTemplate"):
        value = bytes(members.get(member, b""))
        if value[:1] == b'"' and 2 < len(value) <= _LONGEST_NAME:
            return msgspec.json.decode(value, type=str)
    return "(no name)"
