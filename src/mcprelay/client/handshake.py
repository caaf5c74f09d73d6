"""How a client learns whom it speaks with: `server/discover`, or the handshake of the older era.

One link, one server; which of the two is right is `probe`'s table. Knows nothing of a wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from mcprelay.client import failure
from mcprelay.client.call import Call
from mcprelay.core import probe
from mcprelay.types import DiscoverResult, Implementation, InitializeResult
from mcprelay.wire import jsonrpc
from mcprelay.wire.params import SERVER_INFO

if TYPE_CHECKING:
    from mcprelay.client.link import Link
    from mcprelay.client.party import Party
    from mcprelay.core.probe import Next
    from mcprelay.revisions import Revision

DISCOVER = "server/discover"
INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"

_encode = msgspec.json.Encoder().encode
_decode_discover = msgspec.json.Decoder(DiscoverResult).decode
_decode_initialize = msgspec.json.Decoder(InitializeResult).decode


class _Info(Struct):
    meta: dict[str, Raw] | None = msgspec.field(default=None, name="_meta")


_decode_meta = msgspec.json.Decoder(_Info).decode
_decode_implementation = msgspec.json.Decoder(Implementation).decode


def discover_call(party: Party, *, deadline: float) -> Call:
    """The `server/discover` request of a client that does not know its server."""
    return Call(DISCOVER, deadline=deadline, bound=("connect_timeout", party.settings.connect_timeout))


def initialize_call(party: Party, revision: Revision, *, deadline: float) -> Call:
    """The `initialize` request that proposes a revision."""
    params = {
        "protocolVersion": revision.name,
        "capabilities": party.capabilities(revision),
        "clientInfo": revision.shape(party.info),
    }
    bound = ("connect_timeout", party.settings.connect_timeout)
    return Call(INITIALIZE, _encode(params)[1:-1], deadline=deadline, bound=bound, patient=True)


def agree(link: Link, result: Raw, call: Call) -> Revision:
    """Take the server's `InitializeResult`.

    Raises:
        ResponseInvalid: It is not one.
        RevisionUnsupported: It names a revision that we do not speak.
    """
    try:
        initialized = _decode_initialize(result)
    except msgspec.DecodeError as error:
        raise failure.invalid(call, f"the answer is not what it should be: {error}", bytes(result)) from None
    face = link.face
    face.info = initialized.server_info
    face.capabilities = initialized.capabilities
    face.instructions = initialized.instructions
    face.supported = (initialized.protocol_version,)
    step = probe.after_initialize(initialized.protocol_version, offered=link.party.offered)
    if step.revision is None:
        raise failure.unsupported(call, step.supported, [revision.name for revision in link.party.offered])
    speak(link, step.revision)
    return step.revision


def discovered(link: Link, result: Raw, call: Call) -> Next:
    """Take the server's `DiscoverResult`, and say what follows from it.

    Raises:
        ResponseInvalid: It is not one.
    """
    try:
        found = _decode_discover(result)
    except msgspec.DecodeError as error:
        raise failure.invalid(call, f"the answer is not what it should be: {error}", bytes(result)) from None
    face = link.face
    face.capabilities = found.capabilities
    face.instructions = found.instructions
    face.supported = found.supported_versions
    introduce(link, result)
    return probe.after_discover(found.supported_versions, offered=link.party.offered)


def introduce(link: Link, result: Raw) -> None:
    """Take the server's name out of a result's `_meta`, if it is there."""
    try:
        info = (_decode_meta(result).meta or {}).get(SERVER_INFO)
        if info is not None:
            link.face.info = _decode_implementation(info)
    except msgspec.DecodeError:
        link.unreadable += 1


def introduce_by(link: Link, meta: dict[str, Any]) -> None:
    """The same, out of `_meta` that is decoded already."""
    if SERVER_INFO in meta:
        try:
            link.face.info = msgspec.convert(meta[SERVER_INFO], Implementation)
        except msgspec.ValidationError:
            link.unreadable += 1


def speak(link: Link, revision: Revision) -> None:
    """This is the revision from now on."""
    link.revision = revision
    link.face.revision = revision.name
    link.party.met(revision.era)


def initialized_notice() -> bytes:
    """What tells the server that the handshake is done."""
    return jsonrpc.notification(INITIALIZED)


def set_level(party: Party, link: Link) -> Call | None:
    """The request that asks for log messages in the handshake era, where somebody listens and the server sends them."""
    capabilities = link.face.capabilities
    if party.log_level is None or capabilities is None or capabilities.logging is None:
        return None
    params: dict[str, Any] = {"level": party.log_level}
    timeout = link.settings.request_timeout
    bound = ("request_timeout", timeout)
    return Call("logging/setLevel", _encode(params)[1:-1], deadline=link.loop.time() + timeout, bound=bound)
