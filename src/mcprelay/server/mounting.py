"""One server inside another: what it offers under a prefix, and calls that find their way to it and back.

A tool or prompt `add` of a server mounted as `math` is `math_add`. A resource `config://app` is `math+config://app`:
the prefix goes before the scheme, so that no URI of another web site or folder comes about, and the way back is
certain.
What the mounted server does later (tools that come and go, resources that change) is heard outside too. Its middleware
sees the calls to what it offers; lists are the outer server's.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from mcprelay.errors import ConfigurationError, ResourceNotFound
from mcprelay.server.entry import Entry
from mcprelay.types import (
    EmbeddedResource,
    GetPromptResult,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceLink,
    ResourceTemplate,
    Tool,
    ToolResult,
)
from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping

    from mcprelay.revisions import Revision
    from mcprelay.server import Server
    from mcprelay.server.call import Call
    from mcprelay.server.catalog import Shelf

_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class Mount:
    """A server inside another.

    Args:
        outer: Where it is mounted.
        prefix: What its names begin with; empty for nothing.
        inner: What is mounted.

    Raises:
        ConfigurationError: The prefix will not do, or the servers would hold each other.
    """

    def __init__(self, outer: Server, prefix: str, inner: Server) -> None:
        given: Any = (prefix, inner)  # whatever a user passed
        if not isinstance(given[0], str) or not hasattr(given[1], "mounts"):
            raise ConfigurationError(f"mount: a prefix and then a server, and not {prefix!r} and {inner!r}")
        if prefix and not _PREFIX.fullmatch(prefix):
            raise ConfigurationError(
                f"mount: {prefix!r} is no prefix: it begins with a letter and goes on with letters, digits, '_' and '-'"
            )
        if inner is outer or outer in inner.mounts.servers():
            raise ConfigurationError(f"mount: {inner!r} cannot be mounted in {outer!r}, which is mounted in it")
        self.outer = outer
        self.inner = inner
        self.prefix = prefix
        self.names = f"{prefix}_" if prefix else ""
        self.scheme = prefix.lower().replace("_", "-") + "+" if prefix else ""
        self._wrapped: dict[str, dict[Entry, Entry]] = {}

    def entries(self, shelf: Shelf) -> Callable[[], Iterable[Entry]]:
        """What the mounted server offers on a shelf, as the outer server offers it."""

        def entries() -> Iterable[Entry]:
            before = self._wrapped.get(shelf.member, {})
            by_key = {entry.key: entry for entry in before.values()}
            wrapped = {}
            for entry in shelf.entries.values():
                made = wrapped[entry] = before.get(entry) or MountedEntry(self, entry)
                other = by_key.get(made.key, made)
                made.order, made.enabled = other.order, other.enabled
            self._wrapped[shelf.member] = wrapped
            return wrapped.values()

        return entries

    # --- names and addresses

    def outward(self, uri: str) -> str:
        """A URI of the mounted server, as it is outside."""
        return self.scheme + uri

    def inward(self, uri: str) -> str | None:
        """The URI in the mounted server, of one outside; None for one that is not from there."""
        return uri.removeprefix(self.scheme) if uri.startswith(self.scheme) else None

    def _known(self, uri: str, call: Call) -> str:
        """A URI in something that the mounted server said, as it is outside if it names a resource of its own."""
        return self.outward(uri) if self.inner.catalog.listed(uri, call.principal) is not None else uri

    def beyond(self, uri: str) -> Entry | None:
        """What a URI names in the mounted server that is in none of its lists."""
        inward = self.inward(uri)
        if inward is None:
            return None
        entries = (entry for beyond in self.inner.catalog.beyond if (entry := beyond(inward)) is not None)
        return next((MountedEntry(self, entry) for entry in entries), None)

    @contextlib.asynccontextmanager
    async def follow(self, uris: tuple[str, ...]) -> AsyncGenerator[None, None]:
        """Let the mounted server know what is listened to."""
        inward = tuple(inner for uri in uris if (inner := self.inward(uri)) is not None)
        async with contextlib.AsyncExitStack() as stack:
            for follow in self.inner.follow if inward else ():
                await stack.enter_async_context(follow(inward))
            yield

    # --- calls

    async def delegate(self, call: Call, **renamed: Any) -> Any:
        """Let the mounted server answer, under the names that it knows."""
        inner = self.inner
        if not inner.started:
            await self.outer.hold(inner)
        before = (call.params, call.keys, call.observed)
        call.params = replace(call.params, **renamed)
        call.keys = call.keys or self.outer.state_keys
        call.observed = bool(inner.events.observers)
        try:
            outcome = await inner.dispatcher.chain(call)
        except ResourceNotFound as error:
            raise self._not_found(error) from None
        finally:
            call.params, call.keys, call.observed = before
        return self._outside(outcome, call) if self.scheme else outcome

    def _not_found(self, error: ResourceNotFound) -> ResourceNotFound:
        uri = self.outward(error.uri)
        said = str(error)
        return ResourceNotFound(uri, None if said == str(ResourceNotFound(error.uri)) else said)

    def _outside(self, outcome: Any, call: Call) -> Any:
        """An outcome, whose resources are named as they are outside."""
        if isinstance(outcome, ToolResult):
            return replace(outcome, content=tuple(self._block(block, call) for block in outcome.content))
        if isinstance(outcome, GetPromptResult):
            messages = tuple(replace(each, content=self._block(each.content, call)) for each in outcome.messages)
            return replace(outcome, messages=messages)
        if isinstance(outcome, ReadResourceResult):
            contents = tuple(replace(each, uri=self.outward(each.uri)) for each in outcome.contents)
            return replace(outcome, contents=contents)
        return self._outside_raw(outcome, call) if type(outcome) is bytes else outcome

    def _block(self, block: Any, call: Call) -> Any:
        if isinstance(block, ResourceLink):
            return replace(block, uri=self._known(block.uri, call))
        if isinstance(block, EmbeddedResource):
            resource = replace(block.resource, uri=self._known(block.resource.uri, call))
            return replace(block, resource=resource)
        return block

    def _outside_raw(self, outcome: bytes, call: Call) -> bytes:
        """The same for a result that is JSON already."""
        if b'"uri"' not in outcome:
            return outcome
        result = msgspec.json.decode(outcome)
        for contents in result.get("contents", ()):
            contents["uri"] = self.outward(contents["uri"])
        blocks = [*result.get("content", ()), *(message.get("content") for message in result.get("messages", ()))]
        for block in blocks:
            named = block.get("resource", block) if isinstance(block, dict) else {}
            if isinstance(named.get("uri"), str):
                named["uri"] = self._known(named["uri"], call)
        return jsonrpc.encode(result)

    # --- changes

    def changed(self, notice: str) -> None:
        """Something changed in the mounted server."""
        for shelf in self.outer.catalog.shelves:
            if shelf.notice == notice:
                shelf.touch()


class MountedEntry(Entry):
    """An entry of a mounted server, as the outer server offers it."""

    __slots__ = ("_inner", "_names")

    def __init__(self, mount: Mount, inner: Entry) -> None:
        self._inner = inner
        self._names = _names(mount, inner)
        definition = replace(inner.definition, **self._names)
        key = next(iter(self._names.values()))
        super().__init__(
            key,
            definition,
            _runner(mount, inner),
            function=inner.function,
            place=inner.place,
            visible=inner.admits if inner.restricted else None,
            header_params=inner.header_params,
            completions=_Completions(mount, inner),
            template=None if inner.template is None else _Template(mount, inner.template),
            tags=inner.tags,
        )

    def fragment(self, revision: Revision) -> bytes:
        """The definition as JSON, with whatever the mounted server's has."""
        found = self._fragments.get(revision.name)
        if found is None:
            said = msgspec.json.decode(self._inner.fragment(revision))
            renamed = {_WIRE.get(name, name): text for name, text in self._names.items()}
            found = self._fragments[revision.name] = jsonrpc.encode({**said, **renamed})
        return found


_WIRE = {"uri_template": "uriTemplate"}


def _names(mount: Mount, inner: Entry) -> dict[str, str]:
    """What is named otherwise outside."""
    if isinstance(inner.definition, (Tool, Prompt)):
        return {"name": mount.names + inner.key}
    field = "uri" if isinstance(inner.definition, Resource) else "uri_template"
    return {field: mount.outward(inner.key)}


def _runner(mount: Mount, inner: Entry) -> Callable[..., Awaitable[Any]]:
    """What answers a call for an entry."""
    if isinstance(inner.definition, (Tool, Prompt)):

        async def run(call: Call) -> Any:
            return await mount.delegate(call, name=inner.key)

        return run

    async def read(call: Call, _variables: Mapping[str, Any]) -> Any:
        return await mount.delegate(call, uri=mount.inward(call.params.uri))

    return read


class _Template:
    """The template of a mounted server, recognized with its prefix."""

    def __init__(self, mount: Mount, template: Any) -> None:
        self._mount = mount
        self._template = template
        self.specificity = template.specificity

    def match(self, uri: str) -> Any:
        """The values of the variables, or None."""
        inner = self._mount.inward(uri)
        return None if inner is None else self._template.match(inner)


class _Completions:
    """Completions that the mounted server makes."""

    def __init__(self, mount: Mount, inner: Entry) -> None:
        self._mount = mount
        self._inner = inner

    def get(self, _argument: str) -> Callable[[Call, str, Mapping[str, str]], Awaitable[Any]]:
        """What completes an argument."""
        return self._complete

    async def _complete(self, call: Call, _typed: str, _others: Mapping[str, str]) -> Any:
        named = {"uri": self._inner.key} if isinstance(self._inner.definition, ResourceTemplate) else {}
        if isinstance(self._inner.definition, Prompt):
            named = {"name": self._inner.key}
        return await self._mount.delegate(call, ref=replace(call.params.ref, **named))


class Mounts:
    """What is mounted in a server, and where it is mounted itself.

    Args:
        outer: The server.
    """

    def __init__(self, outer: Server) -> None:
        self._outer = outer
        self._mounted: dict[str, Mount] = {}
        self.inside: list[Mount] = []

    def servers(self) -> Iterable[Server]:
        """Every server that is mounted here, at whatever depth."""
        for mount in self._mounted.values():
            yield mount.inner
            yield from mount.inner.mounts.servers()

    def __iter__(self) -> Any:
        return iter(list(self._mounted.values()))

    def add(self, prefix: str, inner: Server) -> None:
        """Mount a server.

        Raises:
            ConfigurationError: See `Mount`; or the prefix is taken.
        """
        mount = Mount(self._outer, prefix, inner)
        for other in self._mounted.values():
            if mount.scheme == other.scheme:
                raise ConfigurationError(f"mount: the prefix {prefix!r} is taken by {other.inner!r}")
        self._mounted[prefix] = mount
        inner.mounts.inside.append(mount)
        self._outer.catalog.beyond.append(mount.beyond)
        self._outer.follow.append(mount.follow)
        for shelf, theirs in zip(self._outer.catalog.shelves, inner.catalog.shelves, strict=True):
            shelf.mount(mount, mount.entries(theirs))

    def remove(self, prefix: str) -> None:
        """Let go of a server.

        Raises:
            KeyError: None is mounted there.
        """
        if prefix not in self._mounted:
            raise KeyError(f"no server is mounted as {prefix!r}")
        mount = self._mounted.pop(prefix)
        mount.inner.mounts.inside.remove(mount)
        self._outer.catalog.beyond.remove(mount.beyond)
        self._outer.follow.remove(mount.follow)
        for shelf in self._outer.catalog.shelves:
            shelf.mount(mount, None)
