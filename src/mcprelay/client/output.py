"""Typed values out of results: a decoder for each type, made once.

Knows msgspec's types and, where the user has pydantic and names one of its types, pydantic's. Knows the wrapping that
older revisions need for values that are no objects, and undoes it.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct

from mcprelay.client import content, readable
from mcprelay.client.failure import raised
from mcprelay.client.misuse import named, told_value
from mcprelay.client.outcome import text_of
from mcprelay.errors import ConfigurationError, told
from mcprelay.revisions.shape import WRAPPED
from mcprelay.types import Text, ToolResult
from mcprelay.wire.field import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.client.answer import ToolAnswer
    from mcprelay.client.outcome import Block

_decoders: dict[Any, Callable[[Any], Any]] = {}
_MOST = 1024
_NOTHING = type(None)
_WANTED = "output is a type that JSON can be read into, such as float, list[str], a dataclass or a pydantic model"


class _Wrapped(Struct, forbid_unknown_fields=True):
    result: Raw = msgspec.field(name=WRAPPED)


_decode_wrapped = msgspec.json.Decoder(_Wrapped).decode

plain = msgspec.json.Decoder().decode
"""Any JSON as plain data."""


def decoder(kind: Any) -> Callable[[Any], Any]:
    """What decodes JSON into a type; a `ValueError` says what does not fit, and where.

    Raises:
        ConfigurationError: The type cannot be decoded into.
    """
    try:
        found = _decoders.get(kind)
    except TypeError:  # not hashable: made anew each time
        return _made(kind)
    if found is None:
        if len(_decoders) >= _MOST:
            _decoders.clear()
        found = _decoders[kind] = _made(kind)
    return found


def _made(kind: Any) -> Callable[[Any], Any]:
    if isinstance(kind, str):
        raise ConfigurationError(f"{_WANTED}; {shown(kind)} is a name: give the type itself, without quotes")
    if inspect.isroutine(kind):  # pydantic would take the parameters of a function for a type
        raise ConfigurationError(f"{_WANTED}, and not {told_value(kind)}")
    if _is_pydantic(kind):
        return _by_pydantic(kind, "pydantic cannot read it")
    try:
        decode: Callable[[Any], Any] = msgspec.json.Decoder(kind, dec_hook=_foreign).decode
        never, unknown = readable.impossible(kind), readable.unknown(kind)
    except Exception as error:  # noqa: BLE001 - whatever the names in its annotations come to
        return _by_pydantic(kind, str(error))
    if never is not None:
        raise ConfigurationError(f"{_WANTED}; values of the type {named(kind)} cannot be read: {never}")
    return decode if unknown is None else _by_pydantic(kind, unknown)


def _is_pydantic(kind: Any) -> bool:
    return hasattr(kind, "__pydantic_core_schema__") or hasattr(kind, "__pydantic_validator__")


def _by_pydantic(kind: Any, reason: str) -> Callable[[Any], Any]:
    """What decodes by pydantic, where the user has it; `reason` is why nothing else does.

    Raises:
        ConfigurationError: That cannot, either.
    """
    try:
        from pydantic import TypeAdapter

        adapter: Any = TypeAdapter(kind)
        adapter.rebuild(raise_errors=True)  # names in it that say nothing are found at the first value, else
    except Exception as error:
        is_type = isinstance(kind, type) or typing.get_origin(kind) is not None
        why = f"{reason}{_more(error, reason)}"
        wrong = f"values of the type {named(kind)} cannot be read: {why}" if is_type else f"not {told_value(kind)}"
        raise ConfigurationError(f"{_WANTED}{'; ' if is_type else ', and '}{wrong}") from error
    return lambda raw: adapter.validate_json(bytes(raw))


def _more(error: Exception, reason: str) -> str:
    """What pydantic says of a type beyond `reason`, and not that it does not know it: it may say how to mend that."""
    if isinstance(error, ModuleNotFoundError) or getattr(error, "code", None) == "schema-for-unknown-type":
        return ""
    said, _, _ = str(error).partition("\n")
    return "" if said in reason else f"; pydantic says: {told(said)}"


def _foreign(kind: Any, plain: Any) -> Any:
    """A value of a type that is not msgspec's, inside one that is: any JSON for `object`, or a model of pydantic's."""
    return plain if kind is object else kind.model_validate_json(msgspec.json.encode(plain))


def typed(answer: ToolAnswer, kind: Any, *, wraps: bool = True) -> Any:
    """The value of a declared type: from the structured content, else from the content blocks, else from the text.

    Args:
        answer: What came.
        kind: The type.
        wraps: Whether a value that need not be an object comes wrapped, in the revision that is spoken.

    Raises:
        ValueError: What came is not such a value, or what the type does with it (`__post_init__`, a validator) raised.
    """
    if kind is ToolResult:
        return content.whole(answer)
    decode = decoder(kind)
    try:
        if answer.structured is UNSET or content.is_block(kind):
            return _from_content(answer.content, kind, decode)
        return _from_structured(answer.structured, kind, decode, wraps=wraps)
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"reading it raised {raised(error)}") from error


def _from_structured(structured: Raw, kind: Any, decode: Callable[[Any], Any], *, wraps: bool) -> Any:
    inner = _unwrapped(structured)
    if inner is None:
        return decode(structured)
    first, then = (inner, structured) if wraps and not _is_object(kind) else (structured, inner)
    try:
        return decode(first)
    except ValueError as error:
        try:
            return decode(then)
        except ValueError:
            raise error from None


def _from_content(blocks: tuple[Block, ...], kind: Any, decode: Callable[[Any], Any]) -> Any:
    """A value out of content alone. A type of one kind of block takes the first such block among others."""
    if kind is None or kind is _NOTHING:
        return None
    if content.is_null(blocks) and _takes_null(decode):
        return None
    inside = content.text_inside(blocks)
    texts = inside is not None or any(isinstance(block, Text) for block in blocks)
    if content.is_block(kind):
        blocks = next(((block,) for block in blocks if isinstance(block, kind)), blocks)
    wanted = content.is_content(kind)
    if wanted or not texts:
        for value in content.candidates(blocks):
            try:
                return _held(value, kind)
            except ValueError:
                continue
    mixed = wanted and not all(isinstance(block, Text) for block in blocks)  # such a text may look like base64
    if mixed or not texts:
        raise ValueError(content.described(blocks))
    return _from_text(text_of(blocks) if inside is None else inside, kind, decode)


def _takes_null(decode: Callable[[Any], Any]) -> bool:
    try:
        return decode(b"null") is None
    except ValueError:
        return False


def _held(value: Any, kind: Any) -> Any:
    """A value that is no JSON, such as bytes, as one of a type: itself, in the collection that is wanted.

    Raises:
        ValueError: It is none.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=_never)
    except msgspec.ValidationError:
        raise
    except TypeError:  # msgspec does not know the type, and `decoder` has found that pydantic does
        from pydantic import TypeAdapter

        adapter: Any = TypeAdapter(kind, config=None if _is_pydantic(kind) else {"arbitrary_types_allowed": True})
        return adapter.validate_python(value, strict=True)


def _never(kind: Any, value: Any) -> Any:
    if kind is object:
        return value
    raise ValueError("content is no such value")


_FIELDS = ("__dataclass_fields__", "__struct_fields__", "__total__", "__attrs_attrs__", "model_fields")
"""What a class with fields has: of dataclasses, msgspec, typed dicts, attrs, pydantic."""


def _is_object(kind: Any) -> bool:
    """Whether the values of a type are objects and nothing else: one class of fields, or a mapping. Or anything."""
    while typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    kind = typing.get_origin(kind) or kind
    if kind is Any or kind is object:
        return True
    if not isinstance(kind, type):
        return False
    config = getattr(kind, "__struct_config__", None)
    if getattr(kind, "__pydantic_root_model__", False) or (config is not None and config.array_like):
        return False
    return issubclass(kind, Mapping) or any(hasattr(kind, name) for name in _FIELDS)


def _unwrapped(structured: Raw) -> Raw | None:
    """The value inside `{"result": …}`, or None where that is not the shape."""
    try:
        return _decode_wrapped(structured).result
    except msgspec.DecodeError:
        return None


def _from_text(text: str, kind: Any, decode: Callable[[Any], Any]) -> Any:
    if kind is str:
        return text
    try:
        return decode(text.encode())
    except ValueError as error:  # a string says itself, without quotes
        try:
            return decode(msgspec.json.encode(text))
        except ValueError:
            if _is_json(text):
                raise error from None
    raise ValueError(f"it came as a text that is no JSON, {shown(text)}" if text else "neither JSON nor a text came")


def _is_json(text: str) -> bool:
    try:
        plain(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True
