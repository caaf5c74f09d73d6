"""What a message that cannot be parsed says of itself all the same: its id, and whether it asks or answers.

Whoever waits for an answer that is broken (NaN, a lone surrogate, a bad escape, a cut) would else wait until the
deadline, though the id stands in front of everybody's eyes. The look is lenient and bounded: only members of the
outermost object count, only `LOOK` bytes of the beginning and `END` of the end are seen, and nothing is decoded but
the id. Where the structure cannot be followed any further, what was found until then counts; two ids are none.

Knows JSON's brackets, strings and commas. Knows no method, and never says that a message is right.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from mcprelay.types import RequestId

LOOK = 2**18
"""How many bytes of the beginning are looked at."""
END = 1024
"""How many bytes of the end, where that is not all of it."""
_MEMBERS = 64

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_SCALAR = rb'[^\s,{}\[\]":]++(?=[\s,}])'  # one at the very end may have been cut
_OPENED = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\{")
_MEMBER = re.compile(rb"[\s,]*+(%b)\s*+:\s*+(%b|%b|[{\[])" % (_STRING, _STRING, _SCALAR), re.DOTALL)
_BRACKETS = re.compile(rb'(?:[^"\[\]{}]++|%b)*+([\[{]++|[\]}])' % _STRING, re.DOTALL)
_LAST = re.compile(rb'"id"\s*+:\s*+(%b|%b)(?:\s*+,\s*+%b\s*+:\s*+(?:%b|%b))*+\s*+\}\s*+\Z' % (
    (_STRING, _SCALAR) * 2 + (_STRING,)
), re.DOTALL)  # fmt: skip

_decode_id = msgspec.json.Decoder(int | str).decode

Role = Literal["request", "response"]


class Salvage(Struct, frozen=True):
    """What could be told: the id, or None, and what the message seems to be, or None."""

    id: int | str | None = None
    role: Role | None = None


def salvage(data: bytes) -> Salvage:
    """Look at a message that cannot be parsed."""
    return of_ends(data[:LOOK], data[LOOK:][-END:])


def of_ends(head: bytes, tail: bytes) -> Salvage:
    """The same for a message of which only the beginning and the end were kept; `tail` is empty where nothing lacks."""
    members, whole = _members(head)
    found = {value for key, value in members if key == b'"id"'}
    if not whole and not found and tail and (last := _LAST.search(tail)):
        found.add(last[1])
    return Salvage(_id(found.pop()) if len(found) == 1 else None, _role({key for key, _ in members}))


def _role(keys: set[bytes]) -> Role | None:
    if b'"method"' in keys:
        return "request"
    return "response" if b'"result"' in keys or b'"error"' in keys else None


def _members(text: bytes) -> tuple[list[tuple[bytes, bytes]], bool]:
    """The outermost object's members, as far as they can be followed, and whether that is to its end."""
    members: list[tuple[bytes, bytes]] = []
    opened = _OPENED.match(text)
    position = -1 if opened is None else opened.end()
    while position >= 0 and len(members) < _MEMBERS and (member := _MEMBER.match(text, position)):
        members.append((member[1], member[2]))
        position = _past(text, member.start(2)) if member[2] in b"{[" else member.end()
    return members, text[position:].strip() == b"}" if position >= 0 else False


def _past(text: bytes, position: int) -> int:
    """Where what is bracketed from here on ends, or -1. Which bracket closes which is not looked at."""
    level = 0
    while found := _BRACKETS.match(text, position):
        position = found.end()
        level += len(found[1]) if found[1][0] in b"[{" else -1
        if level == 0:
            return position
    return -1


def _id(value: bytes) -> RequestId | None:
    try:
        return _decode_id(value)
    except msgspec.DecodeError:
        return None
