"""What the suite leaves behind is read right, also when it crashes or hangs."""

import stat
from pathlib import Path

import pytest

from tests.conformance.suite import Check, Suite

CHECK = '{"id":"a","name":"A","status":"SUCCESS","description":"fine"}'


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """A suite whose program is a shell script that a test writes."""
    program = tmp_path / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    program.parent.mkdir(parents=True)
    (tmp_path / "node_modules" / ".bin").mkdir()
    (tmp_path / "node_modules" / ".bin" / "node").symlink_to("/bin/sh")
    return Suite(home=tmp_path)


def say(suite: Suite, script: str) -> None:
    program = suite.home / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    output = 'while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done\n'
    program.write_text(output + script)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_a_client_scenario_is_read_with_its_exit_code(suite: Suite):
    say(suite, f"mkdir -p $out/x; echo '[{CHECK}]' > $out/x/checks.json; echo 'CLIENT TIMED OUT' >&2; exit 1")
    run = suite.run_client_scenario("true", "2025-11-25", "initialize")
    assert run.checks == (Check("a", "A", "SUCCESS", "fine"),)
    assert (run.exit_code, run.timed_out) == (1, True)


def test_a_server_run_is_told_apart_by_folder_and_what_did_not_run_is_there_without_checks(suite: Suite):
    say(suite, f"d=$out/server-ping-2026-01-01T00-00-00-000Z; mkdir -p $d; echo '[{CHECK}]' > $d/checks.json")
    runs = {run.scenario: run for run in suite.run_server("http://localhost:1/mcp", "2025-11-25")}
    assert runs.keys() == set(suite.scenarios("server", "2025-11-25"))
    assert [name for name, run in runs.items() if run.checks] == ["ping"]


def test_a_scenario_whose_name_begins_like_the_folder_keeps_its_name(suite: Suite):
    say(suite, f"d=$out/server-server-initialize-2026-01-01T00-00Z; mkdir -p $d; echo '[{CHECK}]' > $d/checks.json")
    runs = suite.run_server("http://localhost:1/mcp", "2025-11-25")
    assert [run.scenario for run in runs if run.checks] == ["server-initialize"]


def test_a_crash_leaves_a_run_without_checks(suite: Suite):
    say(suite, "echo boom >&2; exit 3")
    run = suite.run_server_scenario("http://localhost:1/mcp", "2025-11-25", "ping")
    assert (run.checks, run.exit_code, run.output.strip()) == ((), 3, "boom")


def test_a_suite_that_hangs_is_ended(suite: Suite):
    say(suite, "exec sleep 30")
    suite.timeout = suite.grace = 0.05
    run = suite.run_client_scenario("true", "2025-11-25", "initialize")
    assert (run.checks, run.exit_code) == ((), 124)


def test_a_suite_that_is_not_installed_says_how_to_install_it(tmp_path: Path):
    with pytest.raises(SystemExit, match="make conformance"):
        Suite(home=tmp_path).run_client_scenario("true", "2025-11-25", "initialize")


def test_extension_scenarios_run_without_a_version_and_others_with_theirs(suite: Suite):
    program = suite.home / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    program.write_text('echo "$@"')
    assert "--spec-version" not in suite.run_server_scenario("u", "ext", "tasks-lifecycle").output
    assert "--spec-version 2025-11-25" in suite.run_server_scenario("u", "2025-11-25", "ping").output
