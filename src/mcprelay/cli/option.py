"""The options that every command which calls a server has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from mcprelay.types import LogLevel


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """How the server is called, and how the answer is printed."""

    json: Annotated[bool, Parameter(negative="", show_default=False)] = False
    """Print the answer as JSON, whole, as the server gave it. Errors too."""

    timeout: float | None = None
    """Seconds that a call may take, connecting included; 30 unless given."""

    token: Annotated[str | None, Parameter(env_var="MCPRELAY_TOKEN")] = None
    """A bearer token for a server with a URL. In the environment it is seen by fewer than on the command line."""

    header: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = ()
    """A header for every request to a server with a URL, as `"Name: value"`. May be repeated."""

    env: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = ()
    """A variable for a server that is a command, as `NAME=value`; `NAME` alone passes ours on. May be repeated."""

    log: LogLevel | None = None
    """Show what the server logs, from this level on."""

    revision: str | None = None
    """The only protocol revision to speak."""
