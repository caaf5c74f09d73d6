"""Finding what is marked: the files of some folders are imported, and what is marked in them is offered.

A scan looks at every Python file below the folders, but for virtual environments, caches, folders of version control
and tests, and whatever is excluded. It drops what an earlier scan found; what is registered by hand stays, and wins.
A file that cannot be imported, and an element that cannot be offered, are reported and leave the others alone.

With a cache, the next start need not import a file whose content, and whose imports' content, is what it was: its
elements are offered as they were described, and the file is imported when one of them is first called. What turns out
to be described otherwise by then is exchanged before the call is answered.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcprelay.errors import ConfigurationError, DefinitionError
from mcprelay.server.discovery.cache import Cache, Record
from mcprelay.server.discovery.collect import elements_in
from mcprelay.server.discovery.footing import Footing
from mcprelay.server.discovery.load import Loader
from mcprelay.server.discovery.postponed import postponed
from mcprelay.server.discovery.search import files_in
from mcprelay.server.offering import entry_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcprelay.server import Server
    from mcprelay.server.catalog import Shelf
    from mcprelay.server.discovery.cache import Store
    from mcprelay.server.discovery.load import Loaded
    from mcprelay.server.entry import Entry

__all__ = ["Broken", "Discovery", "Found", "asked_from"]


class Broken(Struct, frozen=True):
    """What could not be taken: a file, or one element of it.

    Attributes:
        place: The file, or `file:line`.
        reason: What is wrong, in one sentence.
    """

    place: str
    reason: str


class Found(Struct, frozen=True, kw_only=True):
    """What a scan found.

    Attributes:
        tools: The names of the tools.
        resources: The URIs of the resources, and the texts of the templates.
        prompts: The names of the prompts.
        broken: What could not be taken.
        files: How many files were looked at.
        skipped: How many of them did not have to be imported.
    """

    tools: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    broken: tuple[Broken, ...] = ()
    files: int = 0
    skipped: int = 0


class Discovery:
    """Finds what is marked for one server.

    Args:
        server: For whom.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loader = Loader()
        self._last: tuple[list[Path], Found] | None = None
        self._running = False

    def discover(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        beside: Path | None,
        exclude: Iterable[str],
        force: bool,
        cache: str | os.PathLike[str] | Store | None,
        save: bool,
    ) -> Found:
        """See `Server.discover`."""
        if isinstance(exclude, str):
            exclude = (exclude,)
        if isinstance(paths, (str, os.PathLike)):
            paths = (paths,)
        roots = [_located(path, beside) for path in paths]
        if self._last is not None and not force:
            return self._again(roots, self._last)
        if self._running:
            raise ConfigurationError("discover: a scan is going on; a file that is being imported cannot begin another")
        self._running = True
        try:
            found = self._scan(roots, tuple(exclude), cache, force=force, save=save)
        finally:
            self._running = False
        self._last = (roots, found)
        return found

    def _again(self, roots: list[Path], last: tuple[list[Path], Found]) -> Found:
        """The same as before: a server scans once."""
        before, found = last
        if roots == before:
            self._server.logger.debug("discover was called before; say force=True to scan again")
        else:
            self._server.logger.warning(
                "discover does nothing when it is called again, and %s was not scanned: name all folders in one call,"
                " or say force=True",
                ", ".join(str(root) for root in roots if root not in before or len(roots) < len(before)),
            )
        return found

    def _scan(
        self,
        roots: list[Path],
        exclude: tuple[str, ...],
        store: str | os.PathLike[str] | Store | None,
        *,
        force: bool,
        save: bool,
    ) -> Found:
        cache = None if store is None else Cache(store, roots, strict=self._server.strict, logger=self._server.logger)
        kept = {} if cache is None or force else cache.load()
        scan = Scan(self._server, self._loader, kept, describes=cache is not None and save)
        files = list(files_in(roots, exclude, self._server.logger))
        for file, root in files:
            scan.take(file, root)
        scan.offer()
        if cache is not None and save:
            cache.save(scan.records)
        return scan.report(len(files))


class Scan:
    """One scan.

    Args:
        server: For whom.
        loader: Imports files.
        kept: What a cache says of files.
        describes: Whether what is found is described for a cache.
    """

    def __init__(self, server: Server, loader: Loader, kept: dict[str, Record], *, describes: bool) -> None:
        self._server = server
        self._loader = loader
        self._kept = kept
        self._describes = describes
        self._found: dict[Shelf, dict[str, Entry]] = {shelf: {} for shelf in server.catalog.shelves}
        self._broken: list[Broken] = []
        self._skipped = 0
        self._footing = Footing()
        self.records: dict[str, Record] = {}

    def take(self, file: str, root: Path) -> None:
        """Look at one file."""
        record = self._kept.get(file)
        if record is not None and record.is_current(file):
            self._skipped += 1
            self.records[file] = record
            for element in record.elements:
                shelf, entry = postponed(self._server, self._loader, file, root, element)
                self._put(shelf, entry)
            return
        by_hand = self._server.by_hand
        try:
            loaded = self._loader.load(file, root)
        except Exception as error:
            advice = _advice(file, error)
            self._server.logger.exception("%s was skipped: it cannot be imported%s", file, advice)
            self._broken.append(Broken(file, f"{type(error).__name__}: {error}{advice}"))
            return
        entries = self._entries(loaded)
        if self._describes and entries is not None and self._server.by_hand == by_hand:
            described = Record.of(loaded, entries, self._footing)
            if described is not None:
                self.records[file] = described

    def _entries(self, loaded: Loaded) -> list[Entry] | None:
        """The elements of a file, put where they belong; None when one of them could not be taken."""
        entries: list[Entry] | None = []
        for handler, mark in elements_in(loaded.module, loaded.file):
            try:
                shelf, entry = entry_of(self._server, mark.kind, mark.uri, handler, mark.options, by_hand=False)
                _check_owner(self._server, handler)
            except DefinitionError as error:
                self._server.logger.error("%s was skipped: %s", mark.place, error)  # noqa: TRY400 - the place is enough
                self._broken.append(Broken(mark.place, str(error)))
                entries = None
                continue
            entry.place = mark.place
            self._put(shelf, entry)
            if entries is not None:
                entries.append(entry)
        return entries

    def _put(self, shelf: Shelf, entry: Entry) -> None:
        other = self._found[shelf].get(entry.key)
        if other is None:
            self._found[shelf][entry.key] = entry
            return
        reason = f"there are two {shelf.kind}s {entry.key!r}: one at {other.place}, one at {entry.place}"
        self._server.logger.error("%s; the second is left out", reason)
        self._broken.append(Broken(entry.place, reason))

    def offer(self) -> None:
        """Put what was found in the place of what an earlier scan found."""
        for shelf, entries in self._found.items():
            shelf.replace_found(entries.values())

    def report(self, files: int) -> Found:
        """What came of it."""
        catalog = self._server.catalog
        found = Found(
            tools=tuple(self._found[catalog.tools]),
            resources=(*self._found[catalog.resources], *self._found[catalog.templates]),
            prompts=tuple(self._found[catalog.prompts]),
            broken=tuple(self._broken),
            files=files,
            skipped=self._skipped,
        )
        self._server.logger.info(
            "discovery found %d tools, %d resources and %d prompts in %d files (%d not imported, %d broken)",
            len(found.tools),
            len(found.resources),
            len(found.prompts),
            found.files,
            found.skipped,
            len(found.broken),
        )
        return found


def _check_owner(server: Server, handler: Any) -> None:
    """Whether there is a chance to make the instance that a method needs."""
    owner = handler[0] if isinstance(handler, tuple) else handler
    if isinstance(owner, type) and not server.container.makes(owner):
        raise DefinitionError(
            f"{owner.__qualname__} is abstract: say server.bind({owner.__qualname__}, Implementation) before discover"
        )


def asked_from(depth: int) -> Path | None:
    """The folder of the file that called, `depth` calls above this one; None where it is no file."""
    frame = sys._getframe(depth)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - the documented way to one's callers
    file = frame.f_globals.get("__file__")
    return Path(file).resolve().parent if file else None


def _located(path: str | os.PathLike[str], beside: Path | None) -> Path:
    """A folder or file, beside the file that asks or in the working directory."""
    places = [place.resolve() for place in (Path(beside or "", path), Path(path))]
    for place in places:
        if place.exists():
            return place
    looked = " and ".join(dict.fromkeys(map(str, places)))
    raise ConfigurationError(f"discover: there is no {os.fspath(path)!r}: looked for {looked}")


def _advice(file: str, error: Exception) -> str:
    """What to write where a file asks for its neighbor by a name that is not on the path."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    if not name or not any((Path(file).parent / beside).exists() for beside in (f"{name}.py", name)):
        return ""
    return f"; {name} is beside it, and the files of a folder are found as one package: `from .{name} import …`"
