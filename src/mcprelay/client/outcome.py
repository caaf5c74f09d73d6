"""How a call ends when it does not fail: with a value, with a refusal, or with a question (`question.InputRequired`).

Values only: nothing here calls anybody.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType

from mcprelay.errors import ToolError
from mcprelay.types import Audio, EmbeddedResource, Image, ResourceLink, Text, ToolResult, Unknown

T = TypeVar("T")

Block = Text | Image | Audio | ResourceLink | EmbeddedResource | Unknown


class Result(Struct, Generic[T], frozen=True):
    """What a call came to.

    Attributes:
        value: The value: of the declared output type where there is one; else the structured content; else the text.
        content: The content blocks as they came. A kind that is not known is an `Unknown`.
        structured: The structured content as plain data; `msgspec.UNSET` when there was none, which null is not.
        meta: The result's `_meta`.
        raw: The whole result as JSON, also what is not read here.
    """

    value: T
    content: tuple[Block, ...] = ()
    structured: Any | UnsetType = UNSET
    meta: dict[str, Any] = {}
    raw: Raw = Raw(b"{}")

    def __repr__(self) -> str:
        return _shown(self, "value", "content", "structured", "meta")

    @property
    def text(self) -> str:
        """The text blocks, joined with line feeds."""
        return text_of(self.content)


class Succeeded(Result[T], Generic[T], frozen=True):
    """The call came to a value: `case Succeeded(value)`."""

    __repr__ = Result.__repr__


class Refused(Struct, frozen=True):
    """The tool said no, in words that a model may read: untrusted, as everything here.

    Attributes:
        content: The content blocks.
        structured: The structured content as plain data; `msgspec.UNSET` when there was none.
        meta: The result's `_meta`.
        raw: The whole result as JSON.
        cause: What a handler of this client raised when the server asked it something (handshake era), or None.
    """

    content: tuple[Block, ...] = ()
    structured: Any | UnsetType = UNSET
    meta: dict[str, Any] = {}
    raw: Raw = Raw(b"{}")
    cause: Exception | None = None

    def __repr__(self) -> str:
        return _shown(self, "content", "structured", "meta")

    @property
    def text(self) -> str:
        """The text blocks, joined with line feeds."""
        return text_of(self.content)

    @property
    def error(self) -> ToolError:
        """The refusal as the exception that `call_tool` raises."""
        structured = None if self.structured is UNSET else self.structured
        whole = ToolResult(
            content=self.content,  # type: ignore[arg-type]  # an `Unknown` block is kept as it came
            structured_content=self.structured,
            is_error=True,
            meta=self.meta or None,
        )
        error = ToolError(
            self.text or "the tool failed and did not say why",
            content=self.content,
            structured=structured,
            result=whole,
        )
        error.__cause__ = self.cause
        return error


def text_of(content: tuple[Block, ...]) -> str:
    """The text blocks of a content, joined with line feeds."""
    if len(content) == 1 and type(content[0]) is Text:
        return content[0].text
    return "\n".join(block.text for block in content if isinstance(block, Text))


def _shown(outcome: Any, *names: str) -> str:
    """An outcome as it is shown: without what is absent, and without `raw`, which says the same once more."""
    members = ((name, getattr(outcome, name)) for name in names)
    shown = ", ".join(f"{name}={value!r}" for name, value in members if value is not UNSET and value != {})
    return f"{type(outcome).__name__}({shown})"
