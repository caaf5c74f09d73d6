"""Everything is registered by hand; the class knows nothing of the protocol.

Serve it to a client that starts it:   python examples/explicit_registration.py
"""

from typing import Annotated

from mcprelay import Schema, Server


class Handlers:
    version = "1.0-manual"

    def echo(self, text: str) -> str:
        """Echoes the text."""
        return f"Echo: {text}"

    def app_version(self) -> str:
        return self.version

    def greeting(self, user_name: Annotated[str, Schema("the name of the user", alias="userName")]) -> str:
        """A manually registered prompt template."""
        return f"Craft a personalized greeting for {user_name}."

    def item(self, item_id: Annotated[str, Schema(alias="itemId")]) -> dict[str, str]:
        """A manually registered resource template."""
        return {
            "id": item_id,
            "name": f"Item {item_id}",
            "description": f"Details for item {item_id} from manual template.",
        }


server = Server("Manual Reg Server", version="1.0.0")
server.add_tool((Handlers, "echo"), name="echo_text")
server.add_resource(
    "app://version",
    (Handlers, "app_version"),
    name="application_version",
    description="A manually registered resource providing app version.",
    mime_type="text/plain",
)
server.add_prompt((Handlers, "greeting"), name="personalized_greeting")
server.add_resource(
    "item://{itemId}/details", (Handlers, "item"), name="get_item_details", mime_type="application/json"
)

if __name__ == "__main__":
    server.run()
