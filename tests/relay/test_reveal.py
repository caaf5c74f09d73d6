"""Text made visible for review: nothing hidden, nothing that a terminal obeys."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcprelay.relay.clean import clean
from mcprelay.relay.confusable import LOOKALIKES, skeleton, varies
from mcprelay.relay.lock import quoted
from mcprelay.relay.reveal import escaped, hidden, legible, reveal
from mcprelay.relay.table import _is_name

VECTORS = json.loads((Path(__file__).parent / "data" / "vectors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text",
    [
        "plain text, with\ttabs\nand lines",
        "Größe: 12 µm, m², naïve café",
        "Привет, мир: а и о",
        "数据 検索 カタカナ ABC検索 한국어",
        "α-beta Δt",
        "👩‍💻 ❤️ 5️⃣ 🇩🇪 🫯",
        "",
    ],
)
def test_honest_text_stays_as_it_is(text):
    assert reveal(text) == text
    assert not hidden(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay\u200bpal", "pay⟨U+200B ZERO WIDTH SPACE⟩pal"),
        ("\x1b[2J", "⟨U+001B⟩[2J"),
        ("a\u202eb", "a⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩b"),
        ("a\xa0b", "a⟨U+00A0 NO-BREAK SPACE⟩b"),
        ("one\r\ntwo", "one⟨U+000D⟩\ntwo"),
        ("x\U000e0069\U000e0067\U000e006ey", "x⟨tag characters 'ign'⟩y"),
        ("a\U000e0001b", "a⟨U+E0001 LANGUAGE TAG⟩b"),
        ("pаypal", "pа⟨U+0430 CYRILLIC SMALL LETTER A⟩ypal"),
        ("the со here", "the с⟨U+0441 CYRILLIC SMALL LETTER ES⟩о⟨U+043E CYRILLIC SMALL LETTER O⟩ here"),
        ("ｆ", "ｆ⟨U+FF46 FULLWIDTH LATIN SMALL LETTER F⟩"),
        ("fin\U0001d41a", "fin\U0001d41a⟨U+1D41A MATHEMATICAL BOLD SMALL A⟩"),
        ("a\u034fb", "a⟨U+034F COMBINING GRAPHEME JOINER⟩b"),
        ("a\u115fb", "a⟨U+115F HANGUL CHOSEONG FILLER⟩b"),
        ("\ud800", "⟨U+D800⟩"),
        ("\ue000", "⟨U+E000⟩"),
        ("\u0378", "⟨U+0378⟩"),
        ("⟨U+200B⟩", "⟨U+27E8 MATHEMATICAL LEFT ANGLE BRACKET⟩U+200B⟨U+27E9 MATHEMATICAL RIGHT ANGLE BRACKET⟩"),
        ("👩\u200d👩", "👩⟨U+200D ZERO WIDTH JOINER⟩👩"),
        ("5\ufe0f", "5⟨U+FE0F VARIATION SELECTOR-16⟩"),
    ],
)
def test_what_is_not_what_it_seems_is_marked(text, shown):
    assert reveal(text) == shown
    assert hidden(text)


def test_in_a_name_everything_that_passes_for_latin_is_marked_and_lines_too():
    assert reveal("сору", of="name").count("⟨") == 4
    assert reveal("a\nb\t", of="name") == "a⟨U+000A⟩b⟨U+0009⟩"
    assert reveal("données", of="name") == "données"


@settings(deadline=None)
@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text):
    shown = reveal(text)
    assert not [char for char in shown if unicodedata.category(char) in {"Cc", "Cs"} and char not in "\n\t"]
    assert "\n" not in reveal(text, of="name")


@settings(deadline=None)
@given(st.text(st.sampled_from("ab\u200b\u200d\u202e\xad👩💻❤\ufe0f5\u20e3\U000e0067🏴\U000e0100"), max_size=8))
def test_what_cleaning_takes_is_what_review_shows(text):
    assert (clean(text) != text) <= hidden(text)


@pytest.mark.parametrize(("text", "shown"), VECTORS["legible"])
def test_a_name_in_a_message_is_one_legible_line(text, shown):
    assert legible(text) == shown


@pytest.mark.parametrize("text", VECTORS["let_through"])
def test_what_others_let_through_into_messages_is_marked(text):
    shown = legible(text)
    assert text not in shown or text.isascii()
    assert all(char.isprintable() for char in shown)


def test_a_long_name_is_cut_with_a_mark():
    assert legible("x" * 120) == "x" * 120
    assert legible("x" * 121) == "x" * 120 + "…"
    assert len(legible("\u200b" * 100)) == 121
    assert legible("") == "(unnamed)"


def test_names_that_look_the_same_have_one_skeleton():
    assert skeleton("Search_Issues") == skeleton("search-1ssues") == skeleton("ѕеаrсh issues")
    assert skeleton("modern") == skeleton("rnodern")
    assert skeleton("search") != skeleton("searches")


def test_the_table_of_lookalikes_holds_no_ascii_and_each_letter_once():
    assert all(not char.isascii() and letter.isascii() for char, letter in LOOKALIKES.items())
    assert varies("ａ")
    assert not varies("²")
    assert not varies("é")


def test_every_character_that_cleaning_takes_is_marked_wherever_a_person_reads_it():
    texts = [f"ab{chr(code)}cd" for code in range(0x110000)]
    blocks = [texts[start : start + 256] for start in range(0, len(texts), 256)]
    suspect = [text for block in blocks if clean("".join(block)) != "".join(block) for text in block]
    taken, unseen = 0, []
    for text in (one for one in suspect if clean(one) != one):
        code, taken = ord(text[2]), taken + 1
        written = (escaped(text), quoted(text))
        seen = ("⟨" in reveal(text), "⟨" in legible(text) or code < 0x80, *("\\" in one for one in written))
        if not all(seen) or not all(hidden(one) for one in (text, chr(code))) or _is_name(text):
            unseen.append(f"{code:04X}")
    assert taken > 4_000
    assert unseen == []


def test_no_name_of_a_server_ends_or_breaks_where_nobody_sees_it():
    assert _is_name("git hub")
    assert not [char for char in "\n\t \x85\xa0\u2028\U000e0100\U000e01ef" if _is_name(f"git{char}")]
    assert not [char for char in "\n\t\U000e0100" if _is_name(f"git{char}hub")]
    assert legible("git\u2028") == "git⟨U+2028 LINE SEPARATOR⟩"


def test_a_keycap_behind_a_word_is_one_too_and_the_word_is_looked_at_all_the_same():
    assert reveal("step5\ufe0f\u20e3") == "step5\ufe0f\u20e3"
    assert reveal("st\u0435p5\ufe0f\u20e3") == "st\u0435⟨U+0435 CYRILLIC SMALL LETTER IE⟩p5\ufe0f\u20e3"
    assert reveal("step\ufe0f\u20e3") == "step⟨U+FE0F VARIATION SELECTOR-16⟩\u20e3"
