"""A folder whose files hold what is marked is a target, as it is a source for `serve`; a bare word is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mcprelay.cli.option import Options
from mcprelay.cli.target import _meaning
from mcprelay.errors import ConfigurationError


def test_a_folder_is_served_by_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "handlers").mkdir()
    monkeypatch.chdir(tmp_path)
    for target in ("./handlers", ".", "handlers/", str(tmp_path / "handlers")):
        assert _meaning(target, Options())[0] == [sys.executable, "-m", "mcprelay.cli", "serve", target]


def test_a_bare_word_is_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "handlers").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="'handlers' is no URL, no .py file, no ./folder and no module:server"):
        _meaning("handlers", Options())
