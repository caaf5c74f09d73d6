"""A token that the user has already, as credentials: `Client(url, auth="...")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcprelay.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcprelay.ports import Request, Sender


class Token:
    """Credentials that never change, sent as a bearer token. It does not appear in its own repr."""

    __slots__ = ("_headers",)

    def __init__(self, token: str) -> None:
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigurationError("auth: a token is visible ASCII, without spaces and without the word Bearer")
        self._headers = [("Authorization", f"Bearer {token}")]

    def bind(self, url: str, *, sender: Sender) -> Token:
        """See `Auth`."""
        return self

    async def headers(self, request: Request) -> list[tuple[str, str]]:
        """See `Credentials`."""
        return self._headers

    def answered(self, request: Request, status: int, headers: Mapping[str, str]) -> None:
        """See `Credentials`."""

    async def challenged(self, request: Request, status: int, headers: Mapping[str, str], *, attempt: int) -> bool:
        """See `Credentials`: there is no better token."""
        return False
