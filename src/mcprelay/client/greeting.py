"""How a client over a channel finds out what its server is, before any call (stdio, "Backward Compatibility").

It asks `server/discover`. Any answer that is not of the newest era means a handshake; silence means that `initialize`
is sent too, and what is answered first counts. All of it together has until `Line.due`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from mcprelay.client import failure, handshake
from mcprelay.client.call import Call
from mcprelay.client.progress import logger
from mcprelay.core import probe
from mcprelay.core.probe import Next, Step
from mcprelay.errors import CallFailed, RemoteError, ResponseInvalid
from mcprelay.revisions import Era, Feature
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from mcprelay.client.line import Line
    from mcprelay.revisions import Revision


async def agree(line: Line) -> None:
    """Find out what the server speaks, and shake hands where that is due.

    Raises:
        CallFailed: It speaks nothing that we do, or nothing at all.
    """
    offered = line.party.offered
    modern = probe.first(Era.STATELESS, offered)
    legacy = probe.first(Era.HANDSHAKE, offered)
    if modern is None or (line.remembered is Era.HANDSHAKE and legacy is not None):
        assert legacy is not None, "a client offers at least one revision"  # noqa: S101 - `Client` sees to it
        await _shake_hands(line, legacy)
        return
    step = await _probe(line, modern, legacy)
    if step.step is Step.REPEAT:
        step = await _discover(line, step.revision or modern, repeated=True)
    if step.step is Step.HANDSHAKE and step.revision is not None:
        await _shake_hands(line, step.revision)
    elif step.step is Step.SPEAK and step.revision is not None:
        handshake.speak(line, step.revision)
    elif step.step is not Step.SURFACE:
        raise failure.unsupported(None, step.supported, [revision.name for revision in offered])


async def _probe(line: Line, modern: Revision, legacy: Revision | None) -> Next:
    """Ask `server/discover`; when the server is silent, say `initialize` too, and take what is answered first."""
    asking = line.loop.create_task(_discover(line, modern))
    try:
        if legacy is None:
            return await asking
        patience = min(line.settings.probe_timeout, line.due - line.loop.time())
        await asyncio.wait([asking], timeout=max(0.0, patience))
        if asking.done():
            return asking.result()
        greeting = line.loop.create_task(_shake_hands(line, legacy))
        return await _first_answer(asking, greeting)
    finally:
        await _over(asking)


async def _first_answer(asking: asyncio.Task[Next], greeting: asyncio.Task[None]) -> Next:
    try:
        await asyncio.wait([asking, greeting], return_when=asyncio.FIRST_COMPLETED)
        if asking.done() and not asking.exception() and asking.result().step is not Step.HANDSHAKE:
            return asking.result()
        await greeting
    except RemoteError:
        # It refuses the handshake, so what it says to the probe is what counts.
        return await asking
    finally:
        await _over(greeting)
    return probe.SURFACE  # hands were shaken


async def _discover(line: Line, revision: Revision, *, repeated: bool = False) -> Next:
    call = handshake.discover_call(line.party, deadline=line.due)
    try:
        result = await line.ask(call, revision)
    except ResponseInvalid:
        return probe.after_foreign(line.party.offered)
    except RemoteError as error:
        told = jsonrpc.ErrorObject(error.code, error.message, _raw(error.data))
        step = probe.after_error(told, sent=revision, offered=line.party.offered, probe=True, repeated=repeated)
        if step.step is Step.SURFACE:
            raise
        return step
    try:
        return handshake.discovered(line, result, call)
    except ResponseInvalid:
        return probe.after_foreign(line.party.offered)


async def _shake_hands(line: Line, revision: Revision) -> None:
    call = handshake.initialize_call(line.party, revision, deadline=line.due)
    result = await line.ask(call, revision)
    agreed = handshake.agree(line, result, call)
    line.peer.batches = agreed.has(Feature.BATCH)
    await line.tell(handshake.initialized_notice())
    level = handshake.set_level(line.party, line)
    if level is not None:
        line.spawn(_quietly(line, level))


async def _quietly(line: Line, call: Call) -> None:
    try:
        await line.call(call)
    except CallFailed as error:
        logger.debug("%s", error)


async def _over(task: asyncio.Task[Any]) -> None:
    """End a task whose outcome does not matter any more."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


def _raw(data: Any) -> Any:
    return UNSET if data is None else Raw(jsonrpc.encode(data))
