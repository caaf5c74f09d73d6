"""How a command ends: its exit code, and one sentence for what went wrong.

Knows the exception tree. The codes are documented in the help of the command, and do not change.
"""

from __future__ import annotations

import enum
import os
import sys
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcprelay.cli.wording import reworded
from mcprelay.errors import (
    AuthorizationRequired,
    CallFailed,
    ConfigurationError,
    Evidence,
    LimitExceeded,
    MCPRelayError,
    NeedsInput,
    ToolError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_LAST_LINES = 10


class Exit(enum.IntEnum):
    """Exit codes. A script may repeat what ended with `UNREACHED`; what ended with `UNKNOWN` may have run."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    UNREACHED = 3
    UNKNOWN = 4
    ASKED = 5
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """What the code says."""
        return _MEANINGS[self]


_MEANINGS = {
    Exit.DONE: "it worked",
    Exit.REFUSED: "the server, or the tool, said no",
    Exit.USAGE: "the command, a file or a setting is wrong",
    Exit.UNREACHED: "there was no connection; nothing was sent",
    Exit.UNKNOWN: "no answer says what came of it; it may have been carried out",
    Exit.ASKED: "the server asked something, and nobody was there to answer",
    Exit.INTERRUPTED: "it was interrupted",
}


class Failure(Struct, frozen=True):
    """What went wrong.

    Attributes:
        code: How the process ends.
        sentence: For a person.
        facts: For a program.
    """

    code: Exit
    sentence: str
    facts: dict[str, Any]


def ended(work: Callable[[], Any], *, as_json: bool, login_helps: bool = True) -> Exit:
    """Do the work of a command, and say how it ended. With MCPRELAY_DEBUG set, failures are raised as they are."""
    try:
        outcome = work()
        sys.stdout.flush()
        return outcome if isinstance(outcome, Exit) else Exit.DONE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # whoever read the answer has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return Exit.DONE
    except Exception as error:
        if os.environ.get("MCPRELAY_DEBUG"):
            raise
        from mcprelay.cli import show

        failure = explain(error, login_helps=login_helps)
        show.failed(failure, json=as_json)
        return failure.code


def explain(error: Exception, *, login_helps: bool = True) -> Failure:
    """What an exception of the package means for whoever ran the command.

    Args:
        error: What the command ended with.
        login_helps: Whether logging in is worth a try: not when that is what failed.
    """
    said = str(error) if isinstance(error, ToolError) else reworded(str(error))
    facts: dict[str, Any] = {"kind": type(error).__name__, "message": said}
    if isinstance(error, CallFailed):
        facts |= {"evidence": str(error.evidence), "may_have_run": error.may_have_run}
        known = {name: getattr(error, name, None) for name in ("status", "code", "exit_code")}
        facts |= {name: value for name, value in known.items() if value is not None}
    return Failure(_code(error), _sentence(error, said, login_helps=login_helps), facts)


def _code(error: Exception) -> Exit:
    if isinstance(error, ConfigurationError) or _is_unreadable(error):
        return Exit.USAGE
    if isinstance(error, NeedsInput):
        return Exit.ASKED
    if isinstance(error, CallFailed):
        if error.evidence is Evidence.NOT_SENT:
            return Exit.UNREACHED
        return Exit.UNKNOWN if error.may_have_run else Exit.REFUSED
    if isinstance(error, MCPRelayError):
        return Exit.REFUSED
    return Exit.USAGE if isinstance(error, OSError) else Exit.REFUSED


def _sentence(error: Exception, said: str, *, login_helps: bool) -> str:
    if isinstance(error, ToolError):
        return f"the tool said no: {said}"
    if isinstance(error, LimitExceeded) and isinstance(error, CallFailed):
        from mcprelay.relay.budget import NAMES

        known = NAMES.get(error.limit)
        return said if known is None else f"{said} For a server in mcprelay.toml it is limits.{known}."
    if login_helps and isinstance(error, AuthorizationRequired) and "mcprelay login" not in said:
        told = said.removesuffix(".")
        return f"{told}. `mcprelay login TARGET` gets a token; --token, or token in mcprelay.toml, gives one"
    if isinstance(error, CallFailed) and error.stderr.strip():
        from mcprelay.client.failure import last_words

        said = said.replace(last_words(error.stderr, error.exit_code), "")  # they follow, with more of them
        last = error.stderr.rstrip().splitlines()[-_LAST_LINES:]
        return "\n    ".join([f"{said}. The server's last words:", *last])
    if isinstance(error, CallFailed) and _is_untrusted(error):
        return f"{said}. ca_file of a server in mcprelay.toml names the authorities to trust instead of the system's"
    if isinstance(error, MCPRelayError):
        return said
    return f"{type(error).__name__}: {error}"


def _is_unreadable(error: BaseException) -> bool:
    """Whether the lock file is what is wrong."""
    from mcprelay.relay.errors import LockUnreadable

    return isinstance(error, LockUnreadable)


def _is_untrusted(error: BaseException) -> bool:
    from mcprelay.client.certificate import UNTRUSTED
    from mcprelay.relay.failure import CERTIFICATE, system_reason

    return system_reason(error).startswith(f"{CERTIFICATE} {UNTRUSTED.what}")
