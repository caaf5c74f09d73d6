"""A contract is made once, and has a name that tools may have in every revision."""

import pytest

from mcprelay import DefinitionError, define
from mcprelay.contract import NAME_LENGTH, check_tool_name


def test_a_contract_holds_what_it_was_given():
    add = define("add", input=dict, output=int, title="Add", description="Adds.", meta={"a": 1})
    assert (add.name, add.input, add.output, add.title, add.description, add.meta) == (
        "add",
        dict,
        int,
        "Add",
        "Adds.",
        {"a": 1},
    )


@pytest.mark.parametrize("name", ["a", "A.b-c_9", "x" * NAME_LENGTH])
def test_letters_digits_and_three_signs_make_a_name(name: str):
    check_tool_name(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "not empty"),
        (None, "not None"),
        (5, "not 5"),
        ("x" * (NAME_LENGTH + 1), f"has {NAME_LENGTH + 1} characters .*at most {NAME_LENGTH}"),
        ("two words", "has ' ' in it"),
        ("größe", "has 'ö' in it"),
    ],
)
def test_another_name_is_refused_with_its_reason_and_place(name, said: str):
    with pytest.raises(DefinitionError, match=said) as caught:
        check_tool_name(name, "app.py:3")
    assert "app.py:3" in str(caught.value)
    with pytest.raises(DefinitionError):
        define(name, input=dict, output=int)
