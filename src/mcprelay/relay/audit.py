"""The record of every decision: who, which tool, which definition, what was decided, how large. Never any content.

It goes to the logger `mcprelay.relay.audit`, one line each with its facts as `record.audit`, and as an event to the
present span where the program has OpenTelemetry. Names of servers' choosing are made visible first.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mcprelay.relay.errors import RelayError
from mcprelay.relay.reveal import legible

if TYPE_CHECKING:
    from mcprelay.relay.frame import Framed

log = logging.getLogger("mcprelay.relay.audit")
_TRACE = "opentelemetry.trace"
_PLAIN = re.compile(r'[^\s="\\]+')


def record(event: str, *, server: str, tool: str, verdict: str, principal: Any = None, **facts: int | str) -> None:
    """Record a decision.

    Args:
        event: What was decided about: `offer`, `call`, `read`, `prompt`, `instructions`.
        server: The configured name; empty where a model called what none of them has.
        tool: The server's own name of it; empty where it is about all of them.
        verdict: `offered`, `shown`, `failed`, `cancelled`, or the code of a refusal.
        principal: For whom.
        facts: Digests and sizes.
    """
    span = _span()
    if span is None and not log.isEnabledFor(logging.INFO):
        return
    told: dict[str, Any] = {"event": event}
    if server:
        told["server"] = legible(server)
    if tool or event == "call":
        told["tool"] = legible(tool)
    told["verdict"] = verdict
    if principal is not None:
        told["principal"] = legible(str(getattr(principal, "subject", principal)))
    told |= {name: value for name, value in facts.items() if value != ""}
    log.info("%s", " ".join(f"{name}={_word(value)}" for name, value in told.items()), extra={"audit": told})
    if span is not None:
        span.add_event("mcprelay.relay", {f"mcprelay.{name}": value for name, value in told.items()})


def verdict(framed: Framed) -> str:
    """What was decided about what a model is shown."""
    return framed.withheld or ("failed" if framed.failed else "shown")


def raised(error: BaseException) -> str:
    """What became of something that ended with an error for the program."""
    if isinstance(error, RelayError):
        return error.code
    return "failed" if isinstance(error, Exception) else "cancelled"


@contextmanager
def watched(event: str, *, server: str, tool: str, principal: Any) -> Generator[None]:
    """Record what ends here with an error for the program, a refusal or a cancellation."""
    try:
        yield
    except BaseException as error:
        record(event, server=server, tool=tool, verdict=raised(error), principal=principal)
        raise


def _word(value: Any) -> str:
    """A value as one word of the line, so that no name of a server's choosing can pass for another fact."""
    text = str(value)
    return text if _PLAIN.fullmatch(text) else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def wanted() -> bool:
    """Whether anybody takes records now."""
    return log.isEnabledFor(logging.INFO) or (_TRACE in sys.modules and _span() is not None)


def _span() -> Any:
    """The present span, where one is recorded."""
    trace = sys.modules.get(_TRACE)
    if trace is None:
        return None
    span = trace.get_current_span()
    return span if span.is_recording() else None
