"""A program on disk: its files, written and imported for one test."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcprelay import Server

if TYPE_CHECKING:
    from collections.abc import Iterator


class Program:
    """A folder with Python files, which are forgotten after the test."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, text: str) -> str:
        """Write a file; what is needed of mcprelay is imported in it already."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("from mcprelay import *\n" + textwrap.dedent(text), encoding="utf-8")
        return str(path)

    def __truediv__(self, name: str) -> Path:
        return self.root / name

    def remove(self, path: str) -> None:
        Path(path).unlink()

    def forget(self) -> None:
        """Let everything be imported anew, as another process would."""
        for name in [name for name, module in list(sys.modules.items()) if self._has(module)]:
            del sys.modules[name]

    def _has(self, module: Any) -> bool:
        places = [getattr(module, "__file__", None) or "", *(str(path) for path in getattr(module, "__path__", ()))]
        return any(place.startswith(str(self.root)) for place in places)

    def server(self, **options: Any) -> Server:
        return Server("found", **options)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    monkeypatch.chdir(tmp_path)
    made = Program(tmp_path.resolve())
    yield made
    made.forget()
