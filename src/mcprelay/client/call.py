"""One request of a client's on its way: what is asked, until when, and who hears of it meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcprelay.errors import Evidence
from mcprelay.wire.jsonrpc import encode_id

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from msgspec import Raw, UnsetType

    from mcprelay.client.deadline import Scope
    from mcprelay.client.progress import Hearing, LogMessage, Progress
    from mcprelay.client.retry import Retry
    from mcprelay.core.peer import Pending
    from mcprelay.ports import Request
    from mcprelay.types import LogLevel, RequestId
    from mcprelay.wire.mirror import HeaderParam

    Notice = Callable[[str, Raw | UnsetType], None]


class Call:
    """A request. The same one is sent again when the protocol or the caller's policy asks for it.

    Attributes:
        method: What is asked.
        members: The JSON members of the params, without `_meta`, without braces.
        meta: More JSON members for `_meta`, without braces.
        name: What the `Mcp-Name` header mirrors, or None.
        arguments: The arguments of a tool as JSON, for `Mcp-Param-*` headers.
        params: The parameters of the tool that are mirrored, as far as its definition is known.
        deadline: Until when the answer must be here, on the loop's clock; None is for ever.
        wait: How long to wait after each progress message, at most until `limit`; None where progress changes nothing.
        limit: The absolute maximum that progress does not move.
        patient: Whether `deadline` is a default, which stands still while the server waits for an answer of ours.
        retry: When it may be sent again after a failure, or None.
        idempotent: Whether the caller says that carrying it out twice does no harm.
        mended: Whether it was repeated already with the headers of a refreshed list.
        evidence: What is known of the latest sending.
        request_id: The id of the latest sending, or None.
        notice: Told of what belongs to this call and neither settles it nor is progress or log.
    """

    __slots__ = (
        "_first",
        "arguments",
        "correlation_id",
        "deadline",
        "evidence",
        "future",
        "idempotent",
        "limit",
        "log_level",
        "members",
        "mended",
        "meta",
        "method",
        "name",
        "notice",
        "on_log",
        "on_progress",
        "params",
        "patient",
        "pending",
        "request",
        "request_id",
        "retry",
        "scope",
        "wait",
    )

    def __init__(
        self,
        method: str,
        members: bytes = b"",
        *,
        name: str | None = None,
        deadline: float | None = None,
        patient: bool = False,
        meta: bytes = b"",
    ) -> None:
        self.method = method
        self.members = self._first = members
        self.name = name
        self.deadline = deadline
        self.patient = patient
        self.meta = meta
        self.arguments = b"{}"
        self.params: Sequence[HeaderParam] = ()
        self.wait: float | None = None
        self.limit: float | None = None
        self.correlation_id: str | None = None
        self.on_progress: Hearing[Progress] | None = None
        self.on_log: Hearing[LogMessage] | None = None
        self.log_level: LogLevel | None = None
        self.notice: Notice | None = None
        self.retry: Retry | None = None
        self.idempotent = False
        self.mended = False
        self.evidence = Evidence.NOT_SENT
        self.request_id: RequestId | None = None
        self.pending: Pending | None = None
        self.future: asyncio.Future[Any] | None = None
        self.scope: Scope | None = None
        self.request: Request | None = None

    def copy(self) -> Call:
        """The same request as it was first, for its next round."""
        copy = Call(
            self.method, self._first, name=self.name, deadline=self.deadline, patient=self.patient, meta=self.meta
        )
        copy.arguments, copy.params = self.arguments, self.params
        copy.wait, copy.limit = self.wait, self.limit
        copy.correlation_id, copy.idempotent, copy.retry = self.correlation_id, self.idempotent, self.retry
        copy.on_progress, copy.on_log, copy.log_level = self.on_progress, self.on_log, self.log_level
        return copy

    def encode(self, preamble: bytes) -> bytes:
        """The params: `_meta` begins with the members that `preamble` holds."""
        meta = preamble
        if self.on_progress is not None and self.request_id is not None:
            meta = _join(meta, b'"progressToken":%b' % encode_id(self.request_id))
        if self.meta:
            meta = _join(meta, self.meta)
        if not meta:
            return b"{%b}" % self.members
        if not self.members:
            return b'{"_meta":{%b}}' % meta
        return b'{"_meta":{%b},%b}' % (meta, self.members)


def _join(first: bytes, then: bytes) -> bytes:
    return b"%b,%b" % (first, then) if first else then
