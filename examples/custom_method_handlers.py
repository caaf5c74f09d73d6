"""A server that answers `tools/list` and `tools/call` itself, for tools that are not Python functions.

Serve it to a client that starts it:   python examples/custom_method_handlers.py
"""

from mcprelay import ProtocolError, Server, Text, ToolResult
from mcprelay.types import ListToolsResult, ServerCapabilities, Tool

TOOLS = {
    "say_hello": Tool(
        name="say_hello",
        description="Greets a user by name.",
        input_schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    ),
    "sum": Tool(
        name="sum",
        description="Returns the sum of two numbers.",
        input_schema={
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
        },
    ),
}

server = Server("Custom Handlers", version="1.0.0", capabilities=ServerCapabilities(tools={}))


def perform(name, arguments):
    match name, arguments:
        case "say_hello", {"name": str(who)}:
            return f"Hello, {who}!"
        case "sum", {"a": int() | float() as a, "b": int() | float() as b}:
            return str(a + b)
    if name in TOOLS:
        raise ProtocolError(-32602, f"{name} needs {' and '.join(TOOLS[name].input_schema['required'])}")
    raise ProtocolError(-32602, f"Unknown tool: {name}")


@server.middleware
async def own_tools(call, call_next):
    match call.method.name:
        case "tools/list":
            return ListToolsResult(tools=tuple(TOOLS.values()))
        case "tools/call":
            return ToolResult(content=(Text(perform(call.params.name, call.arguments)),))
    return await call_next(call)


if __name__ == "__main__":
    server.run()
