"""`Principal`: who calls, as verified."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Principal(Struct, frozen=True):
    """Who calls, as the verifier of a server's `auth` says.

    Attributes:
        subject: Who it is, unique within the issuer.
        scopes: What they may do.
        client_id: The client application that acts for them, if the token says so.
        claims: Everything else that the token says.
    """

    subject: str
    scopes: frozenset[str] = frozenset()
    client_id: str | None = None
    claims: dict[str, Any] = {}
