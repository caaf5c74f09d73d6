"""JSON-RPC 2.0 messages: envelopes, ids and error codes, each byte parsed once.

Decoding has two stages. `parse` reads the envelope and leaves `params` and `result` raw; whoever knows the method
decodes them with the decoder of that method. Encoding is one pass: bodies are encoded by their own encoder and spliced
into the envelope.

The module knows no method, no revision and no transport. `parse` never raises: what is not a message is `Malformed`,
with the answer that is owed for it.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcprelay.wire.bulk import is_crowded
from mcprelay.wire.salvage import Role, salvage

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from mcprelay.types import RequestId

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

DEPTH = 100
"""How deep a message may nest unless told otherwise; counted on the bytes, since parsers differ in their limits."""


class ErrorObject(Struct, frozen=True, omit_defaults=True):
    """The `error` member of a response."""

    code: int
    message: str
    data: Raw | UnsetType = UNSET


@final
class Envelope(Struct, frozen=True):
    """One message: a request, a notification, or a response. `id` is UNSET where the message has none."""

    jsonrpc: Literal["2.0"]
    id: int | str | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET

    @property
    def is_request(self) -> bool:
        """It asks for an answer."""
        return self.method is not UNSET and self.id is not UNSET

    @property
    def is_notification(self) -> bool:
        """It tells something and wants no answer."""
        return self.method is not UNSET and self.id is UNSET

    @property
    def is_response(self) -> bool:
        """It answers a request."""
        return self.method is UNSET


class Malformed(Struct, frozen=True):
    """What is not a message: the error that answers it, the id where one could be read, and what it seems to be.

    `deep` is the whole text where all that is known to be wrong with it is that it nests too deep; `crowded` says that
    it holds too many values.
    """

    code: int
    reason: str
    id: int | str | None = None
    role: Role | None = None
    deep: bytes = b""
    crowded: bool = False

    def answer(self) -> bytes:
        """The error response, under the id that could be read (basic, "Error Responses"), else without one.

        What seems to be a response is answered without its id: whoever sent it would take that for the answer to a
        request of its own.
        """
        return refusal(None if self.role == "response" else self.id, self.code, self.reason)


Message: TypeAlias = Envelope | Malformed

_decode = msgspec.json.Decoder(Envelope).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_decode_id = msgspec.json.Decoder(int | str).decode
_decode_error = msgspec.json.Decoder(ErrorObject).decode
_encoder = msgspec.json.Encoder()
encode = _encoder.encode
"""Any value as JSON bytes, in one line. Raises `TypeError` or `ValueError` for what JSON cannot carry."""

BRACKETS = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"?)*+([\[\]{}]*+)', re.DOTALL)
"""The next brackets outside of strings. It never gives back and fits everywhere, so time and memory stay small."""


def parse(data: bytes | Raw, *, depth: int = DEPTH, values: float | None = None) -> Message:
    """Read one message; `depth` bounds its nesting, and `values` how many values it may hold."""
    text = data if type(data) is bytes else bytes(data)
    if values is not None and len(text) > values and is_crowded(text, values):
        found = _unparsed(text, f"the message holds more than {values:.0f} values")
        return msgspec.structs.replace(found, crowded=True)
    # What nests deeper has that many brackets at least, so short messages need not be counted.
    if len(text) > 2 * depth and text.count(b"{") + text.count(b"[") > depth and too_deep(text, depth):
        return msgspec.structs.replace(_unparsed(text, f"the message nests deeper than depth={depth}"), deep=text)
    try:
        message = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _diagnose(data, error)
    if message.method is UNSET:
        if (message.result is UNSET) is (message.error is UNSET):
            return Malformed(
                INVALID_REQUEST,
                "a message has a method, or exactly one of result and error",
                _id_of(message),
                None if message.result is UNSET else "response",
            )
        if message.id is UNSET and message.error is UNSET:
            return Malformed(INVALID_REQUEST, "a result needs the id of its request")
    elif message.result is not UNSET or message.error is not UNSET:
        reason = "a message with a method has neither result nor error"
        return Malformed(INVALID_REQUEST, reason, _id_of(message), "request")
    return message


def parse_batch(data: bytes | Raw, *, depth: int = DEPTH, values: float | None = None) -> list[Message] | Malformed:
    """Read a batch: its messages in order, each well-formed or not. An empty batch is malformed (JSON-RPC 2.0, 6).

    `depth` bounds the nesting of each message, and one that nests deeper costs the others nothing, as far as it can be
    told where it ends. `values` bounds all of it.
    """
    if values is not None and is_crowded(bytes(data), values):
        return Malformed(PARSE_ERROR, f"the batch holds more than {values:.0f} values", crowded=True)
    try:
        items = _decode_items(data)
    except RecursionError:
        return Malformed(PARSE_ERROR, f"the batch nests much deeper than depth={depth}")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Malformed(PARSE_ERROR, f"not JSON: {error}")
    return [parse(item, depth=depth) for item in items] or Malformed(
        INVALID_REQUEST, "a batch holds at least one message"
    )


def is_batch(data: bytes | Raw) -> bool:
    """Whether the bytes begin like a JSON array."""
    return bytes(data).lstrip()[:1] == b"["


def _id_of(message: Envelope) -> int | str | None:
    return None if message.id is UNSET else message.id


def _diagnose(data: bytes | Raw, error: Exception) -> Message:
    """Say what is wrong with bytes that are not an envelope, and save the id if there is one."""
    try:
        members = _decode_members(data)
    except msgspec.ValidationError:
        return Malformed(INVALID_REQUEST, "a message is a JSON object")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _unparsed(data, f"not JSON: {error}")
    request_id = None
    if "id" in members:
        try:
            request_id = _decode_id(members["id"])
        except msgspec.DecodeError:
            if "error" in members and "method" not in members:
                return _anonymous_error(members["error"])
            return Malformed(INVALID_REQUEST, "an id is an integer or a string")
    return Malformed(INVALID_REQUEST, f"not a JSON-RPC 2.0 message: {error}", request_id, _role_of(members))


def _role_of(members: Container[str]) -> Role | None:
    if "method" in members:
        return "request"
    return "response" if "result" in members or "error" in members else None


def _unparsed(data: bytes | Raw, reason: str) -> Malformed:
    """What cannot be parsed, with what it says of itself all the same."""
    found = salvage(bytes(data))
    return Malformed(PARSE_ERROR, reason, found.id, found.role)


def _anonymous_error(error: Raw) -> Message:
    """An error response with a null id: the peer could not read the id of what it answers."""
    try:
        return Envelope("2.0", error=_decode_error(error))
    except msgspec.DecodeError:
        return Malformed(INVALID_REQUEST, "an error has an integer code and a message")


def too_deep(data: bytes | Raw, depth: int) -> bool:
    """Whether JSON text nests deeper than `depth`, told without parsing it."""
    text = bytes(data)
    if text.count(b"{") + text.count(b"[") <= depth:
        return False
    level = 0
    for brackets in BRACKETS.finditer(text):
        for char in brackets[1]:
            if char in b"[{":
                level += 1
                if level > depth:
                    return True
            else:
                level -= 1
    return False


def request(request_id: RequestId, method: str, params: bytes) -> bytes:
    """A request; `params` is the JSON of an object."""
    head = (b'{"jsonrpc":"2.0","id":', encode(request_id), b',"method":', encode(method), b',"params":', params, b"}")
    return b"".join(head)  # which costs half of what formatting does


def notification(method: str, params: bytes = b"") -> bytes:
    """A notification; without params the member is left out."""
    if not params:
        return b'{"jsonrpc":"2.0","method":%b}' % encode(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode(method), params)


def response(request_id: RequestId, result: bytes) -> bytes:
    """A response with a result; `result` is the JSON of an object."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(request_id), result)


def refusal(request_id: RequestId | None, code: int, message: str, data: Any = None) -> bytes:
    """A response with an error. Without an id the member is left out."""
    error = encode(ErrorObject(code, message, UNSET if data is None else Raw(encode(data))))
    if request_id is None:
        return b'{"jsonrpc":"2.0","error":%b}' % error
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode(request_id), error)


def with_null_id(error: bytes) -> bytes:
    """The same error response with a null id, if it has none."""
    anonymous = b'{"jsonrpc":"2.0","error":'
    return b'{"jsonrpc":"2.0","id":null,"error":' + error[len(anonymous) :] if error.startswith(anonymous) else error


def splice(body: bytes, members: bytes) -> bytes:
    """Put members (`b'"a":1,"b":2'`) in front of those of a JSON object."""
    return b"{" + members + (b"}" if body == b"{}" else b"," + body[1:])


def non_finite(value: Any, path: str = "$") -> str | None:
    """The path of the first number in plain JSON data that JSON cannot carry (NaN, infinity), or None.

    Encoders write `null` for such a number, so it has to be found before it leaves.
    """
    return next(_non_finite(value, path), None)


def _non_finite(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, float):
        if not math.isfinite(value):
            yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _non_finite(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _non_finite(item, f"{path}[{index}]")
