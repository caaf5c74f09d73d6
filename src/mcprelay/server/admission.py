"""The state of a request: what `Server(context=…)` makes of an HTTP request and of who sent it, or why it refuses.

It is made after the caller is known and before the body is read. What goes wrong meanwhile is a refusal like any other.
"""

from __future__ import annotations

import inspect
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from mcprelay.core.work import Refusal
from mcprelay.errors import ConfigurationError, RequestRefused
from mcprelay.server import event
from mcprelay.server.event import Authorization
from mcprelay.server.target import is_async
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcprelay.auth.principal import Principal
    from mcprelay.server import Server
    from mcprelay.server.call import HttpRequest

    Building = Callable[..., Any | Awaitable[Any]]


class Builder:
    """Makes the state of requests.

    Args:
        server: Whose requests they are.
        function: The user's: of the request, or of the request and the principal. A plain function runs in a worker
            thread, as handlers do; an `async def` one, and a class, on the loop.

    Raises:
        ConfigurationError: The function takes something else.
    """

    def __init__(self, server: Server, function: Building) -> None:
        self._server = server
        self._function = function
        self._takes_principal = _takes_principal(function)
        self._may_block = not isinstance(function, type) and not is_async(function)

    async def state(self, request: HttpRequest, principal: Principal | None) -> Any:
        """The value of `ctx.state`; or a `Refusal`, which the transport answers with."""
        try:
            given = (request, principal) if self._takes_principal else (request,)
            if self._may_block:
                made = await self._server.door_threads.run(partial(self._function, *given))
            else:
                made = self._function(*given)
            return await made if inspect.isawaitable(made) else made
        except RequestRefused as error:
            if error.status in (401, 403):
                self._server.events.emit(Authorization(decision="refused_by_context", status=error.status))
            else:
                self._server.events.emit(event.Refusal.of(error.status, "context"))
            return _refusal(error.status, error.message, error.headers)
        except Exception:
            self._server.events.emit(event.Refusal.of(500, "context"))
            reference = os.urandom(4).hex()
            self._server.logger.exception("the context function failed (reference %s)", reference)
            return _refusal(500, f"Internal error (reference {reference}: see the server's log)", {})


def _refusal(status: int, message: str, headers: dict[str, str]) -> Refusal:
    shown = ((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items())
    code = jsonrpc.INTERNAL_ERROR if status >= 500 else jsonrpc.INVALID_REQUEST
    return Refusal(status, jsonrpc.refusal(None, code, message), ((b"content-type", b"application/json"), *shown))


def _takes_principal(function: Any) -> bool:
    if not callable(function):
        raise ConfigurationError(f"context: {function!r} is no function of a request")
    parameters = inspect.signature(function).parameters.values()
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = [each for each in positional if each.default is each.empty]
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return True
    if not positional or len(needed) > 2:
        raise ConfigurationError("context: the function takes the request, or the request and the principal")
    return len(positional) > 1
