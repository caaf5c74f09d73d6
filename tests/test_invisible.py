"""What a reader does not see is the same wherever it is taken out, marked or escaped."""

import unicodedata

import pytest

from mcprelay.errors import ConnectionLost, Evidence, RemoteError, told
from mcprelay.invisible import escaped, is_invisible
from mcprelay.relay.clean import clean
from mcprelay.relay.reveal import legible, reveal
from mcprelay.wire.field import shown

EVERY = [chr(code) for code in range(0x110000)]
"""Every character, and every half of a surrogate pair."""


def test_whatever_cleaning_takes_is_invisible():
    assert [char for char in EVERY if not is_invisible(char) and clean(f"ab{char}cd") != f"ab{char}cd"] == []


def test_whatever_is_invisible_is_marked_in_a_review_and_escaped_in_an_error():
    unseen = [char for char in EVERY if is_invisible(char)]
    assert len(unseen) > 200_000
    assigned = [char for char in unseen if unicodedata.category(char) not in ("Cn", "Co", "Cs")]
    assert {"\ufe00", "\u200b", "\x1b", "\U000e0100"} < set(assigned)
    texts = [(char, f"ab{char}cd") for char in assigned + unseen[::500] if char not in "\n\t"]
    assert [char for char, text in texts if "⟨" not in reveal(text)] == []
    assert [char for char, text in texts if char in told(text) or "\\" not in told(text)] == []


@pytest.mark.parametrize(
    "char", ["\ufe0f", "\ufe00", "\U000e0100", "\U000e01ef", "\u034f", "\u115f", "\u3164", "\u2800"]
)
def test_what_python_calls_printable_and_nobody_sees_hides_in_no_message(char: str):
    assert char.isprintable()
    text = f"ab{char}cd"
    refused = RemoteError(-32603, text)
    lost = ConnectionLost(text, evidence=Evidence.MAYBE_SENT, stderr=text)
    said = [str(refused), str(lost), *lost.__notes__, shown(text), told(text), legible(text)]
    assert [each for each in said if char in each] == []
    assert refused.message == text  # for a program it is whole


@pytest.mark.parametrize("text", ["Größe: 12 µm", "数据\u3000検索", "Привет", "🇩🇪 🫯 😀", "naïve"])
def test_what_everybody_sees_stays_as_it_is(text: str):
    assert escaped(text) == told(text) == text


def test_what_is_escaped_is_one_line():
    assert escaped("a\x1b[2J\u202eb\n\ud800") == "a\\x1b[2J\\u202eb\\n\\ud800"
    assert told("a  b\n c\td") == "a b c d"
    assert told("a\tb") == "a\\tb"
    assert told("\ufe0f" * 400).endswith("…")
    assert len(told("\U000e0100" * 400)) == 301
