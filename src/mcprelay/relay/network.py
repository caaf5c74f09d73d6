"""How a server is reached over HTTP, as its settings say: through which proxy, with which TLS, and what may be plain.

Knows the options of a client and files of certificates. Sends nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcprelay.relay.errors import SettingWrong

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from pathlib import Path

    from mcprelay.relay.settings import ServerSettings

_VARIABLES = frozenset(("http_proxy", "https_proxy", "all_proxy", "no_proxy"))
"""Where the environment names proxies, in small letters or large ones."""


def network(settings: ServerSettings) -> dict[str, Any]:
    """The options of a client for it: those of which something is said.

    Raises:
        SettingWrong: A file of certificates is not there, or holds none.
    """
    options = {
        "proxy": None if settings.proxy is None else settings.proxy.value,
        "ssl": _context(settings),
        "trust_env": settings.trust_env,
        "allow_plaintext": settings.allow_plaintext,
    }
    return {name: value for name, value in options.items() if value}


def way(settings: ServerSettings, environment: Mapping[str, str]) -> list[Any]:
    """All that decides over which way, and as whom, a server is reached, as JSON can carry it. It may hold secrets."""
    files = (settings.ca_file, settings.client_cert, settings.client_key)
    named = ((name, value) for name, value in environment.items() if name.lower() in _VARIABLES)
    return [
        None if settings.proxy is None else settings.proxy.value,
        sorted(named) if settings.trust_env else None,
        [None if file is None else str(file) for file in files],
        settings.allow_plaintext,
    ]


def _context(settings: ServerSettings) -> ssl.SSLContext | None:
    """How TLS is done; None where nothing is said of it."""
    if settings.ca_file is None and settings.client_cert is None:
        return None
    import ssl

    context = ssl.create_default_context()
    try:
        if settings.ca_file is not None:
            context = ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ValueError) as error:
        raise _unusable(settings, "ca_file", settings.ca_file, error) from error
    if settings.client_cert is not None:
        try:
            context.load_cert_chain(settings.client_cert, settings.client_key, password=_nobody)
        except (OSError, ValueError) as error:
            key, file = "client_cert", settings.client_cert
            if settings.client_key is not None and file.is_file():
                key, file = "client_key", settings.client_key
            raise _unusable(settings, key, file, error) from error
    return context


def _nobody() -> str:
    """Nobody is asked for the password of a key: OpenSSL would ask at the terminal."""
    return ""


def _unusable(settings: ServerSettings, key: str, file: Path | None, error: Exception) -> SettingWrong:
    said = getattr(error, "strerror", None) if getattr(error, "library", None) is None else None
    why = said or "it holds no certificate, or no key that fits it and needs no password"
    return SettingWrong(f"{settings.place}.{key}: {file} cannot be used: {why}", server=settings.name)
