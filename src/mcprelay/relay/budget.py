"""How much of other people's data a model is given: bounds on one result, and accounts that run over many.

Bounds are refusals, never cuts. An account is asked before anything is shown, and what is refused is not spent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from mcprelay.client.setting import DEFAULTS as CLIENT
from mcprelay.relay import given
from mcprelay.relay.errors import ResultTooLarge
from mcprelay.wire.jsonrpc import DEPTH
from mcprelay.wire.schema import SchemaLimits
from mcprelay.wire.spelling import Spelled

MIB = 1 << 20


class Limits(Struct, metaclass=Spelled, frozen=True, kw_only=True):
    """Bounds, each a setting of `[limits]` or of a server's own `limits`. None is no bound.

    Attributes:
        result_bytes: Text of one result, in UTF-8.
        result_tokens: Text of one result as framed, by the counter that the application supplies.
        result_blocks: Content blocks of one result.
        media_bytes: One picture, sound or file, decoded.
        media_pixels: One picture, unpacked: the largest size that it states.
        result_media_bytes: All of them in one result.
        media_steps: Looks that it may take to find media that the text of one result repeats.
        server_bytes: Text, and media as they are decoded, of one server within one run.
        server_tokens: Its text in tokens.
        run_bytes: Text and media of all servers within one run.
        run_tokens: Their text in tokens.
        definition_bytes: One tool's definition as JSON, without what no model reads, as it comes and as it is pinned.
        tools: Tools of one server.
        tools_bytes: What all that are offered of one server take in memory, their patterns compiled, as estimated.
        tools_work: What it takes to rewrite the schemas of all that are offered of one server for a provider, counted:
            one for each value in them, and 32 for each reference.
        calls: Calls to one server at once; more wait for their turn.
        message_bytes: One message of the server on the wire, and all pages of a list; what is longer is refused while
            it comes.
        message_values: How many values a message may hold. Each takes some hundred bytes once it is read.
        message_depth: How deep a message may nest. In a list, a definition that does costs itself alone.
        list_pages: Pages of a list.
        list_restarts: How often a list is begun again because it changed while it was read.
        cursor_bytes: The cursor of a page.
        input_rounds: How often one call may be answered with questions.
        input_requests: Questions of one round.
        concurrent_requests: Questions of the server that are worked on at once, in a session.
        pending_calls: Requests of any kind that wait for an answer at once.
        pending_events: Different changes that wait to be heard.
        pending_messages: Progress and log messages that wait to be heard; of more, older ones are dropped.
        refusal_bytes: Refusals, and answers to pings, that wait until the server takes them; of more, those that come
            are dropped.
        resumptions: How often in a row a stream is resumed without anything new.
        connections: HTTP connections to the server at once, for one principal.
        schema_bytes, schema_nodes, schema_depth, schema_patterns, schema_pattern_bytes, schema_work: See
            `SchemaLimits`.

    Raises:
        SettingWrong: One of them is no whole number of at least 1.
    """

    result_bytes: int = 262_144
    result_tokens: int | None = None
    result_blocks: int = 256
    media_bytes: int = 5 * MIB
    media_pixels: int = 64_000_000
    result_media_bytes: int = 20 * MIB
    media_steps: int = 1_000_000
    server_bytes: int | None = None
    server_tokens: int | None = None
    run_bytes: int | None = None
    run_tokens: int | None = None
    definition_bytes: int = 262_144
    tools: int = 1_000
    tools_bytes: int = 128 * MIB
    tools_work: int = 250_000
    calls: int = 32
    message_bytes: int = 64 * MIB
    message_values: int = 1_000_000
    message_depth: int = DEPTH
    list_pages: int = CLIENT.list_pages
    list_restarts: int = CLIENT.list_restarts
    cursor_bytes: int = CLIENT.cursor_bytes
    input_rounds: int = CLIENT.input_rounds
    input_requests: int = CLIENT.input_requests
    concurrent_requests: int = CLIENT.concurrent_requests
    pending_calls: int = CLIENT.pending_calls
    pending_events: int = CLIENT.pending_events
    pending_messages: int = CLIENT.pending_messages
    refusal_bytes: int = CLIENT.refusal_bytes
    resumptions: int = CLIENT.resumptions
    connections: int = CLIENT.connections
    schema_bytes: int = 262_144
    schema_nodes: int = 20_000
    schema_depth: int = 64
    schema_patterns: int = 256
    schema_pattern_bytes: int = 8 * MIB
    schema_work: int = 2_000_000

    def __post_init__(self) -> None:
        for name, default in zip(self.__struct_fields__, self.__struct_defaults__, strict=True):
            value = getattr(self, name)
            if value is not None or default is not None:
                given.whole(name, value)

    @property
    def in_tokens(self) -> tuple[str, ...]:
        """The limits that only a counter of tokens can hold somebody to."""
        names = ("result_tokens", "server_tokens", "run_tokens")
        return tuple(name for name in names if getattr(self, name) is not None)

    @property
    def is_budgeted(self) -> bool:
        """Whether a run has any budget."""
        return not (self.server_bytes is self.run_bytes is self.server_tokens is self.run_tokens is None)

    @property
    def schema(self) -> SchemaLimits:
        """The bounds on a schema."""
        own = asdict(self)
        return SchemaLimits(**{name: own[name] for name in own if name.startswith("schema_")})

    @property
    def client(self) -> dict[str, Any]:
        """The bounds on what a client reads, by its own names."""
        return {theirs: getattr(self, ours) for theirs, ours in NAMES.items()}


def over(limit: str, allowed: int) -> str:
    """What ends a sentence on a definition that is over a limit."""
    return f"{limit}={allowed:,}; raise {limit} to allow more"


NAMES = {
    "response_bytes": "message_bytes",
    "response_values": "message_values",
    "depth": "message_depth",
    "list_bytes": "message_bytes",
    "list_items": "tools",
    **{name: name for name in CLIENT.__struct_fields__ if name in Limits.__struct_fields__},
}
"""What each limit of a client is called here."""


class Ledger:
    """The account of one run: what each server, and all of them together, have put before the model."""

    def __init__(self) -> None:
        self._servers: dict[str, tuple[int, int]] = {}

    def spend(self, server: str, *, size: int, tokens: int | None, limits: Limits) -> None:
        """Take `size` bytes and `tokens` from the account, all or nothing.

        Raises:
            ResultTooLarge: A budget of the run would be exceeded; nothing was taken.
        """
        if limits.is_budgeted:
            self.require(server, size=size, tokens=tokens, limits=limits)
        before = self._servers.get(server, (0, 0))
        self._servers[server] = (before[0] + size, before[1] + (tokens or 0))

    def require(self, server: str, *, size: int, tokens: int | None, limits: Limits) -> None:
        """See that so much could be taken.

        Raises:
            ResultTooLarge: As `spend`.
        """
        more = tokens or 0
        of_server, of_run = self.spent(server), self.spent()
        _within("server_bytes", limits.server_bytes, of_server[0] + size, server)
        _within("run_bytes", limits.run_bytes, of_run[0] + size, server)
        _within("server_tokens", limits.server_tokens, of_server[1] + more, server)
        _within("run_tokens", limits.run_tokens, of_run[1] + more, server)

    def spent(self, server: str | None = None) -> tuple[int, int]:
        """Bytes and tokens so far, of one server or of the whole run."""
        if server is not None:
            return self._servers.get(server, (0, 0))
        sizes, tokens = zip(*self._servers.values(), strict=True) if self._servers else ((), ())
        return sum(sizes), sum(tokens)


class Joint(Ledger):
    """Several accounts that pay for the same text, each of them for all of it, or none of them for anything."""

    def __init__(self, ledgers: Iterable[Ledger]) -> None:
        super().__init__()
        self._ledgers = tuple(ledgers)

    def require(self, server: str, *, size: int, tokens: int | None, limits: Limits) -> None:
        """As `Ledger.require`, of each of them."""
        for ledger in self._ledgers:
            ledger.require(server, size=size, tokens=tokens, limits=limits)

    def spend(self, server: str, *, size: int, tokens: int | None, limits: Limits) -> None:
        """As `Ledger.spend`, from each of them."""
        self.require(server, size=size, tokens=tokens, limits=limits)
        for ledger in self._ledgers:
            ledger.spend(server, size=size, tokens=tokens, limits=limits)


def _within(limit: str, allowed: int | None, actual: int, server: str) -> None:
    if allowed is not None and actual > allowed:
        raise ResultTooLarge(limit, allowed=allowed, actual=actual, server=server)
