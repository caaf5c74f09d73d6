"""Media that the text of an answer repeats as base64 are found wherever they stand, in looks that are counted."""

from base64 import b64decode, b64encode, urlsafe_b64encode

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcprelay.relay import Limits, ResultTooLarge
from mcprelay.relay.frame import Funnel
from mcprelay.relay.media import Media
from mcprelay.relay.repeat import Repeats
from mcprelay.types import Audio, Text, ToolResult

STEPS = 1_000_000
PERIODIC = b64decode("A" * 91 + "/+AAA")
"""Compared to its last characters at every place of a text that is nothing but A."""


def sound(data):
    return Media("audio", data, "audio/aac")


def forms(data):
    plain = b64encode(data).decode()
    return plain, plain.rstrip("="), plain.replace("/", "\\/"), urlsafe_b64encode(data).decode()


def spent(media, text):
    repeats = Repeats([sound(data) for data in media], steps=STEPS)
    repeats.without(text)
    return STEPS - repeats._left


DATA = st.binary(min_size=24, max_size=120) | st.integers(24, 120).map(bytes)


@given(st.lists(DATA, min_size=1, max_size=4), st.data())
@example([bytes(24), bytes(25)], None)
def test_no_form_of_a_medium_is_left_wherever_it_stands(media, drawn):
    written = [form for data in media for form in forms(data)]
    piece = st.sampled_from(written) | st.text("Aab/+-_=\\ ä", max_size=70)
    text = "".join(written) if drawn is None else "".join(drawn.draw(st.lists(piece, max_size=12)))
    left = Repeats([sound(data) for data in media], steps=10**9).without(text)
    assert not [form for form in written if form in left]
    if not any(form.rstrip("=") in text for form in written):
        assert left == text


@pytest.mark.parametrize("length", [24, 25, 26, 47, 48, 49, 1_000, 100_000])
def test_each_form_is_replaced_whole_with_its_padding_and_nothing_beside_it(length):
    data = bytes(number * 37 % 256 for number in range(length))
    repeats = Repeats([sound(data)], steps=STEPS)
    for form in forms(data):
        for before, after in (("", ""), ("data:audio/aac;base64,", '"'), ("A" * 37, "A" * 41), ("é", "ü")):
            assert repeats.without(f"{before}{form}{after}") == f"{before}[attachment 1]{after}"
    assert repeats.without([data[:1].hex(), {"k": form, form: (1, None)}]) == [
        data[:1].hex(),
        {"k": "[attachment 1]", "[attachment 1]": [1, None]},
    ]


def test_of_media_that_begin_alike_the_longest_is_meant():
    short, long = bytes(range(48)), bytes(range(96))
    repeats = Repeats([sound(short), sound(long), sound(short)], steps=STEPS)
    text = " ".join(b64encode(data).decode() for data in (long, short, long))
    assert repeats.without(text) == "[attachment 2] [attachment 1] [attachment 2]"


def test_what_is_too_short_to_be_told_from_a_word_stays():
    repeats = Repeats([sound(b"tiny"), sound(b"t" * 23)], steps=1)
    text = b64encode(b"tiny").decode() * 50 + b64encode(b"t" * 23).decode()
    assert repeats.without(text) == text
    assert Repeats([sound(b"tiny"), sound(bytes(24))], steps=STEPS).without(["dGlueQ==", "A" * 32]) == [
        "dGlueQ==",
        "[attachment 1]".replace("1", "2"),
    ]


def test_a_medium_that_comes_many_times_is_looked_for_once():
    text = "A" * 240_000
    assert spent([PERIODIC] * 250, text) == spent([PERIODIC], text)
    assert spent([PERIODIC], text) < STEPS // 2


def test_the_looks_grow_with_the_text_and_not_with_the_text_times_the_media():
    media = [bytes([number]) * 8 + number.to_bytes(2, "big") * 40 for number in range(200)]
    text = "ab+/" * 50_000
    assert spent(media, text) == spent(media[:1], text) < len(text)
    assert spent(media, text * 2) <= 2 * spent(media, text)


def test_an_answer_made_to_take_long_is_shown_or_refused_by_the_name_of_its_limit():
    sounds = [Audio(PERIODIC, "audio/aac")] * 156
    shown = Funnel("s").result(ToolResult(content=(*sounds, *[Text("A" * 1_500)] * 100)))
    assert shown.withheld is None
    many = [Audio(bytes(24 + number), "audio/aac") for number in range(200)]
    refused = Funnel("s", limits=Limits(media_steps=500)).result(
        ToolResult(content=tuple(many), structured_content={"x": ["A" * 40 + "B"] * 10})
    )
    assert refused.withheld == "too_large"
    assert "steps, and media_steps allows 500." in refused.text


def test_more_text_than_all_media_could_be_is_not_searched():
    answer = ToolResult(content=(Audio(bytes(range(256)), "audio/aac"), Text("ab+/" * 300)))
    refused = Funnel("s", limits=Limits(result_bytes=500, media_steps=1)).result(answer)
    assert "and result_bytes allows 500." in refused.text


def test_comparing_the_whole_of_long_media_is_counted_too():
    media = [sound(bytes(30_000) + b"end" + bytes(30_000))]
    repeats = Repeats(media, steps=5_000)
    with pytest.raises(ResultTooLarge) as refused:
        repeats.without("A" * 200_000)
    assert (refused.value.limit, refused.value.allowed) == ("media_steps", 5_000)


def test_structured_content_is_written_once_however_many_texts_there_are(monkeypatch):
    written = []
    encode = msgspec.json.encode
    monkeypatch.setattr(msgspec.json, "encode", lambda value, **more: written.append(1) or encode(value, **more))
    value = {"r": [1.5] * 100}
    texts = [Text(f"x{number}") for number in range(100)] + [Text(f'{{"r": [{", ".join(["1.50"] * 99)}, 2]}}')] * 100
    framed = Funnel("s").result(ToolResult(content=tuple(texts), structured_content=value))
    assert framed.text.count('{"r":[1.5,') == 1
    assert len(written) == 2  # the value, and the one value inside it


def test_members_that_are_named_after_one_medium_are_all_kept():
    data = b"\xfb\xef\xff" * 16
    plain, _, _, address = forms(data)
    value = {plain: 1, address: 2, f"{plain} (2)": 3, "[attachment 1]": 4, f"{plain} ": 5}
    left = Repeats([sound(data)], steps=STEPS).without({"deep": [value]})
    assert sorted(left["deep"][0].values()) == [1, 2, 3, 4, 5]
    assert all(plain not in name for name in left["deep"][0])


def test_an_answer_whose_members_are_named_after_media_shows_every_one_of_them():
    first, second = bytes(range(48)), bytes(range(48, 96))
    sounds = (Audio(first, "audio/aac"), Audio(second, "audio/aac"))
    value = {name: number for number, data in enumerate((first, second)) for name in dict.fromkeys(forms(data))}
    shown = Funnel("s").result(ToolResult(content=sounds, structured_content=value))
    assert '{"[attachment 1]":0,"[attachment 2]":1,"[attachment 2] (2)":1}' in shown.text
