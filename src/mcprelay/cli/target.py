"""What TARGET means: a URL, a file or module with a server, a command, or a name in `mcprelay.toml`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from mcprelay.cli.account import advised, is_url
from mcprelay.cli.show import SPEAKER
from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcprelay.cli.option import Options
    from mcprelay.client import Client
    from mcprelay.relay.settings import ServerSettings

_COMMAND = "\0"
_MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_FILE = "mcprelay.toml"
"""That of `relay.config`, which is imported only where there is such a file."""
_ALONE = ("tools", "resources", "prompts", "listen")
"""Our commands that take a target and no more words."""
_LAUNCHERS = frozenset({"bun", "deno", "docker", "node", "npx", "podman", "python", "python3", "uv", "uvx"})
"""What servers are started with most, installed here or not."""


def marked(command: Sequence[str]) -> str:
    """A command, given after `--`, as the one word that the commands take for a target."""
    if not command:
        raise ConfigurationError("after -- there must be the command that starts a server")
    return _COMMAND + shlex.join(command)


def forgotten(words: Sequence[str]) -> str:
    """What to say to a command line in which a server's command seems to stand without the `--` before it, or nothing.

    Args:
        words: The name of one of our commands, and what follows it.
    """
    name, *rest = words
    if "--" in rest or not rest or not _is_program(rest[0]):
        return ""
    if name == "serve":
        own = next((word for word in rest if _is_own(word)), "FILE.py")
        return f". serve runs a Server of yours itself: mcprelay serve {shlex.quote(own)}"
    meant = shlex.join(rest) if name in _ALONE else f"{shlex.quote(rest[0])} …"
    return f". A command goes behind --: mcprelay {name} {'' if name in _ALONE else '… '}-- {meant}"


def _is_program(word: str) -> bool:
    """Whether a word is a program, and nothing else that a target may be."""
    if is_url(word) or _is_own(word) or _is_configured(word):
        return False
    return word in _LAUNCHERS or shutil.which(word) is not None


def _is_own(target: str) -> bool:
    """Whether it names a server of the user's: in a file, a module or a folder."""
    return bool(_MODULE.fullmatch(target)) or Path(target.partition(":")[0]).suffix == ".py" or _is_folder(target)


def _is_configured(name: str) -> bool:
    from mcprelay.relay import config

    try:
        return Path(_FILE).exists() and name in config.load(_FILE).servers
    except ConfigurationError:
        return False


def open_client(target: str, options: Options, **handlers: Any) -> Client:
    """A client for a target. Nothing is started or sent before it is entered.

    Raises:
        ConfigurationError: The target means nothing, or an option does not fit it.
    """
    from mcprelay.client import Client

    if options.timeout is not None and not options.timeout > 0:
        raise ConfigurationError(f"--timeout {options.timeout:g}: it is more than 0 seconds")
    what, extra = _meaning(target, options)
    _check_fit(options, command=not isinstance(what, str))
    if isinstance(what, str):
        extra["auth"] = advised(
            extra["auth"],
            target=target,
            url=what,
            headers=extra["headers"] or (),
            plaintext="allowed" if extra.get("allow_plaintext") else "refused",
        )
    given: dict[str, Any] = {"revision": options.revision, **extra, **handlers}
    if options.timeout is not None:
        given["request_timeout"] = given["connect_timeout"] = options.timeout
    return Client(what, **given)


def _check_fit(options: Options, *, command: bool) -> None:
    """No option is without an effect, unless it stands in the environment for all servers."""
    if not command and options.env:
        raise ConfigurationError("--env is for a server that is a command: one with a URL has --header and --token")
    token = options.token is not None and options.token != os.environ.get("MCPRELAY_TOKEN")
    if command and (options.header or token):
        name = "--header" if options.header else "--token"
        raise ConfigurationError(f"{name} is for a server with a URL: one that is a command has --env")


def _meaning(target: str, options: Options) -> tuple[str | list[str], dict[str, Any]]:
    """What the client is given, and with which options."""
    if target.startswith(_COMMAND):
        return shlex.split(target[1:]), {"env": _variables(options.env)}
    if is_url(target):
        headers = _headers(options.header)
        own = any(each.lower() == "authorization" for each in headers)
        auth = options.token or (None if own else _logged_in(target))
        return target, {"auth": auth, "headers": headers or None}
    if _is_own(target):
        return _served(target), {"env": {**os.environ, **_variables(options.env)}, "stderr": _echo}
    if _is_path(target) and not _is_configured(target):
        raise ConfigurationError(f"there is no folder {target}{forgotten([_ALONE[0], target])}")
    if Path(_FILE).exists():
        try:
            return _configured(target, options)
        except ConfigurationError as error:
            told = forgotten([_ALONE[0], target])
            if told:
                raise ConfigurationError(f"{str(error).removesuffix('.')}{told}") from error
            raise
    raise ConfigurationError(
        f"{target!r} is no URL, no .py file, no ./folder and no module:server, and there is no {_FILE} here that could"
        " name it. A command goes behind --, as in: mcprelay tools -- npx -y some-server"
    )


def _is_folder(target: str) -> bool:
    return _is_path(target) and Path(target).is_dir()


def _is_path(target: str) -> bool:
    """Whether it is written as one: a bare word may be the name of a server."""
    return target.startswith(".") or "/" in target or os.sep in target


def _echo(line: str) -> None:
    """Pass on what the user's own server says. Why it did not start comes with the failure, as its last words."""
    if not line.startswith(SPEAKER):
        print(line, file=sys.stderr, flush=True)


def _served(target: str) -> list[str]:
    """The user's own server, as a process of its own: what it prints cannot get between us."""
    path = target.partition(":")[0]
    if path.endswith(".py") and not Path(path).is_file():
        raise ConfigurationError(f"there is no file {path}")
    return [sys.executable, "-m", "mcprelay.cli", "serve", target]


def _configured(name: str, options: Options) -> tuple[str | list[str], dict[str, Any]]:
    from mcprelay.relay import config
    from mcprelay.relay.dial import reach
    from mcprelay.relay.settings import Secret

    server = config.load(_FILE).server(name)
    token = options.token or getattr(server.token, "value", None)
    asked = replace(
        server,
        env=server.env | {each: Secret(value) for each, value in _variables(options.env).items()},
        headers=server.headers | {each: Secret(value) for each, value in _headers(options.header).items()},
    )
    return server.url or list(server.command), {**reach(asked, token=token), **_bounds(server, options)}


def _bounds(server: ServerSettings, options: Options) -> dict[str, float]:
    """Waits and limits as the settings say. What they lower is for models: a person is shown what a client reads."""
    from mcprelay.client.setting import DEFAULTS

    timeout = options.timeout or server.timeout
    raised = {name: value for name, value in server.limits.client.items() if value > getattr(DEFAULTS, name)}
    return {"request_timeout": timeout, "connect_timeout": timeout, **raised}


def _logged_in(url: str) -> Any:
    """What `mcprelay login` has stored for an address, if anything has been stored at all."""
    from mcprelay.wire.authority import is_loopback

    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        return None
    from mcprelay.auth.login import stored

    return stored(url)


def _variables(assignments: Iterable[str]) -> dict[str, str]:
    made = {}
    for each in assignments:
        name, equals, value = each.partition("=")
        if not equals and name not in os.environ:
            raise ConfigurationError(f"--env {name}: there is no such variable to pass on; give --env {name}=value")
        made[name] = value if equals else os.environ[name]
    return made


def _headers(lines: Iterable[str]) -> dict[str, str]:
    made = {}
    for each in lines:
        name, colon, value = each.partition(":")
        if not colon or not name.strip():
            raise ConfigurationError(f"--header {each!r}: write it as 'Name: value'")
        made[name.strip()] = value.strip()
    return made
