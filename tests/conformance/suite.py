"""The official conformance suite as a program: how it is called and what it leaves behind.

Knows the command line of `@modelcontextprotocol/conformance`, the folders it writes and the checks each scenario made
when it was green (`expected-check-ids.json`: side, scenario, version, ids). Does not judge: see `verdict`.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

HERE = Path(__file__).parent
HOME = Path(os.environ.get("CONFORMANCE_HOME", HERE.parents[1] / ".tools" / "conformance"))

Side: TypeAlias = Literal["server", "client"]
Status: TypeAlias = Literal["SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO"]

SIDES: tuple[Side, ...] = get_args(Side)
EXTENSIONS = "ext"
"""The place of a version for scenarios of protocol extensions, which the suite runs on no named version."""

_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")


@dataclass(frozen=True)
class Check:
    """One line of a scenario's result."""

    id: str
    name: str
    status: Status
    message: str


@dataclass(frozen=True)
class Run:
    """One scenario at one version, as it went.

    `exit_code` is the suite's own for this scenario, or None where one process ran many scenarios.
    """

    side: Side
    version: str
    scenario: str
    checks: tuple[Check, ...]
    exit_code: int | None = None
    timed_out: bool = False
    seconds: float = 0.0
    output: str = ""


class Suite:
    """The installed suite.

    Args:
        home: The folder where its npm packages were installed.
        results: The folder for what it writes; each run empties its own part of it.
        timeout: Seconds that one scenario may take.
        grace: Seconds that the suite may take beyond that to start and to end.
    """

    def __init__(
        self, *, home: Path = HOME, results: Path | None = None, timeout: float = 30.0, grace: float = 60.0
    ) -> None:
        self.home = home
        self.results = results or home / "results"
        self.timeout = timeout
        self.grace = grace
        self.catalogue: dict[Side, dict[str, dict[str, list[str]]]] = json.loads(
            (HERE / "expected-check-ids.json").read_text(encoding="utf-8")
        )

    def versions(self) -> tuple[str, ...]:
        """Every version that has a scenario, oldest first, the extensions last."""
        return tuple(sorted({version for side in SIDES for ids in self.catalogue[side].values() for version in ids}))

    def scenarios(self, side: Side, version: str, *, only: str = "") -> list[str]:
        """The scenarios of a side at a version whose name contains `only`."""
        return [name for name, ids in self.catalogue[side].items() if version in ids and only in name]

    def expected_ids(self, run: Run) -> set[str]:
        """The checks that a green run of this scenario has."""
        return set(self.catalogue[run.side].get(run.scenario, {}).get(run.version, ()))

    def run_server(self, url: str, version: str) -> list[Run]:
        """Every scenario of a version against a running server, in one process of the suite."""
        folder = self._folder("server", version)
        arguments = ["server", "--url", url, "--suite", "all", "-o", str(folder), *_version_option(version)]
        process, seconds = self._call(arguments, scenarios=len(self.scenarios("server", version)))
        wanted = set(self.scenarios("server", version))
        runs = [run for run in _server_runs(folder, version) if run.scenario in wanted]
        output = process.stdout + process.stderr
        found = {run.scenario for run in runs}
        runs += [Run("server", version, name, (), output=output[-2000:]) for name in sorted(wanted - found)]
        return [replace(run, seconds=seconds / len(runs)) for run in runs]

    def run_server_scenario(self, url: str, version: str, scenario: str) -> Run:
        """One scenario against a running server."""
        folder = self._folder("server", version, scenario)
        arguments = ["server", "--url", url, "--scenario", scenario, "-o", str(folder), *_version_option(version)]
        process, seconds = self._call(arguments)
        checks = tuple(check for path in sorted(folder.rglob("checks.json")) for check in _checks(path))
        output = process.stdout + process.stderr
        return Run("server", version, scenario, checks, process.returncode, seconds=seconds, output=output[-2000:])

    def run_client_scenario(self, command: str, version: str, scenario: str) -> Run:
        """One scenario with a client that the suite starts; only this way does it tell crashes and timeouts."""
        folder = self._folder("client", version, scenario)
        # The suite kills the shell that it started, so the client must be that process.
        arguments = ["client", "--command", f"exec {command}", "--scenario", scenario, "-o", str(folder)]
        process, seconds = self._call([*arguments, *_version_option(version)])
        checks = tuple(check for path in sorted(folder.rglob("checks.json")) for check in _checks(path))
        output = process.stdout + process.stderr
        return Run(
            "client",
            version,
            scenario,
            checks,
            process.returncode,
            timed_out="CLIENT TIMED OUT" in output,
            seconds=seconds,
            output="".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("stderr.txt")))[-2000:],
        )

    def _call(self, arguments: list[str], *, scenarios: int = 1) -> tuple["subprocess.CompletedProcess[str]", float]:
        """Run the suite. It ends its scenarios itself; the limit here is for a suite that hangs."""
        modules = self.home / "node_modules"
        node, program = (
            modules / ".bin" / "node",
            modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js",
        )
        if not program.exists():
            raise SystemExit(f"the conformance suite is not installed in {self.home}: run `make conformance`")
        command = [str(node), str(program), *arguments, "--timeout", str(int(self.timeout * 1000))]
        began = time.monotonic()
        limit = self.timeout * max(scenarios, 1) + self.grace
        try:
            process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
        except subprocess.TimeoutExpired:
            process = subprocess.CompletedProcess(command, 124, "", f"the suite did not end within {limit:.0f} s")
        return process, time.monotonic() - began

    def _folder(self, side: Side, version: str, scenario: str = "all") -> Path:
        folder = self.results / side / version / scenario.replace("/", "_")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def _version_option(version: str) -> list[str]:
    """Extension scenarios match no named version: they run where none is named."""
    return [] if version == EXTENSIONS else ["--spec-version", version]


def _server_runs(folder: Path, version: str) -> Iterator[Run]:
    for path in sorted(folder.rglob("checks.json")):
        scenario = _STAMP.sub("", path.parent.name).removeprefix("server-")
        # `server-initialize` and its kind bring the prefix themselves and then have it twice.
        yield Run("server", version, scenario, tuple(_checks(path)))


def _checks(path: Path) -> Iterator[Check]:
    for row in json.loads(path.read_text(encoding="utf-8")):
        message = row.get("errorMessage") or row.get("description") or ""
        yield Check(row["id"], row.get("name", ""), row["status"], message)
