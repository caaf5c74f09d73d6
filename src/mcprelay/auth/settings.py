"""What a user can set about OAuth, with the defaults. Frozen data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from msgspec import Struct

from mcprelay.auth.courier import resolve
from mcprelay.auth.dpop import Policy
from mcprelay.auth.grant import Grant
from mcprelay.auth.interaction import Interaction
from mcprelay.auth.registration import Registered
from mcprelay.ports import Clock


class Settings(Struct, frozen=True, kw_only=True):
    """See `OAuth`, whose arguments these are."""

    grant: Grant
    client: Registered | None
    client_document: str | None
    client_name: str
    registration: dict[str, Any] | None
    scopes: tuple[str, ...]
    resource: str | None
    interaction: Interaction
    dpop: Policy
    pkce: Literal["advertised", "assumed"]
    fallback: Literal["allow", "refuse"]
    allowed_hosts: tuple[str, ...]
    insecure_hosts: tuple[str, ...]
    attempts: int
    leeway: float
    request_timeout: float
    interaction_timeout: float
    answer_bytes: int
    clock: Clock
    resolver: Callable[[str, int], Awaitable[Sequence[str]]] = resolve

    def __repr__(self) -> str:
        return "Settings(…)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []
