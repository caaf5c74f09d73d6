"""The manifest and the tests agree, in both directions."""

import ast
from pathlib import Path

import pytest

from tests.manifest.manifest import BOUND, LEVELS, NO_TEST, OTHERS, ROOT, Clause, Page, filled, marks, pages

PAGES = pages()
CLAUSES = [clause for page in PAGES for clause in page.clauses]
MARKS = marks()


def test_every_id_stands_once():
    ids = [clause.id for clause in CLAUSES]
    assert len(ids) > 500
    assert sorted({id for id in ids if ids.count(id) > 1}) == []


def test_every_clause_has_a_level_and_binds_someone():
    assert [clause.id for clause in CLAUSES if clause.level not in LEVELS or clause.binds not in BOUND] == []


def test_every_clause_has_a_test_or_a_reason_and_never_both():
    assert [clause.id for clause in CLAUSES if bool(clause.tests) == bool(clause.reason)] == []


def test_a_clause_that_binds_someone_else_says_so():
    wrong = [clause.id for clause in CLAUSES if clause.binds in OTHERS and clause.reason == NO_TEST]
    assert wrong == []


def test_every_test_that_is_named_exists():
    missing = [test for clause in CLAUSES for test in clause.tests if not _exists(test)]
    assert missing == []


def _exists(node_id: str) -> bool:
    file, *names = node_id.split("::")
    path = ROOT / file
    if not path.is_file():
        return False
    node: ast.AST | None = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for name in names:
        body = getattr(node, "body", [])
        node = next((inner for inner in body if isinstance(inner, kinds) and inner.name == name), None)
    return node is not None


def test_every_mark_names_a_clause():
    assert sorted(MARKS.keys() - {clause.id for clause in CLAUSES}) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.page)
def test_the_files_say_what_the_marks_say(page: Page):
    """Otherwise run `make manifest`."""
    assert page.path.read_text(encoding="utf-8") == filled(page, MARKS).text()


def test_marks_are_found_on_functions_classes_and_modules(tmp_path: Path):
    file = tmp_path / "tests" / "wire" / "test_x.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "import pytest\n"
        "pytestmark = [pytest.mark.anything, pytest.mark.clause('a')]\n"
        "@pytest.mark.clause('b', 'c')\n"
        "async def test_one(): ...\n"
        "@pytest.mark.clause('b')\n"
        "class TestTwo:\n"
        "    @pytest.mark.clause('d')\n"
        "    def test_three(self): ...\n"
    )
    assert marks(tmp_path) == {
        "a": {"tests/wire/test_x.py"},
        "b": {"tests/wire/test_x.py::test_one", "tests/wire/test_x.py::TestTwo"},
        "c": {"tests/wire/test_x.py::test_one"},
        "d": {"tests/wire/test_x.py::TestTwo::test_three"},
    }


def test_a_mark_that_is_computed_is_refused(tmp_path: Path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text("@pytest.mark.clause(NAME)\ndef test_one(): ...\n")
    with pytest.raises(ValueError, match="literal"):
        marks(tmp_path)


def test_a_test_takes_the_place_of_the_reason_and_gives_it_back():
    page = Page(Path("x"), "x", (Clause("x.a", "MUST", "client", "A.", (), NO_TEST),))
    proved = filled(page, {"x.a": {"tests/b.py::test_b", "tests/a.py::test_a"}})
    assert proved.clauses[0].tests == ("tests/a.py::test_a", "tests/b.py::test_b")
    assert proved.clauses[0].reason == ""
    assert filled(proved, {}) == page
