"""Asking the client in the middle of a call, with one handler body for both eras.

In the handshake era a question is a request of the server's on the open stream, and the body waits for the answer.

In the stateless era nothing waits. A question without an answer is *parked*, the body is ended from outside one loop
turn later (so that questions awaited together are parked together), and the client gets `input_required` with all of
them. It repeats the request with the answers and the sealed state, and the body runs again from the top: what is
answered is answered at once, what is not is parked.

The state is sealed: encrypted and authenticated, bound to principal, method, target and arguments, with an expiry. It
holds the recorded answers, the memos of `once`, the round, a seed for idempotency keys, and a digest of every question
asked, so that a body that asks something else on the retry is told so instead of being given the wrong answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from mcprelay.errors import ConfigurationError, LimitExceeded, MCPRelayError, ProtocolError
from mcprelay.ports import Sealer
from mcprelay.revisions import Fault, Feature
from mcprelay.server import question
from mcprelay.types import InputRequest, InputRequiredResult
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from mcprelay.revisions import Revision
    from mcprelay.server.call import Call

STATE_BYTES = 64 * 1024
STATE_SECONDS = 3600.0


class State(Struct, omit_defaults=True):
    """What a call remembers between its rounds."""

    round: int
    seed: str
    expires: float
    answers: dict[str, Raw] = {}
    memos: dict[str, Raw] = {}
    questions: dict[str, str] = {}


_encode = msgspec.json.Encoder().encode
_decode_state = msgspec.json.Decoder(State).decode


class StateKeys(Struct, frozen=True):
    """How request state is sealed, and how long and how large it may be."""

    sealer: Sealer
    state_bytes: int = STATE_BYTES
    state_seconds: float = STATE_SECONDS
    now: Callable[[], float] = time.time


def context_of(call: Call) -> bytes:
    """What the state is bound to: principal, method, target and a digest of the arguments."""
    arguments = getattr(call.params, "arguments", None)
    digest = hashlib.sha256(_encode(arguments) if isinstance(arguments, (Raw, dict)) else b"").hexdigest()
    subject = None if call.principal is None else call.principal.subject
    return _encode(["mcprelay/state/1", subject, call.method.name, call.target, digest])


class Interview:
    """The questions of one call, in one round.

    Attributes:
        parked: What was asked and is not answered yet.
        over: Whether the body has ended: nothing can be asked any more.
    """

    def __init__(self, call: Call, keys: StateKeys) -> None:
        self.call = call
        self.keys = keys
        self.parked: dict[str, InputRequest] = {}
        self.over = False
        self._task: asyncio.Task[Any] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._ended = False
        self._misuse: ConfigurationError | None = None
        self._count = 0
        self.replays = call.revision.has(Feature.MRTR) and call.method.answerable
        self.state = self._resumed() if self.replays else self._fresh()
        self._offered: dict[str, Raw] = dict(getattr(call.params, "input_responses", None) or {})

    def _fresh(self) -> State:
        return State(1, os.urandom(16).hex(), self.keys.now() + self.keys.state_seconds)

    def _resumed(self) -> State:
        sealed = self.call.params.request_state
        if sealed is None:
            return self._fresh()
        if len(sealed) > self.keys.state_bytes * 2:
            raise self._refused(f"it is over the limit: state_bytes={self.keys.state_bytes}")
        try:
            state = _decode_state(self.keys.sealer.open(sealed, context=context_of(self.call)))
        except (ValueError, msgspec.DecodeError):
            raise self._refused(_NOT_OURS) from None
        if state.expires < self.keys.now():
            raise self._refused("it has expired; call again without it")
        state.round += 1
        return state

    def _refused(self, why: str) -> ProtocolError:
        return ProtocolError(self.call.revision.code(Fault.INVALID_PARAMS), f"Invalid requestState: {why}")

    # --- asking

    async def ask(
        self,
        key: str | None,
        request: InputRequest,
        decode: Callable[[Raw], Any],
        capability: dict[str, Any],
    ) -> Any:
        """The decoded answer to a question. `decode` raises `ValueError` for an answer that does not fit."""
        if self.over:
            raise MCPRelayError("the call is over: ask before the handler returns, and await what asks")
        self._check_capability(request, capability)
        if not self.replays:
            return await self._ask_back(request, decode)
        self._count += 1
        key = key or f"{request.method}#{self._count}"
        self._check_digest(key, request)
        for source in (self.state.answers, self._offered):
            if key in source:
                try:
                    answer = decode(source[key])
                except (ValueError, msgspec.DecodeError):
                    continue  # an ill-typed answer is asked again
                self.state.answers[key] = source[key]
                return answer
        return await self._park(key, request)

    def _check_capability(self, request: InputRequest, capability: dict[str, Any]) -> None:
        """A server asks for nothing that the client did not declare (patterns/mrtr, server requirement 6)."""
        declared = msgspec.to_builtins(self.call.client_capabilities)
        if not _covers(declared, capability):
            spoken = self.call.revision
            said = "the client has not declared" if _has(spoken, capability) else f"{spoken.name} does not have"
            why = f"This needs {request.method} ({_named(capability)}), which {said}"
            raise ProtocolError(spoken.code(Fault.MISSING_CAPABILITY), why, {"requiredCapabilities": capability})

    def _check_digest(self, key: str, request: InputRequest) -> None:
        """A key names one question: in this round, and the same one as in the rounds before."""
        digest = hashlib.sha256(_encode(msgspec.to_builtins(request))).hexdigest()[:32]
        if key in self.parked:
            msg = f"two questions of this call have the key {key!r}: give each its own key="
        elif self.state.questions.setdefault(key, digest) != digest:
            msg = f"the question {key!r} is not the one that was asked in an earlier round: its answer would not fit"
        else:
            return
        self._misuse = ConfigurationError(msg)
        raise self._misuse

    async def _ask_back(self, request: InputRequest, decode: Callable[[Raw], Any]) -> Any:
        shaped = question.shaped(self.call.revision, request)
        params = shaped.params or {}
        if carried := self._trace():
            params = {**params, "_meta": {**params.get("_meta", {}), **carried}}
        with nullcontext() if self.call.patience is None else self.call.patience.paused():
            result = await self.call.link.request(shaped.method, _encode(params))
        try:
            return decode(result)
        except (ValueError, msgspec.DecodeError) as error:
            code = self.call.revision.code(Fault.INVALID_PARAMS)
            why = f"The client's answer to {request.method} does not fit: {error}"
            raise ProtocolError(code, why) from None

    def _trace(self) -> Mapping[str, str]:
        """Where a question to the client stands in a trace: in the present span, else where the call itself stands."""
        from mcprelay.span import onward

        carried = onward()
        if not carried and (trace := self.call.trace) is not None:
            carried = trace.members()
        return carried

    async def _park(self, key: str, request: InputRequest) -> Any:
        """Wait for what only the next round can bring; the body is ended one loop turn later."""
        self.parked[key] = request
        if not self._ended:
            self._ended = True
            asyncio.get_running_loop().call_soon(self._end)
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def _end(self) -> None:
        if self._task is not None:
            self._task.cancel("input required")

    # --- running a body that may ask

    async def run(self, body: Callable[[], Awaitable[Any]]) -> Any:
        """Run the body; `InputRequiredResult` when it asked something that is not answered yet.

        A body that swallows the cancellation is answered for all the same.
        """
        task = self._task = asyncio.current_task()
        try:
            outcome = await body()
        except asyncio.CancelledError:
            if not self._ended or task is None or task.cancelling() > 1:
                raise
            outcome = None
        except BaseException:
            if not self.parked:
                raise
            outcome = None  # what a body makes of being ended is not an error of its own
        finally:
            self.over = True
            for waiting in self._waiting:  # of tasks that the body left behind
                waiting.cancel()
        if not self.parked:
            return outcome
        if self._misuse is not None:
            raise self._misuse
        if task is not None and task.cancelling():
            task.uncancel()
        return self._question()

    def _question(self) -> InputRequiredResult:
        requests = {key: self.call.revision.shape(request) for key, request in self.parked.items()}
        data = _encode(self.state)
        if len(data) > self.keys.state_bytes:
            raise LimitExceeded("state_bytes", self.keys.state_bytes, actual=len(data), what="the state of this call")
        sealed = self.keys.sealer.seal(data, context=context_of(self.call))
        return InputRequiredResult(input_requests=requests, request_state=sealed)

    # --- what a body remembers

    async def once(self, key: str, function: Callable[[], Any]) -> Any:
        """What `function` gave in the first round that called it: a memo, never a promise that it ran once."""
        if key in self.state.memos:
            return msgspec.json.decode(self.state.memos[key])
        value = function()
        if hasattr(value, "__await__"):
            value = await value
        encoded = jsonrpc.encode(value)
        self.state.memos[key] = Raw(encoded)
        return msgspec.json.decode(encoded)

    def idempotency_key(self, name: str, given: str | None) -> str:
        """A key that is the same in every round of this call, and in a repeated call that brought its own key."""
        seed = self.state.seed if given is None else given
        return hmac.new(seed.encode(), f"{context_of(self.call).decode()}\0{name}".encode(), "sha256").hexdigest()[:40]


def _named(capability: dict[str, Any]) -> str:
    """A capability as a path: `sampling.tools`."""
    return ".".join(f"{name}.{_named(inner)}" if inner else name for name, inner in capability.items())


_NOT_OURS = (
    "it was not made by this server for this request (after a restart, or at another worker, it is only with the same"
    " Server(state_keys=…)); call again without it"
)
_SINCE = {"elicitation": Feature.ELICITATION, "url": Feature.URL_INPUT, "tools": Feature.SAMPLING_TOOLS}
"""Parts of capabilities that not every revision has."""


def _has(revision: Revision, capability: dict[str, Any]) -> bool:
    """Whether a revision has the question at all that needs a capability."""
    known = (name not in _SINCE or revision.has(_SINCE[name]) for name in capability)
    return all(known) and all(_has(revision, inner) for inner in capability.values())


def _covers(declared: Any, wanted: dict[str, Any]) -> bool:
    """Whether every member of `wanted` is declared. An `elicitation` that names no mode means the form mode."""
    if not isinstance(declared, dict):
        return False
    for name, inner in wanted.items():
        if name not in declared:
            return name == "form" and not declared
        if not _covers(declared[name] or {}, inner):
            return False
    return True


class KeyRing:
    """AES-GCM with a ring of keys: the first seals, all of them open. Without keys, one is made for this process.

    Args:
        keys: Secrets of at least 16 bytes; each is stretched to an AES-256 key.
    """

    def __init__(self, keys: list[str | bytes] | None = None) -> None:
        secrets = [key.encode() if isinstance(key, str) else key for key in keys or []]
        for secret in secrets:
            if len(secret) < 16:
                msg = "state_keys: a key has at least 16 bytes"
                raise ConfigurationError(msg)
        self._keys = [hashlib.sha256(b"mcprelay state key\0" + secret).digest() for secret in secrets] or [
            os.urandom(32)
        ]
        self._ciphers: list[Any] = []

    def _ring(self) -> list[Any]:
        if not self._ciphers:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._ciphers = [AESGCM(key) for key in self._keys]
        return self._ciphers

    def seal(self, data: bytes, *, context: bytes) -> str:
        """See `mcprelay.ports.Sealer`."""
        import base64

        nonce = os.urandom(12)
        return base64.urlsafe_b64encode(nonce + self._ring()[0].encrypt(nonce, data, context)).decode()

    def open(self, text: str, *, context: bytes) -> bytes:
        """See `mcprelay.ports.Sealer`."""
        import base64

        from cryptography.exceptions import InvalidTag

        sealed = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
        for cipher in self._ring():
            try:
                return bytes(cipher.decrypt(sealed[:12], sealed[12:], context))
            except InvalidTag:
                continue
        msg = "the seal is broken"
        raise ValueError(msg)
