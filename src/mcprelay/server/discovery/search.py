"""Which files are looked at."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterable, Iterator

FOLDERS = (
    ".*",  # version control, hidden caches, hidden environments
    "__pycache__",
    "*.egg-info",
    "env",
    "node_modules",
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "venv",
)
"""Folders that are left out by their name, at any depth. A folder with a `pyvenv.cfg` is left out as well."""

FILES = (".*", "test_*.py", "*_test.py", "conftest.py", "setup.py")
"""Files that are left out by their name. A file that is itself named to `discover` is not."""


def files_in(roots: Iterable[Path], exclude: tuple[str, ...], logger: logging.Logger) -> Iterator[tuple[str, Path]]:
    """The Python files below some folders, each once, in order, with the folder that it was found below.

    Args:
        roots: Real paths of folders and files. They themselves are never left out.
        exclude: Further names and patterns.
        logger: Hears at debug what is left out.

    Raises:
        ConfigurationError: A file that is named is no Python file.
    """
    seen = set()
    for root in roots:
        if root.is_dir():
            found: Iterable[Path] = _below(root, exclude, logger)
        elif root.suffix == ".py":
            found = (root,)
        else:
            raise ConfigurationError(f"discover: {root} is no Python file")
        for file in found:
            real = str(file.resolve())
            if real not in seen:
                seen.add(real)
                yield real, root if root.is_dir() else root.parent


def _below(root: Path, exclude: tuple[str, ...], logger: logging.Logger) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        within = here.relative_to(root)
        folders[:] = sorted(
            name
            for name in folders
            if not _left_out(within / name, (*FOLDERS, *exclude), logger) and not (here / name / "pyvenv.cfg").exists()
        )
        for name in sorted(files):
            if name.endswith(".py") and not _left_out(within / name, (*FILES, *exclude), logger):
                yield here / name


def _left_out(path: Path, patterns: tuple[str, ...], logger: logging.Logger) -> bool:
    for pattern in patterns:
        plain = pattern.rstrip("/").removeprefix("./")
        if fnmatch(path.as_posix() if "/" in plain else path.name, plain):
            logger.debug("discovery leaves %s out: %s", path, pattern)
            return True
    return False
