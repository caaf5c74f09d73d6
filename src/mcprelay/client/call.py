"""One request of a client's on its way: what is asked, until when, and who hears of it meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcprelay.client.retry import Retry
from mcprelay.errors import Evidence
from mcprelay.wire.jsonrpc import encode


class Call(Struct, eq=False):
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
        bound: The setting or argument that `deadline` comes from, and its seconds; None where it was given as a time.
        patient: Whether `deadline` is a default, which stands still while the server waits for an answer of ours.
        retry: When it may be sent again after a failure, or None.
        unanswered: What a handler of ours raised when the server asked something for it, and which (handshake era).
        rounds: How often the server asked something while this was waited for (handshake era).
        idempotent: Whether the caller says that carrying it out twice does no harm.
        mended: Whether it was repeated already with the headers of a refreshed list.
        strays: How many answers came while it was waited for that nobody had asked for.
        garbage: The beginning of what came last meanwhile that is not the protocol.
        on_progress: A `Hearing` of progress, or None.
        on_log: A `Hearing` of log messages, or None.
        log_level: From which level on log messages are asked for, or None.
        notice: Told of what belongs to this call and neither settles it nor is progress or log.
        evidence: What is known of the latest sending.
        begun: Whether an earlier round or attempt may have carried out some of it.
        refused: Whether an earlier sending was refused by the server, without being carried out.
        request_id: The id of the latest sending, or None.
        number: Which of a channel's messages it was, or 0.
        future: What waits for its answer on a channel.
        scope: What its task can be ended by, over HTTP.
        request: The HTTP request that it went with.
        first: `members` of the first round, or None in that.
    """

    method: str
    members: bytes = b""
    name: str | None = None
    deadline: float | None = None
    bound: tuple[str, float] | None = None
    patient: bool = False
    meta: bytes = b""
    arguments: bytes = b"{}"
    params: Sequence[Any] = ()
    wait: float | None = None
    limit: float | None = None
    correlation_id: str | None = None
    on_progress: Any = None
    on_log: Any = None
    log_level: str | None = None
    notice: Any = None
    retry: Retry | None = None
    unanswered: tuple[str, Exception] | None = None
    rounds: int = 0
    idempotent: bool = False
    mended: bool = False
    strays: int = 0
    garbage: bytes = b""
    evidence: Evidence = Evidence.NOT_SENT
    begun: bool = False
    refused: bool = False
    request_id: int | str | None = None
    number: int = 0
    future: Any = None
    scope: Any = None
    request: Any = None
    first: bytes | None = None

    def copy(self) -> Call:
        """The same request as it was first, for its next round."""
        first = self.members if self.first is None else self.first
        return replace(
            self,
            members=first,
            first=first,
            mended=False,
            strays=0,
            garbage=b"",
            unanswered=None,
            evidence=Evidence.NOT_SENT,
            begun=True,
            refused=False,
            request_id=None,
            number=0,
            future=None,
            scope=None,
            request=None,
        )

    def rest(self, evidence: Evidence, *, refused: bool = False) -> None:
        """Its latest sending is over, and another one follows, of which nothing has left yet.

        Args:
            evidence: What is known of the one that is over.
            refused: Whether it was refused, so that nothing of it was carried out.
        """
        self.begun = self.begun or not (refused or evidence is Evidence.NOT_SENT)
        self.refused = self.refused or refused
        self.evidence = Evidence.NOT_SENT

    @property
    def so_far(self) -> Evidence:
        """What is known of all of it: the latest sending, and what was before it where that has sent nothing."""
        if self.evidence is Evidence.NOT_SENT:
            if self.begun:
                return Evidence.MAYBE_SENT
            if self.refused:
                return Evidence.ANSWERED
        return self.evidence

    def encode(self, preamble: bytes) -> bytes:
        """The params: `_meta` begins with the members that `preamble` holds."""
        meta = preamble
        if self.on_progress is not None and self.request_id is not None:
            meta = _join(meta, b'"progressToken":%b' % encode(self.request_id))
        if self.meta:
            meta = _join(meta, self.meta)
        if not meta:
            return b"{%b}" % self.members
        if not self.members:
            return b'{"_meta":{%b}}' % meta
        return b"".join((b'{"_meta":{', meta, b"},", self.members, b"}"))


def _join(first: bytes, then: bytes) -> bytes:
    return b"%b,%b" % (first, then) if first else then
