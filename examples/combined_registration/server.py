"""By hand and by discovery at once: what is registered by hand wins, in every order.

Serve it at http://127.0.0.1:8081/mcp_combined:   python examples/combined_registration/server.py
"""

import os

from mcprelay import Server


def manualGreeter(user: str) -> str:  # noqa: N802 - a tool is called as its function is
    """A manually registered tool.

    Args:
        user: the user to greet
    """
    return f"Hello {user}, from manual registration!"


def priority() -> str:
    """Manually registered resource that overrides a discovered one."""
    return "Manual Priority Config: HIGH (overrides discovered)"


class Greeter:
    def __init__(self, word: str):
        self.word = word

    def greet(self, name: str) -> str:
        """Greets with the word that the instance was made with."""
        return f"{self.word}, {name}!"


server = Server("Combined HTTP Server", version="1.0.0")
server.add_tool(manualGreeter)
server.add_tool(Greeter("Willkommen").greet, name="instance_greeter")
server.add_resource("config://priority", priority, name="priority_config_manual")
server.discover("handlers")

if __name__ == "__main__":
    server.run(
        "http",
        port=int(os.environ.get("PORT", "8081")),
        path="/mcp_combined",
        sse_path="/mcp_combined/sse",
        message_path="/mcp_combined/messages",
    )
