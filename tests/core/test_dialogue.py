"""A conversation that is put to a model has its tool uses and results in pairs."""

import re

import pytest

from mcprelay.core.dialogue import flaw
from mcprelay.types import SamplingMessage, Text, ToolUse, ToolUseResult


def said(role: str, *blocks):
    return SamplingMessage(role, blocks[0] if len(blocks) == 1 else blocks)


def use(id: str) -> ToolUse:
    return ToolUse(id=id, name="t", input={})


def result(id: str) -> ToolUseResult:
    return ToolUseResult(tool_use_id=id, content=(Text("done"),))


HELLO = said("user", Text("hello"))


@pytest.mark.parametrize(
    "conversation",
    [
        [],
        [HELLO],
        [HELLO, said("assistant", Text("hi")), HELLO],
        [HELLO, said("assistant", use("a")), said("user", result("a"))],
        [HELLO, said("assistant", Text("two"), use("a"), use("b")), said("user", result("b"), result("a"))],
        [
            said("assistant", use("a")),
            said("user", result("a")),
            said("assistant", use("a")),
            said("user", result("a")),
        ],
    ],
)
def test_uses_and_results_in_pairs_are_a_conversation(conversation):
    assert flaw(conversation) is None


@pytest.mark.parametrize(
    ("conversation", "said_of_it"),
    [
        ([said("user", result("a"), Text("and"))], r"messages\[0\]: tool results are mixed with other content"),
        ([HELLO, said("assistant", result("a"))], r"messages\[1\]: .* and not the assistant"),
        ([said("user", use("a")), said("user", result("a"))], r"messages\[0\]: .* and not the user"),
        ([said("assistant", use("a")), HELLO, said("user", result("a"))], r"messages\[1\]: .*'a' is missing"),
        ([said("assistant", use("a"), use("b")), said("user", result("a"))], r"messages\[1\]: .*'b' is missing"),
        ([HELLO, said("user", result("a"))], r"messages\[1\]: no message before it has the tool use 'a'"),
        ([HELLO, said("assistant", use("a"))], r"^the result of the tool use 'a' is missing"),
    ],
)
def test_what_is_not_in_pairs_is_told_with_its_place(conversation, said_of_it):
    assert re.search(said_of_it, flaw(conversation))
