"""What a cache says of an element, as an entry: its file is imported when it is first called.

By then it may turn out to be something else, or to be gone: the entry is exchanged for what is true, and everybody is
told, before the call is answered.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from mcprelay.errors import DefinitionError, ProtocolError, ResourceNotFound
from mcprelay.revisions import Fault
from mcprelay.server.discovery.collect import elements_in
from mcprelay.server.entry import Entry
from mcprelay.server.offering import entry_of
from mcprelay.types import CompleteResult, Completion, Resource, ResourceTemplate, Tool
from mcprelay.wire import mirror, uri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from mcprelay.server import Server
    from mcprelay.server.call import Call
    from mcprelay.server.catalog import Shelf
    from mcprelay.server.discovery.cache import Element
    from mcprelay.server.discovery.load import Loaded, Loader


def postponed(server: Server, loader: Loader, file: str, root: Path, element: Element) -> tuple[Shelf, Entry]:
    """An entry for an element that is not imported yet, and its shelf."""
    definition = element.definition()
    shelf = getattr(server.catalog, element.shelf)
    waiting = _Waiting(server, shelf, lambda: loader.load(file, root))
    entry = Entry(
        element.key,
        definition,
        waiting.run,
        place=element.place,
        requires=element.requires,
        by_hand=False,
        header_params=mirror.params_of(definition.input_schema) if isinstance(definition, Tool) else (),
        completions=None if isinstance(definition, (Tool, Resource)) else waiting,
        template=uri.Template(element.key) if isinstance(definition, ResourceTemplate) else None,
        tags=element.tags,
    )
    waiting.entry = entry
    return shelf, entry


class _Waiting:
    """Stands for an element until it is needed.

    Args:
        server: Whose element it is.
        shelf: Where the entry stands.
        load: Imports its file.
    """

    def __init__(self, server: Server, shelf: Shelf, load: Callable[[], Loaded]) -> None:
        self.entry: Entry
        self._server = server
        self._shelf = shelf
        self._load = load
        self._lock = threading.Lock()
        self._true: Entry | None = None
        self._known = False

    async def run(self, call: Call, *given: Any) -> Any:
        """Answer a call."""
        entry = await self._arrived()
        if entry is None:
            if isinstance(self.entry.definition, (Resource, ResourceTemplate)):
                raise ResourceNotFound(call.params.uri)
            raise ProtocolError(
                call.revision.code(Fault.INVALID_PARAMS), f"Unknown {self._shelf.kind}: {self.entry.key}"
            )
        return await entry.run(call, *given)

    def get(self, argument: str) -> Callable[[Call, str, Mapping[str, str]], Awaitable[Any]]:
        """What completes an argument."""

        async def source(call: Call, typed: str, others: Mapping[str, str]) -> Any:
            entry = await self._arrived()
            found = None if entry is None else entry.completions.get(argument)
            if found is None:
                return CompleteResult(completion=Completion(values=()))
            return await found(call, typed, others)

        return source

    async def _arrived(self) -> Entry | None:
        """The true entry, put on the shelf; None when there is none any more."""
        if not self._known:
            true = await self._server.threads.run(self._import)
            if not self._known:
                self._known, self._true = True, true
                self._exchange(true)
        return self._true

    def _import(self) -> Entry | None:
        with self._lock:
            loaded = self._load()
            for handler, mark in elements_in(loaded.module, loaded.file):
                try:
                    shelf, entry = entry_of(self._server, mark.kind, mark.uri, handler, mark.options, by_hand=False)
                except DefinitionError as error:
                    self._server.logger.error("%s was skipped: %s", mark.place, error)  # noqa: TRY400 - as in a scan
                    continue
                if shelf is self._shelf and entry.key == self.entry.key:
                    entry.place = mark.place
                    return entry
        return None

    def _exchange(self, true: Entry | None) -> None:
        if true is None or true.definition != self.entry.definition:
            self._server.logger.warning(
                "what the cache of discovery said of the %s %r is not so any more; it is exchanged",
                self._shelf.kind,
                self.entry.key,
            )
        self._shelf.exchange(self.entry, true)
