"""Who a client says it is: the seam between a client and whatever gets it a token.

Knows the two protocols below and nothing of OAuth, of a loop or of a wire. What a user passes as `auth=` is an `Auth`;
the client binds it to the URL of its server and drives the `Credentials` that come out like this:

    credentials = auth.bind(url, sender=sender)
    attempt = 0
    while True:
        request.headers = [*own_headers, *await credentials.headers(request)]
        async with sender.send(request) as reply:
            credentials.answered(request, reply.status, reply.headers)
            if reply.status not in (401, 403):
                ...                                     # an answer like any other
            status, headers = reply.status, dict(reply.headers)
        attempt += 1                                    # the reply is closed: a person may be asked now
        if not await credentials.challenged(request, status, headers, attempt=attempt):
            ...                                         # not a question of authorization: an `HttpError` like any other

A refused request was answered before anything was carried out, so sending it again is safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from mcprelay.ports import Request, Sender

if TYPE_CHECKING:
    from mcprelay.auth.bearer import Anonymous, StaticToken
    from mcprelay.auth.grant import AuthorizationCode, ClientCredentials, IdentityAssertion, JwtBearer
    from mcprelay.auth.interaction import Application, Browser, Headless, Interaction, Loopback, Paste, Refuse
    from mcprelay.auth.oauth import OAuth
    from mcprelay.auth.registration import Registered
    from mcprelay.auth.store import FileStore, KeyringStore, MemoryStore


@runtime_checkable
class Credentials(Protocol):
    """What one client shows to one server. Safe to use from several tasks of one loop at once."""

    async def headers(self, request: Request) -> list[tuple[str, str]]:
        """The header fields to add to this request, none when there is no token yet.

        Called before each HTTP request, the repeated ones too, because a proof of possession is good for one request.
        A token that is about to expire is renewed first. `request.method` and `request.url` are final; the fields that
        an earlier call gave are not among `request.headers` any more.

        Raises:
            ConfigurationError: `request.url` is not at the server that these credentials are for, or would send them
                over plain HTTP to another machine.
            AuthorizationRequired: There is no token, and getting one failed.
        """
        ...

    def answered(self, request: Request, status: int, headers: Mapping[str, str]) -> None:
        """Look at the head of every reply, whatever its status.

        A server may hand out a new DPoP nonce with a success, and a success ends the count of refusals. `headers` has
        lower-cased names. Never raises, does no I/O.
        """
        ...

    async def challenged(self, request: Request, status: int, headers: Mapping[str, str], *, attempt: int) -> bool:
        """Called on 401 and 403: get a token, or a better one, and say whether to send the request again.

        Args:
            request: As it was sent, with the fields that `headers` gave: they tell whether another call has renewed the
                token in the meantime.
            status: 401 or 403.
            headers: The reply's headers, names in lower case.
            attempt: How many times this request was refused by now, 1 for the first. It bounds the repetitions.

        Returns:
            True: send the request again, with new `headers`. False: the refusal is not one that a token mends.

        Raises:
            AuthorizationRequired: A token is needed and could not be had. It carries the parsed challenge, and its
                sentence names the step that failed, the URL and what came back.
        """
        ...


@runtime_checkable
class Auth(Protocol):
    """What a user gives to `Client(url, auth=...)`. One object may serve several clients and several servers.

    One with a method `over_plaintext(url)` gives by it an `Auth` that binds to that address although it is plain HTTP
    on another machine: a client with `allow_plaintext=True` binds what it gives.
    """

    def bind(self, url: str, *, sender: Sender) -> Credentials:
        """The credentials for the MCP server at `url`. Does no I/O.

        Args:
            url: The address that the user named, byte for byte. Credentials go to its origin only.
            sender: Sends whatever requests it takes to get a token.

        Raises:
            ConfigurationError: `url` is plain HTTP on another machine than this one, and that was not allowed.
        """
        ...


_PLACES = {
    "Anonymous": "bearer",
    "Application": "interaction",
    "AuthorizationCode": "grant",
    "Browser": "interaction",
    "ClientCredentials": "grant",
    "FileStore": "store",
    "Headless": "interaction",
    "IdentityAssertion": "grant",
    "Interaction": "interaction",
    "JwtBearer": "grant",
    "KeyringStore": "store",
    "Loopback": "interaction",
    "MemoryStore": "store",
    "OAuth": "oauth",
    "Paste": "interaction",
    "Refuse": "interaction",
    "Registered": "registration",
    "StaticToken": "bearer",
}
"""Public names and their modules: each is loaded when it is first used."""

__all__ = [
    "Anonymous",
    "Application",
    "Auth",
    "AuthorizationCode",
    "Browser",
    "ClientCredentials",
    "Credentials",
    "FileStore",
    "Headless",
    "IdentityAssertion",
    "Interaction",
    "JwtBearer",
    "KeyringStore",
    "Loopback",
    "MemoryStore",
    "OAuth",
    "Paste",
    "Refuse",
    "Registered",
    "StaticToken",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *_PLACES})
