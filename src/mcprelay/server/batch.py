"""How much a batch holds, told without parsing it: what is too much is refused before it costs anything."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import UNSET

from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_DEPTH = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def holds_more(data: bytes, allowed: int) -> bool:
    """Whether a JSON array has more than `allowed` elements. Of what is no JSON it may say anything."""
    if data.count(b",") < allowed:
        return False
    depth, elements = 0, 1
    for found in _TOKEN.finditer(data):
        token = found[0]
        if token == b"," and depth == 1:
            elements += 1
            if elements > allowed:
                return True
        else:
            depth += _DEPTH.get(token, 0)
    return False


def over(allowed: int) -> str:
    """What the sender of a batch that holds more is told."""
    return f"the batch is over the limit: batch_messages={allowed}. Send the messages in several batches, or one by one"


def requests_in(messages: Iterable[jsonrpc.Message]) -> int:
    """How many of these messages are requests, which somebody has to work on."""
    return sum(
        type(message) is jsonrpc.Envelope and message.method is not UNSET and message.id is not UNSET
        for message in messages
    )
