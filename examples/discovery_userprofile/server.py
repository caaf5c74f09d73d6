"""User profiles over HTTP: most of it is found in `handlers`, a tool and a resource are added by hand.

Serve it at http://127.0.0.1:8080/mcp, and at /sse for old clients:   python examples/discovery_userprofile/server.py
"""

import os
import time

from mcprelay import Server

server = Server("HTTP User Profiles", version="1.0.0")
started = time.monotonic()


@server.tool
def calculator(a: float, b: float, operation: str = "add") -> float | str:
    """Perform basic math operations (add, subtract, multiply, divide)"""
    match operation:
        case "add":
            return a + b
        case "subtract":
            return a - b
        case "multiply":
            return a * b
        case "divide":
            return a / b if b else "Error: Division by zero"
    return f"Error: Unknown operation '{operation}'"


@server.resource("system://status", name="system_status")
def status() -> dict:
    """Current system status and runtime information"""
    return {"status": "healthy", "uptime_seconds": round(time.monotonic() - started), "process": os.getpid()}


server.discover("handlers")

if __name__ == "__main__":
    server.run("http", port=int(os.environ.get("PORT", "8080")))
