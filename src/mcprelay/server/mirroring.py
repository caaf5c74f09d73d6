"""Headers that mirror arguments, held against them where the rules of HTTP could not, because a tool is hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcprelay.errors import ProtocolError
from mcprelay.revisions import Fault
from mcprelay.wire import mirror
from mcprelay.wire.field import Headers

if TYPE_CHECKING:
    from mcprelay.server.call import Call
    from mcprelay.server.entry import Entry


def check_mirrored(call: Call, entry: Entry) -> None:
    """Whether headers say what the arguments say.

    Raises:
        ProtocolError: They do not.
    """
    if not call.revision.http.routing_headers or call.http is None or call.http.scope is None:
        return
    wrong = mirror.disagreement(entry.header_params, call.arguments, Headers.of(call.http.scope["headers"]))
    if wrong is not None:
        raise ProtocolError(call.revision.code(Fault.HEADER_MISMATCH), f"Header mismatch: {wrong}")
