"""From a call to its answer: which handler, what it gave, how that is said in the call's revision.

Every request of every revision is answered here, whatever transport it came on. `handle` always gives an answer; only
cancellation passes through it. Nothing here knows a socket.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from logging import INFO
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from mcprelay.errors import (
    ConfigurationError,
    LimitExceeded,
    MCPRelayError,
    PromptError,
    ProtocolError,
    ResourceError,
    ResourceNotFound,
    ToolError,
)
from mcprelay.revisions import Fault, Feature
from mcprelay.server.call import Answer
from mcprelay.server.cutting import ENDING
from mcprelay.server.event import LimitHit, Refusal
from mcprelay.server.face import Face
from mcprelay.server.listen import listen, subscribe, unsubscribe
from mcprelay.server.mirroring import check_mirrored
from mcprelay.server.observation import handled, observed
from mcprelay.server.results import own_content
from mcprelay.server.scalar import Scalar
from mcprelay.types import (
    Cacheable,
    CompleteResult,
    Completion,
    DiscoverResult,
    EmptyResult,
    InitializeResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    Text,
    Tool,
    ToolResult,
)
from mcprelay.wire import jsonrpc
from mcprelay.wire.params import SERVER_INFO

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mcprelay.auth.principal import Principal
    from mcprelay.ports import Session
    from mcprelay.revisions import Revision
    from mcprelay.server import Server
    from mcprelay.server.call import Call
    from mcprelay.server.catalog import Shelf
    from mcprelay.server.entry import Entry

    Outcome = Any
    CallNext = Callable[[Call], Awaitable[Outcome]]
    Middleware = Callable[[Call, CallNext], Awaitable[Outcome]]

_SHOWN = (LimitExceeded, ResourceError, PromptError)
"""What a tool may raise besides `ToolError` so that the model reads it: it may share its code with others."""
_COMPLETIONS_SHOWN = 100
_GATES = {
    "tools/list": "tools",
    "tools/call": "tools",
    "resources/list": "resources",
    "resources/read": "resources",
    "resources/templates/list": "resources",
    "resources/subscribe": "resources",
    "resources/unsubscribe": "resources",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "completion/complete": "completions",
    "logging/setLevel": "logging",
}
"""The capability that a server must have declared to be asked this."""

_LISTS: dict[type, str] = {
    ListToolsResult: "tools",
    ListResourcesResult: "resources",
    ListResourceTemplatesResult: "resource_templates",
    ListPromptsResult: "prompts",
}
"""The results that are lists, and the member that holds their items."""


class Dispatcher:
    """Answers calls for one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._catalog = server.catalog
        self._declared = server.declared
        self._events = server.events
        self._log = server.logger
        self._faces: dict[str, Face] = {}
        self._layered = False
        self.ending = False
        """Whether what is cancelled now is cancelled because the server ends, so that its client is owed an answer."""
        self._routes: dict[str, CallNext] = {
            "tools/call": self._call_tool,
            "tools/list": self._list(server.catalog.tools, ListToolsResult),
            "resources/list": self._list(server.catalog.resources, ListResourcesResult),
            "resources/templates/list": self._list(server.catalog.templates, ListResourceTemplatesResult),
            "prompts/list": self._list(server.catalog.prompts, ListPromptsResult),
            "resources/read": self._read_resource,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "server/discover": self._discover,
            "subscriptions/listen": partial(listen, server),
            "initialize": self._initialize,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            "resources/subscribe": partial(subscribe, server),
            "resources/unsubscribe": partial(unsubscribe, server),
        }
        self.chain: CallNext = self._route
        """Middleware and route: from a call to its outcome, which is not shaped and encoded yet."""

    def compose(self, middleware: Iterable[Middleware]) -> None:
        """Put middleware around every call, the first outermost. Done once, when a server starts."""
        layers = list(middleware)
        self._layered = bool(layers)
        chain: CallNext = self._whole if layers else self._route
        for layer in reversed(layers):
            chain = _around(layer, chain)
        self.chain = chain

    def _route(self, call: Call) -> Awaitable[Outcome]:
        name = call.method.name
        capability = _GATES.get(name)
        if capability is not None and getattr(self._declared.current or self._declared.now, capability) is None:
            why = f"Method not found: {name} (this server has no {capability})"
            raise ProtocolError(call.revision.code(Fault.METHOD_NOT_FOUND), why)
        return self._routes[name](call)

    async def _whole(self, call: Call) -> Outcome:
        """The outcome for middleware, which may look at it."""
        outcome = await self._route(call)
        return outcome.whole() if type(outcome) is Scalar else outcome

    async def handle(self, call: Call) -> Answer:
        """The answer to a call. Raises nothing but what ends the task or the process from outside."""
        if (self._events.observers or self._events.logged(INFO)) and not call.observed:
            return await observed(self._events, call, self.handle)
        try:
            if call.params.meta.idempotency_key is not UNSET:
                _ = call.idempotency_key  # one that is malformed is refused before anything has run
            outcome = await self.chain(call)
            if call.revision.shapers and type(outcome) is ToolResult and outcome.structured_content is not UNSET:
                outcome = self.as_published(call, outcome)
            if type(outcome) is bytes:
                result = outcome
            else:
                try:
                    result = self._encode(call.revision, outcome)
                except Exception as error:  # noqa: BLE001 - whatever a handler gave that JSON cannot say
                    result = self._unsayable(call, outcome, error)
        except (GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and (call.cancelled or task is None or task.cancelling()):
                if call.cancelled or task is None or not self.ending:
                    raise
                task.uncancel()
                return Answer(jsonrpc.refusal(call.id, jsonrpc.INTERNAL_ERROR, ENDING), jsonrpc.INTERNAL_ERROR)
            # Also what awaited something else that was cancelled, or called sys.exit(): the client is owed an answer.
            return self.failed(call, error)
        return Answer(jsonrpc.response(call.id, result))

    # --- saying it

    def face(self, revision: Revision) -> Face:
        """What results begin with, in that revision."""
        face = self._faces.get(revision.name)
        if face is None:
            face = self._faces[revision.name] = Face(self._server, revision)
        return face

    def _encode(self, revision: Revision, result: Any) -> bytes:
        """A result as JSON, in the shape of the revision."""
        face = self._faces.get(revision.name) or self.face(revision)
        if type(result) is Scalar:
            return face.say(result)
        members = face.input_required if type(result) is InputRequiredResult else face.complete
        if type(result) is ToolResult:
            result = revision.shape(result)
        else:
            if isinstance(result, Cacheable):
                spliced = result.__dict__.get("spliced")
                if spliced is not None:
                    return spliced  # type: ignore[no-any-return]
                result = self._hinted(revision, result)
            result = _shaped(revision, result)
        if result.meta is not None and face.info is not None:
            result = msgspec.structs.replace(result, meta={SERVER_INFO: face.info, **result.meta})
            members = members.partition(b',"_meta"')[0]
        body = jsonrpc.encode(result)
        return jsonrpc.splice(body, members) if members else body

    def as_published(self, call: Call, result: ToolResult) -> ToolResult:
        """A tool's result whose structured content fits the output schema as the call's revision publishes it."""
        if call.method.name != "tools/call" or not call.revision.shapers:
            return result
        entry = self._catalog.tools.get(call.params.name, call.principal)
        definition = None if entry is None else entry.definition
        schema = definition.output_schema if isinstance(definition, Tool) else None
        return call.revision.shape_output(result, schema)

    def _hinted(self, revision: Revision, result: Cacheable) -> Cacheable:
        if not revision.has(Feature.CACHE_HINTS):
            return msgspec.structs.replace(result, ttl_ms=None, cache_scope=None)
        ttl = self._server.ttl_ms if result.ttl_ms is None else result.ttl_ms
        return msgspec.structs.replace(result, ttl_ms=ttl, cache_scope=result.cache_scope or self._server.cache_scope)

    def _unsayable(self, call: Call, outcome: Any, error: Exception) -> bytes:
        """What is said in place of an outcome that JSON cannot say: where a tool gave it, the tool failed."""
        if not isinstance(outcome, msgspec.Struct):
            raise ConfigurationError(
                f"middleware gave {type(outcome).__name__} for {call.method.name}: it returns what"
                " `await call_next(call)` gave, or another result of mcprelay.types"
            ) from error
        if call.method.name != "tools/call":
            raise error
        return self._encode(call.revision, self._tool_broke(call, error))

    def failed(self, call: Call, error: BaseException) -> Answer:
        """The answer to a call that came to nothing."""
        revision = call.revision
        data = None
        if isinstance(error, ToolError) and call.method.name == "tools/call":  # raised by middleware
            return Answer(jsonrpc.response(call.id, self._encode(revision, self._tool_refused(call, error))))
        if isinstance(error, LimitExceeded):
            self._events.emit(LimitHit(limit=error.limit, allowed=error.allowed))
        if isinstance(error, ProtocolError):
            code, message, data = error.code, error.message, error.data
        elif isinstance(error, ResourceNotFound):
            code, message, data = revision.code(Fault.RESOURCE_NOT_FOUND), str(error), {"uri": error.uri}
        elif isinstance(error, (ResourceError, PromptError, LimitExceeded, ToolError)):
            code, message = revision.code(Fault.INTERNAL), str(error)
        elif isinstance(error, msgspec.DecodeError):
            code, message = revision.code(Fault.INVALID_PARAMS), f"Invalid params: {error}"
        else:
            code, message = revision.code(Fault.INTERNAL), self.conceal(call, error)
        try:
            return Answer(jsonrpc.refusal(call.id, code, message, data), code)
        except (TypeError, ValueError):
            self._log.exception("the data of a ProtocolError cannot be encoded")
            return Answer(jsonrpc.refusal(call.id, code, message), code)

    def conceal(self, call: Call, error: BaseException) -> str:
        """A text for the client that gives nothing away, with a reference to what the log says."""
        reference = os.urandom(4).hex()
        what = f"{call.method.name} {call.target}" if call.target else call.method.name
        self._log.error("%s failed (reference %s)", what, reference, exc_info=error)
        return f"Internal error while answering {what} (reference {reference}: see the server's log)"

    # --- tools, resources, prompts

    async def _call_tool(self, call: Call) -> Outcome:
        entry = self._catalog.tools.get(call.params.name, call.principal)
        if entry is None:
            raise self._unknown(call, f"Unknown tool: {call.params.name}")
        if entry.header_params and entry.restricted:
            check_mirrored(call, entry)
        try:
            if call.observed:
                return await handled(self._events, call, entry, entry.run(call))
            return await entry.run(call)
        except ToolError as error:
            return self._tool_refused(call, error)
        except (ProtocolError, asyncio.CancelledError):
            raise
        except (MCPRelayError, Exception) as error:  # noqa: BLE001 - the model is told that, not what
            return self._tool_broke(call, error)

    def _tool_refused(self, call: Call, error: ToolError) -> ToolResult:
        """What a tool that said no answers. What it said it with may be no content, which is a fault of its own."""
        try:
            return _tool_failure(error)
        except MCPRelayError as wrong:
            return self._tool_broke(call, wrong)

    def _tool_broke(self, call: Call, error: Exception) -> ToolResult:
        if isinstance(error, LimitExceeded):
            self._events.emit(LimitHit(limit=error.limit, allowed=error.allowed))
        text = str(error) if isinstance(error, _SHOWN) else self.conceal(call, error)
        return ToolResult(content=(Text(text),), is_error=True)

    def _unknown(self, call: Call, why: str) -> ProtocolError:
        """The refusal of a call for what is not there, or not for this caller."""
        code = call.revision.code(Fault.INVALID_PARAMS)
        self._refused(call, code)
        return ProtocolError(code, why)

    def _refused(self, call: Call, code: int) -> None:
        if call.observed:
            self._events.emit(Refusal(reason="unknown_target", code=code))

    async def _read_resource(self, call: Call) -> Outcome:
        found = self._catalog.resource(call.params.uri, call.principal)
        if found is None:
            self._refused(call, call.revision.code(Fault.RESOURCE_NOT_FOUND))
            raise ResourceNotFound(call.params.uri)
        entry, values = found
        if call.observed:
            return await handled(self._events, call, entry, entry.run(call, values))
        return await entry.run(call, values)

    async def _get_prompt(self, call: Call) -> Outcome:
        entry = self._catalog.prompts.get(call.params.name, call.principal)
        if entry is None:
            raise self._unknown(call, f"Unknown prompt: {call.params.name}")
        if call.observed:
            return await handled(self._events, call, entry, entry.run(call))
        return await entry.run(call)

    def _list(self, shelf: Shelf, make: type) -> CallNext:
        async def page(call: Call) -> Outcome:
            server, cursor = self._server, call.params.cursor
            members = self.face(call.revision).complete
            spliced = shelf.page(call, cursor, members=members, scope=server.cache_scope, ttl_ms=server.ttl_ms)
            return shelf.listing(call, cursor, page=spliced, make=make) if self._layered else spliced

        return page

    async def _complete(self, call: Call) -> Outcome:
        reference = call.params.ref
        if reference.type == "ref/prompt":
            entry = self._catalog.prompts.get(reference.name or "", call.principal)
        elif reference.type == "ref/resource":
            entry = self._referred(reference.uri or "", call.principal)
        else:
            why = f"Invalid params: ref.type is ref/prompt or ref/resource, not {reference.type!r}"
            raise ProtocolError(call.revision.code(Fault.INVALID_PARAMS), why)
        if entry is None:
            raise self._unknown(call, f"Unknown reference: {reference.name or reference.uri}")
        source = entry.completions.get(call.params.argument.name)
        if source is None:
            return CompleteResult(completion=Completion(values=()))
        filled = dict((call.params.context and call.params.context.arguments) or {})
        values = await source(call, call.params.argument.value, filled)
        if isinstance(values, (CompleteResult, bytes)):
            return values
        shown = tuple(values[:_COMPLETIONS_SHOWN])
        return CompleteResult(completion=Completion(values=shown, total=len(values), has_more=len(values) > len(shown)))

    def _referred(self, uri: str, principal: Principal | None) -> Entry | None:
        """The template that a reference names, or that its URI is one of; or the resource."""
        entry = self._catalog.templates.get(uri, principal)
        if entry is None and (found := self._catalog.listed(uri, principal)) is not None:
            entry = found[0]
        return entry

    # --- the server itself

    async def _discover(self, call: Call) -> Outcome:
        server = self._server
        return DiscoverResult(
            supported_versions=tuple(revision.name for revision in server.revisions),
            capabilities=server.declared.shaped(call.revision),
            instructions=server.instructions,
        )

    # --- the handshake era

    async def _initialize(self, call: Call) -> Outcome:
        server = self._server
        return InitializeResult(
            protocol_version=call.revision.name,
            capabilities=server.declared.shaped(call.revision),
            server_info=call.revision.shape(server.info),
            instructions=server.instructions,
        )

    async def _ping(self, _call: Call) -> Outcome:
        return EmptyResult()

    async def _set_level(self, call: Call) -> Outcome:
        level = call.params.level

        def change(session: Session) -> None:
            session.log_level = level

        call.amend(change)
        return EmptyResult()


def _around(layer: Middleware, inner: CallNext) -> CallNext:
    async def around(call: Call) -> Outcome:
        return await layer(call, inner)

    return around


def _shaped(revision: Revision, result: Any) -> Any:
    """A result as a revision has it. The items of a list are shaped one by one."""
    member = _LISTS.get(type(result))
    if member is not None:
        items = tuple(map(revision.shape, getattr(result, member)))
        result = msgspec.structs.replace(result, **{member: items})
    return revision.shape(result)


def _tool_failure(error: ToolError) -> ToolResult:
    """What a tool that said no answers."""
    content = own_content(error.content) if error.content else (Text(error.message),)
    if error.structured is None:
        return ToolResult(content=content, is_error=True)
    return ToolResult(content=content, structured_content=Raw(jsonrpc.encode(error.structured)), is_error=True)
