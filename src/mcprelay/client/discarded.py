"""How much of what a server said was discarded: `client.discarded`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from mcprelay.client.link import Link


class Discarded(Struct, frozen=True):
    """What came over one connection and was discarded, in messages.

    Attributes:
        unasked: Answers and progress that nobody waits for, because they came late or were never asked for, and changes
            told on a subscription that did not ask for them.
        unreadable: What is no message of the protocol, or cannot be read.
    """

    unasked: int = 0
    unreadable: int = 0


def of(link: Link | None) -> Discarded:
    """What was discarded over a link, and over the HTTP+SSE pair that it speaks through."""
    unasked = unreadable = 0
    for one in (link, getattr(link, "pair", None)):
        if one is not None:
            unasked += one.peer.dropped
            unreadable += one.unreadable
    return Discarded(unasked, unreadable)
