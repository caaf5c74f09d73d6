"""What the relay refuses, and the stable code of each refusal.

    MCPRelayError
    └── RelayError                    `code` is stable, the sentence is not
        ├── SettingWrong              configuration             a setting is wrong; names file, key and what is right
        ├── NotTrusted                                          a server may not be used; nothing was sent
        │   ├── TrustUndeclared       not_trusted_undeclared    nobody said what of it may be used
        │   └── TrustEmpty            not_trusted_empty         what may be used of it was said, and it is nothing
        ├── DefinitionRefused         definition                a definition cannot be used, or cannot be listed
        │   └── DefinitionChanged     definition_changed        a definition is not the one that was reviewed
        ├── LockUnreadable            lock                      the lock file cannot be read as one
        ├── Unauthorized              authorization             the server does not accept the credentials (401)
        ├── TokenFailed               token                     the function for a token gave none; nothing was sent
        ├── ServerUnreachable         transport                 no answer came from the server
        ├── CallDenied                denied                    a gate said no, or a person did, or nobody answered
        ├── CallRefused               refused                   a call was not made, or what came of it is not shown;
        │                                                       on the error itself the code is the reason
        ├── ResultTooLarge            too_large                 a limit of size was exceeded; nothing was cut
        └── ToolFailed                tool_failed               the server answered that the call failed

The sentences hold local words only. What a server wrote is in attributes, and reaches a model through the funnel alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import mcprelay.relay
from mcprelay.errors import ConfigurationError, MCPRelayError


class RelayError(MCPRelayError):
    """The root of what the relay refuses.

    Attributes:
        code: A stable name for the kind of refusal.
        server: The configured name of the server that it is about, or None.
        framed: What a model would read of it, where `Framed.require` raised it, else None.
    """

    code: ClassVar[str] = "relay"
    framed: mcprelay.relay.Framed | None = None

    def __init__(self, message: str, *, server: str | None = None) -> None:
        super().__init__(message)
        self.server = server

    def __str__(self) -> str:
        """The sentence, and before it what was asked for where this is what a call came to."""
        asked = "" if self.framed is None else self.framed.asked
        return f"{asked}: {super().__str__()}" if asked else super().__str__()


class SettingWrong(RelayError, ConfigurationError):
    """Settings are wrong.

    Attributes:
        problems: One sentence for each mistake, with file, key and what would be right.
    """

    code = "configuration"

    def __init__(self, problems: Sequence[str] | str, *, server: str | None = None) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems), server=server)


class NotTrusted(RelayError):
    """A server may not be used as configured. Refused before a byte was sent or a process started."""

    code = "not_trusted"


class TrustUndeclared(NotTrusted):
    """Nobody said what of this server may be used."""

    code = "not_trusted_undeclared"


class TrustEmpty(NotTrusted):
    """What may be used of this server was said, and it is nothing."""

    code = "not_trusted_empty"


class DefinitionRefused(RelayError):
    """A definition cannot be used, or the definitions cannot be listed. The cause, if any, is `__cause__`.

    Attributes:
        withdrawn: What a model is told that calls a tool for which this came up since it was offered.
    """

    code = "definition"
    withdrawn = "This tool cannot be used as it is defined now, so this application has withdrawn it."

    def __init__(self, message: str, *, server: str | None = None, withdrawn: str | None = None) -> None:
        super().__init__(message, server=server)
        if withdrawn is not None:
            self.withdrawn = withdrawn


class DefinitionChanged(DefinitionRefused):
    """A definition is not the one that was reviewed.

    Attributes:
        tool: The tool's name: untrusted text.
        pinned: The digest that was reviewed.
        actual: The digest of what the server offers now.
        changes: Field by field; empty where only a digest was pinned. Untrusted text.
    """

    code = "definition_changed"
    withdrawn = "This tool is not the one that was reviewed, so this application has withdrawn it."

    def __init__(
        self,
        message: str,
        *,
        server: str,
        tool: str,
        pinned: str,
        actual: str,
        changes: Sequence[mcprelay.relay.FieldChange] = (),
    ) -> None:
        super().__init__(message, server=server)
        self.tool = tool
        self.pinned = pinned
        self.actual = actual
        self.changes = tuple(changes)


class LockUnreadable(RelayError):
    """The lock file cannot be read as one. `line` is where, or None."""

    code = "lock"

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class Unauthorized(RelayError):
    """The server does not accept the credentials, or they do not reach. `__cause__` has the challenge.

    Attributes:
        scopes: What the server says that it takes, where it says so: untrusted words, though each is a scope by its
            form. A traceback shows them below the sentence.
    """

    code = "authorization"

    def __init__(self, message: str, *, server: str | None = None, scopes: Sequence[str] = ()) -> None:
        super().__init__(message, server=server)
        self.scopes = tuple(scopes)
        if scopes:
            self.add_note(f"the server says that it takes the scopes: {' '.join(scopes)}")


class TokenFailed(RelayError):
    """The application's function for a token raised (`__cause__`), took too long, or gave none. Nothing was sent."""

    code = "token"


class ServerUnreachable(RelayError):
    """No answer came from the server. `__cause__` says whether the request may have been sent.

    Attributes:
        stderr: The end of what the server's process wrote to its standard error, raw. It is for whoever runs the
            application, and never in the message.
    """

    code = "transport"

    def __init__(self, message: str, *, server: str | None = None, stderr: str = "") -> None:
        super().__init__(message, server=server)
        self.stderr = stderr


class CallDenied(RelayError):
    """A call may not be made. Nothing was sent.

    Attributes:
        reason: Why, in words of this application.
        gate: What said no.
    """

    code = "denied"

    def __init__(self, reason: str, *, server: str, gate: str) -> None:
        super().__init__(f"the call to the server {server!r} is not allowed by {gate}: {reason}", server=server)
        self.reason = reason
        self.gate = gate


class CallRefused(RelayError):
    """A call was not made, or what came of it is not shown, for a reason that has no class of its own.

    Attributes:
        code: `arguments` (they are no object, do not fit the schema, or cannot be sent), `unknown_tool`,
            `needs_input` (the server asks something, and nobody answers), `withheld` (a filter or a counter failed) or
            `failed` (something in this application did).
    """

    code = "refused"

    def __init__(self, message: str, *, code: str, server: str | None = None) -> None:
        super().__init__(message, server=server)
        self.code = code  # type: ignore[misc]  # one class for several reasons, as the attribute says


_RUNS = {
    "run": "with it, all answers of this run come to ",
    "server": "with it, all answers of this server in this run come to ",
}
"""What a limit counts that is none of one answer."""


class ResultTooLarge(RelayError):
    """Something is too large to be shown. Nothing of it is, since a part could pass for the whole.

    Attributes:
        limit: The name of the setting.
        allowed: Its value.
        of: The beginning of a sentence on `actual`, where it is of more than this answer.
        actual: What was met: exact, or what had been counted when the limit was passed. Of a limit of a run
            (`run_…`, `server_…`) it is all that the run would have come to with this answer.
    """

    code = "too_large"

    def __init__(self, limit: str, *, allowed: int, actual: int, server: str | None = None) -> None:
        self.of = _RUNS.get(limit.partition("_")[0], "")
        whose = "" if server is None else f"an answer of the server {server!r} is too large: "
        super().__init__(
            f"{whose}{self.of}{actual:,} where {limit}={allowed:,} allows less; raise {limit} to allow more",
            server=server,
        )
        self.limit = limit
        self.allowed = allowed
        self.actual = actual


class ToolFailed(RelayError):
    """The server answered that the call failed: the tool ran and said so, or there was a JSON-RPC error.

    Raised by `Framed.require` alone. `framed` has what was answered as a model would read it; raw it is in
    `framed.result`, or in `__cause__` if it was a JSON-RPC error.
    """

    code = "tool_failed"
