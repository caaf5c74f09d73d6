"""`Entry`: one thing that is served: what lists say of it, who may see it, and what answers a call for it."""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING, Any, Protocol

from mcprelay.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcprelay.auth.principal import Principal
    from mcprelay.revisions import Revision
    from mcprelay.types import Prompt, Resource, ResourceTemplate, Tool
    from mcprelay.wire.mirror import HeaderParam

    Definition = Tool | Resource | ResourceTemplate | Prompt

logger = logging.getLogger("mcprelay.server")

_orders = itertools.count()


def next_order() -> int:
    """The place of an entry after all that were made before it."""
    return next(_orders)


class Completions(Protocol):
    """What completes the arguments of a prompt or template. A dictionary is one."""

    def get(self, argument: str, /) -> Any:
        """What completes an argument, `await source(call, typed, others)`; None for nothing."""
        ...


class Entry:
    """One thing that is served.

    Attributes:
        key: Its name, or its URI or template.
        definition: What lists say of it.
        run: What answers a call for it: `await run(call)` gives the result; of a resource,
            `await run(call, variables)`.
        place: Where it was registered, `file:line`, for messages.
        visible: Whether a caller may see it, or None for everyone.
        requires: The scopes that a caller needs to see and use it.
        enabled: Whether it is served at all at the moment.
        by_hand: Whether code registered it, as opposed to discovery.
        header_params: The `Mcp-Param-*` headers of a tool.
        completions: What completes its arguments, by argument.
        template: The parsed template of a resource template.
        tags: Words to select by.
    """

    __slots__ = (
        "_fragments",
        "by_hand",
        "completions",
        "definition",
        "enabled",
        "function",
        "header_params",
        "key",
        "order",
        "place",
        "requires",
        "run",
        "tags",
        "template",
        "visible",
    )

    def __init__(
        self,
        key: str,
        definition: Definition,
        run: Callable[..., Any],
        *,
        function: Any = None,
        place: str = "",
        visible: Callable[[Principal | None], bool] | None = None,
        requires: Iterable[str] = (),
        by_hand: bool = True,
        header_params: tuple[HeaderParam, ...] = (),
        completions: Completions | None = None,
        template: Any = None,
        tags: Iterable[str] = (),
    ) -> None:
        self.key = key
        self.definition = definition
        self.run = run
        self.function = function
        self.place = place
        self.visible = visible
        self.requires = frozenset(requires)
        self.enabled = True
        self.by_hand = by_hand
        self.header_params = header_params
        self.completions: Completions = {} if completions is None else completions
        self.template = template
        self.tags = frozenset(tags)
        self.order = next_order()
        self._fragments: dict[str, bytes] = {}

    @property
    def restricted(self) -> bool:
        """Whether some callers may not see it."""
        return self.visible is not None or bool(self.requires)

    def admits(self, principal: Principal | None) -> bool:
        """Whether this caller may see and use it. Where `visible` fails to say so, they may not."""
        if self.requires and (principal is None or not self.requires <= principal.scopes):
            return False
        if self.visible is None:
            return True
        try:
            return bool(self.visible(principal))
        except Exception:
            logger.exception("visible= of %r failed, so it is hidden (registered at %s)", self.key, self.place)
            return False

    def fragment(self, revision: Revision) -> bytes:
        """The definition as JSON, in the shape of a revision."""
        found = self._fragments.get(revision.name)
        if found is None:
            found = self._fragments[revision.name] = jsonrpc.encode(revision.shape(self.definition))
        return found
