"""Requests on the way to a token: sent where it is allowed, bounded, and understood when they fail.

Keeps the rules of `address` for every URL, follows no redirect, and turns whatever goes wrong into a `StepFailed` that
names the step, the URL and what came back. Does not know what the requests are for.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from mcprelay.auth.address import Kind, Place, insecure, is_loopback, kinds, parse, refusal
from mcprelay.auth.failure import OAuthError, StepFailed, clean, redacted, shown
from mcprelay.auth.veil import Hidden
from mcprelay.errors import LimitExceeded, MCPRelayError
from mcprelay.ports import Request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from mcprelay.ports import Sender

    Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
    """From a host and a port to the addresses that it has; empty when that cannot be told."""


SECRETS = frozenset(
    {
        "assertion",
        "client_assertion",
        "client_secret",
        "code",
        "code_verifier",
        "refresh_token",
        "subject_token",
        "token",
    }
)
"""The parameters of a form that are nobody else's business."""


class Answer(Struct, frozen=True):
    """What came back.

    Attributes:
        url: Where from.
        status: The HTTP status.
        headers: The headers, names in lower case.
        body: The body.
        secrets: What was sent and must not be shown, should the peer quote it.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Answer({self.status} from {shown(self.url)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []

    @property
    def error(self) -> OAuthError | None:
        """The OAuth error that it is, or None."""
        return OAuthError.read(self.body, secrets=self.secrets)

    @property
    def passing(self) -> bool:
        """Whether it is a failure that may be over when the same is asked again."""
        return self.status >= 500 or self.status in (408, 425, 429)

    @property
    def summary(self) -> str:
        """Status and, for a redirect, where it leads: what a sentence about a failure says."""
        if 300 <= self.status < 400 and (location := self.headers.get("location")):
            return f"{shown(self.url)} answered {self.status}, a redirect to {shown(location)}, which is not followed"
        return f"{shown(self.url)} answered {self.status}"


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, by the system's resolver; none when it has no answer, as behind some proxies."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return [str(entry[4][0]) for entry in found]


class Courier:
    """Sends requests on behalf of the credentials for one MCP server.

    Args:
        sender: What sends.
        server: The MCP server.
        allowed: Hosts and networks that may be named although they are not public.
        insecure_hosts: Hosts to which plain http is allowed.
        limit: Bytes that an answer may have (`answer_bytes`).
        timeout: Seconds that one request may take (`request_timeout`).
        resolver: How hosts are looked up.
    """

    def __init__(
        self,
        sender: Sender,
        server: Place,
        *,
        allowed: Collection[str] = (),
        insecure_hosts: Collection[str] = (),
        limit: int = 262_144,
        timeout: float = 30.0,
        resolver: Resolve = resolve,
    ) -> None:
        self._sender = sender
        self._server = server
        self._allowed: Collection[str] = allowed
        self._insecure_hosts = insecure_hosts
        self._limit = limit
        self._timeout = timeout
        self._resolve = resolver
        self._server_kinds: set[Kind] | None = None

    def allow(self, hosts: Collection[str]) -> None:
        """Allow hosts and networks beside those of the settings: what the user allowed at an earlier login."""
        self._allowed = {*self._allowed, *hosts}

    async def get(
        self,
        url: str,
        *,
        step: str,
        headers: Sequence[tuple[str, str]] = (),
        of: Literal["server", "another"] = "another",
    ) -> Answer:
        """Fetch a document that a server named.

        Args:
            url: Where it is.
            step: The step, for errors.
            headers: Further headers.
            of: `server` for a document of the MCP server itself, which comes the way that credentials may go to it.

        Raises:
            StepFailed: The URL is refused, or no answer came.
        """
        place = await self.admit(url, step=step, of=of)
        request = Request(method="GET", url=place.url, headers=[("Accept", "application/json"), *headers])
        return await self._send(request, step=step)

    async def post_form(
        self, url: str, form: Mapping[str, str], *, step: str, headers: Mapping[str, str], chosen: str = "server"
    ) -> Answer:
        """Post a form.

        Args:
            url: Where to.
            form: The parameters.
            step: The step, for errors.
            headers: Further headers.
            chosen: `server` when a server named the URL, `user` when the user did, who may name any address.

        Raises:
            StepFailed: The URL is refused, or no answer came.
        """
        place = await self.admit(url, step=step, chosen=chosen)
        secrets = [Hidden(value) for name, value in form.items() if name in SECRETS]
        secrets += [Hidden(value.rpartition(" ")[2]) for value in headers.values()]
        return await self._send(_form_request(place, form, headers), step=step, secrets=secrets)

    async def post_json(self, url: str, value: Any, *, step: str) -> Answer:
        """Post JSON to a URL that a server named. Raises as `get` does."""
        place = await self.admit(url, step=step)
        fields = [("Content-Type", "application/json"), ("Accept", "application/json")]
        request = Request(method="POST", url=place.url, headers=fields, body=msgspec.json.encode(value))
        return await self._send(request, step=step)

    async def admit(
        self, url: str, *, step: str, chosen: str = "server", of: Literal["server", "another"] = "another"
    ) -> Place:
        """The place that a URL is, when a request may go there.

        Raises:
            StepFailed: It may not.
        """
        try:
            place = parse(url)
        except ValueError as error:
            raise StepFailed(step, f"the address {clean(url)!r} {error}") from error
        if chosen == "server" and place.host != self._server.host:
            reason = await self._inner(place, step)
            if reason is not None:
                raise StepFailed(
                    step,
                    f"the server names the address {shown(url)}, which {reason}, and requests to such places are "
                    f"refused. If it is right, allow it with allowed_hosts=[{place.host!r}]",
                )
        if of == "server" and place.origin == self._server.origin:
            return place  # whether this may be plain http was decided when the credentials were bound
        if (reason := insecure(place, allowed=self._insecure_hosts)) is not None:
            raise StepFailed(
                step,
                f"the address {shown(url)} {reason}. What gives tokens is reached over https; allow_plaintext is for "
                f"the MCP server itself. Allow it with insecure_hosts=[{place.host!r}]",
            )
        return place

    async def _inner(self, place: Place, step: str) -> str | None:
        """Why a place that a server named is none for it to name, or None."""
        try:
            async with asyncio.timeout(self._timeout):
                addresses = await self._resolve(place.host, place.port)
                return refusal(place, addresses, server=await self._kinds_of_server(), allowed=self._allowed)
        except TimeoutError as error:
            sentence = f"{place.host} could not be looked up in request_timeout={self._timeout:g} seconds"
            raise StepFailed(step, sentence) from error

    async def _kinds_of_server(self) -> set[Kind]:
        """This machine counts only when the user named it: a name that leads here is another's to give."""
        if self._server_kinds is None:
            found = kinds(self._server.host, await self._resolve(self._server.host, self._server.port))
            self._server_kinds = found if is_loopback(self._server.host) else found - {Kind.LOOPBACK}
        return self._server_kinds

    async def _send(self, request: Request, *, step: str, secrets: Sequence[str] = ()) -> Answer:
        try:
            async with asyncio.timeout(self._timeout), self._sender.send(request) as reply:
                body = await reply.read(self._limit)
                return Answer(request.url, reply.status, reply.headers, body, tuple(secrets))
        except LimitExceeded as error:
            raise StepFailed(
                step, f"{shown(request.url)} answered more than answer_bytes={self._limit} bytes"
            ) from error
        except TimeoutError as error:
            raise StepFailed(
                step, f"{shown(request.url)} gave no answer in request_timeout={self._timeout:g} seconds"
            ) from error
        except (MCPRelayError, OSError) as error:
            reason = redacted(str(error), secrets)
            cause = error if reason == str(error) else None
            said = f"{shown(request.url)} could not be reached: {clean(reason) or type(error).__name__}"
        raise StepFailed(step, said) from cause  # outside, so that what quotes a secret is not its context either


def _form_request(place: Place, form: Mapping[str, str], headers: Mapping[str, str]) -> Request:
    """A form to post. Its own function, so that nothing but the request is left of it while the answer is awaited."""
    fields = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json"), *headers.items()]
    return Request(method="POST", url=place.url, headers=fields, body=urlencode(form).encode("ascii"))
