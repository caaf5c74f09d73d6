"""Which addresses this client lets others name, and where its credentials may go.

A server names URLs in its challenge and its metadata, and the client then sends requests to them from inside its own
network. So an address that is not public is refused, unless the server itself was reached at that kind of address, or
the user allowed it. Two rules more: credentials travel over https, or over http to this very machine; and they stay at
the origin that they are for.

Pure: whoever calls resolves names and brings the addresses here. That leaves one gap which a rule on values cannot
close: a name may resolve differently when the request is sent. Little fits through it: plain http goes only to hosts
that are this machine by name, and over https an inner service has no certificate for the name that led there.
"""

from __future__ import annotations

import enum
import ipaddress
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address

DEFAULT_PORTS = {"http": 80, "https": 443}

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\\"<>^`{|}]|[^\x00-\x7f]")
"""Never part of a URI. Parsers disagree about what they mean, and a browser's command line may mean more by them."""

_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last label of a host that some parsers take for an IPv4 address: `2130706433`, `0x7f.1`, `127.1`."""

_METADATA_HOSTS = frozenset({"metadata", "metadata.google.internal", "instance-data", "instance-data.ec2.internal"})
_METADATA_ADDRESSES = frozenset(
    ipaddress.ip_address(address)
    for address in (
        "169.254.169.254",
        "169.254.170.2",
        "fd00:ec2::254",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
    )
)
_SHARED = ipaddress.ip_network("100.64.0.0/10")
_TRANSLATED = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::ffff:0:0:0/96"))
"""Networks whose last 32 bits are an IPv4 address: NAT64, and stateless translation."""


class Kind(enum.StrEnum):
    """What an address leads to."""

    PUBLIC = "public"
    LOOPBACK = "this machine"
    PRIVATE = "a private network"
    LINK_LOCAL = "the local link"
    METADATA = "a cloud's metadata service"
    OTHER = "no single machine"


class Place(Struct, frozen=True):
    """An http or https URL, taken apart.

    Attributes:
        url: Byte for byte what was parsed.
        scheme: `http` or `https`.
        host: Lower case, IPv6 without brackets.
        port: The port named, or the scheme's.
        path: As written, empty when there is none.
        query: As written, without `?`.
    """

    url: str
    scheme: str
    host: str
    port: int
    path: str
    query: str

    @property
    def origin(self) -> str:
        """Scheme, host and port in the form that two URLs of one origin share."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}")

    @property
    def root(self) -> str:
        """Scheme and authority byte for byte as they stand in the URL, with nothing after them."""
        end = self.url.index("://") + 3
        return self.url[: end + len(re.split(r"[/?#]", self.url[end:], maxsplit=1)[0])]


def parse(url: str) -> Place:
    """Take an http or https URL apart.

    Raises:
        ValueError: It is not one, or is written in a way that two parsers may read differently; the message ends a
            sentence that begins with the URL.
    """
    if len(url) > 8192:
        raise ValueError("is longer than 8192 characters")
    if _FORBIDDEN.search(url):
        raise ValueError("holds a character that no URL has")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"is not a URL ({error})") from error
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError("is not an http or https URL")
    if not parts.hostname:
        raise ValueError("names no host")
    if "@" in parts.netloc:
        raise ValueError("carries a user name")
    if "#" in url:
        raise ValueError("carries a fragment")
    host = parts.hostname.rstrip(".")
    if not host or "%" in host or (_NUMBER.fullmatch(host.rpartition(".")[2]) and literal(host) is None):
        raise ValueError("names a host in a way that can be read as another")
    port = DEFAULT_PORTS[parts.scheme] if port is None else port
    return Place(url, parts.scheme, host, port, parts.path, parts.query)


def same_origin(one: str, other: str) -> bool:
    """Whether two URLs have the same scheme, host and port. False when one of them is no URL."""
    try:
        return parse(one).origin == parse(other).origin
    except ValueError:
        return False


def literal(host: str) -> _Ip | None:
    """The IP address that a host is, or None when it is a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])  # a resolver's answer can name a zone
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether a host, by itself, means this machine: `localhost`, a name below it, or a loopback address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = literal(host)
    return address is not None and kind_of(address) is Kind.LOOPBACK


def kind_of(address: _Ip) -> Kind:
    """What an address leads to. One that wraps another (mapped, 6to4, Teredo, NAT64) counts as what it wraps."""
    address = _unwrapped(address)
    if address in _METADATA_ADDRESSES:
        return Kind.METADATA
    if address.is_loopback or address.is_unspecified:  # connecting to 0.0.0.0 reaches this machine
        return Kind.LOOPBACK
    if address.is_link_local:
        return Kind.LINK_LOCAL
    if address.is_multicast or address == ipaddress.IPv4Address("255.255.255.255"):
        return Kind.OTHER
    if isinstance(address, ipaddress.IPv4Address) and address in _SHARED:
        return Kind.PRIVATE
    return Kind.PUBLIC if address.is_global else Kind.PRIVATE


def _unwrapped(address: _Ip) -> _Ip:
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if any(address in network for network in _TRANSLATED):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
    if inner is None and int(address) >> 32 == 0 and int(address) > 1:  # the old IPv4-compatible form, ::127.0.0.1
        inner = ipaddress.IPv4Address(int(address))
    return inner or address


def kinds(host: str, addresses: Iterable[str]) -> set[Kind]:
    """What a host leads to, by its name and by the addresses that it resolved to."""
    if host in _METADATA_HOSTS:
        return {Kind.METADATA}
    if is_loopback(host):
        return {Kind.LOOPBACK}
    known = [literal(host), *(literal(address) for address in addresses)]
    return {kind_of(address) for address in known if address is not None}


def insecure(place: Place, *, allowed: Collection[str] = ()) -> str | None:
    """Why credentials may not be sent to a place, or None when they may.

    "All authorization server endpoints MUST be served over HTTPS"; this machine is the exception.

    Args:
        place: Where to.
        allowed: Hosts to which plain http is allowed.
    """
    if place.scheme == "https" or is_loopback(place.host) or place.host in allowed:
        return None
    return "is plain http to another machine, where everyone on the way can read credentials"


def refusal(
    place: Place, addresses: Iterable[str], *, server: Iterable[Kind] = (), allowed: Collection[str] = ()
) -> str | None:
    """Why no request goes to a place that a server named, or None when it may.

    Args:
        place: The URL named.
        addresses: What its host resolves to; empty when that is not known.
        server: What kinds of address the MCP server itself has: naming its own kind reaches nothing new. One that has
            public addresses as well is no server of an inner network, whatever else its name resolves to.
        allowed: Hosts, addresses and networks (`auth.corp.example`, `10.0.0.0/8`) that the user allows.
    """
    addresses = list(addresses)
    if place.host in allowed or _inside([place.host, *addresses], allowed):
        return None
    own = set(server)
    tolerated = {Kind.PUBLIC} if Kind.PUBLIC in own else {Kind.PUBLIC, *(own & {Kind.LOOPBACK, Kind.PRIVATE})}
    if found := sorted(kinds(place.host, addresses) - tolerated):
        return f"leads to {found[0]}"
    return None


def _inside(hosts: Iterable[str], allowed: Collection[str]) -> bool:
    """Whether every address among the hosts lies in an allowed network, and there is one."""
    networks = [network for text in allowed if (network := _network(text))]
    addresses = [address for host in hosts if (address := literal(host))]
    return bool(addresses) and all(
        any(address.version == network.version and address in network for network in networks) for address in addresses
    )


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
