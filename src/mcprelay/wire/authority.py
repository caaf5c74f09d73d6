"""A host with its port, as it stands in a `Host` header, an `Origin` or a URL, read strictly.

Knows what a host may be: a name of ASCII labels, a dotted IPv4 address, an IPv6 address in brackets. Everything that
one reader takes for a host and another reader does not is no host here: user information, a trailing dot, percent
signs, spaces, backslashes, empty ports. Does not know which hosts are welcome (`origin`), and resolves nothing.
"""

from __future__ import annotations

import re

from msgspec import Struct

DEFAULT_PORTS = {"http": 80, "https": 443}

_LONGEST_NAME = 253
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?))(?::([0-9]{1,5}))?")
_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!\Z)|\Z)){4}")


class Authority(Struct, frozen=True):
    """A host and a port.

    Attributes:
        host: The host in lower case; an IPv6 address in its shortest form, without brackets.
        port: The port, or None where none was said.
    """

    host: str
    port: int | None = None

    @classmethod
    def read(cls, text: str) -> Authority | None:
        """The authority that a header says, or None for what is not strictly one."""
        found = _AUTHORITY.fullmatch(text.lower()) if text.isascii() else None
        if found is None:
            return None
        address, name, digits = found.groups()
        host = _name(name) if address is None else _ipv6(address)
        port = None if digits is None else int(digits)
        return None if host is None or (port is not None and port > 65535) else cls(host, port)

    def port_in(self, scheme: str) -> int | None:
        """The port that is meant in a URL of this scheme."""
        return DEFAULT_PORTS.get(scheme) if self.port is None else self.port


def is_loopback(host: str) -> bool:
    """Whether this host can only be this machine: `localhost`, 127.0.0.0/8 or ::1, with or without brackets.

    A name that merely resolves to such an address today is not loopback: whoever holds the name decides what it means.
    """
    host = host.lower().removeprefix("[").removesuffix("]")
    if host == "localhost":
        return True
    if ":" not in host:
        return host.startswith("127.") and _IPV4.fullmatch(host) is not None
    from ipaddress import IPv6Address

    try:
        address = IPv6Address(host)
    except ValueError:
        return False
    return address.is_loopback or (address.ipv4_mapped is not None and address.ipv4_mapped.is_loopback)


def _name(name: str) -> str | None:
    return None if len(name) > _LONGEST_NAME or ".." in name else name


def _ipv6(text: str) -> str | None:
    from ipaddress import IPv6Address

    try:
        return IPv6Address(text).compressed
    except ValueError:
        return None
