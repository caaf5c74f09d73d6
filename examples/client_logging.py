"""Log messages to the client, in all eight levels: it gets those that it asked for.

Serve it to a client that starts it:   python examples/client_logging.py
"""

from typing import Literal

from mcprelay import Context, Server

server = Server("Client Logging", version="1.0.0")

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


@server.tool
def log_message(ctx: Context, message: str, level: Level) -> str:
    """Sends a log message to the client.

    Args:
        message: what to say
        level: how severe it is
    """
    ctx.log(level, message, logger="demo")
    return f"Logged message with level: {level}"


if __name__ == "__main__":
    server.run()
