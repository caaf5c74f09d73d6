"""A handler that takes a value for granted: what a person declined is told to the model in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from mcprelay import Client, Context, RemoteError, Server, ToolError
from mcprelay.revisions import NEWEST, NEWEST_HANDSHAKE

REVISIONS = [NEWEST.name, NEWEST_HANDSHAKE.name]


def desk() -> Server:
    server = Server("desk")

    @server.tool
    async def greet(ctx: Context) -> str:
        """Greet somebody."""
        return f"Hello, {(await ctx.elicit('Your name?', str, key='name')).value}!"

    @server.prompt
    async def letter(ctx: Context) -> str:
        """Write to somebody."""
        return f"Dear {(await ctx.elicit('Your name?', str, key='name')).value}"

    return server


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(("answer", "action"), [(None, "decline"), ({"action": "cancel"}, "cancel")])
async def test_the_model_reads_that_the_person_declined(
    revision: str, answer: Any, action: str, caplog: pytest.LogCaptureFixture
) -> None:
    said = f"the person who was asked answered with '{action}', so there is no value to go on with"
    async with Client(desk(), on_elicit=lambda _: answer, revision=revision) as client:
        with pytest.raises(ToolError, match=said):
            await client.call_tool("greet")
        with pytest.raises(RemoteError, match=said):
            await client.get_prompt("letter")
    assert not caplog.records  # it is no fault of the server's
