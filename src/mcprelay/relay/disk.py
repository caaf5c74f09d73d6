"""Lists kept between runs, in an SQLite file that belongs to its owner alone.

A file that cannot be used costs its use and nothing else: lists are then asked for again. What is in it is no more
trusted than what a server sends.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mcprelay.relay.listed import Listed

if TYPE_CHECKING:
    import sqlite3

log = logging.getLogger("mcprelay.relay")

_SCHEMA = """
create table if not exists secret (one integer primary key check (one = 1), key blob not null);
create table if not exists list (key text primary key, body blob not null, fresh_until real not null) without rowid;
"""
_decode = msgspec.json.Decoder(Listed).decode


class Disk:
    """Lists in a file, which other processes may use at the same time.

    Args:
        path: The file; it and its folder are made if they are not there.
        clock: The time in seconds since the epoch.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float]) -> None:
        self._path = path
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        self.key = secrets.token_bytes(32)
        """The key of the hash that entries are named by; the same for everyone who uses the file."""
        try:
            self._open()
        except Exception as error:  # noqa: BLE001 - without the file everything works, more slowly
            self._give_up(error)

    def _open(self) -> None:
        import sqlite3

        self._path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        # Everything happens in the loop's thread; closing may not.
        connection = sqlite3.connect(self._path, timeout=1.0, isolation_level=None, check_same_thread=False)
        self._connection = connection  # from here on, so that it is closed where the file turns out to be none
        connection.execute("pragma journal_mode=wal")
        connection.execute("pragma synchronous=normal")
        connection.executescript(_SCHEMA)
        connection.execute("insert or ignore into secret values (1, ?)", (self.key,))
        self.key = connection.execute("select key from secret").fetchone()[0]
        connection.execute("delete from list where fresh_until <= ?", (self._clock(),))

    def get(self, key: str) -> Listed | None:
        """A list that is still fresh, or None."""
        if self._connection is None:
            return None
        try:
            row = self._connection.execute(
                "select body from list where key = ? and fresh_until > ?", (key, self._clock())
            ).fetchone()
            return None if row is None else _decode(row[0])
        except Exception as error:  # noqa: BLE001 - see above
            self._give_up(error)
            return None

    def put(self, key: str, listed: Listed) -> None:
        """Keep a list, unless it is private."""
        if self._connection is None or listed.private:
            return
        try:
            self._connection.execute(
                "insert or replace into list values (?, ?, ?)", (key, msgspec.json.encode(listed), listed.fresh_until)
            )
        except Exception as error:  # noqa: BLE001 - see above
            self._give_up(error)

    def drop(self, key: str) -> None:
        """Forget a list."""
        if self._connection is None:
            return
        try:
            self._connection.execute("delete from list where key = ?", (key,))
        except Exception as error:  # noqa: BLE001 - see above
            self._give_up(error)

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _give_up(self, error: Exception) -> None:
        log.warning("lists are not kept in %s: %s", self._path, type(error).__name__)
        with contextlib.suppress(Exception):
            self.close()
        self._connection = None
