"""Finding the `Server` in a file or module that somebody wrote."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from mcprelay.server import Server


def find_server(source: str) -> Server:
    """The server that `source` names: `file.py`, `file.py:name`, `package.module:name`, or a folder of handlers.

    A name may lead through attributes, and to a function that makes the server. Of a folder, what is marked in its
    files is served under the folder's name.

    Raises:
        ConfigurationError: There is no file, no server or more than one, or the file cannot be imported.
    """
    place, _, name = source.rpartition(":") if _names_one(source) else (source, "", "")
    path = Path(place)
    if path.is_dir():
        return _discovered(path)
    module = _load_file(path) if path.suffix == ".py" else _load_module(place, source)
    return _named(module, name, source) if name else _only(module, place)


def _discovered(path: Path) -> Server:
    """A server of what is marked in the files of a folder."""
    from mcprelay.server import Server

    path = path.resolve()
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # as if Python had been started with a file beside the folder
    server = Server(path.name)
    found = server.discover(path)
    for one in found.broken:
        print(f"{one.place} was skipped: {one.reason}", file=sys.stderr)
    if not (found.tools or found.resources or found.prompts):
        raise ConfigurationError(
            f"nothing in the folder {path} is marked with @tool, @resource or @prompt; if a file in it has a Server,"
            " name that file"
        )
    return server


def _names_one(source: str) -> bool:
    """Whether what follows the last colon is a name, and not a part of a path."""
    return source.rpartition(":")[2].replace(".", "").isidentifier() and ":" in source and not source.endswith(".py")


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigurationError(f"there is no file {path}")
    path = path.resolve()
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # as if Python had been started with the file
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{path} is no Python file")
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(_cause(path.name, error)) from error
    return module


def _load_module(name: str, source: str) -> ModuleType:
    if not name.replace(".", "").isidentifier():
        raise ConfigurationError(f"{source!r} is neither a .py file nor package.module:server")
    if "" not in sys.path:
        sys.path.insert(0, "")  # what is in the working directory, as with python -m
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(_cause(name, error)) from error


def _cause(place: str, error: BaseException, what_failed: str = "cannot be imported") -> str:
    """What went wrong in the user's file, and where: the last line of theirs that ran."""
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{place} {what_failed}: {Path(error.filename).name}, line {error.lineno}: {what}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    where = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}: " if frames else ""
    return f"{place} {what_failed}: {where}{what}"


def _is_ours(file: str) -> bool:
    return "importlib" in file or Path(file).is_relative_to(Path(__file__).parents[1])


def _named(module: ModuleType, name: str, source: str) -> Server:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            there = _servers(module)
            instead = f"; there is {_listed(there, source.rpartition(':')[0])}" if there else ""
            raise ConfigurationError(
                f"{source}: there is no {part!r} in {getattr(found, '__name__', found)!r}{instead}"
            )
        found = getattr(found, part)
    from mcprelay.server import Server

    made = _made(found, source) if callable(found) and not isinstance(found, Server) else found
    if not isinstance(made, Server):
        raise ConfigurationError(f"{source} is no Server, and makes none: it is {type(made).__name__}")
    return made


def _made(factory: Any, source: str) -> Any:
    try:
        inspect.signature(factory).bind()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{source} is no Server, and cannot be called to make one: {error}") from error
    try:
        return factory()
    except (Exception, SystemExit) as error:
        raise ConfigurationError(_cause(source, error, "cannot make a server")) from error


def _only(module: ModuleType, place: str) -> Server:
    found = _servers(module)
    if not found:
        raise ConfigurationError(f"{place} has no Server in it. It needs a line such as: server = Server('name')")
    if len(found) > 1:
        raise ConfigurationError(f"{place} has several servers; say which one: {_listed(found, place)}")
    return next(iter(found.values()))


def _servers(module: ModuleType) -> dict[str, Server]:
    """The servers in a module, each by the first of its names."""
    from mcprelay.server import Server

    found: dict[int, tuple[str, Server]] = {}
    for name, value in vars(module).items():
        if isinstance(value, Server):
            found.setdefault(id(value), (name, value))
    return dict(found.values())


def _listed(names: Iterable[str], place: str) -> str:
    return ", ".join(f"{place}:{name}" for name in names)
