"""`Context`: what a handler can learn and do while it works on one request."""

from __future__ import annotations

import asyncio
import contextlib
import typing
from collections.abc import Callable, Coroutine, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic

import msgspec
from msgspec import Raw, Struct

import mcprelay
from mcprelay.core.dialogue import flaw
from mcprelay.errors import ConfigurationError, MCPRelayError, ToolError
from mcprelay.revisions import Feature
from mcprelay.server.call import Call, HttpRequest, Principal
from mcprelay.server.resume import Interview
from mcprelay.types import (
    LOG_LEVELS,
    ClientCapabilities,
    ElicitResult,
    Implementation,
    InputRequest,
    ListRootsResult,
    LogLevel,
    Meta,
    RequestId,
    Root,
    SamplingMessage,
    SamplingResult,
    Text,
)
from mcprelay.wire import jsonrpc
from mcprelay.wire.params import MessageParams, ProgressParams
from mcprelay.wire.trace import TraceContext

if TYPE_CHECKING:
    # With a default, so that a plain `Context` is complete to a type checker. Only they need it.
    from typing_extensions import TypeVar

    StateT = TypeVar("StateT", default=object)
else:
    StateT = typing.TypeVar("StateT")

T = typing.TypeVar("T")
_SEVERITY = {level: index for index, level in enumerate(LOG_LEVELS)}
_decode_elicit = msgspec.json.Decoder(ElicitResult).decode
_decode_sampling = msgspec.json.Decoder(SamplingResult).decode
_decode_roots = msgspec.json.Decoder(ListRootsResult).decode


class NotAccepted(ToolError):
    """`.value` was read of an answer that is not an acceptance. `action` says what the person did instead.

    A tool error, because that is no fault of anybody's: where a handler lets it pass, the model reads the sentence.
    """

    def __init__(self, action: str) -> None:
        super().__init__(f"the person who was asked answered with {action!r}, so there is no value to go on with")
        self.action = action


class Elicited(Struct, Generic[T], frozen=True):
    """A person's answer. `action` is accept, decline or cancel."""

    action: str
    content: T | None = None

    @property
    def accepted(self) -> bool:
        """Whether there is a value."""
        return self.action == "accept"

    @property
    def value(self) -> T:
        """What was filled in.

        Raises:
            NotAccepted: The person declined or cancelled. A tool that lets it pass answers with that, as an error.
        """
        if not self.accepted:
            raise NotAccepted(self.action)
        return self.content  # type: ignore[return-value]


class Context(Generic[StateT]):
    """The request that a handler works on. Declare a parameter of this type anywhere in the signature to get it, as
    `Context[Tenant]` where `Server(context=…)` makes a `Tenant`.

    `progress`, `log` and what they are made of may be called from any thread. Asking (`elicit`, `sample`, `roots`)
    is for `async def`: the methods that ask are awaited, and say at once where they cannot be.
    """

    __slots__ = ("_call", "_interview", "_loop", "_progressed", "_server", "_thread")

    def __init__(self, call: Call, server: mcprelay.Server, interview: Interview | None = None) -> None:
        self._call = call
        self._server = server
        self._interview = interview
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._progressed: float | None = None

    # --- what was asked, and by whom

    @property
    def server(self) -> mcprelay.Server:
        """The server that answers."""
        return self._server

    @property
    def request_id(self) -> RequestId:
        """The JSON-RPC id of the request."""
        return self._call.id

    @property
    def meta(self) -> Meta:
        """The request's `_meta`, whole."""
        return self._call.meta

    @property
    def client_info(self) -> Implementation | None:
        """What the client says it is: unverified, for display and logs."""
        return self._call.client_info

    @property
    def client_capabilities(self) -> ClientCapabilities:
        """What the client can be asked for."""
        return self._call.client_capabilities

    @property
    def protocol_version(self) -> str:
        """The protocol revision that the request is in."""
        return self._call.revision.name

    @property
    def principal(self) -> Principal | None:
        """Who calls, as verified, or None on a server without `auth`."""
        return self._call.principal

    @property
    def http(self) -> HttpRequest | None:
        """The HTTP request, or None on other transports."""
        return self._call.http

    @property
    def state(self) -> StateT:
        """What `Server(context=…)` made for this request; on other transports than HTTP the value that the connection
        was given.
        """
        return self._call.state  # type: ignore[no-any-return]

    @property
    def lifespan(self) -> Any:
        """What the server's lifespan gave when it was entered."""
        return self._server.life.value

    @property
    def trace(self) -> TraceContext | None:
        """Where the request stands in the client's trace, if it said so."""
        return self._call.trace

    @property
    def time_left(self) -> float | None:
        """Seconds until the call has taken too long for this server (`timeout=`, or the limit `call_seconds`); None
        where it may take as long as it does. How long the client waits, it does not say.
        """
        patience = self._call.patience
        return None if patience is None else patience.left

    @property
    def cancelled(self) -> bool:
        """Whether the call was given up, by the client or because it took too long. For `def` handlers, which nothing
        interrupts.
        """
        patience = self._call.patience
        return self._call.cancelled or (patience is not None and patience.over)

    # --- telling

    @property
    def _over(self) -> bool:
        return self._interview is not None and self._interview.over

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the work is. Nothing is sent to a client that did not ask, when the value does not
        grow, or when the call is over (patterns/progress: it MUST increase, and MUST stop).
        """
        token = self._call.params.meta.progress_token
        if token is None or self._over or (self._progressed is not None and progress <= self._progressed):
            return
        params = ProgressParams(progress_token=token, progress=progress, total=total, message=message)
        if (path := jsonrpc.non_finite([progress, total])) is not None:
            msg = f"progress and total are finite numbers, not {progress!r} of {total!r} ({path})"
            raise ValueError(msg)
        self._progressed = progress
        shaped = self._call.revision.shape(params)
        self._notify(jsonrpc.notification("notifications/progress", jsonrpc.encode(shaped)))

    def log(self, level: LogLevel, data: Any, *, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants messages of that level. Where each request says what it wants
        (the stateless era), nothing is sent when the call is over.

        Args:
            level: One of the eight levels of RFC 5424.
            data: Any JSON value.
            logger: A name for where it comes from.
        """
        wanted = self._call.log_level
        if level not in _SEVERITY:
            msg = f"no such log level: {level!r}; one of {', '.join(LOG_LEVELS)}"
            raise ValueError(msg)
        if wanted is None or _SEVERITY[level] < _SEVERITY[wanted] or (self._over and self._call.session is None):
            return
        if (path := jsonrpc.non_finite(data)) is not None:
            msg = f"log data cannot hold NaN or infinity (at {path})"
            raise ValueError(msg)
        params = MessageParams(level=level, logger=logger, data=data)
        self._notify(jsonrpc.notification("notifications/message", jsonrpc.encode(params)))

    def debug(self, data: Any, *, logger: str | None = None) -> None:
        """`log("debug", data)`."""
        self.log("debug", data, logger=logger)

    def info(self, data: Any, *, logger: str | None = None) -> None:
        """`log("info", data)`."""
        self.log("info", data, logger=logger)

    def warning(self, data: Any, *, logger: str | None = None) -> None:
        """`log("warning", data)`."""
        self.log("warning", data, logger=logger)

    def error(self, data: Any, *, logger: str | None = None) -> None:
        """`log("error", data)`."""
        self.log("error", data, logger=logger)

    def _notify(self, message: bytes) -> None:
        self._on_loop(self._call.link.notify, message)

    def _on_loop(self, function: Callable[[T], object], argument: T) -> None:
        """Call what belongs to the loop: at once on its own thread, soon from another."""
        if get_ident() == self._thread:
            function(argument)
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
            self._loop.call_soon_threadsafe(function, argument)

    def close_stream(self, *, retry_ms: int = 1000) -> None:
        """Let go of the client's connection while the work goes on; the client comes back for what follows.

        For work that is so long that no connection should be held for it. It needs a client that polls (a session over
        HTTP, in a revision that has it); for all others nothing happens, and the connection is kept.

        Args:
            retry_ms: After how many milliseconds the client shall come back.
        """
        self._on_loop(self._call.link.close_stream, retry_ms)

    # --- asking

    def _ask(self) -> Interview:
        if self._interview is None or get_ident() != self._thread:
            msg = (
                "only an `async def` can ask the client, in a tool, resource or prompt and in what they depend on: make"
                " this one `async def`, and await the question"
            )
            raise MCPRelayError(msg)
        return self._interview

    @property
    def round(self) -> int:
        """How often the body has run for this call, 1 in the first round."""
        return 1 if self._interview is None else self._interview.state.round

    def once(self, key: str, function: Callable[[], Any]) -> Coroutine[Any, Any, Any]:
        """Compute something in the first round and remember it in later ones (a JSON value; sync or async `function`).

        It is a memo and never a promise that a side effect happens once: for that, pass `idempotency_key` on.
        """
        return self._ask().once(key, function)

    def idempotency_key(self, name: str = "") -> str:
        """A key for a side effect: the same in every round, and in every repeated call with the client's own key."""
        if self._interview is None:
            msg = "idempotency keys are for handlers of tools, resources and prompts"
            raise MCPRelayError(msg)
        return self._interview.idempotency_key(name, self._call.idempotency_key)

    @property
    def correlation_id(self) -> str:
        """What this call and its later rounds are called in logs: the client's id, or one made here."""
        return self._call.correlation_id

    def elicit(self, message: str, form: type[T], *, key: str | None = None) -> Coroutine[Any, Any, Elicited[T]]:
        """Ask the person at the client to fill in a form made from a type (client/elicitation, form mode).

        Args:
            message: What is asked, and why.
            form: A flat class (dataclass, Struct, TypedDict, pydantic model, …) of strings, numbers, booleans, enums
                and lists of enum values; or one of these types itself.
            key: The question's name, unique in the call. Give one whenever a body asks more than one question.

        Raises:
            ProtocolError: The client has not declared that it can be asked, or its protocol revision has no such form.
            DefinitionError: The type cannot be a form.
        """
        from mcprelay.server.form import form_of

        interview = self._ask()
        made = form_of(form)
        params: dict[str, Any] = {"message": message, "requestedSchema": made.schema}
        if self._call.revision.has(Feature.URL_INPUT):
            params = {"mode": "form", **params}

        def decode(raw: Raw) -> Elicited[T]:
            answer = _decode_elicit(raw)
            content = made.decode(answer.content or {}) if answer.action == "accept" else None
            return Elicited(answer.action, content)

        request = InputRequest("elicitation/create", params)
        return interview.ask(key, request, decode, {"elicitation": {"form": {}}})

    def elicit_url(self, message: str, url: str, *, key: str | None = None) -> Coroutine[Any, Any, Elicited[None]]:
        """Ask the person to visit an address (client/elicitation, URL mode): for secrets, payments, sign-ins."""
        request = InputRequest("elicitation/create", {"mode": "url", "message": message, "url": url})

        def decode(raw: Raw) -> Elicited[None]:
            return Elicited(_decode_elicit(raw).action)

        return self._ask().ask(key, request, decode, {"elicitation": {"url": {}}})

    def sample(
        self,
        messages: str | Sequence[SamplingMessage | str],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        model_preferences: dict[str, Any] | None = None,
        tools: Sequence[Any] | None = None,
        tool_choice: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        key: str | None = None,
    ) -> Coroutine[Any, Any, SamplingResult]:
        """Ask the client's model (client/sampling). `.text` of the result is what it said.

        Raises:
            ProtocolError: The client has not declared that it can be asked, or its protocol revision has no such
                messages: several blocks in one, audio, tools.
            ConfigurationError: Tool uses and their results do not stand in pairs (client/sampling, "Message Content
                Constraints").
        """
        conversation = [
            SamplingMessage("user", Text(item)) if isinstance(item, str) else item
            for item in ([messages] if isinstance(messages, str) else messages)
        ]
        if wrong := flaw(conversation):
            raise ConfigurationError(f"a model cannot be asked this: {wrong}")
        params: dict[str, Any] = {
            "messages": [msgspec.to_builtins(message) for message in conversation],
            "maxTokens": max_tokens,
            "systemPrompt": system_prompt,
            "temperature": temperature,
            "stopSequences": None if stop_sequences is None else list(stop_sequences),
            "modelPreferences": model_preferences,
            "metadata": metadata,
            "tools": None if tools is None else [msgspec.to_builtins(tool) for tool in tools],
            "toolChoice": tool_choice,
        }
        capability: dict[str, Any] = {"sampling": {"tools": {}} if tools or tool_choice else {}}
        request = InputRequest(
            "sampling/createMessage", {name: item for name, item in params.items() if item is not None}
        )
        return self._ask().ask(key, request, _decode_sampling, capability)

    def roots(self, *, key: str | None = None) -> Coroutine[Any, Any, tuple[Root, ...]]:
        """Ask which folders and files of the client's the server may work in (client/roots)."""

        def decode(raw: Raw) -> tuple[Root, ...]:
            return _decode_roots(raw).roots

        return self._ask().ask(key, InputRequest("roots/list"), decode, {"roots": {}})
