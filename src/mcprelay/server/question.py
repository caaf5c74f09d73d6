"""Requests of the server's to a client of the handshake era: asked, answered, given up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw

from mcprelay.core.peer import Lost, Refused, Replied
from mcprelay.errors import ConfigurationError, Evidence, ProtocolError
from mcprelay.revisions import Fault
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.core.peer import Peer, Pending
    from mcprelay.revisions import Revision
    from mcprelay.types import InputRequest

GONE = "the client is gone: nobody can answer"


def shaped(revision: Revision, request: InputRequest) -> InputRequest:
    """A question as the client's revision has it.

    Raises:
        ProtocolError: The revision cannot say it, as if the client had not declared that it can be asked this.
    """
    try:
        question: InputRequest = revision.shape(request)
    except ConfigurationError as error:
        why = f"{request.method} cannot be asked in protocol revision {revision.name}: {error}"
        raise ProtocolError(revision.code(Fault.MISSING_CAPABILITY), why) from error
    return question


async def ask(
    peer: Peer, method: str, params: bytes, send: Callable[[bytes], None], unanswered: set[Pending] | None = None
) -> Raw:
    """Ask the client, and wait for its result. When the waiting is cancelled, the client is told.

    Args:
        peer: Who owes the answer.
        method: What is asked.
        params: The JSON of an object.
        send: Puts a message on the way.
        unanswered: Holds the question until it is settled.

    Raises:
        ProtocolError: The client answered with an error, or cannot answer any more.
    """
    pending, message = peer.request(method, params)
    slot: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
    pending.slot = slot
    pending.evidence = Evidence.MAYBE_SENT
    if unanswered is not None:
        unanswered.add(pending)
    try:
        send(message)
        return await slot
    finally:
        if unanswered is not None:
            unanswered.discard(pending)
        notice = peer.abandon(pending)
        if notice:
            send(notice)


def settle(event: Replied | Refused | Lost) -> None:
    """Give an answer, or the news that there will be none, to whoever waits for it."""
    slot: asyncio.Future[Raw] | None = event.pending.slot
    if slot is None or slot.done():
        return
    if isinstance(event, Replied):
        slot.set_result(event.result)
    elif isinstance(event, Refused):
        error = event.error
        data = None if error.data is UNSET else msgspec.json.decode(error.data)
        slot.set_exception(ProtocolError(error.code, error.message, data))
    else:
        slot.set_exception(ProtocolError(jsonrpc.INTERNAL_ERROR, GONE))


def drop(pending: Pending) -> None:
    """Tell whoever waits that no answer will come."""
    settle(Lost(pending))
