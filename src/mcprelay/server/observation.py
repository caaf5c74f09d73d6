"""Watching a call: how long it and its handler took, and what became of them."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from mcprelay.errors import PromptError, ProtocolError, ResourceError, ToolError
from mcprelay.server.event import Exchange, Handling, Subscription
from mcprelay.types import InputRequiredResult, Resource, ResourceTemplate, Tool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcprelay.ports import Session
    from mcprelay.server.call import Answer, Call
    from mcprelay.server.entry import Entry
    from mcprelay.server.event import Events, Kind
    from mcprelay.types import ServerCapabilities, SubscriptionFilter

    Outcome = Literal["completed", "refused", "asked", "failed", "cancelled"]

_SHOWN = (ToolError, ResourceError, PromptError, ProtocolError)


async def observed(events: Events, call: Call, answer: Callable[[Call], Awaitable[Answer]]) -> Answer:
    """The answer to a call, and an event that tells of it."""
    call.observed = True
    begun = perf_counter()
    code: int | None = None
    try:
        made = await answer(call)
        code = made.code
        return made
    finally:
        events.emit(
            Exchange(
                method=call.method.name,
                revision=call.revision.name,
                transport=call.transport,
                outcome="cancelled" if code is None else "error" if code else "answered",
                code=code or 0,
                seconds=perf_counter() - begun,
                correlation_id=call.correlation_id,
            )
        )


async def handled(events: Events, call: Call, entry: Entry, running: Awaitable[Any]) -> Any:
    """What a handler gives, and an event that tells of it."""
    begun = perf_counter()
    outcome: Outcome = "failed"
    error: str | None = None
    try:
        result = await running
        outcome = _outcome_of(result)
        return result
    except BaseException as raised:
        error = type(raised).__name__
        if isinstance(raised, asyncio.CancelledError):
            outcome = "cancelled"
        elif isinstance(raised, _SHOWN):
            outcome = "refused"
        raise
    finally:
        events.emit(
            Handling(
                kind=_kind_of(entry),
                target=entry.key,
                outcome=outcome,
                error=error,
                seconds=perf_counter() - begun,
                correlation_id=call.correlation_id,
            )
        )


def _outcome_of(result: Any) -> Outcome:
    if isinstance(result, InputRequiredResult):
        return "asked"
    return "refused" if isinstance(result, ToolResult) and result.is_error else "completed"


def _kind_of(entry: Entry) -> Kind:
    kinds: dict[type, Kind] = {Tool: "tool", Resource: "resource", ResourceTemplate: "resource template"}
    return kinds.get(type(entry.definition), "prompt")


def listening_to(events: Events, wanted: SubscriptionFilter) -> Listening:
    """A subscription of the stateless era, which begins."""
    lists = {
        "tools": wanted.tools_list_changed,
        "prompts": wanted.prompts_list_changed,
        "resources": wanted.resources_list_changed,
    }
    return Listening(events, tuple(name for name, on in lists.items() if on), len(wanted.resource_subscriptions))


def listening_in(events: Events, session: Session, capabilities: ServerCapabilities) -> Listening:
    """A session of the handshake era that begins to hear of every list whose changes are declared."""
    lists = {"tools": capabilities.tools, "prompts": capabilities.prompts, "resources": capabilities.resources}
    told = tuple(name for name, declared in lists.items() if declared and declared.get("listChanged"))
    return Listening(events, told, len(session.subscriptions))


class Listening:
    """A subscription, from its beginning to its end.

    Args:
        events: Who is told.
        lists: The lists whose changes are heard of.
        resources: Of how many resources is heard.
    """

    __slots__ = ("_begun", "_events", "_lists", "_resources")

    def __init__(self, events: Events, lists: tuple[str, ...], resources: int) -> None:
        self._events = events
        self._lists = lists
        self._resources = resources
        self._begun = perf_counter()
        self._tell("opened", 0.0)

    def close(self) -> None:
        """It is over."""
        self._tell("closed", perf_counter() - self._begun)

    def _tell(self, state: Literal["opened", "closed"], seconds: float) -> None:
        event = Subscription(state=state, lists=self._lists, resources=self._resources, seconds=seconds)
        self._events.emit(event)
