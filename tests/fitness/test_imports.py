"""What an import loads: the start of every stdio server and every command waits for it."""

import json
import subprocess
import sys
from functools import cache

import pytest

HEAVY = {
    # dependencies that are imported by the function that needs them
    "aiohttp", "cryptography", "cyclopts", "docstring_parser", "httptools", "jsonschema_rs",
    "rich", "uvicorn", "uvloop",
    # what users bring
    "annotated_types", "attr", "jwt", "opentelemetry", "pydantic", "pydantic_core", "starlette",
    # parts of the standard library that cost milliseconds and that no call needs
    "argparse", "email", "html", "http.client", "http.server", "importlib.metadata", "multiprocessing", "sqlite3",
    "tomllib", "unittest", "urllib.request", "xml", "zipfile",
}  # fmt: skip
"""Modules that importing a public name must not load."""

NAMES = ["Server", "Client"]

PROBE = """
import json, sys
before = set(sys.modules)
{statement}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@cache
def loaded(statement: str) -> frozenset[str]:
    """The modules that a statement loads in a fresh interpreter, beyond what starting it loads."""
    command = [sys.executable, "-c", PROBE.format(statement=statement)]
    process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return frozenset(json.loads(process.stdout))


def foreign(modules: frozenset[str]) -> set[str]:
    """The top-level packages among modules that are not the standard library's."""
    return {module.partition(".")[0] for module in modules} - sys.stdlib_module_names


def test_the_probe_sees_what_is_loaded():
    assert "wave" in loaded("import wave")
    assert "rich" in foreign(loaded("import rich"))


def test_importing_the_package_loads_nothing_but_the_package():
    modules = loaded("import mcprelay")
    assert foreign(modules) == {"mcprelay"}
    assert {module for module in modules if module.startswith("mcprelay.")} == set()
    assert modules & {"asyncio", "dataclasses", "inspect", "logging", "msgspec"} == set()


@pytest.mark.parametrize("name", NAMES)
def test_importing_a_name_loads_msgspec_and_no_other_package(name: str):
    """And what msgspec itself loads, where it is installed: `typing_extensions`."""
    brought_by_msgspec = foreign(loaded("import msgspec"))
    assert brought_by_msgspec <= {"msgspec", "typing_extensions"}
    assert foreign(loaded(f"from mcprelay import {name}")) == {"mcprelay"} | brought_by_msgspec


@pytest.mark.parametrize("name", NAMES)
def test_importing_a_name_loads_nothing_heavy(name: str):
    assert loaded(f"from mcprelay import {name}") & HEAVY == frozenset()


def test_server_and_client_do_not_load_each_other():
    assert "mcprelay.client" not in loaded("from mcprelay import Server")
    assert "mcprelay.server" not in loaded("from mcprelay import Client")


def test_importing_a_name_loads_no_leaf():
    leaves = {"adapters", "backplane", "cli", "relay", "testing"}
    for name in NAMES:
        modules = loaded(f"from mcprelay import {name}")
        assert {module for module in modules if module.split(".")[1:2] and module.split(".")[1] in leaves} == set()
