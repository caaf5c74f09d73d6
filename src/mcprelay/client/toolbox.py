"""What a client knows of a server's tools, because they were listed: mirrored parameters and output schemas.

It asks for nothing by itself: a tool that was never listed is called without either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcprelay.client.listing import TOOLS
from mcprelay.revisions import Feature
from mcprelay.wire.mirror import HeaderSchemaInvalid, may_mirror, params_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcprelay.client.listing import Kind
    from mcprelay.revisions import Revision
    from mcprelay.types import Tool
    from mcprelay.wire.mirror import HeaderParam


_SCALARS: dict[str, type] = {"string": str, "boolean": bool, "null": type(None)}
_SILENT = frozenset({"type", "title", "description"})
"""Keywords that say no more than the type."""
_PARAMS = "mirrored parameters"


class Known:
    """One tool. Its output schema is compiled when the first result is checked."""

    __slots__ = ("_fault", "_plainly", "_validator", "params", "tool")

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.params: Sequence[HeaderParam] = ()
        self._validator: Any = None
        self._fault: str | None = None
        self._plainly = _plain_type(tool.output_schema)

    def disagreement(self, structured: Any, size: int) -> str | None:
        """Why a structured content, decoded from `size` bytes, is not what the tool's output schema says, or None."""
        validator = self._validator
        if validator is None:
            if self.tool.output_schema is None or type(structured) is self._plainly:
                return None
            if self._fault is None:
                self._compile(self.tool.output_schema)
            if self._fault is not None:
                return self._fault
            validator = self._validator
        found = validator.check(structured, size=size)
        if not found:
            return None
        return "the structured content does not fit the tool's output schema: " + "; ".join(
            f"{violation.path or '(root)'}: {violation.message}" for violation in found[:3]
        )

    def lack(self, revision: Revision) -> str | None:
        """Why a result without structured content is not what the tool's output schema says, or None.

        Servers must give what they have declared (server/tools, "Output Schema"), in the revisions that have it.
        """
        if self.tool.output_schema is None or not revision.has(Feature.STRUCTURED):
            return None
        return "the result has no structured content, and the tool's output schema says that it has"

    def _compile(self, schema: dict[str, Any]) -> None:
        from mcprelay.wire.reference import SchemaRefused
        from mcprelay.wire.schema import Validator

        try:
            self._validator = Validator(schema)
        except SchemaRefused as error:
            # basic, "$ref Resolution": what cannot be resolved is not treated as if it allowed everything
            self._fault = f"the tool's output schema cannot be used ({error}), so its result cannot be checked"


def _plain_type(schema: dict[str, Any] | None) -> type | None:
    """The type whose values are all that a schema allows, where it is that simple."""
    if schema is None or not schema.keys() <= _SILENT:
        return None
    kind = schema.get("type")
    return _SCALARS.get(kind) if isinstance(kind, str) else None


class Toolbox:
    """The tools of one server, as far as they were listed.

    Attributes:
        kind: How lists of them are read.
        known: Those that were listed, by name.
    """

    def __init__(self) -> None:
        self.kind: Kind[Any] = TOOLS
        self.known: dict[str, Known] = {}

    def replace(self, tools: Iterable[Tool]) -> None:
        """Take a complete list."""
        self.known = {}
        for tool in tools:
            known = self.known[tool.name] = Known(tool)
            known.params = tool.__dict__.get(_PARAMS, ())

    def forget(self) -> None:
        """The server said that its tools changed."""
        self.known = {}


def header_fault(tool: Tool) -> str | None:
    """Why a tool must not be offered over HTTP, or None (Streamable HTTP, "Schema Extension").

    What its headers mirror is noted with it for the `Toolbox`, since every schema that may say so is gone through.
    """
    if tool.raw is not None and not may_mirror(bytes(tool.raw)):
        return None
    noted: Any = tool
    try:
        noted.__dict__[_PARAMS] = params_of(tool.input_schema)
    except HeaderSchemaInvalid as error:
        return str(error)
    return None
