"""How a client of one server is made from its settings, for one principal. Making it sends nothing.

Knows the options of a client, and which of them say who calls.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mcprelay.client import Client
from mcprelay.client.brief import briefly
from mcprelay.errors import ConfigurationError
from mcprelay.relay.errors import SettingWrong
from mcprelay.relay.network import network
from mcprelay.relay.settings import Secret
from mcprelay.types import ClientCapabilities

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcprelay.client.cache import Cache
    from mcprelay.client.progress import LogMessage
    from mcprelay.relay.question import Askers
    from mcprelay.relay.settings import ServerSettings


def has_secrets(one: ServerSettings) -> bool:
    """Whether the settings hold what may say who calls; an address may in its query."""
    asked = one.url is not None and "?" in one.url
    return asked or bool(shows_credentials(one) or one.env or one.inherit)


def shows_credentials(one: ServerSettings) -> bool:
    """Whether requests say who calls."""
    return bool(one.token is not None or one.auth or one.headers or one.client_cert)


def accounts(settings: ServerSettings, token: str | None) -> str | None:
    """The file of the accounts that `mcprelay login` has stored, where one of them calls."""
    if settings.auth is None or token is not None:
        return None
    from mcprelay.auth.store import default_path

    return str(default_path())


def reach(settings: ServerSettings, *, token: str | None) -> dict[str, Any]:
    """The options of a client that say how the server is reached, and who calls.

    Args:
        token: The bearer token, which goes before what is stored for everyone, and that before a header.

    Raises:
        SettingWrong: A file of certificates is not there, or holds none.
    """
    if settings.command:
        inherited = {name: os.environ[name] for name in settings.inherit if name in os.environ}
        return {"env": inherited | {name: secret.value for name, secret in settings.env.items()}, "cwd": settings.cwd}
    if settings.url is None:
        return {}
    auth: Any = token
    if auth is None and settings.auth is not None:
        from mcprelay.auth.login import stored

        auth = stored(settings.name)
    headers = {name: secret.value for name, secret in settings.headers.items()}
    if auth is not None:
        headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    return {"auth": auth, "headers": headers or None, **network(settings)}


def dial(
    settings: ServerSettings,
    *,
    token: str | None,
    askers: Askers,
    cache: Cache,
    on_log: Callable[[LogMessage], None],
    said: Callable[[str], str],
) -> Client:
    """A client that declares no capability but those that somebody answers for.

    Args:
        said: A word of the server's as the log may have it.

    Raises:
        SettingWrong: The settings are none that a client can have.
    """
    # The token is theirs who call, and is kept out of what they, or their models, are asked.
    elicit, sample = askers.of(settings if token is None else replace(settings, token=Secret(token)))
    capabilities = ClientCapabilities(
        elicitation=None if elicit is None else {"form": {}, "url": {}}, sampling=None if sample is None else {}
    )
    target: Any = settings.url or list(settings.command) or settings.target
    try:
        client = Client(
            target,
            capabilities=capabilities,
            on_elicit=elicit,
            on_sample=sample,
            on_log=on_log,
            log_level="unasked",  # nobody reads them here, and asking for them costs every call
            cache=cache,
            check_output=False,  # the output schema is outside of the pin
            request_timeout=settings.timeout,
            connect_timeout=settings.timeout,  # a first `npx` takes longer than clients wait
            **settings.limits.client,
            reconnections=math.inf,  # a server that is gone for long is heard again when it is back
            **reach(settings, token=token),
        )
    except SettingWrong:  # it says already where it is mended
        raise
    except ConfigurationError as error:
        why = str(error).replace("allow_plaintext=True", "set allow_plaintext = true for the server")
        raise SettingWrong(f"{settings.place}: {why}", server=settings.name) from error
    return briefly(client, definition_bytes=settings.limits.definition_bytes, said=said)
