"""What was probably meant."""

from mcprelay.wire.spelling import LETTERS, WORDS, closest


def test_the_known_word_that_is_most_like_it_was_meant():
    assert closest("limt", ["limit", "title", "list"]) == "limit"
    assert closest("nothing", ["limit", "title"]) is None
    assert closest("limt", ()) is None


def test_what_a_peer_writes_at_length_is_compared_in_part():
    assert closest("a" * 10**7, ["a" * LETTERS, "b"]) == "a" * LETTERS
    assert closest("limt", (word for number in range(10**6) for word in (f"x{number}",))) is None
    assert closest("limt", ["unlike"] * WORDS + ["limit"]) is None
