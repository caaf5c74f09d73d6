"""Profiles of users. On the wire the argument is `userId`; in Python it is `user_id`: that is what an alias is for."""

import logging
from typing import Annotated, Any

from mcprelay import Complete, ProtocolError, ResourceLink, Schema, prompt, resource, tool

USERS = {
    "101": {"name": "Alice", "email": "alice@example.com", "role": "admin"},
    "102": {"name": "Bob", "email": "bob@example.com", "role": "user"},
    "103": {"name": "Charlie", "email": "charlie@example.com", "role": "user"},
}

UserId = Annotated[str, Schema(alias="userId")]


def ids_with(typed: str) -> list[str]:
    return [user for user in USERS if typed in user]


class Profiles:
    def __init__(self, logger: logging.Logger):  # the server's own logger, unless another one is bound
        self.logger = logger

    @resource("user://{userId}/profile", name="user_profile", mime_type="application/json")
    def profile(self, user_id: Annotated[UserId, Complete(USERS)]) -> dict[str, str]:
        """Get profile information for a specific user ID."""
        if user_id not in USERS:
            raise ProtocolError(-32602, f"User profile not found for ID: {user_id}")
        self.logger.info("reading profile %s", user_id)
        return USERS[user_id]

    @resource("user://list/ids", name="user_id_list", mime_type="application/json")
    def ids(self) -> list[int]:
        """Provide a list of all available user IDs."""
        return [int(user) for user in USERS]

    @tool
    def lookup_user(self, user_id: UserId) -> Any:
        """Looks up a user and returns a reference to their profile resource.

        Rather than embedding the full profile (as `resources/read` on
        `user://{userId}/profile` would), this returns a `resource_link` block
        pointing at that resource template so the caller can fetch it
        separately if needed. This mirrors how a tool like a search returning
        many hits would reference each matching resource by URI instead of
        inlining every one of them.

        Args:
            user_id: the ID of the user to look up
        """
        if user_id not in USERS:
            return f"User ID {user_id} not found."
        name = USERS[user_id]["name"]
        link = ResourceLink(uri=f"user://{user_id}/profile", name=f"{name}'s profile", mime_type="application/json")
        return [f"Found {name}.", link]

    @tool
    def send_welcome(
        self, user_id: UserId, custom_message: Annotated[str | None, Schema(alias="customMessage")] = None
    ) -> dict[str, Any]:
        """Sends a welcome message to a user.

        (This is a placeholder - in a real app, it might queue an email).

        Args:
            user_id: the ID of the user to message
            custom_message: an optional custom message part
        """
        if user_id not in USERS:
            return {"success": False, "error": f"User ID {user_id} not found."}
        message = f"Welcome, {USERS[user_id]['name']}!"
        return {"success": True, "message_sent": f"{message} {custom_message}" if custom_message else message}

    @tool
    def test_tool_without_params(self) -> dict[str, Any]:
        return {"success": True, "message": "Test tool without params"}

    @prompt
    def generate_bio_prompt(self, user_id: Annotated[UserId, Complete(ids_with)], tone: str = "professional") -> str:
        """Generates a prompt to write a bio for a user.

        Args:
            user_id: the user ID to generate the bio for
            tone: Desired tone (e.g., 'formal', 'casual').
        """
        if user_id not in USERS:
            raise ProtocolError(-32602, f"User not found for bio prompt: {user_id}")
        user = USERS[user_id]
        return (
            f"Write a short, {tone} biography for {user['name']} (Role: {user['role']}, Email: {user['email']})."
            " Highlight their role within the system."
        )
