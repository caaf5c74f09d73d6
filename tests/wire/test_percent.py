import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprelay.wire import percent

TEXT = st.text(alphabet=st.characters(codec="utf-8"))


@given(TEXT)
def test_every_text_survives_its_encoding(text):
    encoded = percent.encode(text)
    assert encoded.isascii()
    assert not set(percent.RESERVED) & set(encoded)
    assert percent.decode(encoded) == text


@pytest.mark.parametrize(
    ("text", "encoded"),
    [("Hello World!", "Hello%20World!"), ("50%", "50%25"), ("%20", "%20"), ("%2", "%252"), ("a/b?é", "a/b?%C3%A9")],
)
def test_reserved_characters_and_triplets_can_be_kept(text, encoded):
    assert percent.encode_keeping_reserved(text) == encoded


@pytest.mark.parametrize("text", ["%", "%4", "%zz", "a%", "%%41", "%ff", "%c0%af", "%ed%a0%80", "%C3", "%C3x%A9"])
def test_what_is_no_encoding_of_a_text_decodes_to_nothing(text):
    assert percent.decode(text) is None


@given(st.text())
def test_decoding_never_fails(text):
    decoded = percent.decode(text)
    assert decoded is None or isinstance(decoded, str)
    if "%" not in text:
        assert decoded == text


def test_decoding_happens_once():
    assert percent.decode("%252e") == "%2e"


def test_a_prefix_never_cuts_a_triplet():
    assert percent.first_characters("a%20b", 2) == "a%20"
