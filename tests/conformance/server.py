"""The server that the conformance suite examines: every tool, resource and prompt that its scenarios ask for.

Written as a user would write it, against the public names alone. Texts and names are the suite's; see the descriptions
that `dist/index.js list --server` prints. Run by the gate: `python server.py --port 0` prints its address and serves.
"""

import argparse
import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from mcprelay import (
    Audio,
    Complete,
    Context,
    EmbeddedResource,
    Image,
    PromptMessage,
    ResourceContents,
    Schema,
    Server,
    Text,
    ToolError,
)

server = Server("mcprelay-conformance", version="1.0.0", instructions="Everything that the conformance suite asks for.")

RED_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
"""A PNG of one red pixel."""

SILENCE = (
    b"RIFF" + (38).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    + (1).to_bytes(2, "little") + (1).to_bytes(2, "little") + (8000).to_bytes(4, "little")
    + (16000).to_bytes(4, "little") + (2).to_bytes(2, "little") + (16).to_bytes(2, "little")
    + b"data" + (2).to_bytes(4, "little") + b"\0\0"
)  # fmt: skip
"""A WAV of one silent sample."""


# ----------------------------------------------------------------------------------------------------- kinds of content


@server.tool
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@server.tool
def test_image_content() -> Image:
    """Return a picture."""
    return Image(RED_PIXEL, "image/png")


@server.tool
def test_audio_content() -> Audio:
    """Return a sound."""
    return Audio(SILENCE, "audio/wav")


@server.tool
def test_embedded_resource() -> EmbeddedResource:
    """Return a resource inside of the result."""
    text = "This is an embedded resource content."
    return EmbeddedResource(ResourceContents(uri="test://embedded-resource", mime_type="text/plain", text=text))


@server.tool
def test_multiple_content_types() -> list[Text | Image | EmbeddedResource]:
    """Return a text, a picture and a resource."""
    text = '{"test":"data","value":123}'
    contents = ResourceContents(uri="test://mixed-content-resource", mime_type="application/json", text=text)
    return [Text("Multiple content types test:"), Image(RED_PIXEL, "image/png"), EmbeddedResource(contents)]


@server.tool
def test_error_handling() -> str:
    """Fail, and say so."""
    raise ToolError("This tool intentionally returns an error for testing")


# ---------------------------------------------------------------------------------------------- while a call is running


@server.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Send three log messages."""
    ctx.info("Tool execution started")
    await asyncio.sleep(0.05)
    ctx.info("Tool processing data")
    await asyncio.sleep(0.05)
    ctx.info("Tool execution completed")
    return "Three messages were logged."


@server.tool
async def test_logging_tool(ctx: Context) -> str:
    """Log, whether or not the client wants to hear of it."""
    ctx.info("A message that only a client gets that asked for it")
    return "A message was logged."


@server.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        ctx.progress(done, 100)
        await asyncio.sleep(0.05)
    return "Progress was reported."


@server.tool
async def test_reconnection(ctx: Context) -> str:
    """Let go of the connection in the middle of the call; the client comes back for the result."""
    ctx.close_stream(retry_ms=500)
    await asyncio.sleep(0.1)
    return "The stream was closed, and the result came all the same."


def _extra() -> str:
    """Exist for a moment."""
    return "here"


@server.tool
def test_trigger_tool_change() -> str:
    """Change the list of tools."""
    server.add_tool(_extra, name="test_extra_tool")
    server.remove_tool("test_extra_tool")
    return "The list of tools changed."


@server.tool
def test_trigger_prompt_change() -> str:
    """Change the list of prompts."""
    server.add_prompt(_extra, name="test_extra_prompt")
    server.remove_prompt("test_extra_prompt")
    return "The list of prompts changed."


# ---------------------------------------------------------------------------------------------------- asking the client


@dataclass
class Contact:
    """What test_elicitation asks for."""

    username: Annotated[str, Schema("User's response")]
    email: Annotated[str, Schema("User's email address")]


@dataclass
class Defaults:
    """One field of each primitive type, with its default."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


OPTIONS = ["option1", "option2", "option3"]
OPT = ["opt1", "opt2", "opt3"]
OPT_NAMES = ["Option One", "Option Two", "Option Three"]


def _titled(*titles: str) -> list[dict[str, str]]:
    return [{"const": f"value{number}", "title": title} for number, title in enumerate(titles, 1)]


FIRST_OPTIONS = _titled("First Option", "Second Option", "Third Option")
FIRST_CHOICES = _titled("First Choice", "Second Choice", "Third Choice")


@dataclass
class Choices:
    """Each way to offer a choice, the deprecated one too."""

    untitledSingle: Annotated[str, Schema(definition={"type": "string", "enum": OPTIONS})]  # noqa: N815 - the suite's
    titledSingle: Annotated[str, Schema(definition={"type": "string", "oneOf": FIRST_OPTIONS})]  # noqa: N815
    legacyEnum: Annotated[  # noqa: N815
        str, Schema(definition={"type": "string", "enum": OPT, "enumNames": OPT_NAMES})
    ]
    untitledMulti: Annotated[  # noqa: N815
        list[str], Schema(definition={"type": "array", "items": {"type": "string", "enum": OPTIONS}})
    ]
    titledMulti: Annotated[  # noqa: N815
        list[str], Schema(definition={"type": "array", "items": {"anyOf": FIRST_CHOICES}})
    ]


@server.tool
async def test_elicitation(ctx: Context, message: str) -> str:
    """Ask the user for a name and an address."""
    answer = await ctx.elicit(message, Contact)
    return f"User response: action={answer.action}, content={_shown(answer)}"


@server.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with a default for every field."""
    answer = await ctx.elicit("Please review and update the form fields with defaults", Defaults)
    return f"Elicitation completed: action={answer.action}, content={_shown(answer)}"


@server.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask for choices of every kind."""
    answer = await ctx.elicit("Please select options from the enum fields", Choices)
    return f"Elicitation completed: action={answer.action}, content={_shown(answer)}"


def _shown(answer: Any) -> str:
    return json.dumps(asdict(answer.value) if answer.accepted else {})


@server.tool
async def test_sampling(ctx: Context, prompt: str) -> str:
    """Ask the client's model."""
    answer = await ctx.sample(prompt, max_tokens=100)
    return f"LLM response: {answer.text}"


@server.tool
async def test_missing_capability(ctx: Context) -> str:
    """Need a model, which not every client has."""
    return (await ctx.sample("Say something.", max_tokens=10)).text


@dataclass
class Name:
    """A name."""

    name: str


@dataclass
class Color:
    """A color."""

    color: str


@dataclass
class Confirmation:
    """A yes or no."""

    ok: bool


@server.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Report progress, then ask."""
    ctx.progress(1, 2)
    answer = await ctx.elicit("What is your name?", Name, key="user_name")
    return f"Hello, {answer.value.name}!"


@server.tool
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask for a name and greet."""
    answer = await ctx.elicit("What is your name?", Name, key="user_name")
    return f"Hello, {answer.value.name}!"


@server.tool
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask the client's model for a capital."""
    answer = await ctx.sample("What is the capital of France?", max_tokens=100, key="capital_question")
    return answer.text


@server.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask for the client's roots and name them."""
    roots = await ctx.roots(key="client_roots")
    return f"Roots: {', '.join(root.uri for root in roots)}"


@server.tool
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Ask for a confirmation and say whether the state came back."""
    answer = await ctx.elicit("Please confirm", Confirmation, key="confirm")
    remembered = "state-ok" if ctx.round > 1 else "no state"
    return f"{remembered}, confirmed: {answer.accepted}"


@server.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask three questions at once."""
    name, greeting, roots = await asyncio.gather(
        ctx.elicit("What is your name?", Name, key="user_name"),
        ctx.sample("Generate a greeting", max_tokens=50, key="greeting"),
        ctx.roots(key="client_roots"),
    )
    return f"{greeting.text} {name.value.name}, of {', '.join(root.uri for root in roots)}"


@server.tool
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask one question after the other."""
    name = await ctx.elicit("Step 1: What is your name?", Name, key="step1")
    color = await ctx.elicit("Step 2: What is your favorite color?", Color, key="step2")
    return f"{name.value.name} likes {color.value.color}."


@server.tool
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask for a confirmation with state that nobody may change."""
    answer = await ctx.elicit("Please confirm", Confirmation, key="confirm")
    return f"confirmed: {answer.accepted}"


@server.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask only for what the client can do."""
    can = ctx.client_capabilities
    questions: list[Callable[[], Any]] = []
    if can.elicitation is not None:
        questions.append(lambda: ctx.elicit("What is your name?", Name, key="user_name"))
    if can.sampling is not None:
        questions.append(lambda: ctx.sample("Generate a greeting", max_tokens=50, key="greeting"))
    if can.roots is not None:
        questions.append(lambda: ctx.roots(key="client_roots"))
    answers = await asyncio.gather(*(ask() for ask in questions))
    return f"{len(answers)} answers"


# -------------------------------------------------------------------------------------------------------------- schemas

FULL_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@server.tool(schema=Schema(definition=FULL_SCHEMA))
def json_schema_2020_12_tool(**arguments: Any) -> str:
    """Tool with JSON Schema 2020-12 features."""
    return f"arguments: {', '.join(sorted(arguments))}"


@server.tool
def test_x_mcp_header(
    region: Annotated[str, Schema("Where to look", header="Region")] = "",  # noqa: PT028 - a tool, not a test
) -> str:
    """Take an argument that is mirrored into a header."""
    return f"region: {region}"


# ------------------------------------------------------------------------------------------------------------ resources


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture."""
    return RED_PIXEL


@server.resource("test://template/{id}/data", mime_type="application/json")
def template_data(id: str) -> str:
    """Data for an id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text that may change."""
    return "Watched resource content"


# -------------------------------------------------------------------------------------------------------------- prompts


@server.prompt
def test_simple_prompt() -> str:
    """Say one thing."""
    return "This is a simple prompt for testing."


@server.prompt
def test_prompt_with_arguments(
    arg1: Annotated[str, Schema("First test argument"), Complete(["paris", "park", "party"])],
    arg2: Annotated[str, Schema("Second test argument")],
) -> str:
    """Say what the arguments are."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt
def test_prompt_with_embedded_resource(
    resourceUri: Annotated[str, Schema("URI of the resource to embed")],  # noqa: N803 - the suite's name
) -> list[PromptMessage]:
    """Show a resource, and ask about it."""
    text = "Embedded resource content for testing."
    resource = EmbeddedResource(ResourceContents(uri=resourceUri, mime_type="text/plain", text=text))
    return [PromptMessage.user(resource), PromptMessage.user("Please process the embedded resource above.")]


@server.prompt
def test_prompt_with_image() -> list[PromptMessage]:
    """Show a picture, and ask about it."""
    picture = Image(RED_PIXEL, "image/png")
    return [PromptMessage.user(picture), PromptMessage.user("Please analyze the image above.")]


@dataclass
class Setting:
    """The context of a prompt."""

    context: str


@server.prompt
async def test_input_required_result_prompt(ctx: Context) -> str:
    """Ask for the context first."""
    answer = await ctx.elicit("What context should the prompt use?", Setting, key="user_context")
    return f"Prompt in the context of {answer.value.context}"


# -------------------------------------------------------------------------------------------------------------- serving


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    async with server.serve("http", host="127.0.0.1", port=port) as running:
        print(running.url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """The command line of the fixture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=3001)
    asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
