"""House rules that a linter does not know."""

import ast
import re

import pytest

from tests.fitness.tree import PACKAGE, definitions, parsed, sources, where

EMPTY_WORDS = {"base", "common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
LONGEST_FILE = 500
LONGEST_FUNCTION = 70
REVISION_DATE = re.compile(r"20\d\d-\d\d-\d\d")


def test_there_is_a_tree_to_look_at():
    assert len(sources()) > 5


def test_a_revision_date_stands_in_revisions_and_nowhere_else():
    leaks = [
        f"{where(path)}:{number}"
        for path in sources()
        if PACKAGE / "revisions" not in path.parents
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if REVISION_DATE.search(line)
    ]
    assert leaks == []


def test_no_module_has_a_name_that_says_nothing():
    names = [path for path in (*sources(), *PACKAGE.rglob("*/")) if EMPTY_WORDS & set(path.stem.strip("_").split("_"))]
    assert names == []


def test_no_class_has_a_name_that_says_nothing():
    places = []
    for place, node in definitions(ast.ClassDef):
        assert isinstance(node, ast.ClassDef)
        words = re.findall(r"[A-Z]?[a-z]+", node.name)
        if words and words[-1].lower() in EMPTY_WORDS:
            places.append(f"{place}: {node.name}")
    assert places == []


def test_no_file_is_longer_than_one_noun_needs():
    lengths = {where(path): len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_no_function_is_longer_than_a_screen():
    long = {}
    for place, node in definitions((ast.FunctionDef, ast.AsyncFunctionDef)):
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > LONGEST_FUNCTION:
            long[f"{place}: {node.name}"] = length
    assert long == {}


def test_every_module_says_what_it_knows():
    assert [where(path) for path in sources() if not ast.get_docstring(parsed(path))] == []


def test_nothing_is_left_unbuilt_behind_a_stub():
    stubs = [
        place
        for place, node in definitions(ast.Raise)
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node)
    ]
    assert stubs == []


@pytest.mark.parametrize("forbidden", ["basicConfig", "simplefilter", "filterwarnings"])
def test_a_library_touches_no_global_of_its_user(forbidden: str):
    """The command line is a program, not a library, and may."""
    calls = [
        place
        for place, node in definitions(ast.Attribute)
        if isinstance(node, ast.Attribute) and node.attr == forbidden and "/cli/" not in place
    ]
    assert calls == []
