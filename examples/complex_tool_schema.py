"""Enums, nullables, lists and defaults: the signature is the schema.

Serve it at http://127.0.0.1:8082/mcp_scheduler:   python examples/complex_tool_schema.py
"""

import enum
import os
from typing import Annotated, Any

from mcprelay import Schema, Server

server = Server("Event Scheduler Server", version="1.0.0")


class EventType(enum.StrEnum):
    MEETING = "meeting"
    REMINDER = "reminder"
    CALL = "call"
    OTHER = "other"


class Priority(enum.StrEnum):
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


@server.tool
def schedule_event(
    title: str,
    date: str,
    type: EventType,
    *,
    time: str | None = None,
    priority: Priority = Priority.NORMAL,
    attendees: list[str] | None = None,
    send_invites: Annotated[bool, Schema(alias="sendInvites")] = True,
) -> dict[str, Any]:
    """Schedules a new event.

    The inputSchema for this tool will reflect all parameter types and defaults.

    Args:
        title: the title of the event
        date: the date of the event (YYYY-MM-DD)
        type: the type of event
        time: the time of the event (HH:MM), optional
        priority: The priority of the event. Defaults to Normal.
        attendees: an optional list of attendee email addresses
        send_invites: send calendar invites to attendees? Defaults to true if attendees are provided
    """
    return {
        "success": True,
        "message": f'Event "{title}" scheduled successfully for "{date}".',
        "event_details": {
            "title": title,
            "date": date,
            "type": type,
            "time": time or "All day",
            "priority": priority.name.title(),
            "attendees": attendees or [],
            "invites_will_be_sent": bool(attendees) and send_invites,
        },
    }


if __name__ == "__main__":
    server.run(
        "http",
        port=int(os.environ.get("PORT", "8082")),
        path="/mcp_scheduler",
        sse_path="/mcp_scheduler/sse",
        message_path="/mcp_scheduler/messages",
    )
