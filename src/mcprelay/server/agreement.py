"""What a client and a server have agreed on over one channel, and each of its calls read in that.

In the handshake era that is a revision and a session, once it has been shaken hands. In the stateless era every call
says its revision itself. Knows nothing of the channel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from mcprelay import revisions
from mcprelay.revisions import Era, Fault, Feature
from mcprelay.server import handshake
from mcprelay.server.call import Answer, Call
from mcprelay.wire.params import CLIENT_CAPABILITIES, NO_META, PROTOCOL_VERSION, Params

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.core.peer import Called
    from mcprelay.ports import Session
    from mcprelay.revisions import Revision
    from mcprelay.server import Server
    from mcprelay.server.call import HttpRequest, Link, Principal

_decode_params = msgspec.json.Decoder(Params).decode


def _stateless(server: Server) -> Revision | None:
    """The newest revision of the stateless era that is served, or None."""
    served = revisions.of_era(Era.STATELESS, server.revisions)
    return served[0] if served else None


class Agreement:
    """What is agreed on with one client.

    Args:
        server: What is served.
        link: The way back to the client.
        principal: Who it is, where the application knows.
        http: An HTTP request that handlers shall see, where there is one.
        state: The value of `ctx.state` for every call.

    Attributes:
        revision: The revision of the handshake era that was agreed on, or None.
        session: The session in it.
    """

    def __init__(
        self,
        server: Server,
        link: Link,
        *,
        principal: Principal | None,
        http: HttpRequest | Callable[[], HttpRequest] | None,
        state: Any,
    ) -> None:
        self._server = server
        self._link = link
        self._principal = principal
        self._http = http
        self._state = state
        self._spoken = _stateless(server)  # what calls are most likely to be in
        self.revision: Revision | None = None
        self.session: Session | None = None

    @property
    def batches(self) -> bool:
        """Whether a batch is a message."""
        return self.revision is not None and self.revision.has(Feature.BATCH)

    def call(self, event: Called) -> Call | Answer:
        """The call, in the revision that it is in; or the answer that it gets instead."""
        spoken = self.revision or self._spoken
        method = None if spoken is None else spoken.method(event.method)
        if spoken is None or method is None or event.params is UNSET:
            return self._judged(event)
        try:
            params = method.decode(event.params)
        except msgspec.DecodeError:
            return self._judged(event)
        said = params.meta.protocol_version
        if spoken is self.revision:
            fits = said is None and event.method != "initialize"
        else:
            fits = said == spoken.name and params.meta.client_capabilities is not None
        if not fits:
            return self._judged(event)
        return Call(
            spoken,
            event.id,
            method,
            params,
            event.params,
            self._link,
            principal=self._principal,
            carrier=self._http,
            session=self.session if spoken is self.revision else None,
            state=self._state,
        )

    def _judged(self, event: Called) -> Call | Answer:
        """The same, step by step, where a call is not plainly one in what is spoken."""
        try:
            meta = _decode_params(event.params).meta if event.params is not UNSET else NO_META
        except msgspec.DecodeError as error:
            return self._refuse(event, Fault.INVALID_PARAMS, f"Invalid params: {error}")
        if meta.protocol_version is None:
            return self._handshake_call(event)
        revision = self._server.served.get(meta.protocol_version)
        if revision is None or revision.era is not Era.STATELESS:
            supported = [revision.name for revision in self._server.revisions]
            data = {"supported": supported, "requested": meta.protocol_version}
            why = f"Unsupported protocol version: {meta.protocol_version}"
            return self._refuse(event, Fault.UNSUPPORTED_REVISION, why, data)
        if meta.client_capabilities is None:
            why = f"Invalid params: params._meta must have {CLIENT_CAPABILITIES!r}"
            return self._refuse(event, Fault.INVALID_PARAMS, why)
        return self._decoded(event, revision, None)

    def _handshake_call(self, event: Called) -> Call | Answer:
        if event.method == "initialize":
            return self._initialize(event)
        if self.revision is not None:
            return self._decoded(event, self.revision, self.session)
        eldest = revisions.of_era(Era.HANDSHAKE, self._server.revisions)
        if event.method == "ping" and eldest:  # lifecycle: pings are allowed before the session has begun
            return self._decoded(event, eldest[0], None)
        names = ", ".join(revision.name for revision in self._server.revisions)
        why = f"Invalid params: params._meta must have {PROTOCOL_VERSION!r} (supported: {names})"
        return self._refuse(event, Fault.INVALID_PARAMS, why)

    def _initialize(self, event: Called) -> Call | Answer:
        if self.revision is not None:
            return handshake.again(event, self.revision)
        session = handshake.begun(self._server, event, principal=self._principal)
        if isinstance(session, Answer):
            return session
        self.session = session
        self.revision = self._server.served[session.revision]
        return self._decoded(event, self.revision, session)

    def forget(self) -> None:
        """The handshake came to nothing, so there may be another one."""
        self.session = self.revision = None

    def _decoded(self, event: Called, revision: Revision, session: Session | None) -> Call | Answer:
        return handshake.decoded(
            event, revision, self._link, session=session, principal=self._principal, http=self._http, state=self._state
        )

    def _refuse(self, event: Called, fault: Fault, why: str, data: Any = None) -> Answer:
        return handshake.refusal(event, self.revision or self._server.revisions[0], fault, why, data)
