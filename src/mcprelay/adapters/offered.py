"""What adapters take: tool sets that a `Relay` made, and their schemas in a provider's form.

A form follows from the definition alone, so it is worked out once, and kept with what else is known of the definition.
How much there is to work out for one server is bounded before a tool is offered (`tools_work`). Nothing here
knows an SDK.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from mcprelay.relay.guarded import GuardedTool
from mcprelay.relay.toolset import ToolSet
from mcprelay.wire.schema import DEFAULT_LIMITS, SchemaLimits

Form = TypeVar("Form")

_DEEPEST = 200


def offered(guarded: ToolSet) -> tuple[GuardedTool, ...]:
    """The tools of a set.

    Raises:
        TypeError: It is no tool set. Only a relay makes one, so nothing else has been through its boundary.
    """
    return tuple(guarded_only(guarded).values())


def guarded_only(guarded: ToolSet) -> ToolSet:
    """The set itself, if it is one.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(guarded, ToolSet):
        raise TypeError(
            f"an adapter takes guarded tools and not {type(guarded).__name__}; they come from `await relay.tools(…)`"
        )
    return guarded


def form(tool: GuardedTool, dialect: Callable[..., Form]) -> Form:
    """A tool's schema in a provider's form. `dialect` is a function of a module, which is what the form is kept by."""
    reading = tool.reading
    made: Form | None = reading.forms.get(dialect)
    if made is None:
        schema = reading.presented.schema
        formed = "known" if reading.validator.weight.depth <= _DEEPEST else "unknown"
        limits = _limits(len(msgspec.json.encode(schema)))
        made = reading.forms[dialect] = dialect(schema, limits=limits, formed=formed)
    return made


def _limits(size: int) -> SchemaLimits:
    """Limits that a schema is within, since it is within those of its relay, whatever these are."""
    return SchemaLimits(
        schema_bytes=max(DEFAULT_LIMITS.schema_bytes, size),
        schema_nodes=max(DEFAULT_LIMITS.schema_nodes, size),
        schema_depth=_DEEPEST,
        schema_patterns=max(DEFAULT_LIMITS.schema_patterns, size),
        schema_pattern_bytes=max(DEFAULT_LIMITS.schema_pattern_bytes, size << 20),
    )
