"""Reading settings: `mcprelay.toml`, the `mcpServers` files of desktop clients, and mappings in code.

Every mistake is told, all of them at once, each with its file, its key and what would be right. Nothing is guessed: a
key that is not known is a mistake, because a misspelled `allow` must not look like a missing one. Trust is read from
our own files and from code; a desktop client's file declares none, whatever it says.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mcprelay.relay import given
from mcprelay.relay.budget import Limits
from mcprelay.relay.entry import Entry, Problems
from mcprelay.relay.errors import SettingWrong
from mcprelay.relay.lock import BOM
from mcprelay.relay.settings import CODE, HINTLESS_SECONDS, CacheSettings, Config, ServerSettings
from mcprelay.relay.table import read_server

FILE = "mcprelay.toml"
LOCK = "mcprelay.lock"


def load(path: str | os.PathLike[str] | None = None, *, env: Mapping[str, str] | None = None) -> Config:
    """Read a file of settings: TOML, or JSON with `mcpServers` if its name ends in `.json`.

    Args:
        path: The file; `mcprelay.toml` in the working directory if None.
        env: The variables that `${NAME}` means; this process's if None.

    Raises:
        SettingWrong: The file is not there, or something in it is wrong.
    """
    if path is not None:
        given.path("path", path)
    if env is not None:
        given.mapping("env", env, of="names of variables and their values")
    file = Path(path) if path is not None else Path(FILE)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingWrong(f"{file}: there is no such file; `mcprelay init` writes one") from None
    except UnicodeDecodeError as error:
        raise SettingWrong(f"{file}: cannot be read: it is no UTF-8; save it as that") from error
    except OSError as error:
        why = error.strerror or type(error).__name__
        then = "see that the path is right, and that this process may read it"
        raise SettingWrong(f"{file}: cannot be read: {why}; {then}") from error
    return parse(text, source=file, env=env)


def parse(text: str, *, source: Path, env: Mapping[str, str] | None = None) -> Config:
    """The settings that a file's text says; see `load`."""
    variables = os.environ if env is None else env
    tree = _tree(text, source)
    problems = Problems(str(source))
    read = _desktop if source.suffix.lower() == ".json" else _own
    config = read(tree, source, variables, problems)
    _check_prefixes(config, problems)
    problems.settle()
    return config


def from_mapping(
    servers: Mapping[str, Mapping[str, Any]],
    *,
    limits: Limits | Mapping[str, Any] | None = None,
    cache: CacheSettings | Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    source: str = CODE,
) -> Config:
    """Settings given in code: the same keys as in the file, and a token may be a function.

    Raises:
        SettingWrong: Something in it is wrong.
    """
    problems = Problems(source)
    variables = os.environ if env is None else env
    given.mapping("servers", servers, of="names of servers and the settings of each")
    top = Entry({"limits": limits, "cache": cache}, "", problems, env=variables)
    bounds = top.limits("limits", Limits())
    kept = cache if isinstance(cache, CacheSettings) else _cache(top, Path())
    made = _servers(servers, Path(), variables, problems, bounds)
    config = Config(servers=made, limits=bounds, cache=kept, source=source)
    _check_prefixes(config, problems)
    problems.settle()
    return config


def from_target(target: Any, *, name: str | None, settings: Mapping[str, Any], limits: Limits) -> Config:
    """Settings of one server that no file knows.

    Args:
        target: A URL, a command as a list, or a `Server` of this process.
        name: What it is called; its host, program or own name if None.
        settings: The other keys of its table.

    Raises:
        SettingWrong: Something in it is wrong.
    """
    key = "url" if isinstance(target, str) else "command" if isinstance(target, list | tuple) else "target"
    return from_mapping({name or _called(target): {key: target, **settings}}, limits=limits)


def _called(target: Any) -> str:
    if isinstance(target, str):
        return urlsplit(target).hostname or "server"
    if isinstance(target, list | tuple):
        return str(target[0]).rpartition("/")[2] if target else "server"
    return str(getattr(target, "name", None) or "server")


def _tree(text: str, source: Path) -> dict[str, Any]:
    import tomllib

    text = text.removeprefix(BOM)
    try:
        tree = json.loads(text) if source.suffix.lower() == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "JSON" if source.suffix.lower() == ".json" else "TOML"
        raise SettingWrong(f"{source}: this is no {kind}: {error}") from None
    if not isinstance(tree, dict):
        raise SettingWrong(f"{source}: expected an object with mcpServers")
    return tree


def _own(tree: dict[str, Any], source: Path, env: Mapping[str, str], problems: Problems) -> Config:
    top = Entry(tree, "", problems, env=env)
    limits, cache = top.limits("limits", Limits()), _cache(top, source.parent)
    servers = _servers(top.table("servers"), source.parent, env, problems, limits)
    top.done()
    return Config(
        servers=servers, limits=limits, cache=cache, lock=source.parent / LOCK, source=str(source), under="[servers]"
    )


def _cache(top: Entry, folder: Path) -> CacheSettings:
    cache = top.inner("cache")
    hintless, path = cache.number("hintless", least=0), cache.path("path", folder)
    cache.done()
    return CacheSettings(path=path, hintless=HINTLESS_SECONDS if hintless is None else hintless)


def _servers(
    tables: Mapping[str, Any], folder: Path, env: Mapping[str, str], problems: Problems, limits: Limits
) -> dict[str, ServerSettings]:
    found = {}
    for name, table in tables.items():
        server = read_server(name, table, folder=folder, env=env, problems=problems, limits=limits)
        if server is not None:
            found[name] = server
    return found


def _check_prefixes(config: Config, problems: Problems) -> None:
    """See that no two servers' public names begin alike, so that none can be another one's."""
    taken: dict[str, str] = {}
    for name, server in config.servers.items():
        prefix = name if server.prefix is None else server.prefix
        if prefix in taken:
            problems.add(
                f"servers.{name}.prefix", f"{prefix!r} is what the names of {taken[prefix]} begin with already"
            )
        taken.setdefault(prefix, name)


# --- desktop clients --------------------------------------------------------------------------------------------------

_TRANSPORTS = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
_KEPT = ("url", "headers", "env", "cwd")


def _desktop(tree: dict[str, Any], source: Path, env: Mapping[str, str], problems: Problems) -> Config:
    key = "servers" if "servers" in tree and "mcpServers" not in tree else "mcpServers"
    tables = tree.get(key)
    notes: list[str] = []
    servers: dict[str, ServerSettings] = {}
    if not isinstance(tables, dict):
        problems.add(key, "expected an object of servers")
        tables = {}
    disabled: dict[str, str] = {}
    for name, table in tables.items():
        if isinstance(table, dict) and table.get("disabled") is True:
            notes.append(f"{name} is left out, because it is disabled")
            disabled[name] = f"{key}.{name}.disabled"
            continue
        made = _translated(name, table, problems, notes, under=key)
        server = (
            None
            if made is None
            else read_server(name, made, folder=source.parent, env=env, problems=problems, limits=Limits(), under=key)
        )
        if server is not None:
            servers[name] = server
    return Config(
        servers=servers,
        lock=source.parent / LOCK,
        source=str(source),
        notes=tuple(notes),
        disabled=disabled,
        under=f'{{"{key}": {{…}}}}',
    )


def _translated(name: str, table: Any, problems: Problems, notes: list[str], *, under: str) -> dict[str, Any] | None:
    """A desktop client's entry in our keys. What only that client understands is left out and noted."""
    if not isinstance(table, dict):
        problems.add(f"{under}.{name}", "expected an object")
        return None
    made = {key: table[key] for key in _KEPT if key in table}
    kind = table.get("type", table.get("transport"))
    if kind is not None:
        made["transport"] = _TRANSPORTS.get(str(kind).lower(), kind)
    if "command" in table:
        args = table.get("args", [])
        made["command"] = [table["command"], *(args if isinstance(args, list) else [args])]
    known = {*_KEPT, "command", "args", "type", "transport", "disabled"}
    notes.extend(f"{name}.{key} is not read" for key in table if key not in known)
    return made
