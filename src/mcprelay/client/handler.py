"""Who answers a server's questions: the user's `on_elicit`, `on_sample` and `on_roots`.

The same handlers answer in every era, whether a question came as a request of the server's or inside a result. A
handler may be a function or a coroutine function, and return a convenient value: it is made into what the protocol
wants here.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcprelay.client.elicitation import Elicitation
from mcprelay.client.misuse import function, told_value
from mcprelay.client.sampling import Sampling
from mcprelay.core.dialogue import flaw
from mcprelay.errors import ConfigurationError, ProtocolError
from mcprelay.revisions import NEWEST
from mcprelay.types import (
    Audio,
    ClientCapabilities,
    ElicitResult,
    Image,
    InputRequest,
    ListRootsResult,
    Root,
    SamplingResult,
    Text,
    ToolUse,
    ToolUseResult,
)
from mcprelay.wire import jsonrpc, percent
from mcprelay.wire.field import shown

if TYPE_CHECKING:
    from mcprelay.revisions import Revision

T = TypeVar("T")

logger = logging.getLogger("mcprelay.client")

ELICIT = "elicitation/create"
SAMPLE = "sampling/createMessage"
ROOTS = "roots/list"

OnElicit: TypeAlias = Callable[[Elicitation], Any]
OnSample: TypeAlias = Callable[[Sampling], Any]
OnRoots: TypeAlias = Callable[[], Any] | Iterable[Root | str | os.PathLike[str]]

OPTIONS = {ELICIT: "on_elicit", SAMPLE: "on_sample", ROOTS: "on_roots"}
"""Which option answers a question."""
_ELICITED = {"action", "content", "_meta"}
_decode_elicitation = msgspec.json.Decoder(Elicitation).decode
_decode_sampling = msgspec.json.Decoder(Sampling).decode
_encode = msgspec.json.Encoder().encode


class Handlers:
    """The handlers of one client. What there is no handler for is not declared, and refused if asked all the same."""

    __slots__ = ("_by_method",)

    def __init__(
        self, *, elicit: OnElicit | None = None, sample: OnSample | None = None, roots: OnRoots | None = None
    ) -> None:
        self._by_method: dict[str, Callable[[Any], Awaitable[Any]]] = {}
        function("on_elicit", elicit)
        function("on_sample", sample)
        if elicit is not None:
            self._by_method[ELICIT] = _elicitor(elicit)
        if sample is not None:
            self._by_method[SAMPLE] = _sampler(sample)
        if roots is not None:
            self._by_method[ROOTS] = _lister(roots if callable(roots) else _fixed(roots))

    @property
    def any(self) -> bool:
        """Whether any question is answered."""
        return bool(self._by_method)

    def has(self, method: str) -> bool:
        """Whether a question of this kind is answered."""
        return method in self._by_method

    def capabilities(self, *, asking: bool) -> ClientCapabilities:
        """What to declare. With `asking`, forms and addresses also where no handler answers them."""
        return ClientCapabilities(
            elicitation={"form": {}, "url": {}} if asking or self.has(ELICIT) else None,
            sampling={} if self.has(SAMPLE) else None,
            roots={} if self.has(ROOTS) else None,
        )

    async def answer(self, method: str, params: Raw | UnsetType, revision: Revision = NEWEST) -> bytes:
        """The encoded result of one question, as a revision has it. What the user's handler raises goes through.

        Raises:
            ProtocolError: No handler answers such a question, it is malformed, or the answer cannot be said in the
                revision.
        """
        handler = self._by_method.get(method)
        if handler is None:
            raise ProtocolError(jsonrpc.METHOD_NOT_FOUND, f"Method not found: {method}")
        answer = await handler(b"{}" if params is UNSET else params)
        try:
            return _encode(_as_spoken(revision, answer))
        except ConfigurationError as error:
            why = f"the answer to {method} cannot be said in protocol revision {revision.name}: {error}"
            logger.warning("%s", why)
            raise ProtocolError(jsonrpc.INTERNAL_ERROR, why) from error
        except (ValueError, TypeError) as error:  # JSON has no such thing
            raise ConfigurationError(f"what {OPTIONS[method]} answered does not fit: {error}") from error


def _as_spoken(revision: Revision, answer: Any) -> Any:
    """An answer as a revision has it. JSON that a handler wrote itself stays as it is where that will do."""
    if not isinstance(answer, dict) or SamplingResult not in revision.shapers:
        return revision.shape(answer)
    typed = msgspec.convert(answer, SamplingResult)
    shaped = revision.shape(typed)
    return answer if shaped == typed else shaped


async def _resolved(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _decoded(decode: Callable[[Any], Any], params: Any) -> Any:
    try:
        return decode(params)
    except msgspec.DecodeError as error:
        raise ProtocolError(jsonrpc.INVALID_PARAMS, f"Invalid params: {error}") from None


def _elicitor(ask: OnElicit) -> Callable[[Any], Awaitable[Any]]:
    async def answer(params: Any) -> ElicitResult:
        question = _decoded(_decode_elicitation, params)
        given = await _resolved(ask(question))
        return _fitting(ELICIT, lambda: _elicited(question, given))

    return answer


def _sampler(sample: OnSample) -> Callable[[Any], Awaitable[Any]]:
    async def answer(params: Any) -> Any:
        question = _decoded(_decode_sampling, params)
        if wrong := flaw(question.messages):
            raise ProtocolError(jsonrpc.INVALID_PARAMS, f"Invalid params: {wrong}")
        given = await _resolved(sample(question))
        return _fitting(SAMPLE, lambda: _sampled(question, given))

    return answer


def _lister(roots: OnRoots) -> Callable[[Any], Awaitable[Any]]:
    async def answer(_: Any) -> ListRootsResult:
        given = await _resolved(roots()) if callable(roots) else roots
        return _fitting(ROOTS, lambda: _rooted(given))

    return answer


def _fixed(roots: Any) -> Any:
    """A list of roots that is given once; it may be changed later, and is looked at each time.

    Raises:
        ConfigurationError: It is no list of folders as it is now.
    """
    if isinstance(roots, Iterator):
        roots = tuple(roots)  # it can be read but once
    try:
        _rooted(roots)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"on_roots: {error}") from error
    return roots


def _fitting(method: str, shape: Callable[[], T]) -> T:
    """What the handler of a method answered, as a result.

    Raises:
        ConfigurationError: It does not fit the question.
    """
    try:
        return shape()
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"what {OPTIONS[method]} answered does not fit: {error}") from error


def shaped(request: InputRequest, value: Any) -> Any:
    """What a person, a model or a program answered, as the result that the question wants.

    Raises:
        ValueError: It does not fit the question.
        TypeError: It is of no type that could.
    """
    if request.method == ELICIT:
        return _elicited(msgspec.convert(request.params or {}, Elicitation), value)
    if request.method == SAMPLE:
        return _sampled(msgspec.convert(request.params or {}, Sampling), value)
    return _rooted(value)


def _elicited(question: Elicitation, value: Any) -> ElicitResult:
    if isinstance(value, ElicitResult):
        return question.answered(value)
    if value is None or value is False:
        return question.decline()
    if _is_elicited(value) and "action" not in question.fields:
        return question.answered(
            ElicitResult(action=value["action"], content=value.get("content"), meta=value.get("_meta"))
        )
    return question.accept(None if value is True else value)


def _is_elicited(value: Any) -> bool:
    """Whether it is an `ElicitResult` as JSON, or is meant as one."""
    return isinstance(value, dict) and value.keys() <= _ELICITED and "action" in value


def _sampled(question: Sampling, value: Any) -> Any:
    if isinstance(value, dict):
        _check_sampled(question, msgspec.convert(value, SamplingResult))
        return value
    if isinstance(value, str):
        value = Text(value)
    if isinstance(value, (Text, Image, Audio, ToolUse)):
        reason = "toolUse" if isinstance(value, ToolUse) else "endTurn"
        value = SamplingResult(role="assistant", content=value, model="unknown", stop_reason=reason)
    if not isinstance(value, SamplingResult):
        raise TypeError(f"a model answers with a SamplingResult, a content block or a string, not {told_value(value)}")
    _check_sampled(question, _proven(value))
    return value


def _check_sampled(question: Sampling, answer: SamplingResult) -> None:
    """A model uses tools where it was given some, and never says what one answered."""
    if any(isinstance(block, ToolUseResult) for block in answer.blocks):
        raise ValueError("a model uses tools, and the server says what they answered: no tool_result here")
    uses = [shown(block.name) for block in answer.blocks if isinstance(block, ToolUse)]
    if uses and not question.tools:
        raise ValueError(f"it uses the tool {uses[0]}, and the server gave it no tools")


def _proven(value: T) -> T:
    """A value as the other side will read it: a constructor looks at no types.

    Raises:
        ValueError: A member is of a wrong type; the text says which.
        TypeError: The same, and JSON has no such type.
    """
    return msgspec.json.decode(_encode(value), type=type(value))


def _rooted(value: Any) -> ListRootsResult:
    if isinstance(value, dict):
        value = msgspec.convert(value, ListRootsResult)
    if not isinstance(value, ListRootsResult):
        if isinstance(value, (str, bytes, os.PathLike)) or not isinstance(value, Iterable):
            raise TypeError(f"roots are a list of folders, and not {told_value(value)}")
        value = ListRootsResult(roots=tuple(map(_root, value)))
    result: ListRootsResult = _proven(value)
    for root in result.roots:
        _check_root(root.uri)
    return result


def _root(root: Root | str | os.PathLike[str]) -> Root:
    if isinstance(root, Root):
        return root
    if isinstance(root, str) and "://" in root:
        return Root(root)
    if not isinstance(root, (str, os.PathLike)):
        raise TypeError(f"a root is a path, a file:// URI or a Root, and not {told_value(root)}")
    from pathlib import Path

    path = Path(os.path.abspath(root))  # noqa: PTH100 - `resolve` would follow links, and name another folder
    return Root(path.as_uri(), path.name or None)


def _check_root(address: str) -> None:
    """A root is a file or folder, and says which without a detour (client/roots, "Security Considerations")."""
    scheme, _, path = address.partition("://")
    if scheme.lower() != "file":
        raise ValueError(f"a root is the file:// URI of a file or folder, and not {address!r}")
    plain = percent.decode(path)
    if plain is None or ".." in plain.replace("\\", "/").split("/"):
        raise ValueError(f"the root {address!r} is not the plain address of a file or folder: it has no `..` in it")
