"""From a function to an entry of the catalog: its definition, and what answers a call for it.

The signature compiler says what a callable takes and gives, `handler` runs it; this module adds what registration says.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from mcprelay.errors import DefinitionError, ProtocolError
from mcprelay.revisions import Fault, Feature
from mcprelay.server.catalog import Entry
from mcprelay.server.contents import resource_result
from mcprelay.server.depends import provider_of
from mcprelay.server.handler import Handler
from mcprelay.server.messages import prompt_result
from mcprelay.server.report import ArgumentsInvalid
from mcprelay.server.signature import Compiled, compile_call
from mcprelay.types import (
    Prompt,
    Resource,
    ResourceTemplate,
    Text,
    Tool,
    ToolAnnotations,
    ToolResult,
)
from mcprelay.wire import mirror, uri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from mcprelay.server import Server
    from mcprelay.server.call import Call, Principal
    from mcprelay.server.schema import Schema
    from mcprelay.types import Annotations, CacheScope, Icon, Meta

ERRORS = "mcprelay.dev/errors"
"""The `_meta` key under which a tool error lists the arguments that do not fit."""

_TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def injects(_name: str, annotation: Any) -> Any:
    """What provides a parameter, or None when its value comes from the client."""
    return provider_of(annotation)


def attach(function: Any, definition: Any) -> None:
    """Leave the definition on the function, so that a client can call through it. What takes no attributes has none."""
    with contextlib.suppress(AttributeError, TypeError):
        target = getattr(function, "__func__", function)
        if not isinstance(target, type):
            target.__mcp__ = definition


def _completions(compiled: Compiled) -> dict[str, Any]:
    """What completes each argument: `await source(call, typed, others)`."""

    def adapted(complete: Any) -> Callable[[Call, str, Mapping[str, str]], Awaitable[Sequence[str]]]:
        async def source(_call: Call, typed: str, others: Mapping[str, str]) -> Sequence[str]:
            found: Sequence[str] = await complete(typed, others)
            return found

        return source

    return {name: adapted(complete) for name, complete in compiled.completions.items()}


# --- tools


def tool_entry(
    server: Server,
    function: Any,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    icons: Sequence[Icon] | None = None,
    meta: Meta | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    output_schema: dict[str, Any] | None = None,
    schema: Schema | None = None,
    tags: Iterable[str] = (),
    strict: bool | None = None,
    inline: bool = False,
    visible: Callable[[Principal | None], bool] | None = None,
    requires: Iterable[str] = (),
    by_hand: bool = True,
) -> Entry:
    """A tool. See `Server.add_tool`."""
    compiled = compile_call(
        function,
        kind="tool",
        name=name,
        strict=server.strict if strict is None else strict,
        injects=injects,
        schema=schema,
        output_schema=UNSET if output_schema is None else output_schema,
    )
    if not _TOOL_NAME.fullmatch(compiled.name):
        raise DefinitionError(
            f"{compiled.name!r} is no name for a tool ({compiled.place}): it takes 1 to 128 characters of"
            " A-Z a-z 0-9 _ - . Give it one with name=."
        )
    hints = ToolAnnotations(
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        open_world_hint=open_world,
    )
    definition = Tool(
        name=compiled.name,
        title=title,
        description=description if description is not None else compiled.description,
        input_schema=compiled.input_schema,
        output_schema=compiled.output_schema,
        annotations=None if hints == ToolAnnotations() else hints,
        icons=tuple(icons) if icons else None,
        meta=meta,
    )
    attach(function, definition)
    return Entry(
        compiled.name,
        definition,
        _tool_runner(Handler(server, compiled, inline=inline), compiled),
        function=function,
        place=compiled.place,
        visible=visible,
        requires=requires,
        by_hand=by_hand,
        header_params=mirror.params_of(compiled.input_schema),
        tags=tags,
    )


def _tool_runner(handler: Handler, compiled: Compiled) -> Callable[[Call], Awaitable[Any]]:
    decode, finish, run = compiled.decode, compiled.output.result, handler.run

    async def answer(call: Call) -> Any:
        arguments = call.params.arguments
        try:
            values = decode(None if arguments is UNSET else arguments)
        except ArgumentsInvalid as error:
            return misfit(call, error)
        return await run(call, values, finish)

    return answer


def misfit(call: Call, error: ArgumentsInvalid) -> ToolResult:
    """Arguments that do not fit: for the model to read where the revision has it so, else a protocol error."""
    if not call.revision.has(Feature.TOOL_INPUT_ERRORS):
        raise _invalid(call, error)
    return ToolResult(content=(Text(str(error)),), is_error=True, meta={ERRORS: error.data()})


def _invalid(call: Call, error: ArgumentsInvalid) -> ProtocolError:
    return ProtocolError(call.revision.code(Fault.INVALID_PARAMS), str(error), {"errors": error.data()})


# --- resources


def resource_entry(
    server: Server,
    address: str,
    function: Any,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    size: int | None = None,
    annotations: Annotations | None = None,
    icons: Sequence[Icon] | None = None,
    meta: Meta | None = None,
    ttl_ms: int | None = None,
    cache_scope: CacheScope | None = None,
    tags: Iterable[str] = (),
    inline: bool = False,
    visible: Callable[[Principal | None], bool] | None = None,
    requires: Iterable[str] = (),
    by_hand: bool = True,
) -> Entry:
    """A resource at a fixed URI. See `Server.add_resource`."""
    wrong = uri.check_uri(address)
    if wrong is not None:
        raise DefinitionError(f"{address!r} is no URI: {wrong}")
    compiled = compile_call(function, kind="resource", name=name, strict=server.strict, injects=injects)
    surplus = [key for key in compiled.keys if key != "uri" and key in compiled.required]
    if surplus:
        raise DefinitionError(
            f"the resource {address} ({compiled.place}) has no variable for the parameter {', '.join(surplus)}:"
            f" put {{{surplus[0]}}} into the URI, or give the parameter a default"
        )
    definition = Resource(
        uri=address,
        name=compiled.name,
        title=title,
        description=description if description is not None else compiled.description,
        mime_type=mime_type,
        size=size,
        annotations=annotations,
        icons=tuple(icons) if icons else None,
        meta=meta,
    )
    attach(function, definition)
    handler = Handler(server, compiled, inline=inline)
    return Entry(
        address,
        definition,
        _resource_runner(handler, compiled, mime_type, meta, (ttl_ms, cache_scope)),
        function=function,
        place=compiled.place,
        visible=visible,
        requires=requires,
        by_hand=by_hand,
        tags=tags,
    )


def template_entry(
    server: Server,
    address: str,
    function: Any,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    annotations: Annotations | None = None,
    meta: Meta | None = None,
    match: Callable[[str], Mapping[str, Any] | None] | None = None,
    ttl_ms: int | None = None,
    cache_scope: CacheScope | None = None,
    tags: Iterable[str] = (),
    inline: bool = False,
    visible: Callable[[Principal | None], bool] | None = None,
    requires: Iterable[str] = (),
    by_hand: bool = True,
) -> Entry:
    """A family of resources. See `Server.add_resource`."""
    template = uri.Template(address)
    compiled = compile_call(function, kind="resource", name=name, strict=server.strict, injects=injects)
    if match is None:
        _check_variables(address, template.variables, compiled)
    definition = ResourceTemplate(
        uri_template=address,
        name=compiled.name,
        title=title,
        description=description if description is not None else compiled.description,
        mime_type=mime_type,
        annotations=annotations,
        meta=meta,
    )
    attach(function, definition)
    handler = Handler(server, compiled, inline=inline)
    return Entry(
        address,
        definition,
        _resource_runner(handler, compiled, mime_type, meta, (ttl_ms, cache_scope)),
        function=function,
        place=compiled.place,
        visible=visible,
        requires=requires,
        by_hand=by_hand,
        completions=_completions(compiled),
        template=template if match is None else Matcher(template, match),
        tags=tags,
    )


class Matcher:
    """A template whose URIs a function recognizes."""

    def __init__(self, template: Any, match: Callable[[str], Mapping[str, Any] | None]) -> None:
        self.match = match
        self.specificity = template.specificity


def _check_variables(address: str, variables: Iterable[str], compiled: Compiled) -> None:
    """The variables of a template and the parameters of its function are the same, `uri` and defaults aside."""
    named = set(variables)
    missing = sorted(compiled.required - named - {"uri"})
    unused = [] if compiled.takes_others else sorted(named - set(compiled.keys))
    if missing:
        raise DefinitionError(
            f"the template {address} ({compiled.place}) has no variable for the parameter {', '.join(missing)}"
        )
    if unused:
        raise DefinitionError(
            f"the template {address} has the variable {', '.join(unused)}, but its function ({compiled.place}) has no"
            " parameter of that name"
        )


def _resource_runner(
    handler: Handler,
    compiled: Compiled,
    mime_type: str | None,
    meta: Meta | None,
    freshness: tuple[int | None, CacheScope | None],
) -> Callable[[Call, Mapping[str, Any]], Awaitable[Any]]:
    wants_uri = "uri" in compiled.keys
    ttl_ms, cache_scope = freshness

    async def answer(call: Call, variables: Mapping[str, Any]) -> Any:
        address = call.params.uri
        given = {**variables, "uri": address} if wants_uri and "uri" not in variables else variables
        try:
            values = compiled.bind(given)
        except ArgumentsInvalid as error:
            raise _invalid(call, error) from None

        def finish(value: Any) -> Any:
            result = resource_result(value, uri=address, mime_type=mime_type, meta=meta)
            return hinted(result, ttl_ms, cache_scope)

        return await handler.run(call, values, finish)

    return answer


def hinted(result: Any, ttl_ms: int | None, cache_scope: CacheScope | None) -> Any:
    """The result with the freshness that its registration says."""
    if ttl_ms is None and cache_scope is None:
        return result
    return replace(result, ttl_ms=ttl_ms, cache_scope=cache_scope)


# --- prompts


def prompt_entry(
    server: Server,
    function: Any,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    icons: Sequence[Icon] | None = None,
    meta: Meta | None = None,
    tags: Iterable[str] = (),
    inline: bool = False,
    visible: Callable[[Principal | None], bool] | None = None,
    requires: Iterable[str] = (),
    by_hand: bool = True,
) -> Entry:
    """A prompt. See `Server.add_prompt`."""
    compiled = compile_call(function, kind="prompt", name=name, strict=server.strict, injects=injects)
    definition = Prompt(
        name=compiled.name,
        title=title,
        description=description if description is not None else compiled.description,
        arguments=compiled.prompt_arguments or None,
        icons=tuple(icons) if icons else None,
        meta=meta,
    )
    attach(function, definition)
    handler = Handler(server, compiled, inline=inline)

    def finish(value: Any) -> Any:
        return prompt_result(value, description=definition.description)

    async def answer(call: Call) -> Any:
        try:
            values = compiled.bind(call.params.arguments or {})
        except ArgumentsInvalid as error:
            raise _invalid(call, error) from None
        return await handler.run(call, values, finish)

    return Entry(
        compiled.name,
        definition,
        answer,
        function=function,
        place=compiled.place,
        visible=visible,
        requires=requires,
        by_hand=by_hand,
        completions=_completions(compiled),
        tags=tags,
    )
