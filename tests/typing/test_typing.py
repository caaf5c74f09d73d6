"""The types of the public API, held to by both checkers: what compiles, as what, and what does not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENT = {**os.environ, "MYPYPATH": str(ROOT / "src"), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", *command)
    return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=300)


def mypy(file: Path) -> dict[int, str]:
    """The errors of a file, by line."""
    cache = ROOT / ".mypy_cache" / "typing"
    found = run(
        "mypy", "--config-file=", "--strict", "--warn-unreachable",
        "--no-incremental" if not cache.parent.exists() else "--incremental",
        f"--cache-dir={cache}", "--python-version=3.11", "--no-pretty", "--hide-error-context", str(file),
    )  # fmt: skip
    assert found.returncode in (0, 1), found.stdout + found.stderr
    errors = re.findall(r"^(\S+\.py):(\d+): error: (.*)$", found.stdout, re.MULTILINE)
    return {int(line): text for path, line, text in errors if Path(path).name == file.name}


def pyright(file: Path) -> dict[int, str]:
    """The same."""
    found = run("pyright", "--outputjson", "--pythonpath", sys.executable, "--pythonversion", "3.11", str(file))
    report = json.loads(found.stdout)
    return {
        one["range"]["start"]["line"] + 1: one["message"]
        for one in report["generalDiagnostics"]
        if one["severity"] == "error" and Path(one["file"]) == file
    }


CHECKERS = pytest.mark.parametrize("check", [mypy, pyright])


@CHECKERS
def test_what_users_write_compiles_and_has_the_types_that_it_says(check):
    assert check(HERE / "right.py") == {}


@CHECKERS
def test_what_is_wrong_does_not_compile(check):
    file = HERE / "wrong.py"
    lines = file.read_text(encoding="utf-8").splitlines()
    expected = [number for number, line in enumerate(lines, 1) if line.endswith("# error")]
    found = check(file)
    assert sorted(found) == expected, found
