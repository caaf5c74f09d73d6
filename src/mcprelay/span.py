"""Where the present work stands in somebody's trace, for requests that go out from it.

OpenTelemetry is asked where the program itself has loaded it, and nothing is imported where it has not.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from mcprelay.wire.trace import KEYS

_NOTHING: Mapping[str, str] = {}


def onward() -> Mapping[str, str]:
    """The members of `_meta` that carry the present span's context on, or nothing where there is none."""
    if "opentelemetry.trace" not in sys.modules:
        return _NOTHING
    from opentelemetry import propagate

    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return {key: value for key, value in carrier.items() if key in KEYS}
