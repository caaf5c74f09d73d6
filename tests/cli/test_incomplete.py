"""A list that a server cuts is told as that before anything of it is recorded, and does not pass for a reviewed one."""

import json
import sys

import pytest

from mcprelay.cli.exit import explain
from mcprelay.errors import CallLimitExceeded, Evidence
from mcprelay.relay.lock import load
from tests.cli.test_locking import run

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
    said = recorded.stderr
    assert "far: the list is not complete, or not clear: " in said
    assert said.index(why) < said.index("1 definitions of far are recorded")
    assert set(load(place / "mcprelay.lock").section("far").tools) == {"search"}
    checked = run("lock", "--check", cwd=place)
    assert checked.returncode == 1
    assert why in checked.stderr
    (facts,) = json.loads(run("lock", "--check", "--json", cwd=place).stdout)
    assert (facts["same"], facts["complete"]) == (True, False)
    assert any(why in warning for warning in facts["warnings"])


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
