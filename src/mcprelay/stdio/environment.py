"""What a child process inherits of this process's environment: where things are and who the user is, and no secret."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

POSIX = (
    "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ",
    "USER",
)  # fmt: skip
WINDOWS = (
    "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
)  # fmt: skip


def child_environment(
    extra: Mapping[str, str] | None = None, *, inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The safe part of `inherited` (this process's environment unless given), and all of `extra` over it."""
    source = os.environ if inherited is None else inherited
    names = WINDOWS if sys.platform == "win32" else POSIX
    # A value that begins with "()" is a function that bash exported: code.
    safe = {name: source[name] for name in names if name in source and not source[name].startswith("()")}
    return {**safe, **(extra or {})}
