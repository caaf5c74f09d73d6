"""A tool's definition as its server wrote it, without what is read by programs alone, and no longer than it may be.

For whoever shows definitions to a model and checks results by nothing: what is not kept, such as output schemas and
metadata, is not decoded, and what is too long is not either. It knows which members are kept, and decodes none of them
but the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from mcprelay.client.listing import TOOLS, TooLong, decode_members, name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.client import Client

_KEPT = ("name", "title", "description", "inputSchema")


class Brief(Struct, frozen=True, dict=True):
    """What is kept of a definition.

    Attributes:
        name: As the server writes it.
        raw: A JSON object of the members that are kept, as the server writes them. Where a member comes twice, or may
            come twice, it is all of the definition: which one counts is not decided here.
    """

    name: str
    raw: Raw

    @property
    def input_schema(self) -> dict[str, Any]:
        """The schema, decoded each time."""
        return _decode_schema(_decode(self.raw).input_schema)

    @property
    def output_schema(self) -> None:
        """None: it was not kept."""


class _Kept(Struct, rename="camel"):
    """What the members that are kept have to be."""

    name: str
    input_schema: Raw
    title: str | None = None
    description: str | None = None


_decode = msgspec.json.Decoder(_Kept).decode
_decode_schema = msgspec.json.Decoder(dict[str, Any]).decode


def briefly(client: Client, *, definition_bytes: int, said: Callable[[str], str] = str) -> Client:
    """The client, whose lists of tools are of `Brief` from now on.

    Args:
        definition_bytes: How long what is kept of one may be; what is longer is excluded by this name.
        said: A word of the server's as warnings may have it.
    """
    kind = replace(TOOLS, decode=lambda raw: _brief(raw, definition_bytes), said=said)
    client._toolbox.kind = kind  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - a client has no such setting
    return client


def _brief(raw: Raw, most: int) -> Brief:
    """What is kept of a definition.

    Raises:
        TooLong: It is too long.
        msgspec.DecodeError: It is none.
    """
    members = decode_members(raw)
    text = bytes(raw)
    if _is_told_once(text, members):
        text = _joined(members)
    if len(text) > most:
        raise TooLong("definition_bytes", most, name=name_of(members))
    found = _decode(text)
    if bytes(found.input_schema)[:1] != b"{":
        raise msgspec.ValidationError("Expected `object` - at `$.inputSchema`")
    return Brief(found.name, Raw(text))


def _joined(members: dict[str, Raw]) -> bytes:
    said = (b'"%b":%b' % (name.encode(), bytes(members[name])) for name in _KEPT if name in members)
    return b"{%b}" % b",".join(said)


def _is_told_once(text: bytes, members: dict[str, Raw]) -> bool:
    """Whether no member comes twice, as far as its quotation marks tell: one that was dropped took two with it.

    A name that has the mark itself may have more of them in the text, and never less.
    """
    return text.count(b'"') == sum(2 + bytes(value).count(b'"') for value in members.values())
