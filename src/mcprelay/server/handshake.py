"""`initialize`, and requests decoded in their revision: written once for channels and for HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from mcprelay import revisions
from mcprelay.ports import Session
from mcprelay.revisions import Era, Fault
from mcprelay.server.call import Answer, Call
from mcprelay.server.event import LimitHit
from mcprelay.wire import jsonrpc
from mcprelay.wire.params import InitializeParams

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.core.peer import Called
    from mcprelay.revisions import Revision
    from mcprelay.server import Server
    from mcprelay.server.call import HttpRequest, Link, Principal

INITIALIZED = "notifications/initialized"
LOGGED = "info"
"""The log level of a session that did not set one: the server decides (utilities/logging, "Setting Log Level")."""
_decode_initialize = msgspec.json.Decoder(InitializeParams).decode


def subject_of(principal: Principal | None) -> str | None:
    """Whom a session belongs to. Their tokens change, they do not."""
    return None if principal is None else principal.subject


def refusal(request: Called, revision: Revision, fault: Fault, why: str, data: Any = None) -> Answer:
    """The answer to a request that is not carried out."""
    code = revision.code(fault)
    return Answer(jsonrpc.refusal(request.id, code, why, data), code)


def begun(server: Server, request: Called, *, id: str = "", principal: Principal | None = None) -> Session | Answer:
    """The session that an `initialize` request begins, or why it begins none.

    The revision is the one that the client proposes if the server has it, else the newest that it has (lifecycle,
    "Version Negotiation").
    """
    handshake = revisions.of_era(Era.HANDSHAKE, server.revisions)
    if not handshake:
        names = ", ".join(revision.name for revision in server.revisions)
        why = f"Method not found: initialize. This server speaks {names}, without a handshake"
        return refusal(request, server.revisions[0], Fault.METHOD_NOT_FOUND, why)
    said = b"{}" if request.params is UNSET else bytes(request.params)
    allowed = server.limits.session_bytes
    if len(said) > allowed:
        server.events.emit(LimitHit(limit="session_bytes", allowed=allowed))
        why = f"Invalid params: they are over the limit, {len(said)} bytes: session_bytes={allowed}"
        return refusal(request, handshake[0], Fault.INVALID_PARAMS, why)
    try:
        params = _decode_initialize(said)
    except msgspec.DecodeError as error:
        return refusal(request, handshake[0], Fault.INVALID_PARAMS, f"Invalid params: {error}")
    agreed = revisions.negotiate(params.protocol_version, handshake)
    return Session(
        id=id,
        revision=agreed.name,
        client_info=msgspec.to_builtins(params.client_info),
        client_capabilities=msgspec.to_builtins(agreed.shape(params.capabilities)),  # what it lacks is not asked for
        principal=subject_of(principal),
        log_level=LOGGED,
    )


def in_batch(request: Called, revision: Revision) -> Answer:
    """The answer to an `initialize` that is part of a batch (lifecycle: it MUST NOT be)."""
    return refusal(request, revision, Fault.INVALID_REQUEST, "Invalid request: initialize is not part of a batch")


def again(request: Called, revision: Revision) -> Answer:
    """The answer to an `initialize` where the session has begun already."""
    why = f"Invalid request: this session has begun already, in revision {revision.name}: open a new one for another"
    return refusal(request, revision, Fault.INVALID_REQUEST, why)


def initialized(session: Session) -> None:
    """Note that the client has ended its handshake."""
    session.initialized = True


def decoded(
    request: Called,
    revision: Revision,
    link: Link,
    *,
    session: Session | None = None,
    principal: Principal | None = None,
    http: HttpRequest | Callable[[], HttpRequest] | None = None,
    state: Any = None,
) -> Call | Answer:
    """The call that a request is in a revision, or the answer that it gets instead."""
    method = revision.method(request.method)
    if method is None:
        return refusal(request, revision, Fault.METHOD_NOT_FOUND, f"Method not found: {request.method}")
    params = request.params
    try:
        decoded_params = method.decode(b"{}" if params is UNSET else params)
    except msgspec.DecodeError as error:
        return refusal(request, revision, Fault.INVALID_PARAMS, f"Invalid params: {error}")
    return Call(
        revision,
        request.id,
        method,
        decoded_params,
        params,
        link,
        principal=principal,
        carrier=http,
        session=session,
        state=state,
    )
