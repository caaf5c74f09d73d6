"""Logging in and out by hand: what the command line and an application's settings page call.

Knows how to make a server say what it asks for. What is then done is `credentials`' work.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from mcprelay.auth.address import parse
from mcprelay.auth.failure import StepFailed, required, shown
from mcprelay.auth.interaction import Refuse
from mcprelay.auth.oauth import OAuth
from mcprelay.auth.scout import Asked, asked_by, fields_of, understood
from mcprelay.auth.store import FileStore, MemoryStore
from mcprelay.client.courier import checked
from mcprelay.errors import ConfigurationError, ConnectFailed, Evidence, NotSent
from mcprelay.ports import Request
from mcprelay.wire import challenge as wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcprelay.auth.record import Record
    from mcprelay.ports import Sender, TokenStore
    from mcprelay.wire.challenge import Challenge

_HARMLESS = b'{"jsonrpc":"2.0","id":"login","method":"ping"}'
"""A request that changes nothing, of a method that every server has a right to refuse."""


class Account(Struct, frozen=True):
    """What is known of a login, without its secrets.

    Attributes:
        server: The MCP server.
        issuer: The authorization server.
        client_id: This client, as the authorization server knows it.
        scope: What was granted.
        expires_at: When the token expires, in seconds since the epoch; None when that is not known.
        renewable: Whether it is renewed without asking anyone.
        bound: Whether the token is bound to a key (DPoP).
    """

    server: str
    issuer: str
    client_id: str
    scope: tuple[str, ...]
    expires_at: float | None
    renewable: bool
    bound: bool


def stored(target: str, **settings: Any) -> OAuth:
    """OAuth that uses what `mcprelay login` has stored, and asks nobody.

    For the relay and for commands: when a person is needed, the error says which command to run.

    Args:
        target: What the person would write after `mcprelay login`.
        settings: Any setting of `OAuth`.
    """

    def advice(scope: Sequence[str]) -> str:
        words = ["mcprelay", "login", target, *(["--scope", " ".join(scope)] if scope else [])]
        return f"run: {shlex.join(words)}"

    try:
        store: TokenStore = FileStore()
    except ConfigurationError:
        store = MemoryStore()  # who has no home has logged in nowhere; `mcprelay login` says so
    known: dict[str, Any] = {"store": store, "interaction": Refuse(advice)}
    return OAuth(**(known | settings))


async def login(
    url: str,
    *,
    auth: OAuth,
    sender: Sender,
    headers: Mapping[str, str] | None = None,
    client: Literal["given", "remembered"] = "given",
) -> Account:
    """Get a token for a server now, and keep it in the store of `auth`.

    Args:
        url: The MCP server.
        auth: The settings, and the store.
        sender: Sends the requests.
        headers: HTTP headers that the server wants of every request. They go to its origin alone, and there with what
            asks the server itself, never to an authorization server.
        client: `remembered` keeps the client of `auth` with its secret as well, so that whoever uses the store need not
            be given it.

    Raises:
        AuthorizationRequired: A token could not be had; the sentence names the step, the URL and what came back.
        ConfigurationError: `url` is not one that credentials may go to, a header cannot be sent or is `Authorization`,
            the server asks for no authorization, or the store cannot be used.
        CallFailed: The server could not be reached.
    """
    credentials = auth.bound(url, sender=sender)
    request = Request(
        url=parse(url.partition("#")[0]).url,
        headers=[
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            *_own(headers or {}),
        ],
        body=_HARMLESS,
    )
    try:
        status, answered = await _knock(request, sender)
    except NotSent as error:
        raise ConnectFailed(str(error), evidence=Evidence.NOT_SENT) from error
    challenge: Challenge | None = None
    asked = Asked(refused=False, fields=fields_of(request))
    if status == 401:
        challenges = wire.parse(answered.get("www-authenticate", ""))
        challenge = understood(challenges)
        asked = asked_by(request, challenges)
    try:
        record = await credentials.login(asked)
        if client == "remembered":
            await credentials.remember_client(record)
        return _account(record)
    except StepFailed as error:
        if error.verdict == "missing" and status != 401:
            raise ConfigurationError(
                f"{shown(url)} asks for no authorization (it answered {status}) and publishes nothing about any: "
                f"{error.sentence}"
            ) from error
        raise required(request, status, answered, said=str(error), challenge=challenge) from error


def _own(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The user's headers, ready to send, none of which is to say who calls."""
    fields = checked(headers)
    for name, _ in fields:
        if name.lower() in ("authorization", "dpop"):
            raise ConfigurationError(
                f"headers: {name!r} says who calls, and so does the token that a login gets: leave it out to log in"
            )
    return fields


async def _knock(request: Request, sender: Sender) -> tuple[int, Mapping[str, str]]:
    """What a server answers to a request without credentials."""
    async with sender.send(request) as reply:
        return reply.status, dict(reply.headers)


async def logout(url: str, *, auth: OAuth, sender: Sender) -> Literal["revoked", "not offered", "none"]:
    """Forget the token for a server, and have it made worthless where the authorization server offers that.

    Returns:
        `revoked`; `not offered` when it is only forgotten here; `none` when there was none.

    Raises:
        MCPRelayError: The authorization server did not confirm. The token is forgotten here all the same.
    """
    return await auth.bound(url, sender=sender).logout()


async def account(url: str, *, auth: OAuth, sender: Sender) -> Account | None:
    """What is known of the login at a server, or None when there is none."""
    record = await auth.bound(url, sender=sender).record()
    return None if record is None else _account(record)


def _account(record: Record) -> Account:
    return Account(
        server=record.server,
        issuer=record.issuer,
        client_id=record.client_id,
        scope=record.token.scope,
        expires_at=record.token.expires_at,
        renewable=record.token.refresh_token is not None,
        bound=record.key is not None,
    )
