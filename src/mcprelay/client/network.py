"""How HTTP is done: by whose HTTP client, through which proxy, with which TLS. Knows no request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcprelay.client.misuse import of_type, told_value
from mcprelay.errors import ConfigurationError
from mcprelay.ports import Sender

if TYPE_CHECKING:
    from mcprelay.client.party import Party


class Network(Struct, frozen=True, kw_only=True):
    """What a user says of it.

    Attributes:
        sender: The user's own HTTP client, in place of the one on aiohttp. Whoever made it closes it.
        proxy: The URL of an HTTP proxy.
        ssl: How TLS is done.
        trust_env: Whether proxies named by the environment are used.
        allow_plaintext: Whether credentials may go over plain HTTP to another machine.

    Raises:
        ConfigurationError: One of them is of another type, or does not go with another one.
    """

    sender: Sender | None = None
    proxy: str | None = None
    ssl: Any = None
    trust_env: bool = False
    allow_plaintext: bool = False

    def __post_init__(self) -> None:
        of_type("trust_env", self.trust_env, bool)
        of_type("allow_plaintext", self.allow_plaintext, bool)
        _check_sender(self.sender)
        _check_proxy(self.proxy)
        _check_tls(self.ssl)
        if self.sender is not None:
            for name in ("proxy", "ssl", "trust_env"):
                if getattr(self, name):
                    raise ConfigurationError(f"{name} is for the client's own HTTP client: say it to your sender")

    @property
    def given(self) -> dict[str, Any]:
        """What is not as it is when nothing is said."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name))}

    def sender_for(self, party: Party) -> Sender:
        """The HTTP client for a party: the user's, or a new one."""
        if self.sender is not None:
            return self.sender
        from mcprelay.client.http import HttpSender

        return HttpSender(
            connect_timeout=party.settings.connect_timeout,
            connections=party.settings.connections,
            proxy=self.proxy,
            ssl=self.ssl,
            trust_env=self.trust_env,
        )


def _check_sender(sender: Any) -> None:
    if sender is not None and not (
        callable(getattr(sender, "send", None)) and callable(getattr(sender, "aclose", None))
    ):
        raise ConfigurationError(
            f"sender is an HTTP client with send() and aclose() (a Sender), not {told_value(sender)}"
        )


def _check_proxy(proxy: Any) -> None:
    """The error does not quote the address: it may hold credentials."""
    if proxy is None:
        return
    of_type("proxy", proxy, str)
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(proxy)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
    if not fits or not proxy.isprintable() or " " in proxy:
        scheme = "" if "://" not in proxy else f", and not {proxy.partition('://')[0][:20]!r}"
        raise ConfigurationError(f"proxy is the address of an HTTP proxy (http://host:port){scheme}")


def _check_tls(context: Any) -> None:
    if context is None:
        return
    import ssl

    if not isinstance(context, ssl.SSLContext):
        wanted = 'ssl.create_default_context(cafile="ca.pem") makes one that trusts an authority of your own'
        raise ConfigurationError(f"ssl is a value of the type SSLContext, and not {told_value(context)}: {wanted}")
