"""What a client knows of its server: `client.server`."""

from __future__ import annotations

from msgspec import Struct

from mcprelay.types import Implementation, ServerCapabilities


class Face(Struct, kw_only=True):
    """The server as it presents itself. A member is None as long as nothing said it.

    A fresh client over HTTP sends nothing before the first call, so it knows nothing before that either;
    `await client.discover()` asks.

    Attributes:
        revision: The name of the protocol revision that is spoken.
        info: Name and version, self-reported: for display, never for decisions.
        capabilities: What the server offers.
        instructions: How the server wants to be used: untrusted text.
        supported: The revisions that the server says it speaks.
    """

    revision: str | None = None
    info: Implementation | None = None
    capabilities: ServerCapabilities | None = None
    instructions: str | None = None
    supported: tuple[str, ...] = ()
