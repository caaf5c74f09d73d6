"""A server of one file: a tool, a resource, a family of resources and a prompt.

Serve it to a client that starts it:   python examples/calculator.py
Serve it over HTTP:                    mcprelay serve examples/calculator.py --http 127.0.0.1:8000
Look at it from a terminal:            mcprelay call examples/calculator.py add a=1 b=2
"""

from mcprelay import ResourceNotFound, Server

server = Server("calculator", version="1.0.0")

USERS = {"ada": "Ada Lovelace", "grace": "Grace Hopper"}


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b


@server.resource("config://calculator/settings")
def settings() -> dict:
    """The settings in force."""
    return {"precision": 2}


@server.resource("user://{user_id}/profile")  # a template: {} in the URI, and parameters of the same names
async def profile(user_id: str) -> dict:
    """Who uses the calculator."""
    if user_id not in USERS:
        raise ResourceNotFound(f"user://{user_id}/profile")
    return {"id": user_id, "name": USERS[user_id]}


@server.prompt
def review(language: str, code: str, focus: str = "general") -> str:
    """Ask for a code review."""
    return f"Review this {language} code, focusing on {focus}:\n\n{code}"


if __name__ == "__main__":
    server.run()  # stdio; server.run("http", port=8000) for HTTP
