"""Runs the conformance suite on our server and client and says whether all is as it should be.

    python -m tests.conformance.gate                                     everything
    python -m tests.conformance.gate --side client --versions 2025-11-25 --only sse
    python -m tests.conformance.gate --list

Starts the server fixture itself, unless `--url` names one that runs. Exit code 0: every scenario is clean, but those
that `expected.toml` lists, and those are not. 1: something is otherwise, and the report says what. 2: the gate could
not run.
"""

import argparse
import json
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path

from tests.conformance.suite import HERE, SIDES, Run, Side, Suite
from tests.conformance.verdict import Exemption, Verdict, judge, load_exemptions

START_TIMEOUT = 20.0
"""Seconds that the server fixture may take to say its address."""


def main(arguments: list[str] | None = None) -> int:
    """Run the gate; the return value is the exit code."""
    options = _parser().parse_args(arguments)
    suite = Suite(timeout=options.timeout)
    versions = options.versions.split(",") if options.versions else list(suite.versions())
    unknown = sorted(set(versions) - set(suite.versions()))
    if unknown:
        print(f"no scenario is for {', '.join(unknown)}; there are {', '.join(suite.versions())}", file=sys.stderr)
        return 2
    sides = SIDES if options.side == "both" else (options.side,)
    if options.list:
        _list(suite, sides, versions, options.only)
        return 0
    exemptions = load_exemptions(HERE / "expected.toml")
    began = time.monotonic()
    runs = _runs(suite, sides, versions, options)
    verdicts = [judge(run, suite.expected_ids(run), exemptions) for run in runs]
    whole = not options.only and not options.versions and options.side == "both"
    return _report(suite, verdicts, _idle(exemptions, verdicts) if whole else [], time.monotonic() - began)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gate", description=__doc__.splitlines()[0])
    parser.add_argument("--side", choices=["both", *SIDES], default="both")
    parser.add_argument("--versions", default="", help="comma-separated; 'ext' stands for extension scenarios")
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    parser.add_argument("--url", default="", help="a server that runs already; http://localhost:PORT/mcp")
    parser.add_argument("--client", default="", help="the client's command, instead of our fixture")
    parser.add_argument("--jobs", type=int, default=2, help="clients at once")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for each scenario")
    parser.add_argument("--list", action="store_true", help="name the scenarios and run none")
    return parser


def _list(suite: Suite, sides: tuple[Side, ...], versions: list[str], only: str) -> None:
    for side in sides:
        for version in versions:
            for scenario in suite.scenarios(side, version, only=only):
                print(side, version, scenario)


# ----------------------------------------------------------------------------------------------------------- running


def _runs(suite: Suite, sides: tuple[Side, ...], versions: list[str], options: argparse.Namespace) -> Iterator[Run]:
    if "server" in sides:
        with nullcontext(options.url) if options.url else _served(suite.results / "server.log") as url:
            for version in versions:
                yield from _server_runs(suite, url, version, options.only)
    if "client" in sides:
        command = options.client or shlex.join([sys.executable, str(HERE / "client.py")])
        yield from _client_runs(suite, command, versions, options)


def _server_runs(suite: Suite, url: str, version: str, only: str) -> list[Run]:
    if only:
        return [suite.run_server_scenario(url, version, name) for name in suite.scenarios("server", version, only=only)]
    return suite.run_server(url, version) if suite.scenarios("server", version) else []


def _client_runs(suite: Suite, command: str, versions: list[str], options: argparse.Namespace) -> Iterator[Run]:
    pairs = [(version, name) for version in versions for name in suite.scenarios("client", version, only=options.only)]
    with ThreadPoolExecutor(options.jobs) as pool:
        yield from pool.map(lambda pair: suite.run_client_scenario(command, *pair), pairs)


@contextmanager
def _served(log: Path) -> Iterator[str]:
    """The server fixture for as long as it is needed. Its first line is its address; what it logs goes to a file."""
    command = [sys.executable, str(HERE / "server.py"), "--port", "0"]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
        assert process.stdout is not None
        overdue = threading.Timer(START_TIMEOUT, process.kill)
        overdue.start()
        try:
            line = process.stdout.readline().decode().strip()
            overdue.cancel()
            if not line.startswith("http://"):
                raise SystemExit(f"the server fixture did not start: {shlex.join(command)}\n{log.read_text()[-2000:]}")
            yield line.replace("127.0.0.1", "localhost")
        finally:
            overdue.cancel()
            _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()


# --------------------------------------------------------------------------------------------------------- reporting


def _idle(exemptions: list[Exemption], verdicts: list[Verdict]) -> list[Exemption]:
    """Entries of `expected.toml` that speak of no scenario at all."""
    return [entry for entry in exemptions if not any(entry.covers(verdict.run) for verdict in verdicts)]


def _report(suite: Suite, verdicts: list[Verdict], idle: list[Exemption], seconds: float) -> int:
    _write(suite, verdicts)
    wrong = [verdict for verdict in verdicts if not verdict.as_expected]
    for side in SIDES:
        for version in suite.versions():
            _report_leg(side, version, [v for v in verdicts if (v.run.side, v.run.version) == (side, version)])
    for verdict in wrong:
        _report_wrong(verdict)
    for entry in idle:
        print(f"\nexpected.toml: {entry.side} {entry.scenario} {', '.join(entry.versions)} matches no scenario")
    if any(verdict.run.side == "server" for verdict in wrong):
        print(f"\nwhat the server fixture wrote is in {suite.results / 'server.log'}")
    if not verdicts:
        print("no scenario is called so: see --list")
    good = bool(verdicts) and not wrong and not idle
    print(f"\nconformance: {'as expected' if good else 'NOT as expected'} ({len(verdicts)} runs, {seconds:.0f} s)")
    return 0 if good else 1


def _report_leg(side: Side, version: str, verdicts: list[Verdict]) -> None:
    if not verdicts:
        return
    clean = sum(not verdict.complaints for verdict in verdicts)
    known = sum(verdict.as_expected and verdict.exemption is not None for verdict in verdicts)
    checks = sum(check.status == "SUCCESS" for verdict in verdicts for check in verdict.run.checks)
    seconds = sum(verdict.run.seconds for verdict in verdicts)
    listed = f", {known} listed as not clean yet" if known else ""
    print(f"{side} {version}: {clean} of {len(verdicts)} clean{listed} ({checks} checks, {seconds:.0f} s)")


def _report_wrong(verdict: Verdict) -> None:
    run = verdict.run
    print(f"\n{run.side} {run.version} {run.scenario}")
    if verdict.exemption is not None:
        print("    is clean, but expected.toml lists it: take it out")
        return
    for complaint in verdict.complaints:
        print(f"    {complaint[:400]}")
    if run.output.strip():
        print("    | " + "\n    | ".join(run.output.strip().splitlines()[-12:]))


def _write(suite: Suite, verdicts: list[Verdict]) -> None:
    rows = [asdict(verdict) | {"as_expected": verdict.as_expected} for verdict in verdicts]
    path: Path = suite.results / "report.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
