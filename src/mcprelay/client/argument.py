"""What a caller passes, encoded: arguments, metadata, and the identifiers that travel with a call."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from mcprelay.client.misuse import told_value
from mcprelay.client.progress import logger
from mcprelay.errors import ConfigurationError
from mcprelay.wire import jsonrpc
from mcprelay.wire.field import shown
from mcprelay.wire.params import CORRELATION_ID, IDEMPOTENCY_KEY, PREFIX

_KEY = re.compile(r"[!-~]{1,255}")
_CORRELATION = re.compile(r"[!-~]{1,128}")
_BRACE = ord("{")
_RESERVED = frozenset({"progressToken", IDEMPOTENCY_KEY, CORRELATION_ID})


def _plain(value: Any) -> Any:
    """What a type that msgspec does not know is as plain data."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):  # arrays and their scalars
        return value.tolist()
    raise TypeError(f"{told_value(value)} is no JSON value")


encode = msgspec.json.Encoder(enc_hook=_plain).encode


def encode_object(value: Any, *, what: str, of: str | None = None) -> bytes:
    """A mapping, or an object with fields, as the JSON of an object. An error calls it `what`, and whose it is.

    Raises:
        ConfigurationError: It is no object, or holds what JSON cannot carry. The text says where.
    """
    try:
        data = encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise ConfigurationError(f"{_named(what, of)} cannot be sent: {error}") from error
    if data[0] != _BRACE:
        raise ConfigurationError(f"{_named(what, of)} must be a mapping, not {told_value(value)}")
    if data.partition(b"null")[1]:  # quicker than `in`, where there is little
        path = jsonrpc.non_finite(msgspec.to_builtins(value, enc_hook=_plain))
        if path is not None:
            why = f"{path} is not a finite number, which JSON does not have"
            raise ConfigurationError(f"{_named(what, of)} cannot be sent: {why}")
    return data


def text(what: str, value: Any, *, wanted: str = "a string") -> None:
    """Refuse what is no string, or an empty one.

    Raises:
        ConfigurationError: It is. The text calls it `what`, and says what is `wanted`.
    """
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{what} is {wanted}, and not {told_value(value)}")


def members(what: str, value: Any) -> dict[str, Any]:
    """The members of a mapping that may be left out.

    Raises:
        ConfigurationError: It is something else. The text calls it `what`.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{what} is a mapping from names to values, and not {told_value(value)}")
    return dict(value)


def _named(what: str, of: str | None) -> str:
    return what if of is None else f"{what} {of!r}"


def encode_meta(
    meta: Mapping[str, Any] | None, idempotency_key: str | None, correlation_id: str | None
) -> tuple[bytes, str | None]:
    """The members of `_meta` that a caller adds, and the correlation id that is among them.

    A key that is none is refused, because guessing what was meant could run something twice. A text that is none as a
    correlation id is replaced, because it changes nothing but logs, and may come from somebody else.

    Raises:
        ConfigurationError: The idempotency key is not 1 to 255 visible ASCII characters, the correlation id is no
            string, or `meta` has a member that is the protocol's own.
    """
    members = dict(meta or {})
    taken = sorted(name for name in members if name in _RESERVED or name.startswith(PREFIX))
    if taken:
        raise ConfigurationError(f"meta: {taken[0]!r} is set by the client itself")
    if idempotency_key is not None:
        key: object = idempotency_key  # whatever a user passed
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            wrong = told_value(idempotency_key)
            raise ConfigurationError(f"idempotency_key is 1 to 255 visible ASCII characters, and not {wrong}")
        members[IDEMPOTENCY_KEY] = idempotency_key
    if correlation_id is not None:
        id: object = correlation_id
        if not isinstance(id, str):
            right = "a string of 1 to 128 visible ASCII characters"
            raise ConfigurationError(f"correlation_id is {right}, and not {told_value(correlation_id)}")
        if not _CORRELATION.fullmatch(correlation_id):
            fresh = os.urandom(8).hex()
            logger.warning(
                "correlation_id=%s is not 1 to 128 visible ASCII characters, so the call goes out with %s in its place",
                shown(correlation_id),
                fresh,
            )
            correlation_id = fresh
        members[CORRELATION_ID] = correlation_id
    return encode_object(members, what="meta")[1:-1], correlation_id
