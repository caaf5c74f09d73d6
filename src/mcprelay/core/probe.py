"""Which era a server is of, told from what it answers: the client's ladder as a table.

The newest era first. A recognized error of the newest era means a server of that era: go on in a revision that it
names. Anything else that is not a result means an older one: shake hands, and over HTTP try the HTTP+SSE pair last
(versioning, "Backward Compatibility"; stdio and Streamable HTTP, the same). A revision that the server did not offer is
never tried blindly.

What may have been carried out is not sent again by itself, so what an answer says about the server and what it says
about the request are two questions: `after_error` and `after_status` answer the first, `proves_refusal` the second.

Values in, a value out: sending, waiting and remembering are the driver's.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct

from mcprelay import revisions
from mcprelay.revisions import NEWEST, Era, Fault, Revision
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcprelay.wire.jsonrpc import ErrorObject

_UNSUPPORTED = NEWEST.code(Fault.UNSUPPORTED_REVISION)
HEADER_MISMATCH = NEWEST.code(Fault.HEADER_MISMATCH)
_MODERN_CODES = frozenset({_UNSUPPORTED, HEADER_MISMATCH, NEWEST.code(Fault.MISSING_CAPABILITY)})
_REFUSED_UNSEEN = frozenset({jsonrpc.METHOD_NOT_FOUND, jsonrpc.INVALID_PARAMS, jsonrpc.INVALID_REQUEST})
_REFUSALS = frozenset({400, 404, 405, 406, 415})
"""Statuses of a server that does not speak this wire, and says so before it does anything.

400 is what the specification falls back on (Streamable HTTP, "Backward Compatibility"), and with 404 and 405 what the
older revisions fall back on. The others are told from the request's head alone (RFC 9110): 404 and 405, that there is
nothing to be posted to, 406, that no form of the answer would be taken, 415, that the body is not read in this form.
"""
_UNCLEAR = frozenset({409, 410, 422, 501})
"""Statuses that an older server may give to what it does not understand, and any server to what it has looked into.

RFC 9110 speaks of the state of what was addressed (409, 410), of instructions that were read (422), and of what cannot
be fulfilled (501): a tool that ran may end with each of them. 401, 403, 407, 408, 413 and 429 say something else.
"""
_NO_POST = frozenset({400, 404, 405})
"""Statuses of a POST after which the HTTP+SSE pair may be meant (Streamable HTTP, "HTTP+SSE Transport")."""


class Step(enum.Enum):
    """What a client does next."""

    SPEAK = "speak"
    """The server speaks `Next.revision`, of the stateless era."""
    REPEAT = "repeat"
    """The same, and the request has to be sent again in it."""
    HANDSHAKE = "handshake"
    """Send `initialize`, proposing `Next.revision`."""
    ASK = "ask"
    """The answer could come from either era: `server/discover` tells."""
    PAIR = "pair"
    """Open the HTTP+SSE pair."""
    SURFACE = "surface"
    """This has nothing to do with the era: the error is the answer."""
    UNSUPPORTED = "unsupported"
    """There is no revision in common; `Next.supported` is what the server named."""


class Next(Struct, frozen=True):
    """A step, with what it needs."""

    step: Step
    revision: Revision | None = None
    supported: tuple[str, ...] = ()


SURFACE = Next(Step.SURFACE)


class _Supported(Struct):
    supported: list[Any] = []


_decode_supported = msgspec.json.Decoder(_Supported).decode


def first(era: Era, among: Iterable[Revision]) -> Revision | None:
    """The newest revision of an era that may be spoken, or None."""
    return next(iter(revisions.of_era(era, among)), None)


def is_modern(error: ErrorObject, status: int | None = None) -> bool:
    """Whether only a server of the newest era answers with this error."""
    return error.code in _MODERN_CODES or (status == 404 and error.code == jsonrpc.METHOD_NOT_FOUND)


def is_unsupported(error: ErrorObject) -> bool:
    """Whether the error says that the server does not speak the revision of the request."""
    return error.code == _UNSUPPORTED


def proves_refusal(error: ErrorObject | None, status: int | None) -> bool:
    """Whether an answer that is no result proves that nothing of the request was carried out.

    Args:
        error: The JSON-RPC error, or None where there is only a status.
        status: The HTTP status, or None on another wire.
    """
    if error is not None and error.code == _UNSUPPORTED and _supported(error):
        return True
    if status in _REFUSALS:
        return error is None or error.code in _REFUSED_UNSEEN or -32099 <= error.code <= -32000
    # With success the error is the answer of what was called; only that there is no such thing says that nothing ran.
    return error is not None and error.code == jsonrpc.METHOD_NOT_FOUND and (status is None or status < 300)


def after_error(
    error: ErrorObject,
    *,
    sent: Revision,
    offered: Sequence[Revision],
    status: int | None = None,
    probe: bool = False,
    repeated: bool = False,
) -> Next:
    """What an error means to a client that does not know the server's era yet.

    Args:
        error: The error that answered the request.
        sent: The revision that the request named.
        offered: The revisions that the client may speak, the newest first.
        status: The HTTP status of the answer, or None on another wire.
        probe: Whether the request was `server/discover`, which a server of the newest era cannot but know.
        repeated: Whether it was repeated already because the server named a revision.
    """
    succeeded = status is not None and status < 300
    supported = _supported(error) if error.code == _UNSUPPORTED else ()
    if error.code == _UNSUPPORTED and (supported or probe or not succeeded):
        return _of_supported(supported, sent=sent, offered=offered, repeated=repeated)
    if is_modern(error, status) and (probe or not succeeded):
        return SURFACE
    if probe or status in _REFUSALS:
        return _handshake(offered)
    return Next(Step.ASK) if status is None or succeeded or status in _UNCLEAR else SURFACE


def after_status(status: int, *, offered: Sequence[Revision], probe: bool = False) -> Next:
    """What an HTTP status without a JSON-RPC error means to a client that does not know the server's era yet.

    Args:
        status: The status.
        offered: The revisions that the client may speak, the newest first.
        probe: Whether the request was `server/discover`, which a server of the newest era cannot but know.
    """
    if status in _REFUSALS or (probe and status in _UNCLEAR):
        return _handshake(offered)
    return Next(Step.ASK) if status in _UNCLEAR else SURFACE


def after_foreign(offered: Sequence[Revision]) -> Next:
    """What an answer to `server/discover` means that is not a `DiscoverResult`: the server is of the older era."""
    return _handshake(offered)


def after_discover(supported: Sequence[str], *, offered: Sequence[Revision]) -> Next:
    """What a `DiscoverResult` means."""
    chosen = _common(supported, Era.STATELESS, offered)
    if chosen is not None:
        return Next(Step.SPEAK, chosen, tuple(supported))
    chosen = _common(supported, Era.HANDSHAKE, offered)
    return Next(Step.UNSUPPORTED if chosen is None else Step.HANDSHAKE, chosen, tuple(supported))


def after_initialize(version: str, *, offered: Sequence[Revision]) -> Next:
    """What the version in an `InitializeResult` means: one that the client does not speak ends it (lifecycle)."""
    chosen = _common([version], Era.HANDSHAKE, offered)
    return Next(Step.UNSUPPORTED if chosen is None else Step.SPEAK, chosen, (version,))


def after_initialize_refused(
    error: ErrorObject | None, *, status: int | None, proposed: Revision, offered: Sequence[Revision]
) -> Next:
    """What a refusal of `initialize` means: a server of the newest era alone, the HTTP+SSE pair, or nothing known."""
    if error is not None and error.code == _UNSUPPORTED:
        return _of_supported(_supported(error), sent=proposed, offered=offered, repeated=True)
    pair = any(not revision.http.streamable for revision in offered)
    if pair and status in _NO_POST and (error is None or not is_modern(error, status)):
        return Next(Step.PAIR)
    return SURFACE


def _of_supported(supported: tuple[str, ...], *, sent: Revision, offered: Sequence[Revision], repeated: bool) -> Next:
    chosen = _common(supported, Era.STATELESS, offered)
    if chosen is not None:
        if repeated and chosen is sent:
            return Next(Step.UNSUPPORTED, None, supported)
        return Next(Step.REPEAT, chosen, supported)
    chosen = _common(supported, Era.HANDSHAKE, offered)
    return Next(Step.UNSUPPORTED if chosen is None or chosen is sent else Step.HANDSHAKE, chosen, supported)


def _handshake(offered: Sequence[Revision]) -> Next:
    chosen = first(Era.HANDSHAKE, offered)
    return SURFACE if chosen is None else Next(Step.HANDSHAKE, chosen)


def _common(supported: Sequence[str], era: Era, offered: Sequence[Revision]) -> Revision | None:
    return next((revision for revision in revisions.of_era(era, offered) if revision.name in supported), None)


def _supported(error: ErrorObject) -> tuple[str, ...]:
    """The revisions that an error names; none where its data is not what it should be."""
    if error.data is UNSET:
        return ()
    try:
        listed = _decode_supported(error.data).supported
    except msgspec.DecodeError:
        return ()
    return tuple(name for name in listed if isinstance(name, str))
