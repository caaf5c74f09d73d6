"""Every Python snippet of README.md and docs/ runs as it stands.

A page is one program: its snippets run in order, in one namespace, with `await` allowed at the top. A snippet whose
first line is `# name.py` is a file that the page may import, serve or start; one that says `asyncio.run(` is started as
a program of its own, and one that is called `test_….py` is run by pytest, by the page's own settings where a snippet
`# pyproject.toml` has them. A snippet under `<!-- not run: reason -->` is only compiled.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^(?P<note><!-- not run: [^\n]+ -->\n+)?```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (?P<name>\w+\.py)\n")
SETTINGS = re.compile(r"^```toml\n(?P<text># pyproject\.toml\n.*?)^```$", re.MULTILINE | re.DOTALL)

RUNNER = """
import ast, asyncio, inspect, json, sys
sys.path.insert(0, ".")
names = {"__name__": "__page__"}
async def main():
    for line, code in json.load(open("page.json")):
        program = compile("\\n" * (line - 1) + code, PAGE, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        outcome = eval(program, names)
        if inspect.isawaitable(outcome):
            await outcome
asyncio.run(main())
"""


class Snippet(NamedTuple):
    line: int
    code: str
    runs: bool


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(text.count("\n", 0, found.start("code")) + 1, found["code"], found["note"] is None)
        for found in FENCE.finditer(text)
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)], ids=lambda page: page.name)
def test_the_snippets_of_a_page_run_in_order(page: Path, tmp_path: Path) -> None:
    for snippet in snippets(page):
        compile(snippet.code, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        named = FILE.match(snippet.code)
        if named:
            (tmp_path / named["name"]).write_text(snippet.code, encoding="utf-8")
    for found in SETTINGS.finditer(page.read_text(encoding="utf-8")):
        (tmp_path / "pyproject.toml").write_text(found["text"], encoding="utf-8")
    for snippet in snippets(page):
        named = FILE.match(snippet.code)
        if named and "asyncio.run(" in snippet.code:
            succeeds([sys.executable, named["name"]], tmp_path)
        elif named and named["name"].startswith("test_"):
            succeeds([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", named["name"]], tmp_path)
    running = [(line, code) for line, code, runs in snippets(page) if runs and not FILE.match(code)]
    (tmp_path / "page.json").write_text(json.dumps(running), encoding="utf-8")
    program = f"PAGE = {str(page)!r}\n{RUNNER}"
    succeeds([sys.executable, "-c", program], tmp_path)


def succeeds(command: list[str], folder: Path) -> None:
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # `python` is this one
    environment = {**os.environ, **path}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_runner_itself_fails_for_a_snippet_that_fails() -> None:
    program = compile("assert await asyncio.sleep(0, False)", "x", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def main() -> None:
        outcome = eval(program, {"asyncio": asyncio})  # noqa: S307 - what the runner does
        assert inspect.isawaitable(outcome)
        await outcome

    with pytest.raises(AssertionError):
        asyncio.run(main())
