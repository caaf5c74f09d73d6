"""Run the benchmarks: ours beside their peers, in one run.

The harness that compares servers and clients is not part of this repository. Say where it is with BENCH_HARNESS (a
folder with `setup.sh` and `harness/`); this script says what is missing and how to get it.

    python benchmarks/run.py                    everything, about half an hour
    python benchmarks/run.py http stdio         some scenarios
    python benchmarks/run.py own                only what needs no harness
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
HARNESS = Path(os.environ.get("BENCH_HARNESS", HERE.parent.parent / "shared" / "bench"))
HOME = Path(os.environ.get("BENCH_HOME", Path.home() / ".cache" / "mcp-bench"))

SCENARIOS = {
    "http": ["--scenario", "http", "--candidates", "mcprelay,mcprelay-sync,official-sync,official-best,floor-uvicorn"],
    "http-legacy": ["--scenario", "http-legacy", "--candidates", "mcprelay,official-best,floor-uvicorn"],
    "stdio": ["--scenario", "stdio", "--candidates", "mcprelay,official-low,floor-proto"],
    "tools-list": ["--scenario", "tools-list", "--candidates", "mcprelay,official-low"],
    "cold": ["--scenario", "cold", "--candidates", "mcprelay,floor-proto"],
    "clients": ["--scenario", "clients", "--candidates", "mcprelay,mcprelay-uvloop,official-uvloop"],
    "streams": ["--scenario", "streams", "--candidates", "mcprelay,floor-proto"],
}
OWN = sorted(path for path in HERE.glob("own_*.py"))


def missing() -> list[str]:
    """What is not there, and how to get it."""
    found = []
    if not (HARNESS / "harness").is_dir():
        found.append(f"the harness: no {HARNESS}/harness; set BENCH_HARNESS to the folder that has it")
    if shutil.which("wrk") is None:
        found.append("wrk, which makes the HTTP load: apt-get install wrk (or brew install wrk)")
    if not (HOME / "peers" / "bin" / "python").exists():
        found.append(f"the peers' environments: run {HARNESS}/setup.sh")
    return found


def prepare() -> None:
    """Our package beside the peers, and compiled as theirs are."""
    python = str(HOME / "peers" / "bin" / "python")
    root = str(HERE.parent)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--editable", root], check=True)
    subprocess.run([python, "-m", "compileall", "-q", str(HERE.parent / "src")], check=True)


def main(wanted: list[str]) -> int:
    """Run what is wanted; everything unless something is named."""
    chosen = [name for name in SCENARIOS if not wanted or name in wanted]
    if chosen and (lacking := missing()):
        print("The benchmarks need:", *lacking, sep="\n  - ", file=sys.stderr)
        return 2
    if chosen or not wanted or "own" in wanted:
        prepare() if (HOME / "peers").exists() else None
    environment = {**os.environ, "BENCH_CANDIDATES": str(HERE), "BENCH_OUT": os.environ.get("BENCH_OUT", "bench-out")}
    environment["BENCH_OUT"] = str(Path(environment["BENCH_OUT"]).resolve())
    failed = 0
    for name in chosen:
        command = [sys.executable, "-m", "harness", "run", *SCENARIOS[name], "--rounds", "3", "--secs", "1.5"]
        failed |= subprocess.run(command, cwd=HARNESS, env=environment, check=False).returncode
    if not wanted or "own" in wanted:
        for script in OWN:
            failed |= subprocess.run([str(HOME / "peers" / "bin" / "python"), str(script)], check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
