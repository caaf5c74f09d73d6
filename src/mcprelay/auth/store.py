"""Where credentials are kept: in memory, in a file that only its owner can read, or in the system's keyring.

Each store is a `TokenStore`. Knows nothing of what it keeps, which is JSON text under a key, except that it is secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import stat
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_POSIX = os.name == "posix"


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

    Several processes may share it: a change reads, alters and replaces under a lock. A file that others can read is
    refused rather than mended, because what it held may be known by now.

    Args:
        path: The file; `~` is expanded. It and its folder are made when something is saved. None stands for
            `default_path()`.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = default_path() if path is None else Path(path).expanduser()
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

    def _read(self) -> dict[str, str]:
        try:
            with self.path.open("rb") as file:
                self._check(os.fstat(file.fileno()))
                data = file.read()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigurationError(f"the token file {self.path} cannot be read: {error.strerror}") from error
        try:
            return msgspec.json.decode(data, type=dict[str, str]) if data else {}
        except (msgspec.DecodeError, UnicodeDecodeError):
            # The cause is left out on purpose: it could quote what the file holds.
            raise ConfigurationError(
                f"the token file {self.path} is not one: move it away, or name another file"
            ) from None

    def _check(self, status: os.stat_result) -> None:
        if _POSIX and status.st_mode & _OTHERS:
            mode = f"{stat.S_IMODE(status.st_mode):04o}"
            raise ConfigurationError(
                f"the token file {self.path} can be read or changed by others (its mode is {mode}). If they are not to "
                f"be trusted with what it holds, delete it and log in again; otherwise run: chmod 600 {self.path}"
            )
        if _POSIX and status.st_uid != os.geteuid():
            raise ConfigurationError(f"the token file {self.path} belongs to another user")

    def _change(self, alter: Callable[[dict[str, str]], Any]) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._guard, _locked(self.path.with_name(self.path.name + ".lock")):
                values = self._read()
                before = dict(values)
                alter(values)
                if values != before:
                    self._replace(msgspec.json.format(msgspec.json.encode(values)))
        except OSError as error:
            raise ConfigurationError(f"the token file {self.path} cannot be written: {error.strerror}") from error

    def _replace(self, data: bytes) -> None:
        """Put a whole new file in the place of the old one; whoever reads sees one or the other."""
        descriptor, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)  # mode 0600
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    """Hold a lock that other processes on this machine see. Where there is none to be had, go on without."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.suppress(OSError):  # some network file systems know no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def default_path() -> Path:
    """Where the command line keeps credentials: the user's folder for the state of programs."""
    if sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return folder / "mcprelay" / "tokens.json"


class KeyringStore:
    """Keeps credentials in the system's keyring, through the `keyring` package.

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
                "KeyringStore needs the package keyring (pip install keyring); FileStore needs nothing"
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
        except self._keyring.errors.KeyringError as error:
            raise ConfigurationError(
                f"the system's keyring could not be used ({type(error).__name__}); FileStore needs none"
            ) from error
