"""Answers on the screen, for people or as JSON.

What a server says is untrusted: everything is made visible, and nothing of it is obeyed, also by a terminal that shows
a file later. Only answers (what a tool, a resource or a prompt says) go into a pipe or a file as they are: they are the
data that was asked for.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from mcprelay.types import Audio, EmbeddedResource, Image, ResourceLink, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from mcprelay.cli.exit import Failure
    from mcprelay.client.outcome import Block, Result
    from mcprelay.types import (
        Completion,
        GetPromptResult,
        Prompt,
        ReadResourceResult,
        Resource,
        ResourceContents,
        ResourceTemplate,
        Tool,
    )

SPEAKER = "mcprelay: "
"""What a sentence about a failure begins with."""


def safe(text: str) -> str:
    """A server's text as it may be shown anywhere."""
    from mcprelay.relay.reveal import reveal

    return reveal(text)


def one_line(text: str) -> str:
    """A server's name of something, on one line: a break in it would begin a line that says what it likes."""
    from mcprelay.relay.reveal import reveal

    return reveal(text, of="name")


def answered(text: str) -> str:
    """A text that was asked for: on a terminal as it may be shown, else as it is."""
    return safe(text) if sys.stdout.isatty() else text


def console() -> Console:
    """The terminal, or whatever standard output is."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def as_json(value: Any) -> None:
    """Print a value as JSON: what the server said, where it is known as it came."""
    sys.stdout.write(_visible(msgspec.json.format(_encoded(value), indent=2)) + "\n")


def as_json_line(value: Any) -> None:
    """The same on one line, at once."""
    sys.stdout.write(_visible(_encoded(value)) + "\n")
    sys.stdout.flush()


def _visible(json: bytes) -> str:
    from mcprelay.relay.reveal import escaped

    return escaped(json.decode())


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(_plain(value))


def _plain(value: Any) -> Any:
    raw = getattr(value, "raw", None)
    if raw is not None:
        return raw
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value


# ---------------------------------------------------------------------------------------------------------------- lists


def tools(found: Sequence[Tool]) -> None:
    """Each tool: its name and arguments, what it does, what they mean."""
    for tool in found:
        schema, out = tool.input_schema, console()
        required = schema.get("required")
        needed = required if isinstance(required, list) else []
        properties = schema.get("properties")
        fields = properties if isinstance(properties, dict) else {}
        out.print(one_line(tool.name), style="bold", end="")
        words = [
            f"{name}={_kind(field)}" if name in needed else f"[{name}={_kind(field)}]" for name, field in fields.items()
        ]
        out.print(one_line("".join(f" {word}" for word in words)))
        _indented(tool.description or tool.title)
        for name, field in fields.items():
            if isinstance(field, dict) and isinstance(field.get("description"), str):
                _indented(f"{name}: {field['description']}", depth=8)
    _count(found, "tool")


def _kind(field: Any) -> str:
    if not isinstance(field, dict):
        return "any"
    if isinstance(field.get("enum"), list):
        return "|".join(map(str, field["enum"]))
    said = field.get("type")
    branches = field.get("anyOf") or field.get("oneOf")
    if said is None and isinstance(branches, list):
        return "|".join(dict.fromkeys(_kind(branch) for branch in branches))
    return "|".join(map(str, said)) if isinstance(said, list) else str(said or "any")


def resources(found: Sequence[Resource], templates: Sequence[ResourceTemplate]) -> None:
    """Each resource and template: its URI, what it is."""
    for uri, each in [(one.uri, one) for one in found] + [(one.uri_template, one) for one in templates]:
        out = console()
        out.print(one_line(uri), style="bold", end="")
        out.print(one_line("  " + "  ".join(filter(None, [each.title or each.name, each.mime_type]))))
        _indented(each.description)
    _count(found, "resource")
    if templates:
        _count(templates, "template")


def prompts(found: Sequence[Prompt]) -> None:
    """Each prompt: its name and arguments, what it is for."""
    for prompt in found:
        out = console()
        arguments = prompt.arguments or ()
        out.print(one_line(prompt.name), style="bold", end="")
        words = [f"{one.name}=…" if one.required else f"[{one.name}=…]" for one in arguments]
        out.print(one_line("".join(f" {word}" for word in words)))
        _indented(prompt.description or prompt.title)
        for one in arguments:
            if one.description:
                _indented(f"{one.name}: {one.description}", depth=8)
    _count(found, "prompt")


def _indented(text: str | None, *, depth: int = 4) -> None:
    for line in safe(text or "").strip().splitlines():
        console().print(" " * depth + line if line.strip() else "")


def _count(found: Sequence[Any], noun: str) -> None:
    if sys.stdout.isatty() or not found:
        number = len(found) or "no"
        print(f"{number} {noun}{'' if len(found) == 1 else 's'}", file=sys.stderr)


def warnings(texts: Iterable[str]) -> None:
    """What was wrong with a list."""
    for text in texts:
        print(f"warning: {one_line(text)}", file=sys.stderr, flush=True)


# -------------------------------------------------------------------------------------------------------------- answers


def result(answer: Result[Any]) -> None:
    """What a tool answered: its text, or its value where it said nothing else."""
    if answer.content:
        blocks(answer.content)
    elif answer.structured is not msgspec.UNSET:
        as_json(answer.structured)


def blocks(content: Iterable[Block]) -> None:
    """Content: texts as they are, a note for anything else."""
    for block in content:
        print(answered(block.text) if isinstance(block, Text) else _note(block))


def _note(block: Any) -> str:
    if isinstance(block, Image | Audio):
        return f"[{type(block).__name__.lower()}: {one_line(block.mime_type)}, {len(block.data):,} bytes]"
    if isinstance(block, ResourceLink):
        return f"[link: {one_line(block.uri)}  {one_line(block.title or block.name)}]"
    if isinstance(block, EmbeddedResource):
        resource = block.resource
        return answered(resource.text) if resource.text is not None else _blob(resource)
    return f"[{one_line(str(block.type))}: a kind of content that this version does not know]"


def _blob(resource: ResourceContents) -> str:
    kind, size = one_line(resource.mime_type or "data"), len(resource.blob or b"")
    return f"[{kind}: {size:,} bytes of {one_line(resource.uri)}]"


def contents(answer: ReadResourceResult) -> None:
    """What is in a resource. Bytes go into a pipe or a file as they are, and are noted on a terminal."""
    for each in answer.contents:
        if each.text is not None:
            print(answered(each.text))
        elif sys.stdout.isatty():
            print(_blob(each))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(each.blob or b"")


def messages(answer: GetPromptResult) -> None:
    """The messages of a prompt."""
    for message in answer.messages:
        console().print(f"{message.role}:", style="bold")
        blocks([message.content])


def completion(answer: Completion) -> None:
    """What may be typed, a line each."""
    for value in answer.values:
        print(one_line(value))
    if answer.has_more:
        say(f"there are more{f', {answer.total} in all' if answer.total else ''}; type more of it to see them")


# ------------------------------------------------------------------------------------------------------------- besides


def told(text: str) -> None:
    """What a server says beside the answer, on standard error, on one line."""
    print(one_line(text), file=sys.stderr, flush=True)


def say(text: str) -> None:
    """Something that is not the answer, on standard error."""
    from mcprelay.relay.reveal import reveal

    print(reveal(text), file=sys.stderr, flush=True)


def failed(failure: Failure, *, json: bool) -> None:
    """Why there is no answer."""
    if json:
        as_json({"error": failure.facts})
    else:
        say(f"{SPEAKER}{failure.sentence}")
