"""What a client says of itself with every request, encoded once."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, ParamSpec, cast

import msgspec

from mcprelay.client.handler import ELICIT, ROOTS, SAMPLE
from mcprelay.revisions import NEWEST, Era
from mcprelay.types import ClientCapabilities
from mcprelay.wire.params import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from mcprelay.client.handler import Handlers
    from mcprelay.client.progress import Hearing, LogMessage
    from mcprelay.client.setting import Settings
    from mcprelay.revisions import Revision
    from mcprelay.types import Implementation, LogLevel

_P = ParamSpec("_P")

_encode = msgspec.json.Encoder().encode
LOG_LEVEL: LogLevel = "info"
"""From which level on log messages are asked for, where somebody hears them and nobody says."""


class Party:
    """A client as its server meets it.

    Attributes:
        info: Name and version.
        handlers: Who answers the server's questions.
        settings: The limits.
        offered: The revisions that may be spoken, the newest first.
        on_log: Who hears log messages that belong to no call.
        log_level: From which level on they are asked for; None where nobody hears them, or nobody asks for them.
        changed: Told of each change notice: its method, and the URI where it has one.
        met: Told of the era that the server turned out to be of.
        leaving: Told of a connection that failed, and whose end nobody waited for.
    """

    def __init__(
        self,
        *,
        info: Implementation,
        handlers: Handlers,
        settings: Settings,
        offered: Sequence[Revision],
        capabilities: ClientCapabilities | None,
        changed: Callable[[str, str | None], None],
        on_log: Hearing[LogMessage] | None = None,
        log_level: LogLevel | Literal["unasked"] | None = None,
    ) -> None:
        self.info = info
        self.handlers = handlers
        self.settings = settings
        self.offered = tuple(offered)
        self.changed = changed
        self.on_log = on_log
        heard = on_log is not None and log_level != "unasked"
        self.log_level: LogLevel | None = cast("LogLevel", log_level or LOG_LEVEL) if heard else None
        self.met: Callable[[Era], None] = _ignore
        self.leaving: Callable[[asyncio.Future[None]], None] = _ignore
        self._capabilities = capabilities
        self.preambles: dict[str, bytes] = {}

    @property
    def hears(self) -> bool:
        """Whether there is anything that a server could say outside of a call, in the handshake era."""
        return self.on_log is not None or self.handlers.any

    @property
    def manner(self) -> list[Any]:
        """What decides, beside how a server is reached, what this client makes of its answers, as JSON can carry it."""
        offered = [revision.name for revision in self.offered]
        settings = self.settings
        return [offered, self.info, self.capabilities(NEWEST), settings.depth, settings.response_values]

    def preamble(self, revision: Revision) -> bytes:
        """The members that `_meta` of every request has in a revision (basic, "Per-request protocol fields")."""
        self.preambles[revision.name] = preamble = self._preamble(revision)
        return preamble

    def _preamble(self, revision: Revision) -> bytes:
        if revision.era is not Era.STATELESS:
            return b""
        members = {
            PROTOCOL_VERSION: revision.name,
            CLIENT_INFO: revision.shape(self.info),
            CLIENT_CAPABILITIES: self.capabilities(revision),
        }
        return _encode(members)[1:-1]

    def capabilities(self, revision: Revision) -> ClientCapabilities:
        """What the server may ask for: what the user declared, or what the handlers answer.

        In the stateless era a form is always declared, because a question that no handler answers goes to the caller.
        """
        declared = self._capabilities
        if declared is None:
            declared = self.handlers.capabilities(asking=revision.era is Era.STATELESS)
        shaped: ClientCapabilities = revision.shape(declared)
        return shaped

    def undeclared(self, method: str, params: Mapping[str, Any], revision: Revision) -> str | None:
        """The capability that a question needs and that was not declared, with a dot where only a part of it lacks.

        A server asks for nothing else (client/elicitation and client/sampling, "Capabilities").
        """
        declared = self.capabilities(revision)
        kind = {ELICIT: declared.elicitation, SAMPLE: declared.sampling, ROOTS: declared.roots}.get(method)
        if kind is None:
            return method.partition("/")[0]
        if method == ELICIT:
            mode = params.get("mode", "form")
            known = mode in ("form", "url")  # any other is malformed, which is said elsewhere
            return f"elicitation.{mode}" if known and mode not in (kind or ("form",)) else None
        tools = method == SAMPLE and (params.get("tools") is not None or params.get("toolChoice") is not None)
        return "sampling.tools" if tools and "tools" not in kind else None


def weakly(method: Callable[_P, None]) -> Callable[_P, None]:
    """A bound method that does not keep its object; once that is gone, nothing happens.

    What is told of a party outlives whoever listens: a link is held by its loop, and would keep a client that was
    dropped.
    """
    held = weakref.WeakMethod(method)

    def tell(*args: _P.args, **kwargs: _P.kwargs) -> None:
        if (alive := held()) is not None:
            alive(*args, **kwargs)

    return tell


def _ignore(_: object) -> None:
    """Nobody wants to know."""
