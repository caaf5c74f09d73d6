"""Where in a Python value a number is that JSON cannot say.

JSON has no NaN and no infinity, and every encoder writes `null` for them. So it is enough to look where a `null` was
written, and then the value itself has to be searched.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Raw, Struct


def path_to_nonfinite(value: Any) -> str | None:
    """Where a NaN or an infinity is, as people write it, or None where there is none."""
    if isinstance(value, float):
        return None if math.isfinite(value) else ""
    for step, inner in _members(value):
        rest = path_to_nonfinite(inner)
        if rest is not None:
            here = f"[{step}]" if isinstance(step, int) else str(step)
            return f"{here}.{rest}" if rest and not rest.startswith("[") else here + rest
    return None


def _members(value: Any) -> Iterator[tuple[str | int, Any]]:
    """What a value is made of, by key or index."""
    if value is None or isinstance(value, (str, bytes, int, Raw)):
        return
    if isinstance(value, Mapping):
        yield from ((str(key), item) for key, item in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from enumerate(value)
    elif isinstance(value, Struct):
        yield from ((name, getattr(value, name)) for name in value.__struct_fields__)
    elif hasattr(value, "__attrs_attrs__"):
        yield from ((field.name, getattr(value, field.name, None)) for field in value.__attrs_attrs__)
    elif hasattr(value, "__dataclass_fields__") or hasattr(value, "model_dump_json"):
        yield from vars(value).items()
