"""A list that a server cuts is told as that before anything of it is recorded, and does not pass for a reviewed one."""

import json
import sys

import pytest

from mcprelay.cli.exit import explain
from mcprelay.errors import CallLimitExceeded, Evidence
from mcprelay.relay.lock import Lock, load, save
from mcprelay.relay.pins import define
from tests.cli.test_locking import at_a_terminal, run

SERVED = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    tool = {"name": "search", "inputSchema": {"type": "object"}}
    kept = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    answers = {
        "server/discover": {"supportedVersions": [VERSION], "capabilities": {"tools": {}}, **kept},
        "tools/list": {"tools": [tool], "nextCursor": CURSOR, **kept},
    }
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answers[message["method"]]}), flush=True)
"""


def place_of(folder, cursor, more=""):
    from mcprelay.revisions import NEWEST

    said = SERVED.replace("VERSION", repr(NEWEST.name)).replace("CURSOR", repr(cursor))
    (folder / "served.py").write_text(said)
    command = json.dumps([sys.executable, "served.py"])
    (folder / "mcprelay.toml").write_text(f'[servers.far]\ncommand = {command}\ncwd = "."\n{more}')
    return folder


@pytest.mark.parametrize(
    ("cursor", "why"), [("same", "gave the same cursor twice"), (7, "a cursor is a string, not 7")]
)
def test_a_list_that_was_cut_is_told_before_it_is_recorded_and_does_not_pass(tmp_path, cursor, why):
    place = place_of(tmp_path, cursor)
    recorded = run("lock", "--yes", cwd=place)
    assert recorded.returncode == 1
    said = recorded.stderr
    assert "far: the list is not complete, or not clear: " in said
    assert said.index(why) < said.index("1 definition of far is recorded")
    assert "mcprelay.lock, of a list that is not complete, or not clear" in said
    assert set(load(place / "mcprelay.lock").section("far").tools) == {"search"}
    checked = run("lock", "--check", cwd=place)
    assert checked.returncode == 1
    assert why in checked.stdout
    (facts,) = json.loads(run("lock", "--check", "--json", cwd=place).stdout)
    assert (facts["same"], facts["complete"]) == (True, False)
    assert any(why in warning for warning in facts["warnings"])


def test_what_was_reviewed_stays_reviewed_where_a_list_was_cut_before_it(tmp_path):
    place = place_of(tmp_path, "same")
    path = place / "mcprelay.lock"
    behind = define({"name": "behind", "description": "Behind the cut.", "inputSchema": {"type": "object"}})
    before = define({"name": "search", "description": "Another.", "inputSchema": {"type": "object"}})
    save(path, Lock().reviewed("far", [behind, before], revision=None))
    assert run("lock", "--yes", cwd=place).returncode == 1
    tools = load(path).section("far").tools
    assert set(tools) == {"search", "behind"}
    assert tools["behind"].digest == behind.digest
    assert tools["search"].digest != before.digest
    place_of(tmp_path, None)
    recorded = run("lock", "--yes", cwd=place)
    assert recorded.returncode == 0
    assert "not complete" not in recorded.stderr
    assert set(load(path).section("far").tools) == {"search"}


def test_a_person_who_records_a_list_that_was_cut_is_told_in_the_exit_code_too(tmp_path):
    seen, ended = at_a_terminal(place_of(tmp_path, "same"), "lock", answers=[b"y\n"])
    assert "of a list that is not complete, or not clear" in seen
    assert ended == 1


def test_a_list_that_ends_at_a_limit_is_not_recorded(tmp_path):
    place = place_of(tmp_path, "x" * 9_000)
    recorded = run("lock", "--yes", cwd=place)
    assert recorded.returncode == 1
    assert "cursor_bytes=8192" in recorded.stderr
    assert not (place / "mcprelay.lock").exists()


def test_a_list_that_ends_in_a_failure_is_not_recorded(tmp_path):
    place = place_of(tmp_path, "next")
    served = (place / "served.py").read_text()
    ends = 'if message.get("params", {}).get("cursor"): sys.exit(3)'
    (place / "served.py").write_text(served.replace("    tool =", f"    {ends}\n    tool ="))
    recorded = run("lock", "--yes", cwd=place)
    assert recorded.returncode == 4
    assert "exited with code 3" in recorded.stderr
    assert not (place / "mcprelay.lock").exists()


def test_a_list_is_read_within_the_limits_of_the_settings_where_they_allow_more(tmp_path):
    place = place_of(tmp_path, "x" * 9_000, "limits = { cursor_bytes = 5 }\n")
    refused = run("tools", "far", cwd=place)
    assert "cursor_bytes=8192" in refused.stderr
    assert "For a server in mcprelay.toml it is limits.cursor_bytes." in refused.stderr
    place = place_of(tmp_path, "x" * 9_000, "limits = { cursor_bytes = 10_000 }\n")
    assert run("tools", "far", cwd=place).returncode == 0


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("list_items", "Raise list_items to allow more. For a server in mcprelay.toml it is limits.tools."),
        ("stderr_bytes", "Raise stderr_bytes to allow more."),
    ],
)
def test_a_limit_is_told_by_its_name_in_the_settings_where_it_has_one(limit, said):
    error = CallLimitExceeded(limit, 5, evidence=Evidence.ANSWERED)
    assert explain(error).sentence.endswith(said)
