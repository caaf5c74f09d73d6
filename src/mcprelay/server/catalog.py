"""What is served: four shelves of entries, their pages, and what changed.

A shelf keeps its entries in the order in which they were first registered. What was registered by hand always wins
over what was discovered, in every order, and both win over what a mounted server brings. Each definition is encoded
once per revision; each page is spliced from these pieces and kept until the shelf changes, for every set of entries
that some caller may see.

The catalog does not know handlers (an entry carries one, unread), transports, or principals.
"""

from __future__ import annotations

import base64
import logging
from typing import TYPE_CHECKING, Any

from mcprelay.errors import DefinitionError, ProtocolError
from mcprelay.revisions import Fault, Feature
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mcprelay.revisions import Revision
    from mcprelay.server.call import Call, Principal
    from mcprelay.server.entry import Entry
    from mcprelay.types import CacheScope
    from mcprelay.wire.mirror import HeaderParam

logger = logging.getLogger("mcprelay.server")

_PAGES_KEPT = 256
_FIELDS = {
    "tools": "tools",
    "resources": "resources",
    "resourceTemplates": "resource_templates",
    "prompts": "prompts",
}


class Shelf:
    """The entries of one kind.

    Args:
        kind: What they are called in messages.
        member: The member of a list result that holds them.
        notice: The notification that says that the shelf changed.
        changed: Called after every change.
    """

    def __init__(self, kind: str, member: str, notice: str, changed: Callable[[Shelf], None]) -> None:
        self.kind = kind
        self.member = member
        self.field = _FIELDS[member]
        self.notice = notice
        self._changed = changed
        self._by_hand: dict[str, Entry] = {}
        self._found: dict[str, Entry] = {}
        self._mounted: dict[Any, Callable[[], Iterable[Entry]]] = {}
        self._served: dict[str, Entry] | None = {}
        self._pages: dict[Any, bytes] = {}
        self._listings: dict[Any, Any] = {}
        self._restricted = False
        self.page_size: int | None = None

    # --- what is on it

    @property
    def entries(self) -> dict[str, Entry]:
        """The entries that are served, by key, in order. Never changed in place: a snapshot stays what it is."""
        served = self._served
        if served is None:
            listed = sorted((entry for entry in self._merged() if entry.enabled), key=lambda entry: entry.order)
            served = self._served = {entry.key: entry for entry in listed}
            self._restricted = any(entry.restricted for entry in listed)
        return served

    def _merged(self) -> Iterable[Entry]:
        """All entries, switched off or not, each key once."""
        mounted = {entry.key: entry for entries in reversed(self._mounted.values()) for entry in entries()}
        return {**mounted, **self._found, **self._by_hand}.values()

    @property
    def keys(self) -> set[str]:
        """The keys of all entries, switched off or not."""
        return {entry.key for entry in self._merged()}

    def tagged(self, tags: frozenset[str]) -> set[str]:
        """The keys of the entries that have one of these tags, switched off or not."""
        return {entry.key for entry in self._merged() if entry.tags & tags}

    @property
    def found(self) -> Iterable[Entry]:
        """What was discovered."""
        return self._found.values()

    def get(self, key: str, principal: Principal | None) -> Entry | None:
        """The entry, if it is served and this caller may see it: hidden is the same as unknown."""
        entry = (self._served if self._served is not None else self.entries).get(key)
        if entry is None or (self._restricted and not entry.admits(principal)):
            return None
        return entry

    def seen_by(self, principal: Principal | None) -> Iterator[Entry]:
        """The entries that a caller may see, in order."""
        return (entry for entry in self.entries.values() if entry.admits(principal))

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, entry: Entry, *, replace: bool = False) -> None:
        """Put an entry on the shelf.

        Raises:
            DefinitionError: One of that key was registered the same way before, and `replace` is not said.
        """
        kept = self._by_hand if entry.by_hand else self._found
        other = kept.get(entry.key)
        if other is not None:
            if not replace:
                raise DefinitionError(
                    f"there are two {self.kind}s {entry.key!r}: one at {other.place or 'an unknown place'}, one at"
                    f" {entry.place or 'an unknown place'}. Name one of them otherwise, or say replace=True."
                )
            entry.order = other.order
        shadow = self._found.get(entry.key) if entry.by_hand else self._by_hand.get(entry.key)
        if shadow is not None:
            self._log_shadow(entry.key)
        kept[entry.key] = entry
        self.touch()

    def _log_shadow(self, key: str) -> None:
        logger.debug("the %s %r registered by hand shadows the one that was discovered", self.kind, key)

    def remove(self, key: str) -> None:
        """Take an entry off the shelf.

        Raises:
            KeyError: There is none.
        """
        if key not in self._by_hand and key not in self._found:
            mounted = ": it belongs to a mounted server" if key in self.keys else ""
            raise KeyError(f"there is no {self.kind} {key!r} to remove{mounted}")
        self._by_hand.pop(key, None)
        self._found.pop(key, None)
        self.touch()

    def switch(self, keys: Iterable[str], state: bool) -> None:  # noqa: FBT001 - the state is the argument
        """Serve these entries, or stop serving them.

        Raises:
            KeyError: There is no such entry.
        """
        changed = False
        merged = {entry.key: entry for entry in self._merged()}
        for key in keys:
            entries = [kept[key] for kept in (self._by_hand, self._found, merged) if key in kept]
            if not entries:
                raise KeyError(f"there is no {self.kind} {key!r}")
            changed |= any(entry.enabled is not state for entry in entries)
            for entry in entries:
                entry.enabled = state
        if changed:
            self.touch()

    def replace_found(self, entries: Iterable[Entry]) -> None:
        """Forget everything that was discovered before, and put this in its place, each key once.

        What was switched off stays so. The order of what was there before is kept.
        """
        before, self._found = self._found, {}
        for entry in entries:
            other = before.get(entry.key)
            if other is not None:
                entry.order, entry.enabled = other.order, other.enabled
            if entry.key in self._by_hand:
                self._log_shadow(entry.key)
            self._found[entry.key] = entry
        if before or self._found:
            self.touch()

    def exchange(self, before: Entry, after: Entry | None) -> None:
        """Put what an entry stands for in its place, or nothing: it was not what it was thought to be.

        Everybody is told where the definition differs.
        """
        if self._found.get(before.key) is not before:
            return
        if after is None:
            del self._found[before.key]
            self.touch()
            return
        after.order, after.enabled = before.order, before.enabled
        self._found[before.key] = after
        if after.definition == before.definition:
            self._served = None
        else:
            self.touch()

    def mount(self, key: Any, entries: Callable[[], Iterable[Entry]] | None) -> None:
        """Serve what `entries` gives at any time beside what is registered here, until None takes its place."""
        if entries is None:
            del self._mounted[key]
        else:
            self._mounted[key] = entries
            entries()  # now, so that they stand before what is registered later
        self.touch()

    def touch(self) -> None:
        """Something about the entries changed: forget the pages, and tell everyone."""
        self._served = None
        self._pages.clear()
        self._listings.clear()
        self._changed(self)

    # --- its pages

    def page(self, call: Call, cursor: str | None, *, members: bytes, scope: CacheScope, ttl_ms: int) -> bytes:
        """One page of the list, as the JSON of a result.

        Args:
            call: Who asks, and in which revision.
            cursor: Where the page begins, as an earlier page said, or None.
            members: JSON members that every result of the server begins with.
            scope: For whom the page may be cached; narrowed to private where callers see different lists.
            ttl_ms: For how long, in milliseconds.

        Raises:
            ProtocolError: The cursor is not one of ours (utilities/pagination, "Error Handling").
        """
        entries, seen = self._seen(call.principal)
        if seen is not None:
            scope = "private"
        key = (call.revision.name, cursor, seen, scope, ttl_ms, members)
        page = self._pages.get(key)
        if page is None:
            if len(self._pages) >= _PAGES_KEPT:
                self._pages.clear()
            cut = self._cut(list(entries.values()), cursor, call.revision)
            page = self._pages[key] = self._splice(call.revision, cut, members, scope, ttl_ms)
        return page

    def listing(self, call: Call, cursor: str | None, *, page: bytes, make: Callable[..., Any]) -> Any:
        """A page as a typed value, for those who want to look at it. Its JSON stays with it.

        Args:
            call: Who asks.
            cursor: Where the page begins.
            page: The same page as JSON.
            make: The type of the result.
        """
        listing = self._listings.get(page)
        if listing is None:
            if len(self._listings) >= _PAGES_KEPT:
                self._listings.clear()
            shown, more = self._cut(list(self._seen(call.principal)[0].values()), cursor, call.revision)
            following = self._cursor(shown[-1]) if more else None
            definitions = tuple(entry.definition for entry in shown)
            listing = make(**{self.field: definitions, "next_cursor": following})
            listing.__dict__["spliced"] = page
            self._listings[page] = listing
        return listing

    def _seen(self, principal: Principal | None) -> tuple[dict[str, Entry], frozenset[str] | None]:
        """What a caller may see, and the keys of it where callers see different things."""
        entries = self.entries
        if not self._restricted:
            return entries, None
        entries = {entry.key: entry for entry in self.seen_by(principal)}
        return entries, frozenset(entries)

    def _cut(self, entries: list[Entry], cursor: str | None, revision: Revision) -> tuple[list[Entry], bool]:
        """The entries of a page, and whether more follow."""
        if cursor is not None:
            start = self._start(cursor, revision)
            entries = [entry for entry in entries if entry.order > start]
        size = self.page_size or len(entries)
        return entries[:size], len(entries) > size

    def _splice(
        self, revision: Revision, cut: tuple[list[Entry], bool], members: bytes, scope: CacheScope, ttl_ms: int
    ) -> bytes:
        shown, more = cut
        parts = [b'"%b":[%b]' % (self.member.encode(), b",".join(entry.fragment(revision) for entry in shown))]
        if members:
            parts.insert(0, members)
        if more:
            parts.append(b'"nextCursor":%b' % jsonrpc.encode(self._cursor(shown[-1])))
        if revision.has(Feature.CACHE_HINTS):
            parts.append(b'"ttlMs":%d,"cacheScope":"%b"' % (ttl_ms, scope.encode()))
        return b"{%b}" % b",".join(parts)

    def _cursor(self, last: Entry) -> str:
        """A cursor says after which entry a page begins, so that it stays right when others come and go."""
        return base64.urlsafe_b64encode(f"{self.member}:{last.order}".encode()).decode()

    def _start(self, cursor: str, revision: Revision) -> int:
        try:
            member, _, order = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).partition(b":")
            if member == self.member.encode():
                return int(order)
        except ValueError:
            pass
        raise ProtocolError(revision.code(Fault.INVALID_PARAMS), "Invalid cursor: it is not from an earlier page")


class Catalog:
    """Everything that a server serves.

    Args:
        changed: Called with the notification's name after every change.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        def told(shelf: Shelf) -> None:
            changed(shelf.notice)

        self.tools = Shelf("tool", "tools", "notifications/tools/list_changed", told)
        self.resources = Shelf("resource", "resources", "notifications/resources/list_changed", told)
        self.templates = Shelf("resource template", "resourceTemplates", "notifications/resources/list_changed", told)
        self.prompts = Shelf("prompt", "prompts", "notifications/prompts/list_changed", told)
        self.beyond: list[Callable[[str], Entry | None]] = []
        """What a URI names that nothing registered does: asked in turn."""

    @property
    def shelves(self) -> tuple[Shelf, ...]:
        """All four."""
        return (self.tools, self.resources, self.templates, self.prompts)

    def header_params(self, tool: str) -> tuple[HeaderParam, ...]:
        """The headers that mirror the arguments of a tool; none for an unknown one, nor for one that some callers may
        not see, because who asks is not known yet. Then whoever carries the call out looks at them.
        """
        entry = self.tools.entries.get(tool)
        return () if entry is None or entry.restricted else entry.header_params

    def resource(self, uri: str, principal: Principal | None) -> tuple[Entry, dict[str, Any]] | None:
        """What a URI names: the resource of exactly that URI, else the most specific template that matches, with the
        values of its variables; else what is beyond the lists.
        """
        found = self.listed(uri, principal)
        if found is None and self.beyond and not self._is_there(uri):
            others = (entry for beyond in self.beyond if (entry := beyond(uri)) is not None)
            found = next(((entry, {}) for entry in others), None)
        return found

    def listed(self, uri: str, principal: Principal | None) -> tuple[Entry, dict[str, Any]] | None:
        """The same of what is in the lists."""
        entry = self.resources.get(uri, principal)
        if entry is not None:
            return entry, {}
        from mcprelay.wire.uri import check_uri

        if check_uri(uri) is not None:  # server/resources: a server MUST validate all URIs
            return None
        matches = (
            (entry, values)
            for entry in self.templates.seen_by(principal)
            if (values := entry.template.match(uri)) is not None
        )
        return max(matches, key=lambda match: match[0].template.specificity, default=None)

    def hides(self, principal: Principal | None, uri: str) -> bool:
        """Whether a URI names something that this caller may not see."""
        return self.listed(uri, principal) is None and self._is_there(uri)

    def _is_there(self, uri: str) -> bool:
        templates = self.templates.entries.values()
        return uri in self.resources.entries or any(entry.template.match(uri) is not None for entry in templates)
