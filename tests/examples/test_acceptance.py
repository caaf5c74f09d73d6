"""The examples answer what the PHP examples of the same name were recorded to answer (`acceptance.json`)."""

import contextlib
import json
from pathlib import Path

import pytest

from mcprelay import RemoteError
from tests.examples.normalize import normalize
from tests.examples.program import HANDSHAKE, connected, started

CASES = json.loads(Path(__file__).with_name("acceptance.json").read_text(encoding="utf-8"))["cases"]

PROGRAMS = {
    "cached-discovery": "cached_discovery/server.py",
    "combined-registration": "combined_registration/server.py",
    "complex-tool-schema": "complex_tool_schema.py",
    "custom-dependencies": "custom_dependencies.py",
    "discovery-calculator": "discovery_calculator/server.py",
    "discovery-userprofile": "discovery_userprofile/server.py",
    "env-variables": "env_variables.py",
    "explicit-registration": "explicit_registration.py",
    "mcp-apps": "mcp_apps/server.py",
    "schema-showcase": "schema_showcase.py",
}
PATHS = {"combined-registration": "/mcp_combined", "complex-tool-schema": "/mcp_scheduler"}


@contextlib.asynccontextmanager
async def client_of(case):
    example = case["example"]
    program = PROGRAMS[example]
    if case["transport"] == "stdio":
        async with started(program, env=case.get("env"), revision=HANDSHAKE) as client:
            yield client
        return
    arguments = ["--http"] if example == "mcp-apps" else []
    async with connected(program, *arguments, path=PATHS.get(example, "/mcp"), revision=HANDSHAKE) as client:
        yield client


def test_every_recorded_example_has_a_program():
    assert len(CASES) == 64
    assert {case["example"] for case in CASES} == set(PROGRAMS)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
async def test_an_example_answers_what_was_recorded(case):
    answer = error = None
    async with client_of(case) as client:
        try:
            answer = await client.request(case["method"], case["params"])
        except RemoteError as raised:
            error = raised
    expected, answer = normalize(case, answer, error)
    assert answer == expected
