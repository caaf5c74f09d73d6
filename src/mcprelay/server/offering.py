"""From a kind, a handler and its options to an entry, and the shelf that it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcprelay.errors import DefinitionError
from mcprelay.server.address import resource_entry, template_entry
from mcprelay.server.element import prompt_entry, tool_entry
from mcprelay.server.option import check

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcprelay.server import Server
    from mcprelay.server.catalog import Shelf
    from mcprelay.server.entry import Entry


def entry_of(
    server: Server, kind: str, uri: str | None, function: Any, options: Mapping[str, Any], *, by_hand: bool = True
) -> tuple[Shelf, Entry]:
    """What a handler is for a server.

    Args:
        server: Whose handler it is.
        kind: `tool`, `resource` or `prompt`.
        uri: Of a resource: its URI, or its template.
        function: A callable, a class with `__call__`, or `(Class, "method")`.
        options: What is said of it. See `mcprelay.server.option`.
        by_hand: Whether code registers it, as opposed to discovery.

    Raises:
        DefinitionError: It cannot be offered as it is written.
    """
    check(kind, options)
    said = dict(options)
    catalog = server.catalog
    if kind == "tool":
        return catalog.tools, tool_entry(server, function, **said, by_hand=by_hand)
    if kind == "prompt":
        return catalog.prompts, prompt_entry(server, function, **said, by_hand=by_hand)
    if not isinstance(uri, str):
        raise DefinitionError("a resource needs its URI, such as 'config://app': the function comes after it")
    if "{" in uri or said.get("match") is not None:
        return catalog.templates, template_entry(server, uri, function, **said, by_hand=by_hand)
    said.pop("match", None)
    return catalog.resources, resource_entry(server, uri, function, **said, by_hand=by_hand)
