"""OpenTelemetry, where the program has it: spans in the client's trace, metrics, and nothing where it has not."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, Tracer, TracerProvider

from mcprelay import Client, Context, Server, ToolError
from mcprelay.revisions import NEWEST, NEWEST_HANDSHAKE
from tests.server.ask import call, connected, error

PARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


class Span(NonRecordingSpan):
    """A span that keeps what is said of it."""

    def __init__(self, name: str, parent: Any, attributes: dict[str, Any], number: int) -> None:
        trace_id = parent.trace_id if parent is not None and parent.is_valid else 0xABC
        super().__init__(SpanContext(trace_id, number, is_remote=False, trace_flags=TraceFlags(1)))
        self.name = name
        self.parent = parent
        self.attributes = dict(attributes)
        self.status: Any = None

    def is_recording(self) -> bool:
        return True

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.status = status.status_code.name


class Recorder(TracerProvider, Tracer):
    """A provider and its tracer, which keep every span."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def get_tracer(self, *_: Any, **__: Any) -> Tracer:
        return self

    def start_span(self, name: str, context: Any = None, **options: Any) -> Span:
        parent = trace.get_current_span(context).get_span_context()
        self.spans.append(Span(name, parent, options.get("attributes") or {}, len(self.spans) + 1))
        return self.spans[-1]

    @contextlib.contextmanager
    def start_as_current_span(self, name: str, context: Any = None, **options: Any) -> Any:
        with trace.use_span(self.start_span(name, context, **options)) as span:
            yield span


class Meter(NoOpMeterProvider):
    """A provider that keeps what is measured."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded: list[tuple[str, dict[str, Any]]] = []

    def get_meter(self, *_: Any, **__: Any) -> Any:
        return self

    def create_histogram(self, name: str, **_: Any) -> Any:
        return _Instrument(name, self.recorded)

    create_counter = create_histogram


class _Instrument:
    def __init__(self, name: str, recorded: list[Any]) -> None:
        self._name = name
        self._recorded = recorded

    def record(self, value: float, attributes: dict[str, Any]) -> None:
        assert value >= 0
        self._recorded.append((self._name, attributes))

    add = record


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    made = Recorder()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: made)
    monkeypatch.setattr(trace, "get_tracer", made.get_tracer)
    return made


@pytest.fixture
def server() -> Server:
    server = Server("s")

    @server.tool
    def echo(secret: str) -> str:
        trace.get_current_span().set_attribute("seen", "in the handler")
        return secret

    @server.tool
    def refuse() -> str:
        raise ToolError("no")

    server.add_resource("a://{secret}", lambda secret: secret, name="r")
    server.add_prompt(lambda: "", name="p")
    return server


async def test_a_call_is_a_span_in_the_clients_trace_and_current_in_the_handler(server: Server, recorder: Recorder):
    async with connected(server) as client:
        params = {"name": "echo", "arguments": {"secret": "s3cret"}}
        await client.result("tools/call", params, traceparent=PARENT)
        await client.result("tools/call", params)
        await client.result("resources/read", {"uri": "a://s3cret"})
        await client.result("prompts/get", {"name": "p"})
        await client.result("tools/list")

    assert [span.name for span in recorder.spans] == [
        "tools/call echo",
        "tools/call echo",
        "resources/read",
        "prompts/get p",
        "tools/list",
    ]
    first, second, *_ = recorder.spans
    assert f"{first.parent.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert f"{first.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert not second.parent.is_valid
    assert first.attributes["mcp.method.name"] == "tools/call"
    assert first.attributes["gen_ai.tool.name"] == "echo"
    assert first.attributes["seen"] == "in the handler"
    assert "s3cret" not in str([(span.name, span.attributes) for span in recorder.spans])


async def test_a_span_says_what_went_wrong_and_not_why(server: Server, recorder: Recorder):
    await call(server, "refuse")
    await error(server, "tools/call", {"name": "made_up"})

    refused, unknown = recorder.spans
    assert (refused.attributes["error.type"], refused.status) == ("tool_error", "ERROR")
    assert (unknown.attributes["error.type"], unknown.status) == ("ProtocolError", "ERROR")
    assert unknown.name == "tools/call", "what a client made up is in no name"


async def test_a_question_carries_the_span_on(recorder: Recorder):
    server = Server("s")

    @server.tool
    async def choose(ctx: Context) -> str:
        return (await ctx.elicit("Which?", str)).value

    async with connected(server) as client:
        hello = {
            "protocolVersion": "x",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "c", "version": "1"},
        }
        await client.send({"jsonrpc": "2.0", "id": "h", "method": "initialize", "params": hello})
        await client.receive()
        params = {"name": "choose", "arguments": {}, "_meta": {"traceparent": PARENT}}
        await client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        question = await client.receive()

    span = recorder.spans[-1].get_span_context()
    assert question["params"]["_meta"]["traceparent"] == f"00-{span.trace_id:032x}-{span.span_id:016x}-01"


async def test_how_long_requests_take_is_measured_once_however_often_the_server_lives(server: Server, monkeypatch):
    meter = Meter()
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: meter)
    monkeypatch.setattr(metrics, "get_meter", meter.get_meter)

    await call(server, "echo", {"secret": "s3cret"})
    await error(server, "tools/call", {"name": "made_up"})

    assert [name for name, _ in meter.recorded] == ["mcp.server.operation.duration"] * 2
    answered, failed = (attributes for _, attributes in meter.recorded)
    assert answered["mcp.method.name"] == "tools/call"
    assert "error.type" not in answered
    assert failed["error.type"] == "-32602"


async def test_without_a_provider_there_is_no_span(server: Server):
    assert await call(server, "echo", {"secret": "x"}) == "x"
    assert not server.dispatcher._layered


def test_a_program_that_does_not_have_it_does_not_load_it():
    code = """
import asyncio, sys
from mcprelay import Client, Server
server = Server("s")
server.add_tool(lambda: "x", name="x")
async def main():
    async with Client(server) as client:
        await client.call_tool("x")
asyncio.run(main())
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("revision", [NEWEST.name, NEWEST_HANDSHAKE.name])
async def test_what_a_handler_asks_of_another_server_is_in_the_same_trace(recorder: Recorder, revision: str):
    behind = Server("behind")
    seen: list[Any] = []

    @behind.tool
    async def look(ctx: Context) -> str:
        seen.append(ctx.trace)
        return "looked"

    front = Server("front")

    @front.tool
    async def ask_behind() -> str:
        async with Client(behind, revision=revision) as client:
            span = trace.get_current_span().get_span_context()
            await client.call_tool("look")
            assert seen[-1].traceparent == f"00-{span.trace_id:032x}-{span.span_id:016x}-01"
            await client.call_tool("look", meta={"traceparent": PARENT})
            return str(seen[-1].traceparent)

    async with connected(front) as client:
        answer = await client.result("tools/call", {"name": "ask_behind", "arguments": {}}, traceparent=PARENT)
    assert answer["structuredContent"] == PARENT, "what the caller says itself goes first"
    front_span = next(span for span in recorder.spans if span.name == "tools/call ask_behind")
    looks = [span for span in recorder.spans if span.name == "tools/call look"]
    assert looks[0].parent.span_id == front_span.get_span_context().span_id


async def test_a_client_outside_of_any_span_says_nothing_of_one():
    server = Server("s")

    @server.tool
    async def look(ctx: Context) -> bool:
        return "traceparent" in ctx.meta

    async with Client(server) as client:
        assert (await client.call_tool("look")).value is False
