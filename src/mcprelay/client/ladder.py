"""How a client over HTTP finds out what its server is, by the first call itself.

The call is sent as it is, in the newest era. What comes back says what the server is (`probe`). Where it proves that
nothing was carried out, the call is repeated in another revision, after a handshake, or over the HTTP+SSE pair. In
every other case it is the call's answer: what is learned beside it serves the calls that follow.

That nothing comes back says nothing: the call may be at work. So after `probe_timeout` the server is asked beside it,
`server/discover` first and, when it is as silent on that, `initialize`. What is learned serves the calls that follow,
and is remembered; the call itself goes on waiting, unless it only reads who the server is or what it lists.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Raw

from mcprelay.client import failure, handshake
from mcprelay.client.answer import is_typed
from mcprelay.client.progress import logger
from mcprelay.client.stream import Reading
from mcprelay.core import probe
from mcprelay.core.probe import Next, Step
from mcprelay.errors import CallFailed, Evidence, HttpError, RemoteError
from mcprelay.revisions import Era

if TYPE_CHECKING:
    from mcprelay.client.call import Call
    from mcprelay.client.courier import Refusal
    from mcprelay.client.web import Web
    from mcprelay.revisions import Revision


_ONLY_READS = frozenset(
    {handshake.DISCOVER, "tools/list", "prompts/list", "resources/list", "resources/templates/list"}
)
"""Requests that change nothing, whoever carries them out and how often."""


async def climb(web: Web, call: Call) -> Raw:
    """A call while it is not known what the server is."""
    modern = probe.first(Era.STATELESS, web.party.offered)
    legacy = probe.first(Era.HANDSHAKE, web.party.offered)
    if modern is None or (web.remembered is Era.HANDSHAKE and legacy is not None):
        assert legacy is not None, "a client offers at least one revision"  # noqa: S101 - `Client` sees to it
        return await _after_handshake(web, call, legacy)
    try:
        answer = await _patiently(web, call, modern)
    except _Learned:
        call.begun = True
        return await web.call(call)
    if isinstance(answer, Raw):
        # An older server without sessions may answer all the same. Its result counts as complete (schema, "Result"),
        # but says nothing of what the server speaks, so the next call finds out anew.
        if web.revision is None and is_typed(answer):
            handshake.speak(web, modern)
        return answer
    return await _judge(web, call, modern, answer)


class _Learned(Exception):
    """What the server is was learned beside a call that is better sent again."""


async def _patiently(web: Web, call: Call, modern: Revision) -> Raw | Refusal:
    """The first request to a server that is not known, which it may be silent on."""
    reading = Reading(web, call, modern)

    def learned(_: object) -> None:
        if _in_session(web) and not reading.headers and call.method in _ONLY_READS and call.scope is not None:
            call.scope.end(_Learned())

    def wonder() -> None:
        sent = call.request is not None and call.request.evidence is Evidence.MAYBE_SENT
        if sent and not reading.headers and not web.held:
            wondering = web.wondering
            if wondering is None or wondering.done():
                wondering = web.wondering = web.started(_wonder(web, modern))
            wondering.add_done_callback(learned)

    timer = web.loop.call_later(web.settings.probe_timeout, wonder)
    try:
        return await web.post(call, modern, reading)
    finally:
        timer.cancel()
        if web.wondering is not None:
            web.wondering.remove_done_callback(learned)


async def _wonder(web: Web, modern: Revision) -> None:
    """Find out what a server is that says nothing to a call (Streamable HTTP, "Backward Compatibility")."""
    legacy = probe.first(Era.HANDSHAKE, web.party.offered)
    if web.revision is not None or legacy is None:
        return
    try:
        asking = handshake.discover_call(web.party, deadline=web.due())
        step = await _discover(web, asking, modern, legacy)
        if step.step is Step.SPEAK:
            handshake.speak(web, step.revision or modern)
        elif step.step is Step.HANDSHAKE and web.revision is None:
            await web.join(asking, step.revision or legacy)
    except CallFailed as error:
        logger.debug("what the server is could not be found out while it is silent: %s", error)


async def _discover(web: Web, asking: Call, modern: Revision, legacy: Revision) -> Next:
    """Ask, no longer than `probe_timeout`: who is silent on this too is taken for a server of the older era."""
    limit = asyncio.timeout(web.settings.probe_timeout)
    try:
        async with limit:
            answer = await web.post(asking, modern)
    except TimeoutError:
        if not limit.expired():
            raise
        return Next(Step.HANDSHAKE, legacy)
    if isinstance(answer, Raw):
        return handshake.discovered(web, answer, asking)
    return _read(web, asking, modern, answer, repeated=True)


async def reconsider(web: Web, call: Call, revision: Revision, refusal: Refusal) -> Raw:
    """A refusal by a server that is known: it may be another one by now."""
    error = refusal.error
    unsupported = error is not None and probe.is_unsupported(error)
    if error is not None and not unsupported and not refusal.anonymous:
        raise web.failed(call, refusal)
    step = _read(web, call, revision, refusal, repeated=False)
    if step.step in (Step.SURFACE, Step.ASK):
        raise web.failed(call, refusal)
    web.revision = None
    try:
        # This may be the word of the server that it was: only if that one is gone, it is about the revision.
        return await _judge(web, call, revision, refusal, asks=not unsupported)
    finally:
        if web.revision is None:
            web.revision = revision


async def _judge(
    web: Web, call: Call, sent: Revision, refusal: Refusal, *, repeated: bool = False, asks: bool = False
) -> Raw:
    """The ladder: what a refusal says about the server, and what follows for the call.

    Args:
        web: The link.
        call: The call that was refused.
        sent: The revision that it was sent in.
        refusal: How it was refused.
        repeated: Whether it was repeated already because the server named a revision.
        asks: Whether the server is asked what it is although the refusal seems to say so.
    """
    step = _read(web, call, sent, refusal, repeated=repeated)
    due = web.due()
    again = call.method in _ONLY_READS or probe.proves_refusal(refusal.error, refusal.status)
    if asks or step.step is Step.ASK:
        try:
            step = await _ask(web, call, sent, due)
        except CallFailed as error:  # the call itself was answered, and that is what counts
            raise web.failed(call, refusal) from error
        if step.step is Step.SPEAK or (step.step is Step.REPEAT and not again):
            handshake.speak(web, step.revision or sent)
            raise web.failed(call, refusal)
    call.refused = again
    if step.step is Step.REPEAT and step.revision is not None:
        answer = await web.post(call, step.revision)
        if isinstance(answer, Raw):
            handshake.speak(web, step.revision)
            return answer
        return await _judge(web, call, step.revision, answer, repeated=True)
    if step.step is Step.HANDSHAKE and step.revision is not None:
        return await _fall_back(web, call, step.revision, refusal, due, again=again)
    if step.step is Step.UNSUPPORTED and again:
        raise failure.unsupported(call, step.supported, [revision.name for revision in web.party.offered])
    if refusal.error is not None and refusal.status >= 300 and probe.is_modern(refusal.error, refusal.status):
        handshake.speak(web, sent)
    raise web.failed(call, refusal)


def _read(web: Web, call: Call, sent: Revision, refusal: Refusal, *, repeated: bool) -> Next:
    offered = web.party.offered
    known = call.method == handshake.DISCOVER
    if refusal.error is None:
        return probe.after_status(refusal.status, offered=offered, probe=known)
    return probe.after_error(
        refusal.error, sent=sent, offered=offered, status=refusal.status, probe=known, repeated=repeated
    )


async def _ask(web: Web, call: Call, sent: Revision, due: float) -> Next:
    """Ask `server/discover` which era the server is of, as long as a connection and the call may take."""
    if call.deadline is not None and not call.patient:
        due = min(due, call.deadline)
    asking = handshake.discover_call(web.party, deadline=due)
    answer = await web.post(asking, sent)
    if isinstance(answer, Raw):
        return handshake.discovered(web, answer, asking)
    return _read(web, asking, sent, answer, repeated=True)


async def _fall_back(web: Web, call: Call, legacy: Revision, refusal: Refusal, due: float, *, again: bool) -> Raw:
    """The server seems to be of the older era. If it turns out to be of none, the first refusal is what counts.

    `again` says whether the call may be sent again; where it may not, the refusal is its answer in any case.
    """
    try:
        if not _in_session(web):  # another call may have been here in the meantime
            await web.join(call, legacy, due=due)
    except CallFailed as error:
        wanting = isinstance(error, HttpError) and error.status in (401, 403)
        if not again or (isinstance(error, (RemoteError, HttpError)) and not wanting):
            raise web.failed(call, refusal, hint=f" (and no handshake: {error})") from error
        raise
    if not again:
        raise web.failed(call, refusal)
    return await web.call(call)


async def _after_handshake(web: Web, call: Call, legacy: Revision) -> Raw:
    try:
        if not _in_session(web):
            await web.join(call, legacy)
    except (RemoteError, HttpError):
        if web.remembered is None or probe.first(Era.STATELESS, web.party.offered) is None:
            raise
        web.remembered = None  # what was known of the server is not so any more
        return await climb(web, call)
    return await web.call(call)


def _in_session(web: Web) -> bool:
    """Whether hands were shaken."""
    return web.revision is not None and web.revision.era is Era.HANDSHAKE
