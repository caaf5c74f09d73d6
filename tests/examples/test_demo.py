"""What the demonstration invites to works as it is printed."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from examples import demo

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


@pytest.mark.parametrize("path", ["/usr/bin:/bin", f"{BIN}:/usr/bin:/bin"], ids=["as make has it", "activated"])
def test_the_command_that_is_named_next_works_where_the_demonstration_ran(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", path)
    words = shlex.split(demo.invitation())
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "3", done.stderr
    assert words[2] == "examples/calculator.py"


def test_from_another_folder_the_whole_path_is_named(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert shlex.split(demo.invitation())[2] == str(ROOT / "examples" / "calculator.py")
