"""What was probably meant."""

import copy
import pickle
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from mcprelay import ConfigurationError, Limits, Retry, Schema
from mcprelay.client.setting import Settings
from mcprelay.wire.spelling import LETTERS, WORDS, Spelled, closest


def test_the_known_word_that_is_most_like_it_was_meant():
    assert closest("limt", ["limit", "title", "list"]) == "limit"
    assert closest("nothing", ["limit", "title"]) is None
    assert closest("limt", ()) is None


def test_what_a_peer_writes_at_length_is_compared_in_part():
    assert closest("a" * 10**7, ["a" * LETTERS, "b"]) == "a" * LETTERS
    assert closest("limt", (word for number in range(10**6) for word in (f"x{number}",))) is None
    assert closest("limt", ["unlike"] * WORDS + ["limit"]) is None


class Choice(Struct, metaclass=Spelled, frozen=True, kw_only=True):
    colour: str = "red"
    size: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.size, int):
            raise TypeError("a size is whole")


class Titled(Struct, metaclass=Spelled, frozen=True):
    title: str = ""


class Full(Titled, frozen=True, kw_only=True):
    colour: str = "red"


@pytest.mark.parametrize(
    ("kind", "given", "options", "said"),
    [
        (Choice, (), {"color": "blue"}, r"^Choice has no option 'color'; did you mean 'colour'\?$"),
        (Choice, (), {"size": 2, "zzz": 1}, r"^Choice has no option 'zzz'; there are colour, size$"),
        (Choice, ("blue",), {}, r"^Choice takes nothing by position, and 1 .*: colour=…, size=…$"),
        (Full, ("a", "blue"), {}, r"^Full takes title alone by position, and 2 .*: colour=…$"),
        (Retry, (), {"attempt": 3}, r"^Retry has no option 'attempt'; did you mean 'attempts'\?$"),
        (Retry, (3,), {}, r"^Retry takes nothing by position, and 1 .*: attempts=…, "),
        (Settings, (), {"request_timout": 3}, r"^Settings has no option .*'request_timeout'\?$"),
        (Limits, (), {"body_byte": 3}, r"^Limits has no option 'body_byte'; did you mean 'body_bytes'\?$"),
        (Schema, (), {"minLength": 3}, r"^Schema has no option 'minLength'; did you mean 'min_length'\?$"),
        (Schema, ("a", 3), {}, r"^Schema takes description alone by position"),
    ],
)
def test_an_option_that_there_is_not_is_told_with_the_one_that_was_meant(
    kind: Any, given: tuple[Any, ...], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        kind(*given, **options)


def test_what_an_option_raises_itself_goes_through_and_the_struct_is_one_like_any() -> None:
    with pytest.raises(TypeError, match="a size is whole"):
        Choice(size="x")  # type: ignore[arg-type]
    made = Choice(colour="blue", size=2)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Choice) == made
    assert pickle.loads(pickle.dumps(made)) == copy.copy(made) == made  # noqa: S301 - its own
    assert msgspec.structs.replace(made, size=3) == Choice(colour="blue", size=3)
    assert Full("a", colour="blue").title == "a"
