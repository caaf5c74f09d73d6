"""Whatever a prompt's handler returns becomes messages."""

from __future__ import annotations

import pytest

from mcprelay.errors import PromptError
from mcprelay.server.messages import prompt_result
from mcprelay.types import (
    Annotations,
    Audio,
    EmbeddedResource,
    GetPromptResult,
    Image,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    Text,
)

USER, ASSISTANT = PromptMessage.user, PromptMessage.assistant


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("hello", [USER("hello")]),
        (USER("hello"), [USER("hello")]),
        (Image(b"a", "image/png"), [USER(Image(b"a", "image/png"))]),
        ([], []),
        (["a", "b"], [USER("a"), USER("b")]),
        ([ASSISTANT("a"), "b"], [ASSISTANT("a"), USER("b")]),
        ((item for item in ["a"]), [USER("a")]),
        ({"user": "a"}, [USER("a")]),
        ({"assistant": "b", "user": "a"}, [USER("a"), ASSISTANT("b")]),
        ({"role": "assistant", "content": "a"}, [ASSISTANT("a")]),
        ({"role": "user", "content": "a", "extra": 1}, [USER("a")]),
        ([{"role": "user", "content": "a"}, {"user": "b", "assistant": "c"}], [USER("a"), USER("b"), ASSISTANT("c")]),
        ({"role": "user", "content": None}, [USER("(null)")]),
        ({"role": "user", "content": True}, [USER("true")]),
        ({"role": "user", "content": 3}, [USER("3")]),
        ({"role": "user", "content": {"a": [1]}}, [USER('{"a":[1]}')]),
        ({"role": "user", "content": [1, 2]}, [USER("[1,2]")]),
        ({"role": "user", "content": [Text("a"), Text("b")]}, [USER("a"), USER("b")]),
        (
            {"role": "user", "content": {"type": "text", "text": "a", "annotations": {"priority": 1.0}}},
            [USER(Text("a", annotations=Annotations(priority=1.0)))],
        ),
        (
            {"role": "user", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}},
            [USER(Image(b"hi", "image/png"))],
        ),
        (
            {"role": "user", "content": {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}},
            [USER(Audio(b"hi", "audio/wav"))],
        ),
        (
            {"role": "user", "content": {"type": "resource", "resource": {"uri": "a:b", "text": "x"}}},
            [USER(EmbeddedResource(ResourceContents(uri="a:b", text="x")))],
        ),
        (
            {"role": "user", "content": {"type": "resource_link", "uri": "a:b", "name": "b"}},
            [USER(ResourceLink(uri="a:b", name="b"))],
        ),
    ],
    ids=repr,
)
def test_every_form_of_messages(value, messages):
    assert list(prompt_result(value).messages) == messages


def test_a_whole_result_passes_and_a_description_is_added_to_any_other():
    result = GetPromptResult(messages=())
    assert prompt_result(result) is result
    assert prompt_result("a", description="d").description == "d"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "returned int"),
        (None, "returned NoneType"),
        ([None], "NoneType at index 0"),
        ({}, "'role' and 'content'"),
        ({"text": "a"}, "'role' and 'content'"),
        ([{"role": "user"}], "at index 0"),
        (
            ["a", {"role": "system", "content": "a"}],
            "Invalid role 'system' in a prompt message at index 1. Only 'user' and",
        ),
        ({"role": "user", "content": {"type": "video"}}, "Invalid content type 'video'"),
        ({"role": "user", "content": {"type": "text"}}, "Invalid 'text' content"),
        ({"role": "user", "content": {"type": "image", "data": "!", "mimeType": "a/b"}}, "Invalid 'image' content"),
        ({"role": "user", "content": {"type": "resource", "resource": {"uri": "a:b"}}}, "'text' or 'blob'"),
    ],
    ids=repr,
)
def test_what_is_no_message_is_told_with_its_index(value, message):
    with pytest.raises(PromptError, match=message):
        prompt_result(value)
