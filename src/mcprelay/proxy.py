"""A server made from a client: it offers what another server offers, and passes calls on to it.

What passes is JSON as it came: members that this version does not know arrive on the other side. Only where the two
sides speak revisions of different shapes is a value read and written anew. Names, descriptions and results are the
other server's words: nothing here judges them, which is the relay's business, and not a proxy's.

What the other server offers is read when the proxy starts, and again when it says that something changed. A question of
the other server goes to the proxy's own client; one of the handshake era asks the handlers of the client that the proxy
was made from.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from mcprelay.client.answer import prompt_answer, reader, tool_answer
from mcprelay.client.listening import PromptsChanged, ResourcesChanged, ResourceUpdated, ToolsChanged
from mcprelay.errors import CallFailed, ProtocolError, RemoteError, ResourceNotFound
from mcprelay.revisions import Fault, Feature, find
from mcprelay.server import Server, question
from mcprelay.server.address import Matcher
from mcprelay.server.context import Context
from mcprelay.server.entry import Entry
from mcprelay.span import onward
from mcprelay.types import (
    CompleteResult,
    GetPromptResult,
    InputRequest,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    Tool,
    ToolResult,
)
from mcprelay.wire import jsonrpc, mirror, uri
from mcprelay.wire.params import CORRELATION_ID, IDEMPOTENCY_KEY, PREFIX, SERVER_INFO
from mcprelay.wire.trace import KEYS

if TYPE_CHECKING:
    from mcprelay.client import Client
    from mcprelay.client.listening import Event, Listening
    from mcprelay.client.progress import LogMessage, Progress
    from mcprelay.revisions import Revision
    from mcprelay.server.call import Call
    from mcprelay.server.catalog import Shelf

__all__ = ["proxy"]

_OWN = frozenset(("progressToken", IDEMPOTENCY_KEY, CORRELATION_ID, *KEYS))
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_plain = msgspec.json.Decoder().decode
_READERS: dict[str, Callable[[Raw], Any]] = {
    "tools/call": tool_answer,
    "resources/read": reader(ReadResourceResult),
    "prompts/get": prompt_answer,
    "completion/complete": reader(CompleteResult),
}
"""What a result is read with, to see that it is one: kinds of content that nobody knows are."""

_RESULTS: dict[str, Any] = {
    "tools/call": msgspec.json.Decoder(ToolResult).decode,
    "resources/read": msgspec.json.Decoder(ReadResourceResult).decode,
    "prompts/get": msgspec.json.Decoder(GetPromptResult).decode,
    "completion/complete": msgspec.json.Decoder(CompleteResult).decode,
}


def proxy(client: Client, *, name: str = "proxy", version: str = "0", **options: Any) -> Server:
    """A server that offers what another server offers.

    Args:
        client: A client of the other server. The proxy connects and closes it.
        name: What the proxy is called.
        version: Its version.
        options: Further options of `Server`, but for the lifespan.

    Raises:
        CallFailed: When it starts: the other server cannot be reached.
    """
    upstream = Upstream(client)
    server = Server(name, version=version, lifespan=upstream.living, **options)
    server.catalog.beyond.append(upstream.beyond)
    server.follow.append(upstream.follow)
    return server


class Upstream:
    """The other server.

    Args:
        client: A client of it.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._server: Server | None = None

    # --- what it offers

    async def living(self, server: Server) -> AsyncIterator[Client]:
        """The lifespan of the proxy."""
        self._server = server
        async with self._client as client:
            face = await client.discover()
            server.instructions = server.instructions or face.instructions
            offered = face.capabilities
            kinds = [kind for kind in ("tools", "resources", "prompts") if getattr(offered, kind, None) is not None]
            for kind in kinds:
                await self._read(kind)
            heard = [kind for kind in kinds if getattr(offered, kind).get("listChanged")]
            async with contextlib.AsyncExitStack() as stack:
                if heard:
                    await stack.enter_async_context(self._hearing(heard))
                yield client

    @contextlib.asynccontextmanager
    async def _hearing(self, kinds: list[str]) -> AsyncGenerator[None, None]:
        """Read a list again when it changes."""
        wanted = self._client.listen(
            tools="tools" in kinds, resources="resources" in kinds, prompts="prompts" in kinds, reconnect=True
        )
        async with contextlib.AsyncExitStack() as stack:
            try:
                events = await stack.enter_async_context(wanted)
            except CallFailed as error:
                self._known.logger.warning("changes of the other server will not be seen: %s", error)
                yield
                return
            task = asyncio.create_task(self._hear(events))
            try:
                yield
            finally:
                task.cancel()
                await asyncio.wait([task])

    async def _hear(self, events: Listening) -> None:
        names: dict[type, str] = {ToolsChanged: "tools", ResourcesChanged: "resources", PromptsChanged: "prompts"}
        async for event in self._heard(events):
            kind = names.get(type(event))
            if kind is not None:
                try:
                    await self._read(kind)
                except CallFailed as error:
                    self._known.logger.warning("the list of %s could not be read again: %s", kind, error)

    async def _heard(self, events: Listening) -> AsyncIterator[Event]:
        """What is listened to; that it came to an end is said, since it is served on without."""
        try:
            async for event in events:
                yield event
        except CallFailed as error:
            self._known.logger.warning("changes of the other server will not be seen any more: %s", error)

    @property
    def _known(self) -> Server:
        assert self._server is not None, "a proxy that lives has its server"  # noqa: S101 - set when it begins
        return self._server

    async def _read(self, kind: str) -> None:
        catalog, client = self._known.catalog, self._client
        if kind == "tools":
            self._fill(catalog.tools, await client.list_tools(fresh=True))
        elif kind == "prompts":
            self._fill(catalog.prompts, await client.list_prompts(fresh=True))
        else:
            self._fill(catalog.resources, await client.list_resources(fresh=True))
            self._fill(catalog.templates, await client.list_resource_templates(fresh=True))

    def _fill(self, shelf: Shelf, definitions: Any) -> None:
        before = {entry.key: entry for entry in shelf.found}
        entries = []
        for definition in definitions:
            entry = ProxiedEntry(self, definition)
            other = before.get(entry.key)
            entries.append(other if other is not None and entry.same_as(other) else entry)
        if entries != list(before.values()):
            shelf.replace_found(entries)

    def beyond(self, address: str) -> Entry:
        """A resource that is in no list: the other server knows whether there is one."""
        return ProxiedEntry(self, Resource(uri=address, name=address))

    @contextlib.asynccontextmanager
    async def follow(self, uris: tuple[str, ...]) -> AsyncGenerator[None, None]:
        """Pass on what becomes of resources, as long as somebody listens."""
        async with self._client.listen(updates=uris, reconnect=True) as events:
            task = asyncio.create_task(self._pass_on(events))
            try:
                yield
            finally:
                task.cancel()
                await asyncio.wait([task])

    async def _pass_on(self, events: Listening) -> None:
        async for event in self._heard(events):
            if isinstance(event, ResourceUpdated):
                await self._known.resource_updated(event.uri)

    # --- calls

    async def ask(self, call: Call) -> bytes:
        """What the other server answers to a call, as the JSON of a result in the call's revision."""
        members = _members(call)
        while True:
            result = await self._send(call, members)
            if not self._is_question(result) or call.revision.has(Feature.MRTR):
                return self._answer(call, result)
            members |= await self._answered(call, result)

    async def _send(self, call: Call, members: Mapping[str, Any]) -> dict[str, Raw]:
        caller = self._client._caller  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - a proxy is made of both halves, and wants the JSON as it is
        encoded = jsonrpc.encode(dict(members))[1:-1]
        sent = caller.call(call.method.name, encoded, name=call.target, options=self._options(call))
        if call.method.name == "tools/call":
            known = self._client._toolbox.known.get(call.params.name)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            sent.params = () if known is None else known.params
            sent.arguments = bytes(members.get("arguments", Raw(b"{}")))
        try:
            result = await caller.send(sent)
            bytes(result).decode()  # what goes on is text, whatever came
            _READERS[call.method.name](result)
            return _decode_members(result)
        except RemoteError as error:
            raise self._refusal(call, error) from error
        except ValueError as error:
            raise ProtocolError(jsonrpc.INTERNAL_ERROR, "The server behind this one answered nonsense") from error
        except CallFailed as error:
            self._known.logger.warning("%s was not answered by the server behind: %s", call.method.name, error)
            said = f"The server behind this one did not answer (the request: {error.evidence})"
            raise ProtocolError(jsonrpc.INTERNAL_ERROR, said) from error

    def _options(self, call: Call) -> dict[str, Any]:
        """How a call is passed on: with what its `_meta` says, and with ears for what comes before the answer."""
        meta = {name: value for name, value in call.meta.items() if name not in _OWN and not name.startswith(PREFIX)}
        meta |= onward() or (call.trace.members() if call.trace is not None else {})
        options: dict[str, Any] = {"correlation_id": call.correlation_id}
        if meta:
            options["meta"] = meta
        if call.idempotency_key is not None:
            options["idempotency_key"] = call.idempotency_key
        context = Context[Any](call, self._known)
        if call.params.meta.progress_token is not None:
            options["on_progress"] = _progress(context)
        if call.log_level is not None:
            options["on_log"], options["log_level"] = _log(context), call.log_level
        return options

    def _refusal(self, call: Call, error: RemoteError) -> ProtocolError | ResourceNotFound:
        """An error, with the code that the call's revision has for it."""
        theirs, ours = self._revision(), call.revision
        missing = theirs.code(Fault.RESOURCE_NOT_FOUND)
        certain = missing != theirs.code(Fault.INVALID_PARAMS) or isinstance(error.data, dict)
        if call.method.name == "resources/read" and error.code == missing and certain:
            return ResourceNotFound(call.params.uri, error.message)
        for fault in Fault:
            if fault is not Fault.RESOURCE_NOT_FOUND and theirs.code(fault) == error.code:
                return ProtocolError(ours.code(fault), error.message, error.data)
        return ProtocolError(error.code, error.message, error.data)

    def _revision(self) -> Revision:
        found = find(self._client.server.revision)
        assert found is not None, "who answered speaks a revision"  # noqa: S101 - the client's promise
        return found

    # --- questions

    def _is_question(self, result: Mapping[str, Raw]) -> bool:
        kind = result.get("resultType")
        return kind is not None and bytes(kind) == b'"input_required"'

    async def _answered(self, call: Call, result: Mapping[str, Raw]) -> dict[str, Any]:
        """Ask a client of the handshake era what the other server asks."""
        requests = _decode_plain(result.get("inputRequests", b"{}"))
        answers = {}
        for key, request in requests.items():
            shaped = question.shaped(call.revision, InputRequest(request["method"], request.get("params")))
            answers[key] = await call.link.request(shaped.method, jsonrpc.encode(shaped.params or {}))
        again: dict[str, Any] = {"inputResponses": answers} if answers else {}
        if "requestState" in result:
            again["requestState"] = result["requestState"]
        return again

    # --- answers

    def _answer(self, call: Call, result: dict[str, Raw]) -> bytes:
        """The result with what every result of the proxy has; anew where the shapes of the revisions differ."""
        ours = call.revision
        if ours.shapers and not self._is_question(result) and ours is not self._revision():
            typed = _RESULTS[call.method.name](jsonrpc.encode(result))
            if isinstance(typed, ToolResult):
                typed = self._known.dispatcher.as_published(call, typed)
            result = _decode_members(jsonrpc.encode(ours.shape(typed)))
        face = self._known.dispatcher.face(ours)
        if ours.has(Feature.RESULT_TYPE):
            result.setdefault("resultType", Raw(b'"complete"'))
        else:
            result.pop("resultType", None)
        meta = _decode_plain(result["_meta"]) if "_meta" in result else {}
        meta.pop(SERVER_INFO, None)
        if face.info is not None:
            meta[SERVER_INFO] = face.info
        result.pop("_meta", None)
        if meta:
            result["_meta"] = Raw(jsonrpc.encode(meta))
        self._hint(call, result)
        return jsonrpc.encode(result)

    def _hint(self, call: Call, result: dict[str, Raw]) -> None:
        """How long a resource may be kept, if the other server does not say."""
        if call.method.name != "resources/read" or self._is_question(result):
            return
        if not call.revision.has(Feature.CACHE_HINTS):
            result.pop("ttlMs", None)
            result.pop("cacheScope", None)
            return
        result.setdefault("ttlMs", Raw(b"%d" % self._known.ttl_ms))
        result.setdefault("cacheScope", Raw(jsonrpc.encode(self._known.cache_scope)))


def _members(call: Call) -> dict[str, Any]:
    """The params of a call as they came, without `_meta`; under the names that they have by now."""
    members: dict[str, Any] = {} if call.raw is UNSET else dict(_decode_members(call.raw))
    members.pop("_meta", None)
    if call.method.mirror is not None:
        members[call.method.mirror] = call.target
    if call.method.name == "completion/complete":
        members["ref"] = call.params.ref
    arguments = getattr(call.params, "arguments", None)
    if arguments is not None and arguments is not UNSET:
        members["arguments"] = arguments
    return members


def _progress(context: Context[Any]) -> Callable[[Progress], None]:
    return lambda heard: context.progress(heard.progress, heard.total, heard.message)


def _log(context: Context[Any]) -> Callable[[LogMessage], None]:
    return lambda heard: context.log(heard.level, heard.data, logger=heard.logger)


class ProxiedEntry(Entry):
    """A thing of the other server, as the proxy offers it.

    Args:
        upstream: The other server.
        definition: What it says of the thing.
    """

    __slots__ = ()

    def __init__(self, upstream: Upstream, definition: Tool | Resource | ResourceTemplate | Prompt) -> None:
        async def run(call: Call, *_: Any) -> bytes:
            return await upstream.ask(call)

        completes = isinstance(definition, (Prompt, ResourceTemplate))
        super().__init__(
            _key(definition),
            definition,
            run,
            place="the server behind",
            by_hand=False,
            header_params=_header_params(definition),
            completions=_Completions(upstream) if completes else None,
            template=_template(definition.uri_template) if isinstance(definition, ResourceTemplate) else None,
        )

    def same_as(self, other: Entry) -> bool:
        """Whether the other server says the same of another thing."""
        return _said(self.definition) == _said(other.definition)

    def fragment(self, revision: Revision) -> bytes:
        """The definition as JSON: as it came, where the revision lets it."""
        if revision.shapers:
            return super().fragment(revision)
        return _said(self.definition) or super().fragment(revision)


def _said(definition: Any) -> bytes:
    return b"" if definition.raw is None else bytes(definition.raw)


def _key(definition: Any) -> str:
    for field in ("uri", "uri_template", "name"):
        if hasattr(definition, field):
            return str(getattr(definition, field))
    raise AssertionError("a definition has a name")


def _header_params(definition: Any) -> tuple[mirror.HeaderParam, ...]:
    try:
        return mirror.params_of(definition.input_schema) if isinstance(definition, Tool) else ()
    except mirror.HeaderSchemaInvalid:
        return ()


def _template(text: str) -> uri.Template | Matcher:
    """What recognizes the URIs of a template; nothing, where nobody here can: then the other server is asked."""
    template = uri.Template(text)
    return template if template.check() is None else Matcher(template, lambda _: None)


class _Completions:
    """Completions that the other server makes."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    def get(self, _argument: str) -> Callable[[Call, str, Mapping[str, str]], Awaitable[bytes]]:
        """What completes an argument."""

        async def source(call: Call, _typed: str, _others: Mapping[str, str]) -> bytes:
            return await self._upstream.ask(call)

        return source
