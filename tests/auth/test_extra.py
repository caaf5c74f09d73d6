"""What needs an optional package says so where it is made, with the command that brings the package."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from mcprelay import ConfigurationError
from mcprelay.auth import KeyringStore
from mcprelay.auth.verifier import JwtVerifier

ROOT = Path(__file__).resolve().parents[2]
USERS = {
    "jwt": ("jwt", lambda: JwtVerifier(issuer="https://issuer.example", jwks_url="https://issuer.example/keys")),
    "keyring": ("keyring", KeyringStore),
}
NEEDLESS = {"otel", "dev"}
"""What is only used where the program itself has loaded it, and what only this repository needs."""


@pytest.mark.parametrize("extra", USERS)
def test_a_package_that_is_not_there_is_missed_where_it_is_needed_first(extra, monkeypatch):
    module, make = USERS[extra]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert f"pip install 'mcprelay[{extra}]'" in str(caught.value)


def test_every_extra_is_looked_at():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["optional-dependencies"]) == {*USERS, *NEEDLESS}


def test_no_shell_takes_an_extra_for_a_pattern():
    pages = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "Makefile"]
    unquoted = re.compile(r"pip install [^'\"\n]*\w\[")
    assert [page.name for page in pages if unquoted.search(page.read_text(encoding="utf-8"))] == []
