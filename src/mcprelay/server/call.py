"""One request that a server works on: what was asked, by whom, and how to reach the client meanwhile.

A `Call` knows nothing of sockets and nothing of handlers. Transports make it, `dispatch` answers it, and middleware
sees it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, final

import msgspec
from msgspec import UNSET, Raw, Struct

from mcprelay.auth.principal import Principal
from mcprelay.errors import ProtocolError
from mcprelay.ports import Session
from mcprelay.revisions import Fault, Method, Revision
from mcprelay.server.patience import Patience
from mcprelay.server.resume import StateKeys
from mcprelay.types import ClientCapabilities, Implementation, LogLevel, Meta, RequestId
from mcprelay.wire import jsonrpc
from mcprelay.wire.params import IDEMPOTENCY_KEY
from mcprelay.wire.trace import TraceContext, trace_of

__all__ = ["Answer", "Call", "HttpRequest", "Link", "Principal"]


_TRACED = re.compile(b"traceparent|baggage")
_IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")
_CORRELATION_ID = re.compile(r"[!-~]{1,128}")


class Link(Protocol):
    """The way back to the client while a request is worked on."""

    def notify(self, message: bytes) -> None:
        """Queue a notification on the stream of this request, in order, before its answer. Called on the loop's thread;
        never blocks. After the answer, or when the client is gone, the message is dropped.
        """
        ...

    async def drain(self) -> None:
        """Wait until what was queued has been handed to the transport, so that a slow client slows its server down."""
        ...

    async def request(self, method: str, params: bytes) -> Raw:
        """Ask the client something, in the handshake era, and wait for its result.

        Raises:
            ProtocolError: The client answered with an error.
        """
        ...

    def close_stream(self, retry_ms: int) -> None:
        """Let go of the connection that carries this request's stream, where the client can come back for the rest of
        it after `retry_ms` milliseconds; elsewhere nothing happens.
        """
        ...


class HttpRequest(Struct, frozen=True):
    """The HTTP request that a call came with. Header names are lower-cased; `scope` is the ASGI scope, where there is
    one.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    client: tuple[str, int] | None = None
    scope: Mapping[str, Any] | None = None


@final
class Answer(Struct):
    """A complete JSON-RPC response, and its error code (0 for a result)."""

    message: bytes
    code: int = 0


class Call(Struct, eq=False):
    """One request, being worked on. Middleware may put other `params` in the place of those that came.

    Attributes:
        revision: The protocol revision that it is in.
        id: Its JSON-RPC id.
        method: Its method; `method.name` is what the wire calls it.
        params: Its params, of the type that the method has.
        raw: Its params as they came.
        link: The way back to the client.
        principal: Who calls, as verified.
        carrier: The HTTP request that it came with, or what makes it, on that transport: see `http`.
        session: The session of the handshake era that it is in.
        state: What `Server(context=…)` made for it.
        cancelled: Whether the client has given it up.
        observed: Whether somebody wants to know what becomes of it.
        keys: What seals its state, where that is not the business of the server that handles it.
        patience: The time that its handler may take, while it runs and where there is a limit.
        amended: What it changed of the session, in order.
        correlation: What `correlation_id` gave, once it was asked for.
    """

    revision: Revision
    id: RequestId
    method: Method
    params: Any
    raw: Any
    link: Link
    principal: Principal | None = None
    carrier: HttpRequest | Callable[[], HttpRequest] | None = None
    session: Session | None = None
    state: Any = None
    cancelled: bool = False
    observed: bool = False
    keys: StateKeys | None = None
    patience: Patience | None = None
    amended: tuple[Callable[[Session], None], ...] = ()
    correlation: str | None = None

    @property
    def http(self) -> HttpRequest | None:
        """The HTTP request that the call came with, on that transport."""
        if self.carrier is not None and not isinstance(self.carrier, HttpRequest):
            self.carrier = self.carrier()
        return self.carrier

    @property
    def transport(self) -> Literal["http", "channel"]:
        """On what the call came."""
        return "channel" if self.carrier is None else "http"

    @property
    def target(self) -> str | None:
        """The name of the tool or prompt, or the URI of the resource, that the call is about."""
        return None if self.method.mirror is None else getattr(self.params, self.method.mirror)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a tool or prompt, as plain values; empty where there are none."""
        given = getattr(self.params, "arguments", None)
        if given is None or given is UNSET:
            return {}
        return msgspec.json.decode(given) if isinstance(given, Raw) else dict(given)

    def with_arguments(self, arguments: Mapping[str, Any]) -> None:
        """Go on with other arguments: JSON values for a tool, strings for a prompt."""
        given: Any = Raw(jsonrpc.encode(arguments)) if self.method.name == "tools/call" else dict(arguments)
        self.params = msgspec.structs.replace(self.params, arguments=given)

    def amend(self, change: Callable[[Session], None]) -> None:
        """Change what the session remembers: here at once, and in its store before the call is answered.

        `change` gives the same when it is called twice, and knows nothing but the session.
        """
        if self.session is not None:
            change(self.session)
            self.amended = (*self.amended, change)

    @property
    def trace(self) -> TraceContext | None:
        """Where the call stands in the client's trace (basic, "OpenTelemetry trace context")."""
        meta = self.meta if self.raw is not UNSET and _TRACED.search(bytes(self.raw)) else None
        return trace_of(meta) if isinstance(meta, dict) else None

    @property
    def meta(self) -> Meta:
        """All of the request's `_meta`."""
        if self.raw is UNSET:
            return {}
        return msgspec.json.decode(self.raw).get("_meta") or {}

    @property
    def idempotency_key(self) -> str | None:
        """The key that the client gave, so that its repeated calls are known to be the same.

        Raises:
            ProtocolError: It is not a key; guessing what was meant could run something twice.
        """
        key = self.params.meta.idempotency_key
        if key is UNSET:
            return None
        if isinstance(key, str) and _IDEMPOTENCY_KEY.fullmatch(key):
            return key
        why = f"Invalid params: {IDEMPOTENCY_KEY} is 1 to 255 visible ASCII characters"
        raise ProtocolError(self.revision.code(Fault.INVALID_PARAMS), why)

    @property
    def correlation_id(self) -> str:
        """What this call is called in logs: the client's id, or one made here where it gave none that can be used."""
        if self.correlation is None:
            given = self.params.meta.correlation_id
            usable = isinstance(given, str) and _CORRELATION_ID.fullmatch(given)
            self.correlation = str(given) if usable else os.urandom(8).hex()
        return self.correlation

    @property
    def client_info(self) -> Implementation | None:
        """What the client says it is: for display and logs only."""
        if self.session is None:
            said: Implementation | None = self.params.meta.client_info
            return said
        info = self.session.client_info
        return msgspec.convert(info, Implementation) if info else None

    @property
    def client_capabilities(self) -> ClientCapabilities:
        """What the client can be asked for."""
        if self.session is None:
            return self.params.meta.client_capabilities or ClientCapabilities()
        return msgspec.convert(self.session.client_capabilities, ClientCapabilities)

    @property
    def log_level(self) -> LogLevel | None:
        """The least severe log message that the client wants to see, or None for none."""
        if self.session is None:
            wanted: LogLevel | None = self.params.meta.log_level
            return wanted
        return self.session.log_level  # type: ignore[return-value]
