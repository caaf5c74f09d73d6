"""A network of scripted servers for the tests of authorization: a `Sender` without a socket.

`World` holds the servers by origin and remembers every request. `Issuer` is an authorization server that checks what it
is sent; `Resource` is an MCP server that wants a token of it. `call` is the loop that a client drives credentials with.
"""

import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from mcprelay.auth import Credentials
from mcprelay.errors import LimitExceeded, NotSent
from mcprelay.ports import Request

MCP = "https://mcp.example.com/mcp"
ISSUER = "https://as.example.com"


@dataclass
class Reply:
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    async def read(self, limit: int) -> bytes:
        if len(self.body) > limit:
            raise LimitExceeded("limit", limit)
        return self.body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.body


def answer(status: int, value: Any = None, **headers: str) -> Reply:
    """A JSON reply; `www_authenticate=` and its like are headers."""
    body = b"" if value is None else json.dumps(value).encode()
    return Reply(status, {name.replace("_", "-"): text for name, text in headers.items()}, body)


Handler = Callable[[Request], Reply]


class World:
    """Servers by origin. An origin that is not there cannot be reached."""

    def __init__(self, **origins: Handler) -> None:
        self.servers: dict[str, Handler] = dict(origins)
        self.requests: list[Request] = []

    def add(self, origin: str, handler: Handler) -> None:
        self.servers[origin] = handler

    @property
    def urls(self) -> list[str]:
        return [f"{request.method} {request.url}" for request in self.requests]

    def sent_to(self, part: str) -> list[Request]:
        return [request for request in self.requests if part in request.url]

    @asynccontextmanager
    async def send(self, request: Request) -> AsyncIterator[Reply]:
        self.requests.append(request)
        parts = urlsplit(request.url)
        server = self.servers.get(f"{parts.scheme}://{parts.netloc}")
        if server is None:
            raise NotSent(f"{parts.netloc} cannot be reached")
        yield server(request)

    async def aclose(self) -> None:
        pass


def header(request: Request, name: str) -> str | None:
    found = [value for key, value in request.headers if key.lower() == name.lower()]
    assert len(found) < 2, f"{name} came twice"
    return found[0] if found else None


def form(request: Request) -> dict[str, str]:
    pairs = parse_qsl((request.body or b"").decode(), keep_blank_values=True)
    assert len(dict(pairs)) == len(pairs), "a parameter came twice"
    return dict(pairs)


def claims(jws: str) -> dict[str, Any]:
    part = jws.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


class Issuer:
    """An authorization server that gives tokens to whoever does all as it must be done.

    Attributes that tests change: `metadata` (merged over the usual), `places` (paths at which it lies), `grants`
    (members of each token response), `iss` (what it calls itself in answers), `refuse` (an error for the next token
    requests), `people` (what the authorization page does).
    """

    def __init__(self, url: str = ISSUER, **metadata: Any) -> None:
        self.url = url
        parts = urlsplit(url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.path = parts.path.rstrip("/")
        self.places = [f"/.well-known/oauth-authorization-server{self.path}"]
        self.metadata = {
            "issuer": url,
            "authorization_endpoint": f"{self.origin}{self.path}/authorize",
            "token_endpoint": f"{self.origin}{self.path}/token",
            "registration_endpoint": f"{self.origin}{self.path}/register",
            "revocation_endpoint": f"{self.origin}{self.path}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            **metadata,
        }
        self.iss: str | None = None
        self.grants: dict[str, Any] = {"expires_in": 3600, "refresh_token": "refresh"}
        self.refuse: list[Reply] = []
        self.registrations: list[dict[str, Any]] = []
        self.registered: dict[str, Any] = {}
        self.questions: list[dict[str, str]] = []
        self.token_requests: list[dict[str, str]] = []
        self.revoked: list[dict[str, str]] = []
        self.issued = 0
        self.rotating = False
        self.refresh_token = "refresh"

    def __call__(self, request: Request) -> Reply:
        path = urlsplit(request.url).path
        if path in self.places:
            return answer(200, {name: value for name, value in self.metadata.items() if value is not None})
        return {
            f"{self.path}/register": self.register,
            f"{self.path}/authorize": self.authorize,
            f"{self.path}/token": self.token,
            f"{self.path}/revoke": self.revoke,
        }.get(path, lambda _: answer(404))(request)

    def register(self, request: Request) -> Reply:
        body = json.loads(request.body or b"")
        self.registrations.append(body)
        return answer(201, {"client_id": f"client-{len(self.registrations)}", **body, **self.registered})

    def authorize(self, request: Request) -> Reply:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(request.url).query).items()}
        self.questions.append(asked)
        back = {"code": f"code-{len(self.questions)}", "state": asked["state"]}
        if self.iss is not None:
            back["iss"] = self.iss
        return Reply(302, {"location": f"{asked['redirect_uri']}?{urlencode(back)}"})

    def token(self, request: Request) -> Reply:
        asked = form(request)
        self.token_requests.append(asked)
        if self.refuse:
            return self.refuse.pop(0)
        if asked["grant_type"] == "authorization_code":
            question = self.questions[int(asked["code"].removeprefix("code-")) - 1]
            challenge = base64.urlsafe_b64encode(hashlib.sha256(asked["code_verifier"].encode()).digest())
            assert challenge.rstrip(b"=").decode() == question["code_challenge"]
            assert asked["redirect_uri"] == question["redirect_uri"]
            assert asked.get("resource") == question.get("resource")
        elif asked["grant_type"] == "refresh_token" and asked["refresh_token"] != self.refresh_token:
            return answer(400, {"error": "invalid_grant"})
        self.issued += 1
        grants = dict(self.grants)
        if self.rotating and "refresh_token" in grants:
            self.refresh_token = grants["refresh_token"] = f"refresh-{self.issued}"
        return answer(200, {"access_token": f"token-{self.issued}", "token_type": "Bearer", **grants})

    def revoke(self, request: Request) -> Reply:
        self.revoked.append(form(request))
        return answer(200)


class Resource:
    """An MCP server that answers 401 until it sees a token that it accepts.

    Attributes that tests change: `accepts` (does it take this token?), `challenge` (the `WWW-Authenticate` of a 401),
    `metadata` (None for none), `places` (paths at which it lies).
    """

    def __init__(self, url: str = MCP, issuer: str = ISSUER, **metadata: Any) -> None:
        self.url = url
        parts = urlsplit(url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.path = parts.path
        self.places = [f"/.well-known/oauth-protected-resource{self.path}"]
        self.metadata: dict[str, Any] | None = {"resource": url, "authorization_servers": [issuer], **metadata}
        self.challenge: str | None = f'Bearer resource_metadata="{self.origin}{self.places[0]}"'
        self.accepts: Callable[[str], bool] = lambda token: token.startswith("token-")
        self.refusals: list[Reply] = []
        self.calls: list[Request] = []

    def __call__(self, request: Request) -> Reply:
        path = urlsplit(request.url).path
        if path in self.places and self.metadata is not None:
            return answer(200, self.metadata)
        if path != self.path:
            return answer(404)
        self.calls.append(request)
        scheme, _, token = (header(request, "authorization") or "").partition(" ")
        if not scheme or not self.accepts(token):
            return answer(401, **({"www_authenticate": self.challenge} if self.challenge else {}))
        if self.refusals:
            return self.refusals.pop(0)
        return answer(200, {"ok": True})


def world(resource: Resource | None = None, *issuers: Issuer) -> tuple[World, Resource, Issuer]:
    """A resource and its issuers, on one network."""
    resource = resource or Resource()
    found = list(issuers) or [Issuer()]
    network = World()
    network.add(resource.origin, resource)
    for issuer in found:
        network.add(issuer.origin, issuer)
    return network, resource, found[0]


@dataclass
class Outcome:
    status: int
    attempts: int


async def call(
    credentials: Credentials, sender: World, url: str = MCP, *, method: str = "POST", version: str | None = None
) -> Outcome:
    """One call as a client makes it (see `mcprelay.auth`)."""
    own = [("MCP-Protocol-Version", version)] if version else []
    attempt = 0
    while True:
        request = Request(method=method, url=url, headers=list(own), body=b"{}")
        request.headers += await credentials.headers(request)
        async with sender.send(request) as reply:
            credentials.answered(request, reply.status, reply.headers)
            status, headers = reply.status, dict(reply.headers)
        if status not in (401, 403):
            return Outcome(status, attempt + 1)
        attempt += 1
        if not await credentials.challenged(request, status, headers, attempt=attempt):
            return Outcome(status, attempt)


class FakeClock:
    """A clock that moves when told to."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


async def public(host: str, port: int) -> list[str]:
    """A resolver that finds every name on the internet."""
    return ["93.184.216.34"]
