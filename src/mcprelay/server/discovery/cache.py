"""What discovery keeps between two starts: of each file, what is marked in it, and what that rests on.

A record holds as long as the file, and every file of the program that it imports, have the content that they had, and
every file of an installed package the time and size that it had. It is JSON, never code; what cannot be read is as if
it were not there. A cache that is a path is replaced in one step, so that nobody sees half of it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Raw, Struct

from mcprelay.errors import ConfigurationError
from mcprelay.server.discovery.footing import Footing, state_of
from mcprelay.types import Prompt, Resource, ResourceTemplate, Tool
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    import logging

    from mcprelay.server.discovery.load import Loaded
    from mcprelay.server.entry import Definition, Entry

ShelfName: TypeAlias = Literal["tools", "resources", "templates", "prompts"]

FORMAT = 1
KEY = "mcprelay:discovered:"

_SHELVES: dict[type, ShelfName] = {
    Tool: "tools",
    Resource: "resources",
    ResourceTemplate: "templates",
    Prompt: "prompts",
}
_KINDS: dict[ShelfName, Any] = {name: kind for kind, name in _SHELVES.items()}


class Store(Protocol):
    """Where a cache is kept, where it is not a file. What `set` was given, `get` gives back, or nothing."""

    def get(self, key: str) -> Any:
        """The value (`str` or `bytes`), or None."""
        ...

    def set(self, key: str, value: str) -> Any:
        """Keep a value."""
        ...

    def delete(self, key: str) -> Any:
        """Forget a value."""
        ...


class Element(Struct, frozen=True, kw_only=True):
    """One marked thing, as a cache describes it."""

    shelf: ShelfName
    key: str
    said: Raw
    place: str
    tags: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()

    def definition(self) -> Definition:
        """Its definition."""
        definition: Definition = msgspec.json.decode(self.said, type=_KINDS[self.shelf])
        return definition


class Record(Struct, frozen=True, kw_only=True):
    """What is known of one file.

    Attributes:
        digest: What its content was.
        rests_on: The files that it imports, each with its state.
        elements: What is marked in it.
    """

    digest: str
    rests_on: dict[str, str]
    elements: tuple[Element, ...]

    @classmethod
    def of(cls, loaded: Loaded, entries: list[Entry], footing: Footing) -> Record | None:
        """Describe a file; None where something about it cannot be described."""
        elements = [_element(entry) for entry in entries]
        if None in elements:
            return None
        return cls(
            digest=loaded.digest,
            rests_on=footing.of(loaded.module, loaded.file),
            elements=tuple(element for element in elements if element is not None),
        )

    def is_current(self, file: str) -> bool:
        """Whether the file, and all that it rests on, are what they were."""
        return state_of(file, like=self.digest) == self.digest and all(
            state_of(path, like=state) == state for path, state in self.rests_on.items()
        )


class _Kept(Struct, frozen=True, kw_only=True):
    """A whole cache."""

    format: int
    made_by: str
    files: dict[str, Record]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Kept).decode


def _element(entry: Entry) -> Element | None:
    """An entry, described; None where a part of it is code."""
    if entry.visible is not None or hasattr(entry.template, "recognizes"):
        return None
    return Element(
        shelf=_SHELVES[type(entry.definition)],
        key=entry.key,
        said=Raw(jsonrpc.encode(entry.definition)),
        place=entry.place,
        tags=tuple(sorted(entry.tags)),
        requires=tuple(sorted(entry.requires)),
    )


class Cache:
    """A cache of one scan.

    Args:
        store: A path, or an object with `get`, `set` and `delete`.
        roots: The folders that are scanned.
        strict: How the server reads arguments, which is part of what is described.
        logger: Hears of what goes wrong. Nothing that goes wrong here stops a server.

    Raises:
        ConfigurationError: It is neither a path nor such an object.
    """

    def __init__(
        self, store: str | os.PathLike[str] | Store, roots: list[Path], *, strict: bool, logger: logging.Logger
    ) -> None:
        if isinstance(store, (str, os.PathLike)):
            kept: Store = _File(Path(store))
        elif all(hasattr(store, method) for method in ("get", "set", "delete")):
            kept = store
        else:
            raise ConfigurationError(f"cache: a path, or an object with get, set and delete, and not {store!r}")
        self._store = kept
        self._key = KEY + hashlib.blake2b("\0".join(map(str, roots)).encode(), digest_size=12).hexdigest()
        self._made_by = _made_by(strict=strict)
        self._logger = logger

    def load(self) -> dict[str, Record]:
        """What is kept, by file; nothing where it cannot be read, or was made by another version of something."""
        try:
            text = self._store.get(self._key)
            if text is None:
                return {}
            kept = _decode(text)
        except Exception as error:  # noqa: BLE001 - a store has its own errors, and what it holds may be anything
            self._logger.warning("the cache of discovery cannot be read, so everything is imported: %s", error)
            return {}
        if kept.format != FORMAT or kept.made_by != self._made_by:
            self._logger.debug("the cache of discovery was made by %s", kept.made_by)
            return {}
        return kept.files

    def save(self, records: dict[str, Record]) -> None:
        """Keep this, and nothing else."""
        try:
            if not records:
                self._store.delete(self._key)
                return
            text = _encode(_Kept(format=FORMAT, made_by=self._made_by, files=records)).decode()
            self._store.set(self._key, text)
        except Exception as error:  # noqa: BLE001 - as above
            self._logger.warning("the cache of discovery cannot be written: %s", error)


def _made_by(*, strict: bool) -> str:
    from mcprelay import __version__

    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"mcprelay {__version__}, msgspec {msgspec.__version__}, {python}, strict={strict}"


class _File:
    """A cache that is a file.

    Args:
        path: Where it is. Folders on the way are made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()

    def get(self, key: str) -> bytes | None:
        """What is in the file, or None where there is none."""
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None

    def set(self, key: str, value: str) -> None:
        """Replace the file in one step."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=self._path.name, dir=self._path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as opened:
                opened.write(value)
            temporary.replace(self._path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def delete(self, key: str) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)
