"""Credentials that need no flow: a token that the user has, and none at all."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

from mcprelay.auth import Credentials
from mcprelay.auth.address import Place, insecure, parse
from mcprelay.auth.failure import required, shown
from mcprelay.auth.scout import understood
from mcprelay.auth.veil import Hidden
from mcprelay.errors import ConfigurationError, NotSent
from mcprelay.ports import Request, Sender
from mcprelay.wire import challenge as wire

if TYPE_CHECKING:
    from mcprelay.errors import AuthorizationRequired
    from mcprelay.wire.challenge import Challenge


Source: TypeAlias = Callable[[], str | Awaitable[str]]


class StaticToken:
    """A bearer token from elsewhere: a text, or a function that gives one for each request.

    Args:
        token: The token, or a function (`async` or not) that is called before each request. When the server refuses a
            token, the function is called once more, and a token that has changed is tried.
        advice: What to do when no token is accepted, as a sentence without a full stop.
        insecure_hosts: Hosts to which the token may go over plain http. This machine always is one.

    Raises:
        ConfigurationError: The text is no token.
    """

    def __init__(
        self,
        token: str | Source,
        *,
        advice: str = "get one that the server accepts",
        insecure_hosts: Collection[str] = (),
    ) -> None:
        self._token = checked(token) if isinstance(token, str) else token
        self._advice = advice
        self._insecure_hosts = tuple(insecure_hosts)
        self._plain: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return "StaticToken(…)"

    def over_plaintext(self, url: str) -> StaticToken:
        """The same token, which may go to `url` although that is plain http on another machine."""
        made = copy.copy(self)
        made._plain = self._plain | {url}  # noqa: SLF001 - one of us
        return made

    def bind(self, url: str, *, sender: Sender) -> Credentials:
        """The token for the server at `url`.

        Raises:
            ConfigurationError: `url` is plain http on another machine.
        """
        server = home(url, insecure_hosts=self._insecure_hosts, plain=self._plain)
        return _TokenCredentials(self._token, server, advice=self._advice)


class _TokenCredentials:
    def __init__(self, token: str | Source, server: Place, *, advice: str) -> None:
        self._token = token
        self._server = server
        self._advice = advice

    def __repr__(self) -> str:
        return f"StaticToken for {self._server.origin}"

    async def headers(self, request: Request) -> list[tuple[str, str]]:
        check_origin(request.url, self._server)
        return [("Authorization", f"Bearer {await self._current()}")]

    def answered(self, request: Request, status: int, headers: Mapping[str, str]) -> None:
        """A given token has nothing to learn from an answer."""

    async def challenged(self, request: Request, status: int, headers: Mapping[str, str], *, attempt: int) -> bool:
        challenge = challenge_in(headers)
        if status == 403 and not insufficient(challenge):
            return False
        if not isinstance(self._token, str) and attempt == 1 and token_in(request) != await self._current():
            return True
        said = f"this token was given as it is, so there is no other to try: {self._advice}"
        raise required(request, status, headers, said=said, challenge=challenge)

    async def _current(self) -> str:
        if isinstance(self._token, str):
            return self._token
        found = self._token()
        return _given(await found if inspect.isawaitable(found) else found)


class Anonymous:
    """No credentials. What it adds to their absence is an error that says what to do when a server wants some.

    Args:
        advice: What to say of a refusal, as a sentence without a full stop; the usual one when None.
    """

    def __init__(self, *, advice: str | None = None) -> None:
        self._advice = advice

    def bind(self, url: str, *, sender: Sender) -> Credentials:
        """Nothing, for any server."""
        return _NoCredentials(self._advice)


class _NoCredentials:
    def __init__(self, advice: str | None) -> None:
        self._advice = advice

    async def headers(self, request: Request) -> list[tuple[str, str]]:
        return []

    def answered(self, request: Request, status: int, headers: Mapping[str, str]) -> None:
        """There is nothing to learn."""

    async def challenged(self, request: Request, status: int, headers: Mapping[str, str], *, attempt: int) -> bool:
        challenge = challenge_in(headers)
        if status == 403 and not insufficient(challenge):
            return False
        raise unauthenticated(request, status, headers, challenge=challenge, advice=self._advice)


def unauthenticated(
    request: Request,
    status: int,
    headers: Mapping[str, str],
    *,
    challenge: Challenge | None,
    advice: str | None = None,
) -> AuthorizationRequired:
    """The error for a refused request that carried no credentials."""
    usual = f"pass auth= a token or OAuth(...); on the command line, run: mcprelay login {shown(request.url)}"
    said = advice or f"no credentials were given: {usual}"
    return required(request, status, headers, said=said, challenge=challenge)


# ------------------------------------------------------------------------------- what every kind of credentials checks


def home(url: str, *, insecure_hosts: Collection[str] = (), plain: Collection[str] = ()) -> Place:
    """The place that credentials are for.

    Args:
        url: The address.
        insecure_hosts: Hosts to which plain http is allowed.
        plain: Addresses to which it is.

    Raises:
        ConfigurationError: It is no http URL, or plain http on another machine.
    """
    try:
        place = parse(url.partition("#")[0])
    except ValueError as error:
        raise ConfigurationError(f"credentials cannot be bound to {shown(url)}: it {error}") from error
    if url not in plain and (reason := insecure(place, allowed=insecure_hosts)) is not None:
        raise ConfigurationError(
            f"credentials are not sent to {shown(url)}: it {reason}. Use https, or where nobody can listen "
            f"allow_plaintext=True of a client, or insecure_hosts=[{place.host!r}] of what it has for auth"
        )
    return place


def check_origin(url: str, server: Place) -> Place:
    """The place of a request, when credentials for `server` may go with it.

    Raises:
        ConfigurationError: It is of another origin.
    """
    try:
        place = parse(url)
    except ValueError as error:
        raise ConfigurationError(f"credentials are not sent to {shown(url)}: it {error}") from error
    if place.origin != server.origin:
        raise ConfigurationError(f"credentials for {server.origin} are not sent to {place.origin}")
    return place


def _given(token: object) -> str:
    """What a function gave for a token. The error does not quote it.

    Raises:
        NotSent: It is none.
    """
    try:
        return checked(token)
    except ConfigurationError as error:
        what = f"{type(token).__name__}, and no token" if not isinstance(token, str) else "a text that is no token"
        wrong = "None" if token is None else "an empty text" if token == "" else what
        right = "it gives the bearer token alone, as a text, or raises where there is none"
        raise NotSent(f"the function that gives the token gave {wrong}, so nothing was sent; {right}") from error


def checked(token: object) -> str:
    """The token, when a header can carry it. The error does not quote it.

    Raises:
        ConfigurationError: It cannot.
    """
    if not isinstance(token, str) or not token or not all("!" <= letter <= "~" for letter in token):
        raise ConfigurationError(
            "the token is empty or holds a space, a line break or a letter outside ASCII, so no header can carry it "
            "(a token is given without the word Bearer before it)"
        )
    return token


def token_in(request: Request) -> str | None:
    """The access token that a request was sent with, or None."""
    for name, value in request.headers:
        if name.lower() == "authorization":
            return Hidden(value.partition(" ")[2])
    return None


def challenge_in(headers: Mapping[str, str]) -> Challenge | None:
    """The challenge to act on in the headers of a refusal, or None."""
    return understood(wire.parse(headers.get("www-authenticate", "")))


def insufficient(challenge: Challenge | None) -> bool:
    """Whether a challenge asks for more scopes."""
    return challenge is not None and challenge.params.get("error") == "insufficient_scope"
