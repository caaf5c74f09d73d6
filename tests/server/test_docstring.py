"""Docstrings in the three styles that people write give texts, and lose what was read from them."""

from __future__ import annotations

import docstring_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.server.docstring import parse_docstring

GOOGLE = """Add two numbers.

    More about it: here.

    Args:
        a: The first number.
        b (int, optional): The second
            number.

            With a second paragraph.
        *rest: More of them.
        c:
            On its own line.

    Returns:
        int: The sum.

    Raises:
        ValueError: Never.

    Examples:
        >>> add(1, 2)
        3
    """

NUMPY = """Add two numbers.

    More about it: here.

    Parameters
    ----------
    a : int
        The first number.
    b, c : int, default: 3
        The others.
    *rest
        More of them.

    Returns
    -------
    int
        The sum.

    Notes
    -----
    A note.
    """

REST = """Add two numbers.

    More about it: here.

    :param a: The first
        number.
    :param int b: The second number.
    :type a: int
    :raises ValueError: Never.
    :returns: The sum.
    :rtype: int

    Afterwards.
    """


def test_google_sections():
    docs = parse_docstring(GOOGLE)
    assert docs.text == "Add two numbers.\n\nMore about it: here.\n\nExamples:\n    >>> add(1, 2)\n    3"
    assert docs.parameters == {
        "a": "The first number.",
        "b": "The second\nnumber.\n\nWith a second paragraph.",
        "rest": "More of them.",
        "c": "On its own line.",
    }
    assert docs.returns == "The sum."


def test_numpy_sections():
    docs = parse_docstring(NUMPY)
    assert docs.text == "Add two numbers.\n\nMore about it: here.\n\nNotes\n-----\nA note."
    assert docs.parameters == {
        "a": "The first number.",
        "b": "The others.",
        "c": "The others.",
        "rest": "More of them.",
    }
    assert docs.returns == "The sum."


def test_rest_fields():
    docs = parse_docstring(REST)
    assert docs.text == "Add two numbers.\n\nMore about it: here.\n\nAfterwards."
    assert docs.parameters == {"a": "The first\nnumber.", "b": "The second number."}
    assert docs.returns == "The sum."


@pytest.mark.parametrize(
    ("doc", "text", "returns"),
    [
        (None, None, None),
        ("", None, None),
        ("   ", None, None),
        ("One line.", "One line.", None),
        ("  One line.  ", "One line.", None),
        (":returns: it", None, "it"),
        ("Args: are nice.", "Args: are nice.", None),
        ("Title\n\nArgs:\nnot indented", "Title\n\nArgs:\nnot indented", None),
        ("Title\n\nReturns:\n    A dict with keys: a and b.", "Title", "A dict with keys: a and b."),
        ("Title\n\nReturns:\n    list[int] | None: The numbers.", "Title", "The numbers."),
        ("Title\n\nReturns\n-------\nThe sum.", "Title", "The sum."),
        ("Title\n\nYields:\n    Rows.", "Title", "Rows."),
        ("Usage: call(:x: 1)\n\n:see: elsewhere", "Usage: call(:x: 1)\n\n:see: elsewhere", None),
    ],
)
def test_what_is_no_section_stays_text(doc, text, returns):
    docs = parse_docstring(doc)
    assert (docs.text, docs.returns) == (text, returns)


@pytest.mark.parametrize("doc", [GOOGLE, NUMPY, REST])
def test_another_reader_finds_the_same_parameters(doc):
    theirs = {item.arg_name.lstrip("*"): item.description for item in docstring_parser.parse(doc).params}
    ours = parse_docstring(doc).parameters
    for name, text in ours.items():
        if name in theirs:
            assert theirs[name].split() == text.split()


@given(st.text(alphabet=st.sampled_from("ab :\n-()*@[]|\tArgsReturns"), max_size=80))
def test_no_docstring_breaks_the_reader(doc):
    docs = parse_docstring(doc)
    assert docs.text is None or docs.text == docs.text.strip()
