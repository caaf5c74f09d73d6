"""OpenTelemetry, where the program has it: a span for each call in the client's trace, and a metric of each handler.

Nothing is imported unless the program did so itself and gave it something to send to. What spans and metrics are called
follows the semantic conventions for MCP; no argument, result or token is in either.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mcprelay.server.event import Exchange, LimitHit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcprelay.server import Server
    from mcprelay.server.call import Call
    from mcprelay.server.dispatch import CallNext, Middleware, Outcome
    from mcprelay.server.event import Event

SCOPE = "mcprelay"
DURATION = "mcp.server.operation.duration"


def traced(server: Server) -> Iterator[Middleware]:
    """The middleware that makes spans, if anybody wants them; the metrics are begun beside it."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is not None and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        yield Spans(server, trace).layer
    metrics = sys.modules.get("opentelemetry.metrics")
    if metrics is not None and not type(metrics.get_meter_provider()).__name__.startswith("_Proxy"):
        server.events.measure(_Durations(metrics).take)


class Spans:
    """Makes a span for each call.

    Args:
        server: Whose calls they are.
        trace: The module `opentelemetry.trace`.
    """

    def __init__(self, server: Server, trace: Any) -> None:
        from opentelemetry import propagate

        self._server = server
        self._trace = trace
        self._extract: Callable[[Mapping[str, str]], Any] = propagate.extract
        self._tracer = trace.get_tracer(SCOPE)

    async def layer(self, call: Call, call_next: CallNext) -> Outcome:
        """The middleware."""
        carried = call.trace
        parent = None if carried is None else self._extract(carried.members())
        target = self._target(call)
        name = f"{call.method.name} {target}" if target else call.method.name
        with self._tracer.start_as_current_span(
            name,
            context=parent,
            kind=self._trace.SpanKind.SERVER,
            attributes=self._attributes(call, target),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                outcome = await call_next(call)
            except BaseException as error:
                self._failed(span, type(error).__name__)
                raise
            if getattr(outcome, "is_error", False):
                self._failed(span, "tool_error")
            return outcome

    def _target(self, call: Call) -> str | None:
        """The name of a tool or prompt that there is: what a client made up is in no span's name."""
        catalog = self._server.catalog
        shelf = {"tools/call": catalog.tools, "prompts/get": catalog.prompts}.get(call.method.name)
        return call.target if shelf is not None and call.target in shelf.entries else None

    def _attributes(self, call: Call, target: str | None) -> dict[str, Any]:
        attributes: dict[str, Any] = {
            "mcp.method.name": call.method.name,
            "mcp.protocol.version": call.revision.name,
            "jsonrpc.request.id": str(call.id),
            "network.transport": "tcp" if call.transport == "http" else "pipe",
        }
        if target is not None:
            attributes["gen_ai.tool.name" if call.method.name == "tools/call" else "gen_ai.prompt.name"] = target
        return attributes

    def _failed(self, span: Any, kind: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))


class _Durations:
    """Measures how long exchanges took.

    Args:
        metrics: The module `opentelemetry.metrics`.
    """

    def __init__(self, metrics: Any) -> None:
        meter = metrics.get_meter(SCOPE)
        self._histogram = meter.create_histogram(DURATION, unit="s", description="How long a request took")
        self._limits = meter.create_counter("mcprelay.limit.hits", description="How often a limit was hit")

    def take(self, event: Event) -> None:
        """Measure what an event tells."""
        if isinstance(event, Exchange):
            attributes = {"mcp.method.name": event.method, "mcp.protocol.version": event.revision}
            if event.outcome != "answered":
                attributes["error.type"] = str(event.code) if event.code else event.outcome
            self._histogram.record(event.seconds, attributes)
        elif isinstance(event, LimitHit):
            self._limits.add(1, {"mcprelay.limit": event.limit})
