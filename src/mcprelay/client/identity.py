"""For whom, and how, a server is reached: what tells apart the results that are kept of it.

Everything that decides what a server answers is part of it, secrets by a keyed hash alone. What cannot be known to be
the same is never the same: it gets a name of its own, which is not used again for as long as the process lives.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import weakref
from typing import TYPE_CHECKING, Any

import msgspec

from mcprelay.core.dialer import RESERVED

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEY = os.urandom(32)
_OWN = itertools.count(1)
_named: dict[int, tuple[weakref.ref[Any], str]] = {}
_PER_REQUEST = RESERVED | {"cache-control", "dpop"}
"""Headers that say nothing of who asks: the protocol's own, and a proof that is another one in each request."""


def digest(told: Any) -> str:
    """The same text for the same values, which nobody learns from it."""
    import hashlib

    try:
        data = msgspec.json.encode(told)
    except UnicodeEncodeError:  # a path, or a variable of the environment, that is no UTF-8
        import json

        data = json.dumps(msgspec.to_builtins(told)).encode()
    return hashlib.blake2b(data, key=_KEY, digest_size=16).hexdigest()


def own() -> str:
    """A name that nothing else has, had or will have."""
    return f"own {next(_OWN)}"


def named(value: object) -> str:
    """A name of this very object: the same for as long as it lives, and never another's.

    An object that cannot be watched gets another one each time.
    """
    held = _named.get(id(value))
    if held is not None and held[0]() is value:
        return held[1]
    name, place = own(), id(value)
    with contextlib.suppress(TypeError):
        _named[place] = (weakref.ref(value, lambda _: _named.pop(place, None)), name)
    return name


def whose(fields: Iterable[tuple[str, str]]) -> str:
    """Whose results are: a digest of what a request shows of who sends it, beside the protocol's own headers."""
    shown = [(name.lower(), value) for name, value in fields]
    return digest([(name, value) for name, value in shown if name not in _PER_REQUEST and not name.startswith("mcp-")])
