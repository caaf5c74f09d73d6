"""`Schema` at a parameter, in a type and at the whole tool: what is said is published, and enforced.

Serve it at http://127.0.0.1:8080/mcp:   python examples/schema_showcase.py
"""

import os
import random
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mcprelay import Schema, Server, ToolError

server = Server("Schema Showcase", version="1.0.0")


@server.tool
def format_text(
    text: Annotated[
        str, Schema("The text to format", min_length=5, max_length=100, pattern=r"^[a-zA-Z0-9\s\.,!?\-]+$")
    ],
    format: Annotated[Literal["uppercase", "lowercase", "title", "sentence"], Schema("Format style")] = "sentence",
) -> dict[str, Any]:
    """Formats text with validation constraints. Text must be 5-100 characters and contain only letters, numbers, \
spaces, and basic punctuation."""
    formats = {"uppercase": str.upper, "lowercase": str.lower, "title": str.title, "sentence": str.capitalize}
    return {
        "original": text,
        "formatted": formats[format](text),
        "length": len(text),
        "format_applied": format,
    }


@server.tool(
    schema=Schema(  # said of the tool: what its parameters need is in one place
        properties={
            "first": Schema("First number (must be between 0 and 1000)", minimum=0, maximum=1000),
            "second": Schema("Second number (must be between 0 and 1000)", minimum=0, maximum=1000),
            "operation": Schema("Operation to perform", enum=["add", "subtract", "multiply", "divide", "power"]),
            "precision": Schema(
                "Decimal precision (must be multiple of 2, between 0-10)", minimum=0, maximum=10, multiple_of=2
            ),
        }
    )
)
def calculate_range(first: float, second: float, operation: str, precision: int = 2) -> dict[str, Any]:
    """Performs mathematical operations with numeric constraints.

    Demonstrates: METHOD-LEVEL Schema
    """
    if operation == "divide" and second == 0:
        raise ToolError("Division by zero is not allowed")
    operations: dict[str, Callable[[float, float], float]] = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: a / b,
        "power": lambda a, b: a**b,
    }
    try:
        result = operations[operation](first, second)
    except OverflowError:
        raise ToolError("The result is too large") from None
    return {"result": round(result, precision), "operation": f"{first:g} {operation} {second:g}"}


class Preferences(TypedDict, total=False):
    notifications: bool
    theme: Literal["light", "dark", "auto"]


class Profile(TypedDict):
    name: Annotated[str, Schema("Full name", min_length=2, max_length=50)]
    email: Annotated[str, Schema("Valid email address", format="email")]
    age: Annotated[int, Schema("Age in years", minimum=13, maximum=120)]
    role: NotRequired[Annotated[Literal["user", "admin", "moderator", "guest"], Schema("User role")]]
    preferences: NotRequired[Preferences]


@server.tool
def validate_profile(
    profile: Annotated[Profile, Schema("User profile information", additional_properties=True)],
) -> dict[str, Any]:
    """Validates and processes user profile data with strict schema requirements."""
    warnings = []
    if profile.get("role") == "admin" and profile["age"] < 18:
        warnings.append("Admin role typically requires age 18+")
    return {
        "valid": True,
        "profile": profile,
        "errors": [],
        "warnings": warnings,
        "processed_at": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}",
    }


ACTIONS: dict[str, Callable[[list[str]], list[str]]] = {
    "sort": sorted,
    "reverse": lambda items: items[::-1],
    "shuffle": lambda items: random.sample(items, len(items)),
    "deduplicate": lambda items: list(dict.fromkeys(items)),
    "filter_short": lambda items: [item for item in items if len(item) <= 10],
    "filter_long": lambda items: [item for item in items if len(item) > 10],
}


@server.tool
def manage_list(
    items: Annotated[
        list[Annotated[str, Schema(min_length=1, max_length=30)]],
        Schema("List of items to manage (2-10 unique strings)", min_items=2, max_items=10, unique_items=True),
    ],
    action: Annotated[str, Schema("Action to perform on the list", enum=list(ACTIONS))] = "sort",
) -> dict[str, Any]:
    """Manages a list of items with size and uniqueness constraints."""
    processed = ACTIONS[action](items)
    lengths = [len(item) for item in items]
    return {
        "original_count": len(items),
        "processed_count": len(processed),
        "action": action,
        "original": items,
        "processed": processed,
        "stats": {
            "average_length": round(sum(lengths) / len(lengths), 2),
            "shortest": min(lengths),
            "longest": max(lengths),
        },
    }


@server.tool
def generate_config(
    app_name: Annotated[
        str,
        Schema(
            "Application name (alphanumeric with hyphens)",
            alias="appName",
            min_length=3,
            max_length=20,
            pattern=r"^[a-zA-Z0-9\-]+$",
        ),
    ],
    base_url: Annotated[str, Schema("Valid URL for the application", alias="baseUrl", format="uri")],
    *,
    environment: Annotated[Literal["development", "staging", "production"], Schema("Environment type")] = "development",
    debug: Annotated[bool, Schema("Enable debug mode")] = True,
    port: Annotated[int, Schema("Port number (1024-65535)", minimum=1024, maximum=65535)] = 8080,
) -> dict[str, Any]:
    """Generates configuration with format-validated inputs."""
    return {
        "success": True,
        "config": {
            "app": {"name": app_name, "env": environment, "debug": debug, "url": base_url, "port": port},
            "logging": {"level": "debug" if debug else "info"},
        },
    }


@server.tool
def schedule_event(
    title: Annotated[str, Schema("Event title (3-50 characters)", min_length=3, max_length=50)],
    start_time: Annotated[datetime, Schema("Event start time in ISO 8601 format", alias="startTime")],
    duration_hours: Annotated[
        float,
        Schema(
            "Duration in hours (minimum 0.5, maximum 24)",
            alias="durationHours",
            minimum=0.5,
            maximum=24,
            multiple_of=0.5,
        ),
    ],
    priority: Annotated[Literal["low", "medium", "high", "urgent"], Schema("Event priority level")] = "medium",
    attendees: Annotated[
        list[Annotated[str, Schema(format="email")]],
        Schema("List of attendee email addresses", max_items=20),
    ] = [],  # noqa: B006 - it is never changed
) -> dict[str, Any]:
    """Schedules an event with time validation and constraints."""
    start = start_time if start_time.tzinfo else start_time.replace(tzinfo=UTC)
    now = datetime.now(UTC)
    return {
        "success": True,
        "event": {
            "id": f"event_{secrets.token_hex(8)}",
            "title": title,
            "start_time": start.isoformat(timespec="seconds"),
            "end_time": (start + timedelta(hours=duration_hours)).isoformat(timespec="seconds"),
            "duration_hours": duration_hours,
            "priority": priority,
            "attendees": attendees,
            "created_at": now.isoformat(timespec="seconds"),
        },
        "info": {
            "attendee_count": len(attendees),
            "is_all_day": duration_hours >= 24,
            "is_future": start > now,
            "timezone_note": "Times are in UTC",
        },
    }


if __name__ == "__main__":
    server.run("http", port=int(os.environ.get("PORT", "8080")))
