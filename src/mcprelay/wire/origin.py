"""Which `Host` and `Origin` headers a server answers: the protection against DNS rebinding.

A page in a browser can make a name of its own resolve to this machine, and then talks to a local server as if it were
its own site. It cannot make the browser lie about the name, though: `Host` and `Origin` carry it. So a server that is
bound to loopback answers to loopback names only, and a server that knows its public name answers to that
(Streamable HTTP, "Security & Endpoint"). A server bound elsewhere with nothing said cannot know its names: there any
`Host` passes, and an `Origin` must be that same host.

Knows the settings `allowed_hosts`, `allowed_origins` and `public_url`, and names them when it refuses. Knows no request
beyond these two headers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from mcprelay.errors import ConfigurationError
from mcprelay.wire.authority import DEFAULT_PORTS, Authority, is_loopback
from mcprelay.wire.field import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HostRules", "Refused", "is_loopback"]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

_ORIGIN = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://([^/?#]*)")
_URL = re.compile(r"(https?)://([^/?#]*)([/?][^#]*)?", re.IGNORECASE)
_WILDCARD_BINDS = ("", "0.0.0.0", "::", "[::]")  # noqa: S104 - recognized, not bound


class Refused(Struct, frozen=True):
    """Why a request is refused.

    Attributes:
        status: The HTTP status: 421 for a host that is not served here, 403 for an origin that may not ask.
        message: One sentence that names the setting to change.
    """

    status: int
    message: str


class HostRules:
    """The decision for each request, made from settings once.

    Entries of `allowed_hosts` are `name`, `name:port`, `*.name` (every name below it) or `*` (any host: the check is
    off). Without a port every port is meant; `name:*` says so in words. Entries of `allowed_origins` are
    `scheme://name`, with a port where it is not the scheme's own (`:*` for every port), `scheme://*.name`, `null`, or
    `*`. Names outside ASCII are taken in the form that browsers send (IDNA). The loopback names are always accepted
    with any port, as hosts where the bind address includes loopback, as origins where it is loopback.

    Args:
        bind_host: The address the server listens on, or None where it is not known.
        bind_port: Its port; it only makes the check of the expected `Host` cheaper.
        public_url: The URL that clients use. Its host is accepted, and its origin.
        allowed_hosts: Further hosts. An origin at one of them is accepted too, over http and https.
        allowed_origins: Further origins.

    Raises:
        ConfigurationError: A setting is not what its name says; the text shows how to write it.
    """

    __slots__ = ("_any_origin", "_hosts", "_known_hosts", "_open", "_origin_hosts", "_origins")

    def __init__(
        self,
        *,
        bind_host: str | None = None,
        bind_port: int | None = None,
        public_url: str | None = None,
        allowed_hosts: Sequence[str] | None = None,
        allowed_origins: Sequence[str] | None = None,
    ) -> None:
        local = bind_host is not None and is_loopback(bind_host)
        own = _own_names(bind_host)
        hosts = _listed(allowed_hosts, "allowed_hosts")
        self._open = "*" in hosts or not (local or hosts or public_url)
        self._origin_hosts = _Patterns([*own, *hosts] if local else hosts, "allowed_hosts")
        self._hosts = _Patterns([*own, *hosts], "allowed_hosts")
        self._origins: dict[str, _Patterns] = {}
        origins = _listed(allowed_origins, "allowed_origins")
        self._any_origin = "*" in origins
        for origin in origins:
            self._allow_origin(origin)
        if public_url is not None:
            self._publish(public_url)
        ports = [""] if bind_port is None else ["", f":{bind_port}"]
        self._known_hosts = frozenset(f"{name}{port}".encode() for name in (*own, *self._hosts.plain) for port in ports)

    @classmethod
    def from_bind(
        cls,
        host: str | None,
        port: int | None = None,
        *,
        public_url: str | None = None,
        allowed_hosts: Sequence[str] | None = None,
        allowed_origins: Sequence[str] | None = None,
    ) -> HostRules:
        """The rules of a server that listens on this host and port, None for a socket that has none."""
        return cls(
            bind_host=host,
            bind_port=port,
            public_url=public_url,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
        )

    def refusal(self, host: bytes | None, origin: bytes | None) -> Refused | None:
        """Why a request with these headers is refused, or None when it may go on."""
        name = "" if host is None else host.decode("latin-1")
        if host not in self._known_hosts and not self.host_allowed(name):
            return Refused(421, _about_host(name))
        if origin is None:
            return None
        source = origin.decode("latin-1")
        return None if self.origin_allowed(source, name) else Refused(403, _about_origin(source))

    def host_allowed(self, host: str | None) -> bool:
        """Whether a request with this `Host` header is answered."""
        if self._open:
            return True
        authority = Authority.read(host or "")
        if authority is None:
            return False
        ports = DEFAULT_PORTS.values() if authority.port is None else (authority.port,)
        return any(self._hosts.has(authority.host, port) for port in ports)

    def origin_allowed(self, origin: str | None, host: str | None) -> bool:
        """Whether a request with this `Origin` header is answered; one without is (no page of a browser sent it).

        Args:
            origin: The `Origin` header.
            host: The `Host` header, which counts where any host is served: then an origin must be the same host.
        """
        if origin is None or self._any_origin:
            return True
        if origin == "null":
            return "null" in self._origins
        found = _ORIGIN.fullmatch(origin)
        source = None if found is None else Authority.read(found.group(2))
        if found is None or source is None:
            return False
        scheme = found.group(1).lower()
        port = source.port_in(scheme)
        if scheme in self._origins and self._origins[scheme].has(source.host, port):
            return True
        if scheme not in DEFAULT_PORTS:
            return False
        if self._origin_hosts.has(source.host, port):
            return True
        target = Authority.read(host or "") if self._open else None
        return target is not None and (target.host, target.port_in(scheme)) == (source.host, port)

    def _allow_origin(self, origin: str) -> None:
        if origin == "*":
            return
        if origin == "null":
            self._origins["null"] = _Patterns([], "allowed_origins")
            return
        found = _ORIGIN.fullmatch(origin.rstrip("/"))
        if found is None:
            raise ConfigurationError(
                f"allowed_origins: {origin!r} is not an origin. Write scheme and host, such as 'https://app.example', "
                "without a path."
            )
        scheme = found.group(1).lower()
        patterns = self._origins.setdefault(scheme, _Patterns([], "allowed_origins"))
        patterns.add(found.group(2), default_port=DEFAULT_PORTS.get(scheme))

    def _publish(self, public_url: str) -> None:
        found = _URL.fullmatch(public_url)
        if found is None:
            raise ConfigurationError(
                f"public_url: {public_url!r} is not an http or https URL. Write the URL that clients use, "
                "such as 'https://my.example/mcp'."
            )
        scheme = found.group(1).lower()
        authority = _configured(found.group(2), "public_url")
        self._hosts.add(_bracketed(authority.host))
        self._origins.setdefault(scheme, _Patterns([], "public_url")).add(
            found.group(2), default_port=DEFAULT_PORTS[scheme]
        )


class _Patterns:
    """Hosts that a setting lists, looked up by host and port."""

    __slots__ = ("_exact", "_setting", "_suffixes", "plain")

    def __init__(self, entries: Sequence[str], setting: str) -> None:
        self._setting = setting
        self._exact: dict[str, set[int | None]] = {}
        self._suffixes: list[tuple[str, int | None]] = []
        self.plain: list[str] = []
        """Names that are accepted with any port and with none."""
        for entry in entries:
            if entry != "*":
                self.add(entry)

    def add(self, entry: str, *, default_port: int | None = None) -> None:
        """Accept a host, with the port it says, else with `default_port` (None: with every port)."""
        name, every_port = (entry[:-2], True) if entry.endswith(":*") else (entry, False)
        below = name.startswith("*.")
        authority = _configured(name[2:] if below else name, self._setting)
        port = None if every_port else authority.port or default_port
        if below:
            self._suffixes.append((f".{authority.host}", port))
            return
        self._exact.setdefault(authority.host, set()).add(port)
        if port is None:
            self.plain.append(_bracketed(authority.host))

    def has(self, host: str, port: int | None) -> bool:
        """Whether this host with this port is listed."""
        ports = self._exact.get(host)
        if ports is not None and (None in ports or port in ports):
            return True
        return any(host.endswith(suffix) and allowed in (None, port) for suffix, allowed in self._suffixes)


def _configured(text: str, setting: str) -> Authority:
    """The authority that a setting says: also with letters beyond ASCII, and IPv6 without brackets."""
    if "://" not in text and text.count(":") > 1 and not text.startswith("["):
        text = f"[{text}]"
    authority = Authority.read(text if text.isascii() else _as_sent(text, setting))
    if authority is None:
        raise ConfigurationError(
            f"{setting}: {text!r} is not a host. Write it as a client sends it, such as 'my.example', "
            "'my.example:8443', '*.my.example' or '[::1]'."
        )
    return authority


def _as_sent(text: str, setting: str) -> str:
    """A host outside ASCII in the form that browsers send (IDNA 2008 with the mapping of UTS 46)."""
    name, colon, port = text.partition(":")
    try:
        import idna

        return idna.encode(name, uts46=True).decode("ascii") + colon + port
    except ImportError:
        why = "the package `idna`, which would translate it, is not installed"
    except UnicodeError as error:
        why = str(error)
    raise ConfigurationError(f"{setting}: {text!r} cannot be sent as a host: {why}. Write the form with 'xn--'.")


def _own_names(bind_host: str | None) -> list[str]:
    """The names that a bind address gives a server: its own, and the loopback ones where it includes loopback."""
    if bind_host is None or bind_host.startswith("/"):
        return []
    if bind_host.lower() in _WILDCARD_BINDS:
        return list(LOOPBACK)
    bound = Authority.read(bind_host) or Authority.read(f"[{bind_host}]")
    own = [] if bound is None else [_bracketed(bound.host)]
    return [*LOOPBACK, *(name for name in own if name not in LOOPBACK)] if is_loopback(bind_host) else own


def _listed(entries: Sequence[str] | None, setting: str) -> list[str]:
    if isinstance(entries, str):
        raise ConfigurationError(f"{setting} is a list: write {setting}=[{entries!r}].")
    return list(entries or ())


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _about_host(host: str) -> str:
    if not host:
        return "the request has no Host header, so it cannot be told for whom it is meant"
    return (
        f"Host {shown(host)} is not served here. If clients are meant to reach this server by that name, set "
        "public_url to the URL they use, or add the name to allowed_hosts."
    )


def _about_origin(origin: str) -> str:
    return (
        f"Origin {shown(origin)} may not use this server. If pages of that origin are meant to, add it to "
        "allowed_origins, or set public_url to the URL under which both are reached."
    )
