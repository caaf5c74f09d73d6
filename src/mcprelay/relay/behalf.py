"""For whom a relay acts: whose tokens it sends to which servers, and whom gates and the audit record see.

Knows neither servers nor lists; what a token goes to is the settings' to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from msgspec import Struct

from mcprelay.relay import given
from mcprelay.relay.errors import SettingWrong
from mcprelay.relay.settings import Secret, ServerSettings, TokenSource, sendable

Token: TypeAlias = str | Secret | TokenSource


class Behalf(Struct, frozen=True, kw_only=True):
    """See the module.

    Attributes:
        one: A token for exactly one server a call, whichever that is; None for the configured ones.
        each: Tokens by server: these are served, and no others. None for all.
        principal: Whatever the application calls them.
    """

    one: Secret | TokenSource | None = None
    each: dict[str, Secret | TokenSource] | None = None
    principal: Any = None

    def served(self, configured: Iterable[str]) -> tuple[str, ...]:
        """The servers that are meant where none is named."""
        return tuple(configured if self.each is None else self.each)

    def require_server(self, name: str) -> None:
        """See that a server may be asked.

        Raises:
            SettingWrong: There is no token for it.
        """
        if self.each is not None and name not in self.each:
            raise SettingWrong(
                f"with_tokens has no token for the server {name!r}, so it is not asked; give it one there", server=name
            )

    def require_count(self, servers: int) -> None:
        """See that so many servers may be asked in one call.

        Raises:
            SettingWrong: The one token would go to several.
        """
        if self.one is not None and servers > 1:
            raise SettingWrong(
                f"with_token serves exactly one server a call, and not {servers}, because a token is meant for one;"
                " name it in tools(…), or give each its own with with_tokens({…})"
            )

    def token(self, settings: ServerSettings) -> Secret | TokenSource | None:
        """The token in place of the configured one; None for the configured one.

        Raises:
            SettingWrong: The server takes none.
        """
        token = self.one if self.each is None else self.each[settings.name]
        if token is not None:
            require_requests(settings)
        return token


def secret(token: Token, *, of: str) -> Secret | TokenSource:
    """A token as it is held.

    Args:
        of: What was given the token.

    Raises:
        SettingWrong: It is none.
    """
    if isinstance(token, str):
        token = Secret(token)
    if isinstance(token, Secret):
        if not token.value:
            raise SettingWrong(f"{of}: the token is empty; give the bearer token that the server takes")
        if not sendable(token.value):
            raise SettingWrong(
                f"{of}: the token holds a character that no token has, such as a space: it is given without the word"
                " Bearer"
            )
        return token
    if not callable(token):
        raise SettingWrong(f"{of}: a token is a text, or a function that gives one, and no {type(token).__name__}")
    given.function(f"{of}: a token", token)
    return token


def require_requests(server: ServerSettings) -> None:
    """See that a server takes a token.

    Raises:
        SettingWrong: It has no requests that could carry one, or others could read it on the way.
    """
    if server.url is None:
        raise SettingWrong(
            f"the server {server.name!r} takes no token, because it has no requests to carry it; nothing was started."
            " Its secret is given to it by env in its settings",
            server=server.name,
        )
    if server.exposed:
        raise SettingWrong(f"the token for the server {server.name!r} {server.exposed}", server=server.name)
