"""Resources and templates: from a URI and a function to an entry of the catalog, and what answers a read of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mcprelay.errors import DefinitionError
from mcprelay.server.contents import resource_result
from mcprelay.server.element import Taken, completions_of, invalid
from mcprelay.server.entry import Entry
from mcprelay.server.report import ArgumentsInvalid
from mcprelay.types import Resource, ResourceTemplate
from mcprelay.wire import uri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Unpack

    from mcprelay.server import Server
    from mcprelay.server.call import Call
    from mcprelay.server.handler import Handler
    from mcprelay.server.option import ResourceOptions
    from mcprelay.server.signature import Compiled
    from mcprelay.types import Annotations, CacheScope

    Match = Callable[[str], Mapping[str, Any] | None]

URI = "uri"
"""The parameter that gets the URI itself, unless it is a variable of the template."""

_ROLES = frozenset(("user", "assistant"))


def resource_entry(
    server: Server, address: str, function: Any, *, by_hand: bool = True, **said: Unpack[ResourceOptions]
) -> Entry:
    """A resource at a fixed URI. See `Server.add_resource`."""
    wrong = uri.check_uri(address)
    if wrong is not None:
        raise DefinitionError(f"{address!r} is no URI (RFC 3986): {wrong}")
    size, icons = said.get("size"), said.get("icons")
    taken = _taken(server, address, function, said)
    compiled = taken.compiled
    surplus = [key for key in compiled.keys if key != URI and key in compiled.required]
    if surplus:
        raise DefinitionError(
            f"the resource {address} ({compiled.place}) has no variable for the parameter {', '.join(surplus)}:"
            f" put {{{surplus[0]}}} into the URI, or give the parameter a default"
        )
    definition = Resource(uri=address, size=size, icons=tuple(icons) if icons else None, **_described(compiled, said))
    return _entry(server, address, taken, definition, said, by_hand=by_hand)


def template_entry(
    server: Server, address: str, function: Any, *, by_hand: bool = True, **said: Unpack[ResourceOptions]
) -> Entry:
    """A family of resources. See `Server.add_resource`."""
    for option in ("icons", "size"):
        if said.get(option) is not None:
            raise DefinitionError(f"the template {address} cannot have {option}: only a resource has them")
    taken = _taken(server, address, function, said)
    compiled = taken.compiled
    template = _template(address, said.get("match"), compiled)
    definition = ResourceTemplate(uri_template=address, **_described(compiled, said))
    completions = completions_of(server, compiled)
    return _entry(server, address, taken, definition, said, by_hand=by_hand, completions=completions, template=template)


def _taken(server: Server, address: str, function: Any, said: ResourceOptions) -> Taken:
    _check_annotations(address, said.get("annotations"))
    return Taken(function, kind="resource", name=said.get("name"), strict=server.strict)


def _described(compiled: Compiled, said: ResourceOptions) -> dict[str, Any]:
    """What a resource and a template say of themselves alike."""
    described: dict[str, Any] = {key: said.get(key) for key in ("title", "mime_type", "annotations", "meta")}
    text = said.get("description")
    return {"name": compiled.name, "description": compiled.description if text is None else text, **described}


def _entry(
    server: Server,
    address: str,
    taken: Taken,
    definition: Resource | ResourceTemplate,
    said: ResourceOptions,
    **more: Any,
) -> Entry:
    handler = taken.handler(server, inline=said.get("inline", False), timeout=said.get("timeout"))
    return Entry(
        address,
        definition,
        _reader(handler, taken.compiled, said),
        function=taken.given,
        place=taken.compiled.place,
        visible=said.get("visible"),
        requires=said.get("requires", ()),
        tags=said.get("tags", ()),
        **more,
    )


class Matcher:
    """A template whose URIs a function recognizes.

    Args:
        template: What is published.
        recognizes: The function.
    """

    def __init__(self, template: uri.Template, recognizes: Match) -> None:
        self.recognizes = recognizes
        self.match = recognizes
        self.specificity = template.specificity


def _template(address: str, match: Match | None, compiled: Compiled) -> uri.Template | Matcher:
    """What recognizes the URIs of a template.

    Raises:
        DefinitionError: The text is no template, its URIs are none, or its variables are not the function's parameters.
    """
    template = uri.Template(address)
    if match is not None:
        return Matcher(template, match)
    wrong = template.check()
    if wrong is not None:
        raise DefinitionError(f"the template {address} ({compiled.place}) cannot name resources: {wrong}")
    _check_variables(address, template, compiled)
    return template


def _check_variables(address: str, template: uri.Template, compiled: Compiled) -> None:
    """The variables of a template and the parameters of its function are the same, `uri` and defaults aside."""
    named = set(template.variables)
    missing = sorted(compiled.required - named - {URI})
    unused = [] if compiled.takes_others else sorted(named - set(compiled.keys))
    absent = sorted(compiled.required & named - template.required)
    if missing:
        raise DefinitionError(
            f"the template {address} ({compiled.place}) has no variable for the parameter {', '.join(missing)}"
        )
    if unused:
        raise DefinitionError(
            f"the template {address} has the variable {', '.join(unused)}, but its function ({compiled.place}) has no"
            " parameter of that name"
        )
    if absent:
        raise DefinitionError(
            f"a URI of the template {address} may lack the variable {', '.join(absent)}, so the parameter of that name"
            f" needs a default ({compiled.place})"
        )


def _check_annotations(address: str, annotations: Annotations | None) -> None:
    if annotations is None:
        return
    if annotations.priority is not None and not 0 <= annotations.priority <= 1:
        raise DefinitionError(f"{address}: the priority of a resource is from 0 to 1, and not {annotations.priority}")
    strangers = set(annotations.audience or ()) - _ROLES
    if strangers:
        raise DefinitionError(
            f"{address}: the audience of a resource is made of 'user' and 'assistant', and not {min(strangers)!r}"
        )


def _reader(
    handler: Handler, compiled: Compiled, said: ResourceOptions
) -> Callable[[Call, Mapping[str, Any]], Awaitable[Any]]:
    wants_uri = URI in compiled.keys
    mime_type, meta = said.get("mime_type"), said.get("meta")
    ttl_ms, cache_scope = said.get("ttl_ms"), said.get("cache_scope")

    async def answer(call: Call, variables: Mapping[str, Any]) -> Any:
        address = call.params.uri
        given = {**variables, URI: address} if wants_uri and URI not in variables else variables
        try:
            values = compiled.bind(given)
        except ArgumentsInvalid as error:
            raise invalid(call, error) from None

        def finish(value: Any) -> Any:
            result = resource_result(value, uri=address, mime_type=mime_type, meta=meta, file_bytes=handler.file_bytes)
            return hinted(result, ttl_ms, cache_scope)

        return await handler.run(call, values, finish)

    return answer


def hinted(result: Any, ttl_ms: int | None, cache_scope: CacheScope | None) -> Any:
    """The result with the freshness that its registration says, where the handler itself says nothing."""
    if (ttl_ms is None and cache_scope is None) or not hasattr(result, "ttl_ms"):
        return result
    return replace(
        result,
        ttl_ms=result.ttl_ms if result.ttl_ms is not None else ttl_ms,
        cache_scope=result.cache_scope or cache_scope,
    )
