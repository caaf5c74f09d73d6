"""Reading a stream of a session by GET: from now on, or after one of its events (transports, "Resumability").

Where the event is unknown nothing is answered, so that the client can be told that it missed something: a stream that
began anew in silence would let it believe otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcprelay.server.conversation import MARK, STANDING
from mcprelay.server.stream import Reply

if TYPE_CHECKING:
    from mcprelay.server.conversation import Conversation
    from mcprelay.server.exchange import Arrival
    from mcprelay.server.stream import Stream


def is_standing(last_event_id: str | None) -> bool:
    """Whether a GET is for the stream that belongs to no request."""
    return not last_event_id or last_event_id.startswith(STANDING + MARK)


async def read(conversation: Conversation, arrival: Arrival, last_event_id: str | None) -> bool:
    """Read a stream until either side ends it; False, with nothing answered, when the event is unknown."""
    if not last_event_id:
        return await _hold(conversation.stand(), arrival)
    name, _, event_id = last_event_id.partition(MARK)
    track = conversation.track(name)
    if track is None or not await track.knows(event_id):
        return False
    stream = conversation.stand() if name == STANDING else conversation.streams.get(name)
    if stream is not None:
        return await _hold(stream, arrival, after=event_id)
    reply = Reply(arrival.send)  # of a stream that has ended, or that another process writes
    if not await track.replay(event_id, reply):
        return False
    await reply.write(b"", last=True)
    return True


async def _hold(stream: Stream, arrival: Arrival, *, after: str | None = None) -> bool:
    """Let this response be the stream's until either side ends it."""
    reply = Reply(arrival.send)
    joined = stream.attach(reply, after)
    try:
        how = "joined" if after is None else await joined
        if how == "unknown":
            return False
        if how == "superseded":
            await reply.write(b"", last=True)
        await arrival.hung_up()
    finally:
        stream.detach(reply)
    return True
