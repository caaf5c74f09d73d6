"""What a prompt's handler returned, as messages.

| a handler returns | messages |
|---|---|
| a `GetPromptResult` | its own |
| a `PromptMessage` | itself; a string, bytes or a file in it becomes a block, a list of these as many messages |
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

from msgspec.structs import replace

from mcprelay.errors import PromptError
from mcprelay.server.block import is_written, written
from mcprelay.server.encoding import ResultInvalid
from mcprelay.server.file import FILE_BYTES
from mcprelay.server.results import NULL, content_of, drawn, is_content
from mcprelay.types import ContentBlock, GetPromptResult, PromptMessage, Role, Text

_ROLES: tuple[Role, ...] = ("user", "assistant")


def prompt_result(value: Any, *, description: str | None = None) -> GetPromptResult:
    """Whatever a handler returned, as the result of `prompts/get`.

    Raises:
        PromptError: It has no form that is a message; the text says what and where.
        ResultInvalid: A content has no JSON form.
    """
    if isinstance(value, GetPromptResult):
        messages = tuple(_messages(value.messages))
        return value if messages == value.messages else replace(value, messages=messages)
    return GetPromptResult(description=description, messages=tuple(_messages(value)))


def _messages(value: Any) -> Iterator[PromptMessage]:
    if isinstance(value, (list, tuple, GeneratorType)):
        for index, item in enumerate(drawn(value, FILE_BYTES) if isinstance(value, GeneratorType) else value):
            yield from _one(item, f" at index {index}")
    else:
        yield from _one(value, "")


def _one(value: Any, where: str) -> Iterator[PromptMessage]:
    if isinstance(value, PromptMessage):
        yield from _own(value, where)
    elif isinstance(value, str) or is_content(value):
        yield from (PromptMessage("user", block) for block in _contents(value, where))
    elif isinstance(value, Mapping):
        yield from _from_mapping(value, where)
    else:
        raise PromptError(
            f"A prompt returned {type(value).__name__}{where}. Return a string, a PromptMessage, a mapping with 'user' "
            "and 'assistant' or with 'role' and 'content', or a list of these."
        )


def _own(message: PromptMessage, where: str) -> Iterator[PromptMessage]:
    """A message that the handler made itself. What is no content is not made into JSON: it was meant as some."""
    content: Any = message.content
    items = content if isinstance(content, (list, tuple)) else [content]
    for item in items:
        if not (isinstance(item, str) or is_written(item) or is_content(item)):
            raise PromptError(
                f"The content of a PromptMessage{where} is a string or a content block, and not of the type "
                f"{type(item).__name__}."
            )
    role = _role(message.role, where)
    made = [_content(item, where) for item in items]
    yield from [message] if made == [content] else (PromptMessage(role, block) for block in made)


def _role(given: Any, where: str) -> Role:
    role: Role = getattr(given, "value", given)
    if role not in _ROLES:
        raise PromptError(
            f"Invalid role {role!r} in a prompt message{where}. Only 'user' and 'assistant' are supported."
        )
    return role


def _from_mapping(value: Mapping[str, Any], where: str) -> Iterator[PromptMessage]:
    if "role" in value and "content" in value:
        role = _role(value["role"], where)
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
    if isinstance(value, (list, tuple)) and any(is_content(item) or is_written(item) for item in value):
        return [_content(item, where) for item in value]
    return [_content(value, where)]


def _content(value: Any, where: str) -> ContentBlock:
    if value is None:
        return Text(NULL)
    if is_written(value):
        try:
            return written(value, f" in a prompt message{where}")
        except ResultInvalid as error:
            raise PromptError(str(error)) from error
    (block,) = content_of(value)
    return block
