"""Every difference between protocol revisions.

Rule 1: a revision date appears in this package and nowhere else.
Rule 2: nothing here does I/O or knows whether we are client or server.
Rule 3: revisions are an enumerated set, not an order. Code outside asks `revision.has(Feature.MRTR)` or
        `revision.http.sessions`; it never compares names, and an unknown name is never "newer" by luck of the alphabet.

The values of `mcprelay.types` have the newest revision's shape. A `Revision` says which methods it has, which codes
stand for which fault, what HTTP must carry, and how a value is shaped down for it. An older peer's values read as they
are, because what an older revision lacks is absent.

Adding a revision is one file beside this one, and its name in `_MODULES`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence

from mcprelay.revisions.revision import (
    Era,
    Fault,
    Feature,
    HttpRules,
    Method,
    Revision,
)

__all__ = [
    "ALL",
    "NEWEST",
    "NEWEST_HANDSHAKE",
    "Era",
    "Fault",
    "Feature",
    "HttpRules",
    "Method",
    "Revision",
    "find",
    "negotiate",
    "of_era",
]

_MODULES = ("r2026_07_28", "r2025_11_25", "r2025_06_18", "r2025_03_26", "r2024_11_05")

ALL: dict[str, Revision] = {
    revision.name: revision
    for revision in (importlib.import_module(f"{__name__}.{module}").REVISION for module in _MODULES)
}
"""Every revision by its name, the newest first."""

NEWEST: Revision = next(iter(ALL.values()))
NEWEST_HANDSHAKE: Revision = next(revision for revision in ALL.values() if revision.era is Era.HANDSHAKE)
ASSUMED_WITHOUT_HEADER: Revision = ALL["2025-03-26"]
"""What an HTTP request of the handshake era speaks that names no revision (transports, "Protocol Version Header")."""


def find(name: str | None) -> Revision | None:
    """The revision of that name, or None."""
    return ALL.get(name) if name is not None else None


def of_era(era: Era, among: Iterable[Revision] | None = None) -> list[Revision]:
    """The revisions of an era, the newest first."""
    return [revision for revision in (ALL.values() if among is None else among) if revision.era is era]


def negotiate(proposed: str, among: Sequence[Revision] | None = None) -> Revision:
    """What a server answers to `initialize`: the proposed revision if it has it, else its newest of that era."""
    offered = of_era(Era.HANDSHAKE, among)
    return next((revision for revision in offered if revision.name == proposed), offered[0])
