"""A clock that is set by hand."""

from __future__ import annotations

from typing import Any


class FakeClock:
    """A `mcprelay.ports.Clock` whose time passes only when a test says so.

    Args:
        now: What `time` says at first, in seconds since the epoch.

    Raises:
        TypeError: That is no number.
    """

    def __init__(self, *, now: float = 1_700_000_000.0) -> None:
        self._start = _number("now", now)
        self._passed = 0.0

    def monotonic(self) -> float:
        """See `mcprelay.ports.Clock`."""
        return self._passed

    def time(self) -> float:
        """See `mcprelay.ports.Clock`."""
        return self._start + self._passed

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            ValueError: Time does not go back.
            TypeError: It is no number.
        """
        _number("seconds", seconds)
        if not seconds >= 0:  # NaN is no time either
            raise ValueError(f"time does not go back, so it cannot be advanced by {seconds} s")
        self._passed += seconds


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is a number of seconds, and not {value!r}")
    return value
