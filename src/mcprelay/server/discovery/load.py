"""From a file to its module, imported as anybody else would import it.

A file that is imported already is not imported twice: what others know as `handlers.math` must be the very same module.
Where no entry of `sys.path` leads to a file, it is imported below a package of its own, so that relative imports work.
A file that was imported here, and has changed since, is imported anew.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

PREFIX = "mcprelay_discovered_"


class Loaded(Struct, frozen=True):
    """A file that is imported.

    Attributes:
        file: Its real path.
        module: Its module.
        digest: What its content was.
    """

    file: str
    module: types.ModuleType
    digest: str


def digest_of(data: bytes) -> str:
    """What stands for a content."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Loader:
    """Imports files."""

    def __init__(self) -> None:
        self._own: dict[str, Loaded] = {}

    def load(self, file: str, root: Path) -> Loaded:
        """Import a file.

        Args:
            file: Its real path.
            root: The folder below which it was found.

        Raises:
            Exception: Whatever the file raises; an attempt of it to exit is a `ConfigurationError`.
        """
        data = Path(file).read_bytes()
        digest = digest_of(data)
        before = self._own.get(file)
        if before is not None:
            return before if before.digest == digest else self._anew(before, data, digest)
        module = _imported(file)
        if module is None:
            name = _name_on_path(file) or _name_below(Path(file), root)
            try:
                module = importlib.import_module(name)
            except SystemExit as error:
                raise ConfigurationError(f"it exits when it is imported: {error!r}") from error
            self._own[file] = Loaded(file, module, digest)
        return Loaded(file, module, digest)

    def _anew(self, before: Loaded, data: bytes, digest: str) -> Loaded:
        """A file that changed, executed in a new module of the same name."""
        name = before.module.__name__
        spec = before.module.__spec__
        assert spec is not None, "an imported module has a spec"  # noqa: S101 - the import system's promise
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            exec(compile(data, before.file, "exec"), module.__dict__)  # noqa: S102 - importing is executing
        except BaseException as error:
            sys.modules[name] = before.module
            if isinstance(error, SystemExit):
                raise ConfigurationError(f"it exits when it is imported: {error!r}") from error
            raise
        parent, _, child = name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], child, module)
        made = self._own[before.file] = Loaded(before.file, module, digest)
        return made


def _imported(file: str) -> types.ModuleType | None:
    """The module that a file is imported as, by whomever."""
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and path.endswith(".py") and (path == file or os.path.realpath(path) == file):
            return module
    return None


def _name_on_path(file: str) -> str | None:
    """The name under which `import` finds exactly this file, or None."""
    for entry in sys.path:
        name = _dotted(Path(file), Path(entry or os.curdir).resolve())
        if name is not None and all(map(str.isidentifier, name.split("."))) and _leads_to(name, file):
            return name
    return None


def _dotted(file: Path, top: Path) -> str | None:
    """The dotted name of a file below a folder; None where it is not below it."""
    if not file.is_relative_to(top):
        return None
    parts = file.relative_to(top).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _leads_to(name: str, file: str) -> bool:
    try:
        spec: ModuleSpec | None = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and spec.origin is not None and os.path.realpath(spec.origin) == file


def _name_below(file: Path, root: Path) -> str:
    """The name of a file below a package that is made for its folder."""
    if "." in file.stem:
        raise ConfigurationError(f"{file.name} has a dot in its name, so it cannot be imported")
    top = _outside_packages(file)
    if not root.is_relative_to(top):
        top = root
    package = PREFIX + digest_of(str(top).encode())[:12]
    if package not in sys.modules:
        made = types.ModuleType(package, f"What was discovered in {top}.")
        made.__path__ = [str(top)]
        sys.modules[package] = made
    importlib.invalidate_caches()
    return f"{package}.{_dotted(file, top)}"


def _outside_packages(file: Path) -> Path:
    """The nearest folder above a file that is no package."""
    return next(folder for folder in (*file.parents, Path(file.anchor)) if not (folder / "__init__.py").exists())
