"""The clauses of the specification, and which tests prove them.

One file for each page of a revision holds its MUST and SHOULD clauses: an id, the level, our own short words for what
is asked, and whom it binds. A test says which clauses it proves with `@pytest.mark.clause("http.origin-403")`; `make
manifest` writes that into the files. A clause without a test has a reason: it binds somebody else, or it has no test
yet.

A page of the newest revision has all of its clauses, and its file has no date. The handshake era has what it asks
beside those: pages of its last revision, and of an older one where that was dropped again; their files have the date,
and their clauses begin with `handshake.`. What a later revision asks in other words is not listed twice:
`tests/matrix` speaks every revision over every wire, and the official conformance suite does too. `tests/emitted.py`
and the watches that it names hold every message of every revision against its schema.

Left out are pages that ask nothing of anybody (architecture, schema, changelog and indexes), what is permitted (MAY),
and what binds only those who have tasks of the handshake era, which the package has not. A few sentences that say
`should` in lower case are in, where they are all that is said of how old and new meet.

Knows files, clauses and marks. Does not know whether a test passes.
"""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

LEVELS = ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT")
NO_TEST = "no test yet"
OTHERS = {
    "authorization server": "binds the authorization server, which is not ours",
    "host application": "binds the application that uses the package: it has the user, the screen and the model",
    "intermediary": "binds proxies and gateways between the two sides",
    "server author": "binds who writes a server with the package",
}
"""Whom a clause may bind beside the package's own client and server, and why the package has no test for it."""
BOUND = ("client", "server", "both", *OTHERS)


@dataclass(frozen=True)
class Clause:
    """One thing that the specification asks."""

    id: str
    level: str
    binds: str
    text: str
    tests: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Page:
    """The clauses of one page, in its order."""

    path: Path
    page: str
    clauses: tuple[Clause, ...]

    def text(self) -> str:
        """The file, as `make manifest` writes it."""
        return f'page = "{self.page}"\n' + "".join(_entry(clause) for clause in self.clauses)


def pages() -> list[Page]:
    """Every page, as the files have it."""
    return [_load(path) for path in sorted(HERE.glob("*.toml"))]


def _load(path: Path) -> Page:
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    clauses = tuple(Clause(**row | {"tests": tuple(row.get("tests", ()))}) for row in document["clause"])
    return Page(path, document["page"], clauses)


def _entry(clause: Clause) -> str:
    fields = (f"{key} = {_quoted(getattr(clause, key))}" for key in ("id", "level", "binds", "text"))
    lines = ["", "[[clause]]", *fields]
    if clause.tests:
        lines += ["tests = [", *(f"    {_quoted(test)}," for test in clause.tests), "]"]
    if clause.reason:
        lines.append(f"reason = {_quoted(clause.reason)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# ------------------------------------------------------------------------------------------------------------- marks


def marks(root: Path = ROOT) -> dict[str, set[str]]:
    """The tests that are marked with each clause, as node ids below `root`."""
    found: dict[str, set[str]] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.clause(" not in text:
            continue
        file = path.relative_to(root).as_posix()
        for node, clauses in _marked(ast.parse(text, str(path)), file):
            for clause in clauses:
                found.setdefault(clause, set()).add(node)
    return found


def _marked(tree: ast.AST, node_id: str) -> Iterator[tuple[str, list[str]]]:
    """Every node id below a module or class that has marks of its own, with the clauses it names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{node_id}::{node.name}"
            clauses = [clause for decorator in node.decorator_list for clause in _named(decorator)]
            if clauses:
                yield inner, clauses
            if isinstance(node, ast.ClassDef):
                yield from _marked(node, inner)
        elif isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets
        ):
            values = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            clauses = [clause for value in values for clause in _named(value)]
            if clauses:
                yield node_id, clauses


def _named(node: ast.expr) -> list[str]:
    """The clauses that `pytest.mark.clause(...)` names; nothing for any other expression."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.clause"):
        return []
    names = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
    if len(names) != len(node.args) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"line {node.lineno}: a clause is named by a literal text")
    return [str(name) for name in names]


# ----------------------------------------------------------------------------------------------------------- command


def filled(page: Page, marked: dict[str, set[str]]) -> Page:
    """A page whose clauses name the tests that are marked with them."""
    return replace(page, clauses=tuple(_filled(clause, marked.get(clause.id, set())) for clause in page.clauses))


def _filled(clause: Clause, tests: set[str]) -> Clause:
    reason = "" if tests else clause.reason or OTHERS.get(clause.binds, NO_TEST)
    return replace(clause, tests=tuple(sorted(tests)), reason=reason)


def main() -> None:
    """Write the marks into the files, and say how far the tests reach."""
    marked = marks()
    rows = [0, 0, 0]
    for page in (filled(page, marked) for page in pages()):
        page.path.write_text(page.text(), encoding="utf-8")
        proved = sum(bool(clause.tests) for clause in page.clauses)
        waiting = sum(clause.reason == NO_TEST for clause in page.clauses)
        counts = (len(page.clauses), proved, waiting)
        rows = [total + count for total, count in zip(rows, counts, strict=True)]
        print("{:58} {:4} clauses {:4} with tests {:4} without yet".format(page.page, *counts))
    print("{:58} {:4} clauses {:4} with tests {:4} without yet".format("all", *rows))


if __name__ == "__main__":
    main()
