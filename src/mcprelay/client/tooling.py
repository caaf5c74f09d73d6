"""Calling tools: names and contracts in, outcomes out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from mcprelay.client import failure, output
from mcprelay.client.answer import ToolAnswer, tool_answer
from mcprelay.client.argument import encode, encode_object
from mcprelay.client.handshake import introduce_by
from mcprelay.client.misuse import named, told_value
from mcprelay.client.outcome import Refused, Succeeded, text_of
from mcprelay.contract import Contract
from mcprelay.errors import ConfigurationError
from mcprelay.revisions import NEWEST, Feature
from mcprelay.types import ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcprelay.client.call import Call
    from mcprelay.client.caller import Caller
    from mcprelay.client.keeping import Kept
    from mcprelay.client.option import CallOptions
    from mcprelay.client.question import InputRequired, Outcome
    from mcprelay.client.toolbox import Toolbox
    from mcprelay.revisions import Revision

METHOD = "tools/call"


class Tooling:
    """Calls the tools of one server.

    Args:
        caller: Carries the calls through.
        toolbox: What is known of the tools.
        refresh: Lists the tools anew until a deadline.
        check_output: Whether structured content is checked against what is known.
    """

    def __init__(
        self,
        caller: Caller,
        toolbox: Toolbox,
        *,
        refresh: Callable[[float | None], Awaitable[None]],
        check_output: bool,
    ) -> None:
        self._caller = caller
        self._toolbox = toolbox
        self._refresh = refresh
        self._check_output = check_output

    def call(self, tool: Any, arguments: Any, kind: Any, options: CallOptions) -> Awaitable[Outcome[Any]]:
        """See `Client.try_call_tool`."""
        if type(tool) is not str or not tool:
            tool, kind = _named(tool, kind)
        conclude = self._outcome if kind is None else self._concluding(kind)
        encoded = b"{}" if arguments is None else encode_object(arguments, what="the arguments of", of=tool)
        members = b"".join((b'"name":', encode(tool), b',"arguments":', encoded))
        call = self._caller.call(METHOD, members, name=tool, arguments=encoded, options=options)
        known = self._toolbox.known.get(tool)
        if known is not None and known.params:
            call.params = known.params
        return self._caller.converse(call, tool_answer, conclude, mend=self._mend)

    def take_up(self, kept: Kept, kind: Any) -> InputRequired[Any]:
        """See `Client.load_question`."""
        conclude = self._outcome if kind is None else self._concluding(kind)
        return self._caller.take_up(kept, tool_answer, conclude, mend=self._mend)

    def _concluding(self, kind: Any) -> Callable[[Call, ToolAnswer], Outcome[Any]]:
        """What makes the outcome, with a value of a type. One that cannot be read is told before anything is sent."""
        if kind is not ToolResult:
            output.decoder(kind)
        return partial(self._outcome, kind=kind)

    async def _mend(self, call: Call) -> None:
        """Headers did not mirror the arguments: learn how they should (Streamable HTTP, "Client Behavior")."""
        await self._refresh(call.deadline)
        known = self._toolbox.known.get(call.name or "")
        call.params = () if known is None else known.params

    def _outcome(self, call: Call, answer: ToolAnswer, kind: Any = None) -> Outcome[Any]:
        raw: Any = answer.structured
        structured: Any = UNSET
        if raw is not UNSET:
            try:
                structured = output.plain(raw)
            except msgspec.DecodeError as error:
                unread = f"the structured content is no JSON: {error}"
                raise failure.invalid(call, unread, bytes(raw), raw=answer.raw) from error
        meta = answer.meta or {}
        if meta and (link := self._caller.connection.current) is not None and link.face.info is None:
            introduce_by(link, meta)
        if answer.is_error:
            cause = None if call.unanswered is None else call.unanswered[1]
            return Refused(answer.content, structured, meta, answer.raw, cause)
        if self._check_output and (known := self._toolbox.known.get(call.name or "")) is not None:
            reason = known.lack(self._revision) if raw is UNSET else known.disagreement(structured, len(raw))
            if reason is not None:
                came = text_of(answer.content) if raw is UNSET else bytes(raw)
                raise failure.invalid(call, reason, came, raw=answer.raw)
        value = structured
        if kind is not None:
            value = self._typed(call, answer, kind)
        elif structured is UNSET:
            value = text_of(answer.content)
        return Succeeded(value, answer.content, structured, meta, answer.raw)

    @property
    def _revision(self) -> Revision:
        link = self._caller.connection.current
        return NEWEST if link is None or link.revision is None else link.revision

    def _typed(self, call: Call, answer: ToolAnswer, kind: Any) -> Any:
        try:
            wraps = not self._revision.has(Feature.ANY_STRUCTURED)
            return output.typed(answer, kind, wraps=wraps)
        except ConfigurationError:
            raise
        except ValueError as error:
            came = text_of(answer.content) if answer.structured is UNSET else bytes(answer.structured)
            reason = f"the value is not of the declared type {named(kind)}: {error}"
            raise failure.invalid(call, reason, came, raw=answer.raw) from error


def _named(tool: Any, kind: Any) -> tuple[str, Any]:
    """What a tool is called by that is no plain string, and the type of its value."""
    if isinstance(tool, Contract):
        tool, kind = tool.name, tool.output if kind is None else kind
    if not isinstance(tool, str) or not tool:
        from mcprelay.client.typed import DEFINITIONS

        name = getattr(tool, "__name__", "function")
        hint = f"; a function that serves one: `await client.tool({name})(…)`" if hasattr(tool, DEFINITIONS) else ""
        raise ConfigurationError(f"a tool is called by its name or its contract, not by {told_value(tool)}{hint}")
    return tool, kind
