"""Requests to one HTTP server with whatever they must carry: the user's headers and the credentials.

Knows the loop in which a refused token is renewed and the request repeated, and that nothing has left as long as what
goes with a request is not there. Does not know what a body means.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import UNSET, Struct

from mcprelay.client import failure
from mcprelay.client.misuse import variables
from mcprelay.core.dialer import error_in, field_fault
from mcprelay.errors import (
    ANSWERED,
    MAYBE_SENT,
    NOT_SENT,
    AuthorizationRequired,
    CallFailed,
    ConfigurationError,
    ConnectionLost,
    LimitExceeded,
    MCPRelayError,
    NotSent,
)
from mcprelay.ports import Request
from mcprelay.wire.jsonrpc import ErrorObject

if TYPE_CHECKING:
    from mcprelay.auth import Credentials
    from mcprelay.client.call import Call
    from mcprelay.client.option import Fields
    from mcprelay.ports import Reply, Sender


_T = TypeVar("_T")

REFUSAL_BYTES = 2**16
"""How much of a refusal's body is read."""


class Refusal(Struct):
    """An HTTP status that is not success, with the JSON-RPC error in its body where there is one."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    error: ErrorObject | None = None
    anonymous: bool = False
    """The error does not name the request, so it is rather about the connection than about the call."""
    vouched: bool = False
    """Credentials for a proxy went with the request, as far as the sender says so."""


class Patience(Protocol):
    """Deadlines that stand still while a person decides."""

    def hold(self) -> None:
        """A person may be asked from now on."""
        ...

    def release(self) -> None:
        """Not any more."""
        ...


class Courier:
    """Sends requests for one client to one server.

    Args:
        sender: The HTTP client.
        credentials: Who the client says it is, or None.
        fields: The user's headers, or what gives them for each request.
        lent: Whether the sender is the user's, who closes it.
    """

    def __init__(
        self,
        sender: Sender,
        *,
        credentials: Credentials | None = None,
        fields: Fields | None = None,
        lent: bool = False,
    ) -> None:
        self.sender = sender
        self._lent = lent
        self._credentials = credentials
        self._fields = fields if callable(fields) else None
        self._fixed = [] if fields is None or callable(fields) else checked(fields)

    async def deliver(
        self,
        request: Request,
        receive: Callable[[Reply], Awaitable[_T]],
        *,
        call: Call | None = None,
        patience: Patience | None = None,
    ) -> _T | Refusal:
        """Send, and give what `receive` makes of a reply whose status is success.

        Args:
            request: What to send.
            receive: Reads the reply's body.
            call: What it is for, for the text of failures.
            patience: Told before and after a person may be asked for consent.

        Raises:
            CallFailed: There is no complete reply. `request.evidence` is right.
        """
        request.evidence = NOT_SENT
        ours = len(request.headers)
        request.headers += self._fixed
        if self._fields is not None:
            request.headers += await _made(self._asked(), f"headers ({_name(self._fields)})", call)
        attempt = 0
        headers = request.headers
        credentials = self._credentials
        while True:
            if credentials is not None:
                request.headers = [*headers, *await _made(credentials.headers(request), "auth", call)]
                if len(headers) > ours and any(_says_who(name) for name, _ in request.headers[len(headers) :]):
                    check_alone(name for name, _ in headers)
            request.evidence = MAYBE_SENT  # the sender knows better, and says so
            try:
                async with self.sender.send(request) as reply:
                    status = reply.status
                    if credentials is not None:
                        credentials.answered(request, status, reply.headers)
                    if 200 <= status < 300:
                        return await receive(reply)
                    refusal = await _refusal(reply, None if call is None else call.request_id)
            except Exception as error:
                failed = _failed(call, request, error)
                if failed is error:
                    raise
                raise failed from error
            if credentials is None or status not in (401, 403):
                return refusal
            attempt += 1
            request.evidence = ANSWERED
            if call is not None:
                call.refused = True  # who is not let in gets nothing carried out
            challenged = self._challenged(credentials, request, refusal, attempt, patience)
            if not await _made(challenged, "auth", call):
                return refusal
            request.evidence = NOT_SENT

    async def shown(self, url: str) -> list[tuple[str, str]]:
        """The user's headers and the credentials, as a request would get them now.

        Raises:
            Exception: Whatever the user's functions and the credentials raise.
        """
        headers = [*self._fixed, *(await self._asked() if self._fields is not None else ())]
        if self._credentials is not None:
            headers += await self._credentials.headers(Request(url=url, headers=headers.copy()))
        return headers

    async def aclose(self) -> None:
        """Close the HTTP client, unless it is the user's."""
        if not self._lent:
            await self.sender.aclose()

    async def _challenged(
        self,
        credentials: Credentials,
        request: Request,
        refusal: Refusal,
        attempt: int,
        patience: Patience | None,
    ) -> bool:
        if patience is not None:
            patience.hold()
        try:
            return await credentials.challenged(request, refusal.status, refusal.headers, attempt=attempt)
        finally:
            if patience is not None:
                patience.release()

    async def _asked(self) -> list[tuple[str, str]]:
        assert self._fields is not None, "called only where there are such headers"  # noqa: S101
        found: Any = self._fields()
        fields = await found if inspect.isawaitable(found) else found
        try:
            return checked(fields)
        except ConfigurationError as error:
            raise NotSent(f"{str(error).removeprefix('headers: ')}, so nothing was sent") from error


async def _made(making: Awaitable[_T], of: str, call: Call | None) -> _T:
    """What a function of the user's gives for a request that waits for it.

    Raises:
        ConnectFailed: It gave what cannot be sent, or raised something of its own, or a failure of another call, which
            says nothing of this one.
    """
    try:
        return await making
    except (ConfigurationError, AuthorizationRequired):
        raise
    except NotSent as error:
        raise failure.unconnected(call, f"{of}: {error}") from error
    except Exception as error:
        raise failure.unconnected(call, f"{of} raised {error!r}") from error


def _name(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


def _says_who(name: str) -> bool:
    return name.lower() == "authorization"


def check_alone(names: Iterable[str]) -> None:
    """See that the user's headers leave it to the credentials to say who the client is.

    Raises:
        ConfigurationError: One of them says it, too.
    """
    if any(_says_who(name) for name in names):
        raise ConfigurationError("headers: 'Authorization' is what auth= sets: give one of them")


def _failed(call: Call | None, request: Request, error: Exception) -> Exception:
    """What a sender raised, as the failure of a call; what is one already stays as it is."""
    if isinstance(error, NotSent):
        return failure.unconnected(call, str(error))
    if isinstance(error, ConnectionLost):
        return error if error.method is not None else failure.lost(call, request.evidence, str(error))
    if isinstance(error, LimitExceeded) and not isinstance(error, CallFailed):
        return failure.too_long(call, error.limit, error.allowed)
    if isinstance(error, MCPRelayError):
        return error
    request.evidence = MAYBE_SENT  # a sender may be anybody's, and what it did before is not known
    return failure.lost(call, request.evidence, f"the HTTP client failed ({error!r})")


async def _refusal(reply: Reply, id: str | int | None) -> Refusal:
    """A refusal with the beginning of its body; the status alone says enough where that breaks off."""
    body = b""
    try:
        async for chunk in reply.chunks():
            body += chunk
            if len(body) >= REFUSAL_BYTES:
                break
    except (LimitExceeded, ConnectionLost):
        pass
    envelope = error_in(body) if body else None
    error: Any = None if envelope is None else envelope.error
    named = UNSET if envelope is None else envelope.id
    anonymous = error is not None and (named is UNSET or (id is not None and named != id))
    return Refusal(reply.status, reply.headers, body, error, anonymous, getattr(reply, "vouched", False))


def checked(fields: Mapping[str, str] | None) -> list[tuple[str, str]]:
    """A user's headers, ready to send.

    Raises:
        ConfigurationError: One of them is the protocol's own, or cannot be sent.
    """
    if fields is None:
        raise ConfigurationError("headers: the function gave None in place of a mapping")
    variables("headers", fields)
    for name, value in fields.items():
        fault = field_fault(name, value)
        if fault is not None:
            raise ConfigurationError(f"headers: {fault}")
    return list(fields.items())
