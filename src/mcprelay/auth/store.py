"""Where credentials are kept: in memory, in a file that only its owner can read, or in the system's keyring.

Each store is a `TokenStore`. Knows nothing of what it keeps, which is JSON text under a key, except that it is secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib
import os
import stat
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, Self

import msgspec

from mcprelay.errors import ConfigurationError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_POSIX = os.name == "posix"
_NOT_WAITING: int = os.O_NONBLOCK | os.O_CLOEXEC if _POSIX else getattr(os, "O_BINARY", 0)

LOCK_PAUSE = 0.02
"""Seconds between two attempts at a lock."""

RENEWAL_SECONDS = 60.0
"""Seconds that another process may take to renew a token."""


class MemoryStore:
    """Keeps credentials for as long as the process runs."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"MemoryStore({len(self._values)} entries)"

    async def load(self, key: str) -> str | None:
        """The value, or None."""
        return self._values.get(key)

    async def save(self, key: str, value: str) -> None:
        """Keep it."""
        self._values[key] = value

    async def drop(self, key: str) -> None:
        """Forget it."""
        self._values.pop(key, None)


class FileStore:
    """Keeps credentials in one JSON file with mode 0600, replaced as a whole on every change.

    Several processes may share it: a change reads, alters and replaces under a lock, and a token is renewed by one of
    them at a time (`.lock` and the folder `.locks` beside the file are for that, and hold nothing). A file that others
    can read is refused rather than mended, because what it held may be known by now.

    Args:
        path: The file; `~` is expanded, and a symbolic link stays one. It and its folder are made when something is
            saved. None stands for `default_path()`.
        lock_timeout: Seconds to wait for another process that changes the file.

    Raises:
        ConfigurationError: The user has no home, and the file would lie there.
    """

    def __init__(self, path: str | Path | None = None, *, lock_timeout: float = 10.0) -> None:
        self.path = default_path() if path is None else _expanded(Path(path))
        self.lock_timeout = lock_timeout
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        return f"FileStore({str(self.path)!r})"

    async def load(self, key: str) -> str | None:
        """The value, or None.

        Raises:
            ConfigurationError: The file is readable by others, or holds something else than this store writes.
        """
        return (await asyncio.to_thread(self._read)).get(key)

    async def save(self, key: str, value: str) -> None:
        """Keep it; when this returns, it is on the disk.

        Raises:
            ConfigurationError: As for `load`, or the file cannot be written.
        """
        await asyncio.to_thread(self._change, lambda values: values.__setitem__(key, value))

    async def drop(self, key: str) -> None:
        """Forget it. Raises as `save` does."""
        await asyncio.to_thread(self._change, lambda values: values.pop(key, None))

    @contextlib.asynccontextmanager
    async def alone(self, key: str) -> AsyncGenerator[None]:
        """Keep other processes from renewing what lies under a key, for a minute at most.

        A refresh token is often good for one use, and an authorization server that sees a second use may take back
        everything. Whoever waited looks into the store first. Where there are no locks, this keeps nobody out.
        """
        folder = self.path.with_name(self.path.name + ".locks")
        name = hashlib.sha256(key.encode("utf-8")).hexdigest()[:16]
        async with contextlib.AsyncExitStack() as held:
            with contextlib.suppress(OSError):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                lock = held.enter_context(Lock(folder / name))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(RENEWAL_SECONDS):
                        while not lock.taken():  # noqa: ASYNC110 - it is another process that gives it back
                            await asyncio.sleep(LOCK_PAUSE)
            yield

    def _read(self) -> dict[str, str]:
        try:
            # A pipe without a writer would keep a plain open waiting for ever.
            with open(os.open(self.path, os.O_RDONLY | _NOT_WAITING), "rb") as file:  # noqa: PTH123 - no flags in Path
                self._check(os.fstat(file.fileno()))
                data = file.read()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigurationError(
                f"the token file {self.path} cannot be read: {error.strerror}; mend that, or name another"
            ) from error
        try:
            return msgspec.json.decode(data, type=dict[str, str]) if data else {}
        except (msgspec.DecodeError, UnicodeDecodeError):
            # The cause is left out on purpose: it could quote what the file holds.
            raise ConfigurationError(
                f"the token file {self.path} is not one: move it away, or name another file"
            ) from None

    def _check(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise ConfigurationError(f"the token file {self.path} is no regular file: name another")
        if _POSIX and status.st_mode & _OTHERS:
            mode = f"{stat.S_IMODE(status.st_mode):04o}"
            raise ConfigurationError(
                f"the token file {self.path} can be read or changed by others (its mode is {mode}). If they are not to "
                f"be trusted with what it holds, delete it and log in again; otherwise run: chmod 600 {self.path}"
            )
        if _POSIX and status.st_uid != os.geteuid():
            raise ConfigurationError(f"the token file {self.path} belongs to another user: name another")

    def _change(self, alter: Callable[[dict[str, str]], Any]) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = Lock(self.path.with_name(self.path.name + ".lock"))
            with self._guard, lock:
                self._wait(lock)
                values = self._read()
                before = dict(values)
                alter(values)
                if values != before:
                    self._replace(msgspec.json.format(msgspec.json.encode(values)))
        except OSError as error:
            raise ConfigurationError(f"the token file {self.path} cannot be written: {error.strerror}") from error

    def _wait(self, lock: Lock) -> None:
        """Wait for a lock, in a thread. Another process holds it for as long as it takes to write a file."""
        end = time.monotonic() + self.lock_timeout
        while not lock.taken():
            if time.monotonic() >= end:
                raise ConfigurationError(
                    f"the token file {self.path} has been locked by another process for "
                    f"lock_timeout={self.lock_timeout:g} seconds: end that process, or name another file"
                )
            time.sleep(LOCK_PAUSE)

    def _replace(self, data: bytes) -> None:
        """Put a whole new file in the place of the old one; whoever reads sees one or the other."""
        place = self.path.resolve()  # behind a symbolic link, which stays
        descriptor, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)  # mode 0600
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(place)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise


class Lock:
    """A lock that other processes on this machine see, as a context that opens its place and gives the lock back.

    Where there are no locks to be had, it is taken at once.

    Args:
        path: The file, which nobody reads and which is made when it is not there; or a folder that is there.

    Raises:
        OSError: It cannot be opened; a symbolic link in its place is not followed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        if sys.platform != "win32":
            how = os.O_RDONLY if self._path.is_dir() else os.O_CREAT | os.O_RDWR
            self._descriptor = os.open(self._path, how | os.O_CLOEXEC | os.O_NOFOLLOW | _NOT_WAITING, 0o600)
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def taken(self) -> bool:
        """Take the lock, if nobody holds it. Does not wait."""
        if sys.platform == "win32" or self._descriptor is None:
            return True
        import fcntl

        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # some network file systems know no locks
        return True


def default_path() -> Path:
    """Where the command line keeps credentials: the user's folder for the state of programs.

    Raises:
        ConfigurationError: The user has no home.
    """
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        folder = Path(local) if local else _home("AppData", "Local")
    elif sys.platform == "darwin":
        folder = _home("Library", "Application Support")
    else:
        state = os.environ.get("XDG_STATE_HOME")
        folder = Path(state) if state else _home(".local", "state")
    return folder / "mcprelay" / "tokens.json"


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ConfigurationError(f"the token file {path} lies in a home folder that is not known") from error


def _home(*below: str) -> Path:
    try:
        return Path.home().joinpath(*below)
    except RuntimeError as error:
        raise ConfigurationError(
            "this user has no home folder to keep tokens in: set HOME (or XDG_STATE_HOME), or name a file"
        ) from error


class KeyringStore:
    """Keeps credentials in the system's keyring, through the `keyring` package (`mcprelay[keyring]`).

    Some keyrings bound what one entry may hold, Windows' to 2560 bytes; an entry with a long token is told as one that
    could not be used.

    Args:
        service: The name under which the keyring files them.

    Raises:
        ConfigurationError: `keyring` is not installed.
    """

    def __init__(self, service: str = "mcprelay") -> None:
        try:
            self._keyring: Any = importlib.import_module("keyring")
        except ImportError as error:
            raise ConfigurationError(
                "KeyringStore needs the package keyring (pip install 'mcprelay[keyring]'); FileStore needs nothing"
            ) from error
        self.service = service

    def __repr__(self) -> str:
        return f"KeyringStore({self.service!r})"

    async def load(self, key: str) -> str | None:
        """The value, or None.

        Raises:
            ConfigurationError: The keyring is locked, or there is none on this system.
        """
        value: str | None = await self._call(self._keyring.get_password, key)
        return value

    async def save(self, key: str, value: str) -> None:
        """Keep it. Raises as `load` does."""
        await self._call(self._keyring.set_password, key, value)

    async def drop(self, key: str) -> None:
        """Forget it. Raises as `load` does."""
        if await self.load(key) is not None:
            await self._call(self._keyring.delete_password, key)

    async def _call(self, function: Callable[..., Any], *arguments: str) -> Any:
        try:
            return await asyncio.to_thread(function, self.service, *arguments)
        except Exception as error:  # each system's keyring fails in its own way, not by KeyringError alone
            raise ConfigurationError(
                f"the system's keyring could not be used ({type(error).__name__}); FileStore needs none"
            ) from error
