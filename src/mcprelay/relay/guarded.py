"""`GuardedTool`: a tool of somebody else's server, as a model may have it. Only a `Relay` makes one.

That there is an object of this type means that the server is trusted, the definition is the pinned one, its texts are
cleaned, and whatever it answers goes through the funnel. Adapters take nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, final

from mcprelay.client.failure import unmet
from mcprelay.client.outcome import Refused
from mcprelay.errors import CallFailed, ConfigurationError, LocalFault
from mcprelay.relay import audit
from mcprelay.relay.argument import Unreadable, bound, own, read
from mcprelay.relay.budget import Ledger
from mcprelay.relay.errors import DefinitionRefused, RelayError, ResultTooLarge, TokenFailed
from mcprelay.relay.frame import Framed, Funnel
from mcprelay.relay.gate import Call, Gated, admit
from mcprelay.relay.post import Post
from mcprelay.relay.reading import Reading
from mcprelay.relay.selection import Candidate
from mcprelay.types import ToolResult

if TYPE_CHECKING:
    from mcprelay.client.outcome import Succeeded
    from mcprelay.relay.post import Standing

MAKER: Final = object()
"""Who has it may make guarded tools: this package's `ToolSet` and `Relay`."""


@final
class GuardedTool:
    """A tool behind the trust boundary. There is no public constructor.

    Attributes:
        name: The public name: legal for every provider, stable, unique in its set.
        description: The pinned description, cleaned; empty where the server gives none.
        input_schema: The pinned schema, its texts cleaned: a copy, by which no arguments are checked.
        server: The configured name of its server.
        tool: The server's own name of it: untrusted text.
        digest: Of its definition.
    """

    __slots__ = (
        "_candidate",
        "_funnel",
        "_gate",
        "_name",
        "_post",
        "_schema",
        "_standing",
        "_tool",
    )

    def __init__(
        self, maker: object, *, name: str, candidate: Candidate, post: Post, funnel: Funnel, gate: Gated | None
    ) -> None:
        if maker is not MAKER:
            raise TypeError("only a Relay makes guarded tools: await relay.tools(…)")
        self._name = name
        self._tool = candidate.definition.name
        self._schema: dict[str, Any] | None = None
        self._candidate = candidate
        self._post = post
        self._funnel = funnel
        self._gate = gate
        self._standing: Standing | None = None

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("GuardedTool has no subclasses: its type is the proof that a Relay made it")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a guarded tool cannot leave its process")

    def __repr__(self) -> str:
        return f"GuardedTool({self.name!r})"

    @property
    def name(self) -> str:
        """The public name."""
        return self._name

    @property
    def description(self) -> str:
        """The pinned description, cleaned."""
        return self._candidate.reading.presented.description

    @property
    def input_schema(self) -> dict[str, Any]:
        """A copy of the pinned schema, its texts cleaned: the same one for as long as this tool lives."""
        if self._schema is None:  # made where it is wanted: many sets are called by one adapter, or by none
            self._schema = own(self._candidate.reading.presented.schema)
        return self._schema

    @property
    def tool(self) -> str:
        """The server's own name of it: untrusted text."""
        return self._tool

    @property
    def digest(self) -> str:
        """Of its definition."""
        return self._candidate.definition.digest

    @property
    def server(self) -> str:
        """The configured name of its server."""
        return self._post.settings.name

    @property
    def is_prefixed(self) -> bool:
        """Whether the settings of its server say what its public name begins with."""
        return bool(self._post.settings.prefix)

    @property
    def reading(self) -> Reading:
        """What is known of the definition: shared by all tools that have it, and not to be changed."""
        return self._candidate.reading

    async def __call__(self, /, *positionals: Any, **keywords: Any) -> Framed:
        """Call the tool from a program: with keywords, one mapping, or positionals in the order of `required`.

        Returns:
            As `run`.

        Raises:
            ConfigurationError: The arguments cannot be put together; otherwise as `run`.
        """
        return await self.run(bound(positionals, keywords, required=self._candidate.reading.required, of=self._name))

    async def run(self, arguments: Mapping[str, Any] | str | None = None) -> Framed:
        """Call the tool with what a model gave.

        Whatever the server or the model does wrong comes back as framed words for the model. In this order: trust, the
        pin again, the gate, the arguments against the pinned schema, then the request.

        Args:
            arguments: A mapping, or the JSON text of one.

        Raises:
            ConfigurationError: A setting is wrong, or the relay is closed.
            NotTrusted: The server may not be used.
            LockUnreadable: The lock file cannot be read any more, or is gone.
            LocalFault: The relay is open in another event loop.
        """
        began = time.monotonic()
        try:
            self._post.require(self._tool)
            ready = await self._ready(arguments)
            if isinstance(ready, tuple):
                standing, final = ready
                try:  # here and not one level below: each level is gone through again whenever the call waits
                    station = standing.station
                    call = station.call(self._tool, final, spent=standing.spent)
                    asking = station.askers.answering
                    outcome = await (station.askers.charged(self._funnel.ledger, call) if asking else call)
                except LocalFault:  # the program's own doing: no model can do anything about it
                    raise
                except Exception as error:  # noqa: BLE001 - whatever it is, the model gets a sentence and the program its log
                    framed = self._failed(error)
                else:
                    framed = self._shown(outcome)
            else:
                framed = ready
        except BaseException as error:
            self._record(audit.raised(error), began)
            raise
        if audit.wanted():
            self._record(audit.verdict(framed), began, size=framed.size)
        return framed

    async def _ready(self, arguments: Mapping[str, Any] | str | None) -> Framed | tuple[Standing, dict[str, Any]]:
        """Where the call goes and with which arguments; or, if it is not made, what is said instead."""
        try:
            self._funnel.require()
            standing = self._standing
            if standing is None or not self._post.stands(standing):
                standing = await self._looked()
            final = read(arguments)
            if self._gate is not None:
                asked_at = self._post.clock()
                final = own(final)
                denied = await self._denied(final, self._gate)
                if denied is not None:
                    return denied
                # A person may have taken longer than a server takes to change a definition, or than a token lasts.
                self._post.require(self._tool)
                slow = self._post.clock() - asked_at > _TOKEN_LASTS
                standing = await self._looked(at=None if slow else standing)
        except (RelayError, Unreadable) as error:
            return self._refused(error)
        wrong = self._candidate.reading.validator.check(final)
        if wrong:
            return self._funnel.complaint(
                "The arguments do not fit the tool's schema, so nothing was sent. Correct them and call again:",
                "\n".join(violation.message for violation in wrong),
                tool=self._name,
            )
        return standing, final

    async def _looked(self, *, at: Standing | None = None) -> Standing:
        """Look whether the tool is still what was offered; see `Post.still`."""
        candidate = self._candidate
        self._standing = standing = await self._post.still(
            candidate.definition, pinned=candidate.pinned, before=self._standing, at=at
        )
        return standing

    def _refused(self, error: RelayError | Unreadable) -> Framed:
        """What the model is told of a call that is not made.

        Raises:
            RelayError: It is for the program: a setting, the declaration or the lock is wrong.
        """
        if isinstance(error, Unreadable):
            return self._funnel.refusal(str(error), code="arguments", tool=self._name)
        why = ""
        if isinstance(error, ResultTooLarge):
            spent = f"{error.limit} allows {error.allowed:,}"
            why = f"Nothing more of this tool can be shown in this run ({spent}), so the call was not made."
            sentence = (
                f"nothing more of the server {self.server!r} can be shown in this run ({spent}), so the call was not"
                f" made; another set, from tools(), has an account of its own, or raise {error.limit}"
            )
            error.args = (sentence,)
        elif isinstance(error, DefinitionRefused):
            why = error.withdrawn
        if why:
            return self._funnel.refusal(f"{why} Go on without it.", code=error.code, tool=self._name, cause=error)
        if isinstance(error, ConfigurationError) or error.code in _RAISED:
            raise error
        return self._funnel.failure(_cause(error), tool=self._name, cause=error)

    async def _denied(self, final: dict[str, Any], gated: Gated) -> Framed | None:
        """What the model is told if the gate does not let the call pass."""
        call = Call(
            server=self.server,
            tool=self.tool,
            name=self.name,
            arguments=final,
            digest=self.digest,
            principal=self._post.principal,
        )
        try:
            await admit(gated.gate, call, timeout=gated.timeout)
        except RelayError as denied:
            return self._funnel.failure(denied, tool=self._name)
        return None

    def _shown(self, outcome: Succeeded[Any] | Refused) -> Framed:
        """What the server answered, through the funnel."""
        content: Any = outcome.content  # an `Unknown` block becomes a note
        answer = ToolResult(content=content, structured_content=outcome.structured, is_error=type(outcome) is Refused)
        return self._funnel.result(answer, tool=self._name, narrower=self._candidate.reading.narrower)

    def _failed(self, error: Exception) -> Framed:
        """What is said of a call that has no result."""
        if isinstance(error, ConfigurationError):  # the client's own: a value that no message or header can carry
            words = "The arguments cannot be sent as they are. Nothing was sent."
            return self._funnel.refusal(words, code="arguments", tool=self._name, cause=error)
        cause = self._post.failed(error)
        return self._funnel.failure(error, tool=self._name, narrower=self._candidate.reading.narrower, cause=cause)

    def _record(self, verdict: str, began: float, **sizes: int) -> None:
        """Leave a record of a call."""
        audit.record(
            "call",
            server=self.server,
            tool=self.tool,
            verdict=verdict,
            principal=self._post.principal,
            digest=self.digest,
            **sizes,
            milliseconds=int((time.monotonic() - began) * 1000),
        )

    def same_as(self, other: GuardedTool) -> bool:
        """Whether a call of one is a call of the other."""
        return self.digest == other.digest and self._gate == other._gate and self._post.calls_like(other._post)

    def moved(self, name: str, ledger: Ledger) -> GuardedTool:
        """The same tool in another set, on that set's account."""
        funnel = self._post.funnel(ledger)
        return GuardedTool(MAKER, name=name, candidate=self._candidate, post=self._post, funnel=funnel, gate=self._gate)


_TOKEN_LASTS = 10.0
"""Seconds that a gate may take before the token's function is asked again: one call asks it once otherwise."""
_RAISED = frozenset(["lock", "not_trusted", "not_trusted_undeclared", "not_trusted_empty"])


def _cause(error: RelayError) -> Exception:
    """What the funnel tells of an error on the way to a call: the connection's own, by which nothing of it was sent."""
    cause = error.__cause__
    return unmet(cause) if isinstance(cause, CallFailed) and not isinstance(error, TokenFailed) else error
