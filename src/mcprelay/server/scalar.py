"""A text, an integer or a boolean that a tool returned: most results are one, and most are looked at by nobody.

So it stays its own JSON until it is sent. Whoever wants to see a result (middleware, an older revision) gets the whole
of it.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from mcprelay.types import Text, ToolResult


class Scalar(Struct, frozen=True):
    """The outcome of a tool.

    Attributes:
        value: What it returned.
        data: The JSON of it.
        text: What a model reads, as the JSON of a text.
    """

    value: str | int
    data: bytes
    text: bytes

    def whole(self) -> ToolResult:
        """The same as a result that can be looked at."""
        said = self.value if type(self.value) is str else self.data.decode()
        return ToolResult(content=(Text(said),), structured_content=Raw(self.data))


def scalar(value: Any, data: bytes) -> Scalar:
    """The outcome that a value is, whose JSON is known."""
    return Scalar(value, data, data if type(value) is str else b'"%b"' % data)
