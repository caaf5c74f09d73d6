"""Questions to the person at the client: a form from a dataclass, and every way to answer it.

Serve it to a client that starts it:   python examples/elicitation.py
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from mcprelay import Context, Schema, Server

server = Server("Elicitation Demo", version="1.0.0")

UNSUPPORTED = {"status": "error", "message": "Client does not support elicitation."}


@dataclass
class Reservation:
    party_size: Annotated[int, Schema("Number of guests", title="Party Size", minimum=1, maximum=20)]
    date: Annotated[str, Schema("Preferred date", title="Reservation Date", format="date")]
    dietary: Annotated[
        Literal["none", "vegetarian", "vegan", "gluten-free", "halal", "kosher"], Schema("Any dietary restrictions?")
    ] = "none"


@dataclass
class Confirmation:
    confirm: Annotated[bool, Schema("Check to confirm you want to proceed", title="I confirm this action")] = False


@dataclass
class Feedback:
    rating: Annotated[Literal["1", "2", "3", "4", "5"], Schema("How was it? 5 is best")]
    comments: Annotated[str, Schema("Any additional comments", max_length=500)] = ""


def can_ask(ctx: Context) -> bool:
    return ctx.client_capabilities.elicitation is not None


@server.tool
async def book_restaurant(ctx: Context, restaurant: str) -> dict[str, Any]:
    """Books a table, and asks for what it needs to know.

    Args:
        restaurant: the name of the restaurant
    """
    if not can_ask(ctx):
        return UNSUPPORTED
    answer = await ctx.elicit(f"Please provide your reservation details for {restaurant}:", Reservation)
    match answer.action:
        case "decline":
            return {"status": "declined", "message": "Reservation request was declined by user."}
        case "cancel":
            return {"status": "cancelled", "message": "Reservation request was cancelled."}
    wanted = answer.value
    return {
        "status": "confirmed",
        "message": f"Reservation confirmed at {restaurant} for {wanted.party_size} guests on {wanted.date}.",
        "booking": {"restaurant": restaurant, **vars(wanted)},
    }


@server.tool
async def confirm_action(
    ctx: Context, action: Annotated[str, Schema("what is about to be done", alias="actionDescription")]
) -> dict[str, Any]:
    """Asks for confirmation before something is done."""
    if not can_ask(ctx):
        return UNSUPPORTED
    answer = await ctx.elicit(f"Are you sure you want to: {action}?", Confirmation)
    if not answer.accepted:
        return {"status": "declined" if answer.action == "decline" else "cancelled", "action": action}
    if not answer.value.confirm:
        return {"status": "not_confirmed", "action": action}
    return {"status": "confirmed", "action": action}


@server.tool
async def collect_feedback(ctx: Context, topic: str) -> dict[str, Any]:
    """Collects feedback on a topic.

    Args:
        topic: what the feedback is about
    """
    if not can_ask(ctx):
        return UNSUPPORTED
    answer = await ctx.elicit(f"Please provide your feedback about: {topic}", Feedback)
    if not answer.accepted:
        return {"status": "skipped", "message": "User chose not to provide feedback."}
    return {"status": "received", "message": "Thank you for your feedback!", "feedback": vars(answer.value)}


if __name__ == "__main__":
    server.run()
