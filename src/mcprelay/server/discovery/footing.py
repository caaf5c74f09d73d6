"""What the definitions in a file rest on: the files that it imports, directly or not.

Files of the program are followed and told apart by their content, files of installed packages by their time and size.
The standard library belongs to the Python that is named in every cache.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mcprelay.server.discovery.load import digest_of

if TYPE_CHECKING:
    import types
    from collections.abc import Iterator

ABSENT = "absent"


class Footing:
    """What files rest on. Each file is looked at once, so one of these is for one scan."""

    def __init__(self) -> None:
        self._imports: dict[str, tuple[str, ...]] = {}
        self._states: dict[str, str] = {}

    def of(self, module: types.ModuleType, file: str) -> dict[str, str]:
        """The files that a module imports, each with its state."""
        found: dict[str, str] = {}
        waiting = [(module, file)]
        while waiting:
            for name in self._imported_by(*waiting.pop()):
                other = sys.modules.get(name)
                path = getattr(other, "__file__", None)
                if other is None or not isinstance(path, str) or path in found or _is_standard(path):
                    continue
                found[path] = self._state_of(path)
                if not _is_installed(path):
                    waiting.append((other, path))
        found.pop(file, None)
        return found

    def _imported_by(self, module: types.ModuleType, file: str) -> tuple[str, ...]:
        if file not in self._imports:
            self._imports[file] = tuple(dict.fromkeys(_imported_by(module, file)))
        return self._imports[file]

    def _state_of(self, path: str) -> str:
        if path not in self._states:
            self._states[path] = state_of(path)
        return self._states[path]


def state_of(path: str, *, like: str = "") -> str:
    """The state of a file, of the kind that `like` is."""
    try:
        if like.startswith("@") or (not like and _is_installed(path)):
            status = Path(path).stat()
            return f"@{status.st_mtime_ns}/{status.st_size}"
        return digest_of(Path(path).read_bytes())
    except OSError:
        return ABSENT


def _imported_by(module: types.ModuleType, file: str) -> Iterator[str]:
    """The names of the modules that a file imports, packages on the way included, wherever in the file it does."""
    if not file.endswith(".py"):
        return
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_packages(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = _base_of(node, module)
            yield from _with_packages(base)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _base_of(node: ast.ImportFrom, module: types.ModuleType) -> str:
    name = node.module or ""
    if not node.level:
        return name
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    try:
        return importlib.util.resolve_name("." * node.level + name, package)
    except ImportError:
        return name


def _with_packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        yield ".".join(parts[:length])


@cache
def _folders() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The folders of installed packages, and those of the standard library."""
    paths = sysconfig.get_paths()
    installed = {os.path.realpath(paths[name]) for name in ("purelib", "platlib") if name in paths}
    installed.add(str(Path(__file__).resolve().parents[2]))  # this package, wherever it is
    standard = {os.path.realpath(paths[name]) for name in ("stdlib", "platstdlib") if name in paths}
    return tuple(folder + os.sep for folder in installed), tuple(folder + os.sep for folder in standard)


def _is_installed(path: str) -> bool:
    real = os.path.realpath(path)
    return real.startswith(_folders()[0]) or f"{os.sep}site-packages{os.sep}" in real


def _is_standard(path: str) -> bool:
    return os.path.realpath(path).startswith(_folders()[1]) and not _is_installed(path)
