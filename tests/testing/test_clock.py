import pytest

from mcprelay.testing import FakeClock


def test_time_stands_still_until_it_is_told_to_pass():
    clock = FakeClock(now=100.0)
    before = clock.monotonic()
    assert (clock.time(), clock.monotonic()) == (100.0, before)
    clock.advance(2.5)
    assert (clock.time(), clock.monotonic()) == (102.5, before + 2.5)


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_time_does_not_go_back(seconds):
    with pytest.raises(ValueError, match="does not go back"):
        FakeClock().advance(seconds)


@pytest.mark.parametrize("number", ["5", None, True])
def test_time_is_told_in_numbers(number):
    with pytest.raises(TypeError, match="now is a number of seconds, and not"):
        FakeClock(now=number)
    with pytest.raises(TypeError, match="seconds is a number of seconds, and not"):
        FakeClock().advance(number)
