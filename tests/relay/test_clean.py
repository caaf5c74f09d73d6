"""Cleaning takes what a reader cannot see, leaves registered emoji whole, and is done when it is done."""

import json
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcprelay.relay.clean import clean
from mcprelay.relay.emoji import CHAIN, JOINED, joined

ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
REGISTERED = [
    "❤️",
    "☺︎",
    "5️⃣",
    "#️⃣",
    "🇩🇪",
    "👋🏽",
    ENGLAND,
    "👩‍💻",
    "👩🏽‍💻",
    "🧑‍🎄",
    "🏃🏿‍♀️",
    "🏃🏿‍♀️‍➡️",
    "🧑‍🦯‍➡️",
    "🕵️‍♂️",
    "👁️‍🗨️",
    "❤️‍🔥",
    "🏳️‍🌈",
    "🏳️‍⚧️",
    "🏴‍☠️",
    "🐈‍⬛",
    "🐻‍❄️",
    "👨‍👩‍👧‍👦",
    "👩‍👩‍👦‍👦",
    "👨‍❤️‍💋‍👨",
    "👩🏻‍❤️‍👨🏿",
    "🧑🏼‍🤝‍🧑🏾",
    "🫱🏻‍🫲🏿",
    "🧑‍🧑‍🧒‍🧒",
    "⛓️‍💥",
    "🙂‍↔️",
    "🧟‍♀️",
]
TEXT_CONTROLS = {"\t", "\n"}
VISIBLE_FORMATS = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
IGNORABLE = [
    *range(0x180B, 0x1810),
    *range(0xFE00, 0xFE10),
    *range(0xE0000, 0xE1000),
    *(0xAD, 0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0),
]


@pytest.mark.parametrize("sequence", REGISTERED)
def test_a_registered_emoji_stays_whole(sequence):
    for text in (sequence, f"a{sequence}b", sequence * 3, f"é {sequence}\n{sequence}"):
        assert clean(text) == text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("pay\u200bpal", "paypal"),
        ("a\u202eb\u202cc", "abc"),
        ("\ufeffstart", "start"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("bell\x07 null\x00 del\x7f", "bell null del"),
        ("é\x85\x9b31m", "é\n31m"),
        ("one\r\ntwo\rthree\u2028four\u2029five\x0bsix\x0cseven", "one\ntwo\nthree\nfour\nfive\nsix\nseven"),
        ("one\r\ntwo\rthree\x0bfour", "one\ntwo\nthree\nfour"),
        ("x\U000e0069\U000e0067\U000e006ey", "xy"),
        ("🏴\U000e0067\U000e0062\U000e0065", "🏴"),
        ("👩\u200d", "👩"),
        ("👩\u200d👩\u200d👩", "👩👩👩"),
        ("👩‍💻\u200d👩", "👩‍💻👩"),
        ("a\u200db", "ab"),
        ("می\u200cخواهم", "میخواهم"),
        ("5\ufe0f", "5"),
        ("a\ufe0f", "a"),
        ("❤\ufe0f\ufe0f", "❤️"),
        ("half \ud800é", "half \ufffdé"),
        ("half \ud800\u200b\rnew", "half \ufffd\nnew"),
        ("\U0001d173note\U0001bca0", "note"),
        ("𝐀 bold stays", "𝐀 bold stays"),
        ("tab\tand\nline", "tab\tand\nline"),
    ],
)
def test_what_cannot_be_seen_is_taken(text, cleaned):
    assert clean(text) == cleaned


def test_every_control_and_format_character_is_taken():
    left = [
        code
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in {"Cc", "Cf", "Zl", "Zp", "Cs"} and chr(code) in clean(f"a{chr(code)}é")
    ]
    assert {chr(code) for code in left} - {chr(code) for code in VISIBLE_FORMATS} == TEXT_CONTROLS


@pytest.mark.parametrize("code", [0xAD, 0x34F, 0x200C, 0x200D, 0x2060, 0x3164, 0xFE0F, 0xE0001, 0xE01EF])
def test_an_ignorable_character_is_taken_from_plain_text(code):
    assert clean(f"a{chr(code)}b") == "ab"


def test_every_ignorable_character_is_taken():
    assert all(chr(code) not in clean(f"a{chr(code)}é") for code in IGNORABLE)


hidden = st.sampled_from(
    [chr(code) for code in (0, 7, 13, 0x85, 0x200B, 0x200D, 0x202E, 0x2028, 0xFE0F, 0xE0067, 0xE007F)]
)
pieces = st.text(max_size=3) | hidden | st.sampled_from([*REGISTERED, "👩", "❤", "🏴", "5", "⃣", "💻", "🔥", "🏽"])


@settings(deadline=None)
@given(st.lists(pieces, max_size=12).map("".join))
@example("👨\u200d\u200b👩\u200d👧")
@example("❤\u200b\ufe0f\u200d🔥")
@example("\r\u200b\n")
def test_cleaning_twice_is_cleaning_once(text):
    cleaned = clean(text)
    assert clean(cleaned) == cleaned


@settings(deadline=None)
@given(st.lists(pieces, max_size=12).map("".join))
def test_no_hidden_character_is_left_outside_of_a_registered_emoji(text):
    cleaned = clean(text)
    for joiner in ("\u200d", "\u200b", "\u202e", "\x00", "\x85"):
        outside = JOINED.sub("", cleaned)
        assert joiner not in outside


@settings(deadline=None)
@given(st.text())
def test_cleaning_only_takes(text):
    assert len(clean(text)) <= len(text)


def test_cleaning_over_a_joint_sees_what_the_joint_made():
    assert clean("🏴" + "\U000e0067\U000e0062") == "🏴"
    assert clean("👩" + "\u200d" + "💻") == "👩‍💻"  # registered, however it came about
    assert clean(clean("👩\u200d") + clean("💻")) == "👩💻"


def test_keys_of_json_are_text_like_any_other():
    assert clean(json.dumps({"a\u200b": 1}, ensure_ascii=False)) == '{"a": 1}'


def test_a_long_chain_of_joiners_is_not_registered():
    chain = "👩\u200d" * 30 + "👩"
    assert CHAIN.fullmatch(chain)
    assert not joined(chain)
    assert "\u200d" not in clean(chain)
