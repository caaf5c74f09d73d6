"""What the fitness tests look at: the files of the package and of the repository, read once."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mcprelay"


@cache
def sources() -> tuple[Path, ...]:
    """Every Python file of the package."""
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a source file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def definitions(kind: type[ast.AST] | tuple[type[ast.AST], ...]) -> Iterator[tuple[str, ast.AST]]:
    """Every node of a kind in the package, with the place to say in a message."""
    for path in sources():
        for node in ast.walk(parsed(path)):
            if isinstance(node, kind):
                yield f"{where(path)}:{getattr(node, 'lineno', 0)}", node


def where(path: Path) -> str:
    """A path as a message says it."""
    return path.relative_to(ROOT).as_posix()


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that git tracks, or an empty tuple where the tree is not a checkout."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    names = process.stdout.split("\0") if process.returncode == 0 else []
    return tuple(path for name in names if name and (path := ROOT / name).is_file())
