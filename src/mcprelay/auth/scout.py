"""Finding out where a token comes from: the requests of discovery, in the order that `discovery` gives.

Makes the requests and says for each place what was there. Judges no document: `discovery` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from mcprelay.auth import discovery
from mcprelay.auth.address import Place, parse, same_origin
from mcprelay.auth.discovery import Finding, ResourceMetadata, ServerMetadata
from mcprelay.auth.failure import StepFailed, clean, shown
from mcprelay.auth.flow import scopes
from mcprelay.auth.veil import Veiled
from mcprelay.core.dialer import is_reserved

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcprelay.auth.courier import Courier
    from mcprelay.auth.settings import Settings
    from mcprelay.ports import Request
    from mcprelay.wire.challenge import Challenge

RESOURCE_STEP = "resource metadata discovery"
SERVER_STEP = "authorization server discovery"

_TOKEN_SCHEMES = frozenset({"bearer", "dpop"})
_SHOWN = frozenset({"authorization", "dpop"})
"""Headers that credentials are shown in."""


class Asked(Veiled, frozen=True, kw_only=True):
    """What a server's refusal says, as far as the way to a token depends on it.

    Attributes:
        metadata_url: The `resource_metadata` of its challenge.
        scope: The scopes of its challenge.
        schemes: The schemes of its challenges, in lower case; empty when it sent none.
        version: The protocol revision of the refused request, or None.
        refused: Whether there was a refusal at all; a login may begin without one.
        fields: The user's own headers for this server. They go with requests for what the server itself publishes, and
            never to an authorization server, not even to one at the same origin.
    """

    metadata_url: str | None = None
    scope: tuple[str, ...] = ()
    schemes: frozenset[str] = frozenset()
    version: str | None = None
    refused: bool = True
    fields: tuple[tuple[str, str], ...] = ()


def asked_by(request: Request, challenges: Sequence[Challenge]) -> Asked:
    """What a refusal with these challenges says."""
    challenge = understood(challenges)
    parameters: Mapping[str, str] = challenge.params if challenge else {}
    version = next((value for name, value in request.headers if name.lower() == "mcp-protocol-version"), None)
    return Asked(
        metadata_url=parameters.get("resource_metadata"),
        scope=scopes(parameters.get("scope")),
        schemes=frozenset(challenge.scheme.lower() for challenge in challenges),
        version=version,
        fields=fields_of(request),
    )


def fields_of(request: Request) -> tuple[tuple[str, str], ...]:
    """The user's own headers among those of a request: none of the protocol's, and none that shows credentials."""
    return tuple((name, value) for name, value in request.headers if not _is_ours(name))


def _is_ours(name: str) -> bool:
    return is_reserved(name) or name.lower() in _SHOWN


def understood(challenges: Sequence[Challenge]) -> Challenge | None:
    """The challenge to act on: the one that says most, among those for tokens that this client can show."""
    mine = [challenge for challenge in challenges if challenge.scheme.lower() in _TOKEN_SCHEMES]
    return max(
        mine, key=lambda challenge: len({"resource_metadata", "scope", "error"} & set(challenge.params)), default=None
    )


class Found(Struct, frozen=True, kw_only=True):
    """Where a token comes from.

    Attributes:
        resource: The MCP server's metadata; None for a server of the revision that had none.
        server: Its authorization server's.
        note: How this was found, for a later failure, when it was a guess.
    """

    resource: ResourceMetadata | None
    server: ServerMetadata
    note: str = ""

    @property
    def identifier(self) -> str | None:
        """The `resource` parameter. Servers without metadata are of a revision without it."""
        return self.resource.resource if self.resource else None


class Scout:
    """Looks for the authorization server of one MCP server.

    Args:
        settings: What the user set.
        server: The MCP server.
        courier: Sends the requests.
    """

    def __init__(self, settings: Settings, server: Place, *, courier: Courier) -> None:
        self._settings = settings
        self._server = server
        self._courier = courier
        self._tried: list[str] = []

    async def discover(self, asked: Asked, *, prefer: str | None = None) -> Found:
        """Find the authorization server.

        Args:
            asked: What the server's refusal says.
            prefer: An issuer to take when the server names several, because there are credentials for it.
        """
        resource = await self.resource(asked)
        if resource is None:
            return await self._fallback(asked)
        issuer = self._choose(resource.authorization_servers, prefer)
        return Found(resource=resource, server=await self._authorization_server(issuer))

    async def resource(self, asked: Asked) -> ResourceMetadata | None:
        """The MCP server's own metadata, or None when it has none."""
        self._tried = []
        for url in discovery.resource_places(self._server, named=asked.metadata_url):
            body = await self._document(url, asked, step=RESOURCE_STEP)
            if body is not None:
                try:
                    return discovery.read_resource(body, server=self._server, expected=self._settings.resource)
                except ValueError as error:
                    raise StepFailed(RESOURCE_STEP, f"the metadata at {shown(url)} {error}") from error
        return None

    async def _document(self, url: str, asked: Asked, *, step: str) -> bytes | None:
        """A JSON object, or None when there is none at the URL; `_tried` says what was there instead."""
        headers: list[tuple[str, str]] = []
        published = step == RESOURCE_STEP
        if same_origin(url, self._server.url):
            headers += [("MCP-Protocol-Version", asked.version)] if asked.version else []
            headers += asked.fields if published else ()
        answer = await self._courier.get(url, step=step, headers=headers, of="server" if published else "another")
        found = discovery.finding(answer.status)
        if found is Finding.BROKEN:
            raise StepFailed(step, answer.summary)
        if found is Finding.HERE and discovery.is_document(answer.body):
            return answer.body
        self._tried.append(answer.summary + (" without a JSON object" if found is Finding.HERE else ""))
        return None

    def _choose(self, issuers: Sequence[str], prefer: str | None) -> str:
        client = self._settings.client
        if client is not None and client.issuer is not None:
            if client.issuer not in issuers:
                raise StepFailed(
                    SERVER_STEP,
                    f"the MCP server names {', '.join(map(clean, issuers))}, and the client {client.client_id!r} is "
                    f"registered with {client.issuer!r}",
                )
            return client.issuer
        return prefer if prefer is not None and prefer in issuers else issuers[0]

    async def _authorization_server(self, issuer: str) -> ServerMetadata:
        try:
            place = parse(issuer)
        except ValueError as error:
            raise StepFailed(
                SERVER_STEP, f"the MCP server names the issuer {clean(issuer)!r}, which {error}"
            ) from error
        self._tried = []
        for url in discovery.server_places(place):
            body = await self._document(url, Asked(), step=SERVER_STEP)
            if body is not None:
                try:
                    return discovery.read_server(body, issuer=issuer)
                except ValueError as error:
                    # Not used, but another place may hold the right one: each is held against the issuer by itself.
                    self._tried.append(f"the metadata at {shown(url)} {error}")
        raise StepFailed(SERVER_STEP, "; ".join(self._tried))

    async def _fallback(self, asked: Asked) -> Found:
        """Servers of the first revision with authorization are their own authorization servers."""
        tried = "; ".join(self._tried)
        if (
            not asked.refused
            or self._settings.fallback == "refuse"
            or (asked.schemes and not asked.schemes & _TOKEN_SCHEMES)
        ):
            raise StepFailed(RESOURCE_STEP, tried, verdict="missing")
        note = f"the server publishes no resource metadata ({tried}), so it was taken for its own authorization server"
        url = discovery.fallback_place(self._server)
        body = await self._document(url, asked, step=SERVER_STEP)
        if body is None:
            return Found(resource=None, server=discovery.fallback_metadata(self._server), note=note)
        try:
            metadata = discovery.read_fallback(body, server=self._server)
        except ValueError as error:
            raise StepFailed(SERVER_STEP, f"the metadata at {shown(url)} {error}; {note}") from error
        return Found(resource=None, server=metadata, note=note)
