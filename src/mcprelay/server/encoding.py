"""How any Python value that a handler returns becomes JSON, and what cannot.

JSON has no NaN and no infinity, and an encoder that meets one writes `null`: that would be a lie, so it is an error
that names the place. Nothing here knows schemas.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from mcprelay.errors import MCPRelayError
from mcprelay.server.shape.finite import path_to_nonfinite
from mcprelay.server.shape.text import plain_text


class ResultInvalid(MCPRelayError):
    """What a handler returned cannot be sent: it has no JSON form, or it is not what was published.

    This is the server's own fault. The message names the place and is for the server's log, not for the client.

    Attributes:
        path: Where in the value, as people write it; empty for the whole of it.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


def encode(value: Any) -> bytes:
    """The JSON of a value.

    Raises:
        ResultInvalid: It, or something in it, has no JSON form.
    """
    try:
        data = _ENCODER.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _refusal(value, error) from error
    if data.find(b"null") >= 0 and (path := path_to_nonfinite(value)) is not None:
        raise ResultInvalid("is a number that is not finite, which JSON cannot say", path=path or "the result")
    return data


def encode_scalar(value: Any) -> bytes:
    """The same for a text, an integer or a boolean, which hold no number that is not finite.

    Raises:
        ResultInvalid: It has no JSON form: half a surrogate pair, say.
    """
    try:
        return _ENCODER.encode(value)
    except (ValueError, OverflowError) as error:
        raise _refusal(value, error) from error


def _refusal(value: Any, error: Exception) -> ResultInvalid:
    """Why a value has no JSON form, in words that help to find it."""
    try:
        key = next(_strange_keys(value), None)
    except RecursionError:
        return ResultInvalid("the result contains itself, or nests too deeply for JSON")
    if key is not None:
        return ResultInvalid(f"the result has no JSON form: keys of a JSON object are strings, and not {key}")
    if isinstance(error, RecursionError):
        return ResultInvalid("the result contains itself, or nests too deeply for JSON")
    return ResultInvalid(f"the result has no JSON form: {error}")


def _strange_keys(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (repr(key)[:60] for key in value if key is None or isinstance(key, (tuple, frozenset)))
    if isinstance(value, (Mapping, list, tuple)):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _strange_keys(inner)


def _plain(value: Any) -> Any:
    """What msgspec asks of types that it does not know."""
    for base in (str, int, float):
        if isinstance(value, base):
            return base(value)
    if hasattr(value, "model_dump_json"):  # pydantic
        return Raw(value.model_dump_json(by_alias=True).encode())
    if type(value).__module__.partition(".")[0] == "numpy":
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterator):
        raise TypeError("an iterator can be read only once; make a list of it")
    if isinstance(value, Iterable):
        return list(value)
    text = plain_text(value)
    if text is value:
        raise TypeError(
            f"{type(value).__qualname__} objects are not JSON; return a dict, a dataclass or a model instead"
        )
    return text


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)
