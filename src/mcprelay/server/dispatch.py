"""From a call to its answer: which handler, what it gave, how that is said in the call's revision.

Every request of every revision is answered here, whatever transport it came on. `handle` always gives an answer; only
cancellation passes through it. Nothing here knows a socket.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from mcprelay.errors import (
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
from mcprelay.server.subscription import Listener, notice
from mcprelay.types import (
    Cacheable,
    CompleteResult,
    Completion,
    DiscoverResult,
    EmptyResult,
    InitializeResult,
    InputRequiredResult,
    SubscriptionFilter,
    Text,
    ToolResult,
)
from mcprelay.wire import jsonrpc
from mcprelay.wire.params import SERVER_INFO, SUBSCRIPTION_ID, AcknowledgedParams

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcprelay.revisions import Revision
    from mcprelay.server import Server
    from mcprelay.server.call import Call
    from mcprelay.server.catalog import Shelf

    Outcome = Any
    CallNext = Callable[[Call], Awaitable[Outcome]]

logger = logging.getLogger("mcprelay.server")

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

_COMPLETE = b'"resultType":"complete"'
_INPUT_REQUIRED = b'"resultType":"input_required"'


class Face:
    """What every result of a server begins with, in one revision."""

    __slots__ = ("complete", "info", "input_required")

    def __init__(self, server: Server, revision: Revision) -> None:
        self.info = msgspec.to_builtins(revision.shape(server.info)) if revision.has(Feature.SERVER_INFO) else None
        meta = b"" if self.info is None else b',"_meta":%b' % jsonrpc.encode({SERVER_INFO: self.info})
        typed = revision.has(Feature.RESULT_TYPE)
        self.complete = _COMPLETE + meta if typed else meta[1:]
        self.input_required = _INPUT_REQUIRED + meta if typed else meta[1:]


class Dispatcher:
    """Answers calls for one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._catalog = server.catalog
        self._faces: dict[str, Face] = {}
        self._routes: dict[str, CallNext] = {
            "tools/call": self._call_tool,
            "tools/list": self._list(server.catalog.tools),
            "resources/list": self._list(server.catalog.resources),
            "resources/templates/list": self._list(server.catalog.templates),
            "prompts/list": self._list(server.catalog.prompts),
            "resources/read": self._read_resource,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "server/discover": self._discover,
            "subscriptions/listen": self._listen,
            "initialize": self._initialize,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
        }
        self._chain: CallNext = self._route

    def compose(self, middleware: list[Callable[[Call, CallNext], Awaitable[Outcome]]]) -> None:
        """Put middleware around every call, the first outermost. Done once, when a server starts."""
        chain: CallNext = self._route
        for layer in reversed(middleware):
            chain = _layered(layer, chain)
        self._chain = chain

    async def _route(self, call: Call) -> Outcome:
        name = call.method.name
        capability = _GATES.get(name)
        if capability is not None and getattr(self._server.capabilities, capability) is None:
            why = f"Method not found: {name} (this server has no {capability})"
            raise ProtocolError(call.revision.code(Fault.METHOD_NOT_FOUND), why)
        return await self._routes[name](call)

    async def handle(self, call: Call) -> Answer:
        """The answer to a call. Raises nothing but `asyncio.CancelledError`."""
        try:
            outcome = await self._chain(call)
            result = outcome if type(outcome) is bytes else self._encode(call.revision, outcome)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a handler raises, the client is owed an answer
            return self._failed(call, error)
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
        face = self.face(revision)
        members = face.input_required if type(result) is InputRequiredResult else face.complete
        if isinstance(result, Cacheable):
            result = self._hinted(revision, result)
        result = revision.shape(result)
        if result.meta is not None and face.info is not None:
            result = msgspec.structs.replace(result, meta={SERVER_INFO: face.info, **result.meta})
            members = members.partition(b',"_meta"')[0]
        body = jsonrpc.encode(result)
        return jsonrpc.splice(body, members) if members else body

    def _hinted(self, revision: Revision, result: Cacheable) -> Cacheable:
        if not revision.has(Feature.CACHE_HINTS):
            return msgspec.structs.replace(result, ttl_ms=None, cache_scope=None)
        ttl = self._server.ttl_ms if result.ttl_ms is None else result.ttl_ms
        return msgspec.structs.replace(result, ttl_ms=ttl, cache_scope=result.cache_scope or self._server.cache_scope)

    def _failed(self, call: Call, error: Exception) -> Answer:
        revision = call.revision
        data = None
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
            logger.exception("the data of a ProtocolError cannot be encoded")
            return Answer(jsonrpc.refusal(call.id, code, message), code)

    def conceal(self, call: Call, error: BaseException) -> str:
        """A text for the client that gives nothing away, with a reference to what the log says."""
        reference = os.urandom(4).hex()
        what = f"{call.method.name} {call.target}" if call.target else call.method.name
        logger.error("%s failed (reference %s)", what, reference, exc_info=error)
        return f"Internal error while answering {what} (reference {reference}: see the server's log)"

    # --- tools, resources, prompts

    async def _call_tool(self, call: Call) -> Outcome:
        entry = self._catalog.tools.get(call.params.name, call.principal)
        if entry is None:
            raise ProtocolError(call.revision.code(Fault.INVALID_PARAMS), f"Unknown tool: {call.params.name}")
        try:
            return await entry.run(call)
        except ToolError as error:
            return _tool_failure(error)
        except (ProtocolError, asyncio.CancelledError):
            raise
        except (MCPRelayError, Exception) as error:  # noqa: BLE001 - the model is told that, not what
            return self._tool_broke(call, error)

    def _tool_broke(self, call: Call, error: Exception) -> ToolResult:
        text = str(error) if isinstance(error, LimitExceeded) else self.conceal(call, error)
        return ToolResult(content=(Text(text),), is_error=True)

    async def _read_resource(self, call: Call) -> Outcome:
        found = self._catalog.resource(call.params.uri, call.principal)
        if found is None:
            raise ResourceNotFound(call.params.uri)
        entry, values = found
        return await entry.run(call, values)

    async def _get_prompt(self, call: Call) -> Outcome:
        entry = self._catalog.prompts.get(call.params.name, call.principal)
        if entry is None:
            raise ProtocolError(call.revision.code(Fault.INVALID_PARAMS), f"Unknown prompt: {call.params.name}")
        return await entry.run(call)

    def _list(self, shelf: Shelf) -> CallNext:
        async def page(call: Call) -> bytes:
            server = self._server
            members = self.face(call.revision).complete
            return shelf.page(call, call.params.cursor, members=members, scope=server.cache_scope, ttl_ms=server.ttl_ms)

        return page

    async def _complete(self, call: Call) -> Outcome:
        reference = call.params.ref
        if reference.type == "ref/prompt":
            entry = self._catalog.prompts.get(reference.name or "", call.principal)
        elif reference.type == "ref/resource":
            uri = reference.uri or ""
            entry = self._catalog.templates.get(uri, call.principal) or self._catalog.resources.get(uri, call.principal)
        else:
            why = f"Invalid params: ref.type is ref/prompt or ref/resource, not {reference.type!r}"
            raise ProtocolError(call.revision.code(Fault.INVALID_PARAMS), why)
        if entry is None:
            why = f"Unknown reference: {reference.name or reference.uri}"
            raise ProtocolError(call.revision.code(Fault.INVALID_PARAMS), why)
        source = entry.completions.get(call.params.argument.name)
        if source is None:
            return CompleteResult(completion=Completion(values=()))
        filled = dict((call.params.context and call.params.context.arguments) or {})
        values = await source(call, call.params.argument.value, filled)
        shown = tuple(values[:_COMPLETIONS_SHOWN])
        return CompleteResult(completion=Completion(values=shown, total=len(values), has_more=len(values) > len(shown)))

    # --- the server itself

    async def _discover(self, call: Call) -> Outcome:
        server = self._server
        return DiscoverResult(
            supported_versions=tuple(revision.name for revision in server.revisions),
            capabilities=server.capabilities_in(call.revision),
            instructions=server.instructions,
        )

    async def _listen(self, call: Call) -> Outcome:
        """Acknowledge first, then tell what changes until either side ends it (patterns/subscriptions)."""
        honored = self._honored(call.params.notifications)
        meta = jsonrpc.encode({SUBSCRIPTION_ID: call.id})
        listener = Listener.of(honored)
        changes = self._server.changes
        changes.add(listener)
        try:
            acknowledged = jsonrpc.splice(jsonrpc.encode(AcknowledgedParams(notifications=honored)), b'"_meta":' + meta)
            call.link.notify(jsonrpc.notification("notifications/subscriptions/acknowledged", acknowledged))
            while changed := await listener.changes():
                for change in changed:
                    call.link.notify(notice(change, meta))
                await call.link.drain()
        finally:
            changes.discard(listener)
        return EmptyResult(meta={SUBSCRIPTION_ID: call.id})

    def _honored(self, wanted: SubscriptionFilter) -> SubscriptionFilter:
        """The part of a filter that this server can honor."""
        offered = self._server.capabilities
        tools, prompts, resources = offered.tools or {}, offered.prompts or {}, offered.resources or {}
        return SubscriptionFilter(
            tools_list_changed=wanted.tools_list_changed and bool(tools.get("listChanged")),
            prompts_list_changed=wanted.prompts_list_changed and bool(prompts.get("listChanged")),
            resources_list_changed=wanted.resources_list_changed and bool(resources.get("listChanged")),
            resource_subscriptions=wanted.resource_subscriptions if resources.get("subscribe") else (),
        )

    # --- the handshake era

    async def _initialize(self, call: Call) -> Outcome:
        server = self._server
        return InitializeResult(
            protocol_version=call.revision.name,
            capabilities=server.capabilities_in(call.revision),
            server_info=call.revision.shape(server.info),
            instructions=server.instructions,
        )

    async def _ping(self, _call: Call) -> Outcome:
        return EmptyResult()

    async def _set_level(self, call: Call) -> Outcome:
        call.session.log_level = call.params.level  # type: ignore[union-attr]
        return EmptyResult()

    async def _subscribe(self, call: Call) -> Outcome:
        session = call.session
        assert session is not None, "only sessions subscribe"  # noqa: S101 - the transport's promise
        if call.params.uri not in session.subscriptions:
            session.subscriptions.append(call.params.uri)
        return EmptyResult()

    async def _unsubscribe(self, call: Call) -> Outcome:
        session = call.session
        assert session is not None, "only sessions subscribe"  # noqa: S101 - the transport's promise
        if call.params.uri in session.subscriptions:
            session.subscriptions.remove(call.params.uri)
        return EmptyResult()


def _layered(layer: Callable[[Call, CallNext], Awaitable[Outcome]], inner: CallNext) -> CallNext:
    async def around(call: Call) -> Outcome:
        return await layer(call, inner)

    return around


def _tool_failure(error: ToolError) -> ToolResult:
    """What a tool that said no answers."""
    content = error.content or (Text(error.message),)
    if error.structured is None:
        return ToolResult(content=content, is_error=True)
    return ToolResult(content=content, structured_content=Raw(jsonrpc.encode(error.structured)), is_error=True)
