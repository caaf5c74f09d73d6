"""Judges one run of a scenario, more strictly than the suite's own exit code.

The suite calls a scenario green when nothing failed: also when a warning was given, when checks were skipped because
the client never sent the request they look at, when a crash came after the last check, or when nothing happened at
all. Here a scenario is clean only if every check that a complete implementation makes it run is there and is a
success. What is known not to be clean yet is listed in `expected.toml`, with the reason, and must be taken out of the
list as soon as it is.

Does not know how the suite is run: see `suite`.
"""

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tests.conformance.suite import Run

UNAVOIDABLE_SKIPS = frozenset(
    {
        # The scenario exists only for the stateless revision and also has rows for the handshake.
        ("http-standard-headers", "ClientMcpMethodHeader_initialize"),
        ("http-standard-headers", "ClientMcpMethodHeader_notifications_initialized"),
    }
)
"""Scenario and name of the checks that no client of the revision can make run."""

OPTIONAL = frozenset(
    {
        # A server may answer a request that it has nothing to tell about with JSON, and the suite then says just that.
        ("server-sse-multiple-streams", "server-sse-streams-functional"),
    }
)
"""Scenario and id of the checks that are a note where the server does something else that it may."""


def complaints(run: Run, expected_ids: set[str]) -> Iterator[str]:
    """Every reason why a run is not clean; none if it is."""
    if run.timed_out:
        yield "the client timed out"
    if not run.checks:
        yield "the scenario made no checks"
    for check in run.checks:
        if check.status in {"FAILURE", "WARNING"}:
            yield f"{check.status} {check.id}: {check.message}"
        elif check.status == "SKIPPED" and (run.scenario, check.name) not in UNAVOIDABLE_SKIPS:
            yield f"SKIPPED {check.id} ({check.name}): {check.message}"
    seen = {check.id for check in run.checks if check.status != "INFO" or (run.scenario, check.id) in OPTIONAL}
    for id in sorted(expected_ids - seen):
        yield f"MISSING {id}: a green run has this check"
    if run.exit_code:
        yield f"the suite's exit code is {run.exit_code}"


@dataclass(frozen=True)
class Exemption:
    """Scenarios that are known not to be clean yet, and why."""

    side: str
    scenario: str
    versions: tuple[str, ...]
    reason: str

    def covers(self, run: Run) -> bool:
        """Whether the run is one of those that the entry speaks of. The scenario may be a pattern."""
        at_version = not self.versions or run.version in self.versions
        return self.side == run.side and at_version and fnmatchcase(run.scenario, self.scenario)


def load_exemptions(path: Path) -> list[Exemption]:
    """Read `expected.toml`.

    Raises:
        ValueError: An entry lacks its reason, or has a key that means nothing.
    """
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("expected", [])
    exemptions = []
    for entry in entries:
        unknown = entry.keys() - {"side", "scenario", "versions", "reason"}
        if unknown or not entry.get("reason"):
            raise ValueError(f"{path.name}: {entry} needs side, scenario, reason and perhaps versions, nothing else")
        versions = tuple(entry.get("versions", ()))
        exemptions.append(Exemption(entry["side"], entry["scenario"], versions, entry["reason"]))
    return exemptions


@dataclass(frozen=True)
class Verdict:
    """A run with what is wrong about it and whether that was known."""

    run: Run
    complaints: tuple[str, ...]
    exemption: Exemption | None

    @property
    def as_expected(self) -> bool:
        """Clean and not listed, or listed and not clean."""
        return bool(self.complaints) == (self.exemption is not None)


def judge(run: Run, expected_ids: set[str], exemptions: Iterable[Exemption]) -> Verdict:
    """Hold a run against what a green one looks like and against the list of what is not green yet."""
    exemption = next((entry for entry in exemptions if entry.covers(run)), None)
    return Verdict(run, tuple(complaints(run, expected_ids)), exemption)
