"""A question as bytes, so that another client, process or machine can go on with the call.

Knows the format. Knows no wire: `Caller` makes a call of it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcprelay import revisions
from mcprelay.client.misuse import told_value
from mcprelay.errors import ConfigurationError
from mcprelay.revisions import Era
from mcprelay.types import InputRequest
from mcprelay.wire.field import shown

if TYPE_CHECKING:
    from mcprelay.client.answer import Asked
    from mcprelay.client.call import Call
    from mcprelay.revisions import Revision

FORMAT = 1
"""The version of the format. Another one is refused."""


class Kept(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What goes on with a call: all of it but its time and its callbacks, which belong to whoever goes on.

    Attributes:
        format: The version of this format.
        revision: The revision in which it was asked.
        params: The params of the first round, without `_meta`.
        meta: What the caller adds to `_meta`, the idempotency key and the correlation id among it.
        state: The server's state, to be sent back byte for byte.
    """

    format: int
    revision: str
    method: str
    name: str | None
    params: Raw
    meta: Raw
    arguments: Raw
    correlation_id: str | None
    idempotent: bool
    requests: dict[str, InputRequest]
    state: Raw | UnsetType = UNSET


class _Format(Struct):
    format: int


_decode = msgspec.json.Decoder(Kept).decode
_decode_format = msgspec.json.Decoder(_Format).decode
_encode = msgspec.json.Encoder().encode


def dump(call: Call, asked: Asked, revision: Revision) -> bytes:
    """What a call waits for, as bytes.

    Raises:
        ConfigurationError: It is of a session, which alone can go on with it.
    """
    if revision.era is not Era.STATELESS:
        raise ConfigurationError(
            f"a question cannot be kept in {revision.name}: the server's session waits for its answer, and ends with "
            "this connection. Answer it here"
        )
    kept = Kept(
        format=FORMAT,
        revision=revision.name,
        method=call.method,
        name=call.name,
        params=Raw(b"{%b}" % (call.members if call.first is None else call.first)),
        meta=Raw(b"{%b}" % call.meta),
        arguments=Raw(call.arguments),
        correlation_id=call.correlation_id,
        idempotent=call.idempotent,
        requests=asked.requests,
        state=UNSET if asked.state is None else asked.state,
    )
    return _encode(kept)


def load(data: Any) -> Kept:
    """What `dump` gave.

    Raises:
        ConfigurationError: It is something else, or of another version of the format.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise ConfigurationError(f"a question is loaded from the bytes of question.dump(), not {told_value(data)}")
    try:
        version = _decode_format(data).format
        if version != FORMAT:
            wrong = f"these bytes hold a question in the format {version}, and this mcprelay reads {FORMAT}"
            raise ConfigurationError(f"{wrong}: make the call again")
        kept = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"these bytes are not what question.dump() gave: {error}") from error
    for part in (kept.params, kept.meta, kept.arguments):
        if not bytes(part).startswith(b"{"):
            raise ConfigurationError("these bytes are not what question.dump() gave: a part of the call is no object")
    known = revisions.find(kept.revision)
    if known is None or known.era is not Era.STATELESS:
        raise ConfigurationError(f"these bytes hold a question of {shown(kept.revision)}, which cannot be kept")
    return kept
