"""Logging in at a server and out again, for commands and for servers with `auth = "oauth"`."""

from __future__ import annotations

from pathlib import Path

from mcprelay.cli.show import say
from mcprelay.errors import ConfigurationError


async def login(target: str) -> None:
    """Get a token and keep it."""
    from mcprelay.auth import login as account
    from mcprelay.auth.oauth import OAuth
    from mcprelay.auth.store import FileStore
    from mcprelay.client.http import HttpSender

    sender = HttpSender()
    try:
        found = await account.login(address(target), auth=OAuth(store=FileStore()), sender=sender)
    finally:
        await sender.aclose()
    say(f"logged in at {found.server} by {found.issuer}; scope: {' '.join(found.scope) or 'none named'}")


async def logout(target: str) -> None:
    """Forget a token, and have it made worthless where that is offered."""
    from mcprelay.auth import login as account
    from mcprelay.auth.login import stored
    from mcprelay.client.http import HttpSender

    sender = HttpSender()
    try:
        outcome = await account.logout(address(target), auth=stored(target), sender=sender)
    finally:
        await sender.aclose()
    said = {
        "revoked": "the token is forgotten here and worthless there",
        "not offered": "the token is forgotten here; the server cannot make it worthless",
        "none": "there was no token",
    }
    say(said[outcome])


def address(target: str) -> str:
    """The URL that a target means.

    Raises:
        ConfigurationError: It is none, and no server with a URL in `mcprelay.toml`.
    """
    if target.startswith(("http://", "https://")):
        return target
    from mcprelay.relay import config

    if not Path(config.FILE).exists():
        raise ConfigurationError(f"{target!r} is no URL, and there is no {config.FILE} here that could name it")
    server = config.load().server(target)
    if server.url is None:
        raise ConfigurationError(f"the server {target!r} is a command; there is nowhere to log in")
    return server.url
