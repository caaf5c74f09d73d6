"""What every result of a server begins with, in one revision, and how one that is a scalar goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from mcprelay.revisions import Feature
from mcprelay.types import Text, ToolResult
from mcprelay.wire import jsonrpc
from mcprelay.wire.params import SERVER_INFO

if TYPE_CHECKING:
    from mcprelay.revisions import Revision
    from mcprelay.server import Server
    from mcprelay.server.scalar import Scalar

_COMPLETE = b'"resultType":"complete"'
_INPUT_REQUIRED = b'"resultType":"input_required"'
_TEXT, _DATA = b'"(text)"', b'"(data)"'


class Face:
    """One server in one revision.

    Attributes:
        info: Who the server is, where results say it; else None.
        complete: The members that a result begins with, as JSON without braces.
        input_required: The same of a question.
    """

    __slots__ = ("_scalar", "complete", "info", "input_required")

    def __init__(self, server: Server, revision: Revision) -> None:
        self.info = msgspec.to_builtins(revision.shape(server.info)) if revision.has(Feature.SERVER_INFO) else None
        meta = b"" if self.info is None else b',"_meta":%b' % jsonrpc.encode({SERVER_INFO: self.info})
        typed = revision.has(Feature.RESULT_TYPE)
        self.complete = _COMPLETE + meta if typed else meta[1:]
        self.input_required = _INPUT_REQUIRED + meta if typed else meta[1:]
        self._scalar = self._pieces(revision)

    def _pieces(self, revision: Revision) -> tuple[bytes, bytes, bytes | None]:
        """What stands around the text of a scalar and the scalar itself: found out by saying one, once."""
        sample = ToolResult(content=(Text(msgspec.json.decode(_TEXT)),), structured_content=Raw(_DATA))
        before, _, after = jsonrpc.encode(revision.shape_output(sample, {"type": "string"})).partition(_TEXT)
        between, found, rest = after.partition(_DATA)
        if self.complete:  # put in front only now: it says the server's name, which may be one of the words looked for
            before = jsonrpc.splice(before, self.complete)
        return before, between, rest if found else None

    def say(self, outcome: Scalar) -> bytes:
        """A result that is a scalar, as the revision has it."""
        before, between, after = self._scalar
        text = outcome.text
        return before + text + between if after is None else before + text + between + outcome.data + after
