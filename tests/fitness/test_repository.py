"""What is committed speaks of the project alone, and says one thing once."""

import ast
import re
import tomllib
from typing import Any

import pytest

from tests.fitness.tree import ROOT, definitions, sources, tracked, where

MACHINE = re.compile(r"(?<![\w.])/(?:work|farm|root)/")
"""Folders of a machine that happened to build this. What users write begins otherwise."""

DOWNLOADS = re.compile(
    "|".join(
        re.escape(".".join(host))
        for host in [
            ("registry", "npmjs", "org"),
            ("registry", "yarnpkg", "com"),
            ("files", "pythonhosted", "org"),
            ("pypi", "org/simple"),
            ("proxy", "golang", "org"),
        ]
    )
    + "|https?://[^\\s\"']*(?:artifact"
    + "ory|nex"
    + "us)"
)
"""Hosts that packages come from: an installation decides that, not the repository."""


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Every tracked file that is text."""
    found = {}
    for path in tracked():
        try:
            found[where(path)] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    if not found:
        pytest.skip("not a git checkout, so nothing is tracked")
    return found


@pytest.mark.parametrize("pattern", [MACHINE, DOWNLOADS], ids=["path of a machine", "place to download from"])
def test_no_tracked_file_names_a(texts: dict[str, str], pattern: re.Pattern[str]):
    hits = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts.items()
        if pattern.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert hits == []


def test_the_patterns_find_what_they_are_for():
    assert MACHINE.search("see /" + "work/main/x.py")
    assert DOWNLOADS.search("https://registry." + "npmjs.org/x/-/x-1.0.0.tgz")
    assert not MACHINE.search("file:///home/ada/project/main.py")


def test_no_environment_or_cache_is_tracked(texts: dict[str, str]):
    ignored = re.compile(r"(^|/)(\.venv|\.tools|node_modules|__pycache__|dist|bench-out)/|(^|/)uv\.lock$")
    assert [name for name in texts if ignored.search(name)] == []


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_development_extra_and_the_dependency_group_are_the_same():
    settings = project()
    assert settings["project"]["optional-dependencies"]["dev"] == settings["dependency-groups"]["dev"]


def test_what_everybody_installs_is_what_the_package_imports():
    required = {re.split(r"[^\w-]", name)[0].replace("-", "_") for name in project()["project"]["dependencies"]}
    imported = {name.split(".")[0] for _, node in definitions((ast.Import, ast.ImportFrom)) for name in _named(node)}
    chosen_by_uvicorn = {"httptools"}  # where it is installed
    assert required - imported == chosen_by_uvicorn


def _named(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    assert isinstance(node, ast.Import)
    return [alias.name for alias in node.names]


def test_every_ignored_lint_rule_has_its_reason_beside_it():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    bare = [line.strip() for line in text.splitlines() if re.match(r'\s+"[A-Z]+[0-9]*",\s*(#\s*)?$', line)]
    assert bare == []


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "src" / "mcprelay" / "py.typed").is_file()


def test_every_suppressed_finding_names_the_rule_it_suppresses():
    bare = re.compile(r"#\s*(?:noqa(?!:)|type:\s*ignore(?!\[)|pyright:\s*ignore(?!\[))")
    places = [
        f"{where(path)}:{number}"
        for path in sources()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if bare.search(line)
    ]
    assert places == []
