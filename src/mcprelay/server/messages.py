"""What a prompt's handler returned, as messages.

| a handler returns | messages |
|---|---|
| a `GetPromptResult` | its own |
| a `PromptMessage` | itself |
| a string, a content block, a file | one message of the user |
| a mapping with `user` and/or `assistant` | the user's message, then the assistant's |
| a mapping with `role` and `content` | one message, or one for each block where the content is a list |
| a list or generator | each item by these rules; an empty one is no message |

The content of a message is a string, a content block, the mapping of one (`{"type": "text", …}`), or any other value,
which is then written as JSON.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import GeneratorType
from typing import Any

import msgspec

from mcprelay.errors import PromptError
from mcprelay.server.file import FILE_BYTES
from mcprelay.server.results import NULL, content_of, drawn, is_content
from mcprelay.types import ContentBlock, GetPromptResult, PromptMessage, ResourceContents, Role, Text

_ROLES: tuple[Role, ...] = ("user", "assistant")
_KINDS = frozenset({"text", "image", "audio", "resource", "resource_link"})


def prompt_result(value: Any, *, description: str | None = None) -> GetPromptResult:
    """Whatever a handler returned, as the result of `prompts/get`.

    Raises:
        PromptError: It has no form that is a message; the text says what and where.
        ResultInvalid: A content has no JSON form.
    """
    if isinstance(value, GetPromptResult):
        return value
    return GetPromptResult(description=description, messages=tuple(_messages(value)))


def _messages(value: Any) -> Iterator[PromptMessage]:
    if isinstance(value, (list, tuple, GeneratorType)):
        for index, item in enumerate(drawn(value, FILE_BYTES) if isinstance(value, GeneratorType) else value):
            yield from _one(item, f" at index {index}")
    else:
        yield from _one(value, "")


def _one(value: Any, where: str) -> Iterator[PromptMessage]:
    if isinstance(value, PromptMessage):
        yield value
    elif isinstance(value, str) or is_content(value):
        yield from (PromptMessage("user", block) for block in _contents(value, where))
    elif isinstance(value, Mapping):
        yield from _from_mapping(value, where)
    else:
        raise PromptError(
            f"A prompt returned {type(value).__name__}{where}. Return a string, a PromptMessage, a mapping with 'user' "
            "and 'assistant' or with 'role' and 'content', or a list of these."
        )


def _from_mapping(value: Mapping[str, Any], where: str) -> Iterator[PromptMessage]:
    if "role" in value and "content" in value:
        role = getattr(value["role"], "value", value["role"])
        if role not in _ROLES:
            raise PromptError(
                f"Invalid role {role!r} in a prompt message{where}. Only 'user' and 'assistant' are supported."
            )
        yield from (PromptMessage(role, block) for block in _contents(value["content"], where))
    elif value and value.keys() <= set(_ROLES):
        for role in _ROLES:
            if role in value:
                yield from (PromptMessage(role, block) for block in _contents(value[role], where))
    else:
        raise PromptError(
            f"A prompt message{where} is a mapping with 'role' and 'content', or with 'user' and 'assistant'."
        )


def _contents(value: Any, where: str) -> list[ContentBlock]:
    """One block for each message; a list of blocks is as many messages."""
    if isinstance(value, (list, tuple)) and any(is_content(item) or _is_typed(item) for item in value):
        return [_content(item, where) for item in value]
    return [_content(value, where)]


def _content(value: Any, where: str) -> ContentBlock:
    if value is None:
        return Text(NULL)
    if _is_typed(value):
        return _typed(value, where)
    (block,) = content_of(value)
    return block


def _is_typed(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("type"), str)


def _typed(value: Mapping[str, Any], where: str) -> ContentBlock:
    """The mapping of a content block, in the wire's own words."""
    kind = value["type"]
    if kind not in _KINDS:
        raise PromptError(
            f"Invalid content type {kind!r} in a prompt message{where}. Known are {', '.join(sorted(_KINDS))}."
        )
    try:
        block: ContentBlock = msgspec.convert(dict(value), ContentBlock)
    except msgspec.ValidationError as error:
        raise PromptError(f"Invalid {kind!r} content in a prompt message{where}: {error}") from error
    resource = getattr(block, "resource", None)
    if isinstance(resource, ResourceContents) and resource.text is None and resource.blob is None:
        raise PromptError(f"Invalid 'resource' content in a prompt message{where}: it must have 'text' or 'blob'.")
    return block
