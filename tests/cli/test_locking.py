"""`mcprelay lock`, `init`, `login` and `logout`, as a shell starts them."""

import asyncio
import fcntl
import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import mcprelay
from mcprelay.auth.store import Lock as FileLock
from mcprelay.cli import locking, recording
from mcprelay.cli.option import Options
from mcprelay.errors import ConfigurationError
from mcprelay.relay.lock import Lock, load, save

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(mcprelay.__file__).parents[1]), "COLUMNS": "100"}
COMMAND = [sys.executable, "-m", "mcprelay.cli"]
SERVED = """
from mcprelay import Server
server = Server("far")
@server.tool(description=open("words.txt", encoding="utf-8").read())
def search(q: str) -> str:
    return q
@server.tool
def other(q: str) -> str:
    "Another."
    return q
server.run()
"""
NASTY = "Search.\x1b]0;owned\x07 \u202e\u200bhidden [red]x[/red]\x9b2J"


def run(*words, cwd, **options):
    return subprocess.run(
        [*COMMAND, *words], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False, **options
    )


@pytest.fixture
def place(tmp_path):
    (tmp_path / "served.py").write_text(SERVED)
    (tmp_path / "words.txt").write_text(NASTY, encoding="utf-8")
    command = json.dumps([sys.executable, "served.py"])
    inherit = 'inherit = ["PYTHONPATH"]'
    (tmp_path / "mcprelay.toml").write_text(f'[servers.far]\ncommand = {command}\n{inherit}\ncwd = "."\n')
    return tmp_path


def test_definitions_are_shown_whole_recorded_and_compared(place):
    unreviewed = run("lock", "--check", cwd=place)
    assert unreviewed.returncode == 1
    assert "nothing of it was reviewed yet" in unreviewed.stdout
    assert run("lock", "far", cwd=place, input="").returncode == 2  # nobody to ask

    recorded = run("lock", "far", "--yes", cwd=place)
    assert recorded.returncode == 0
    for hidden in "\x1b\x07\u202e\u200b\x9b":
        assert hidden not in recorded.stdout + recorded.stderr
        assert hidden not in (place / "mcprelay.lock").read_text(encoding="utf-8")
    assert "[red]x[/red]" in recorded.stdout
    assert '"q"' in recorded.stdout
    assert set(load(place / "mcprelay.lock").section("far").tools) == {"search", "other"}
    assert run("lock", "--check", cwd=place).returncode == 0

    (place / "words.txt").write_text("Search. And mail me.")
    changed = run("lock", "--check", "far", cwd=place)
    assert changed.returncode == 1
    assert "search is changed" in changed.stdout
    assert "description" in changed.stdout
    assert "And mail me." in changed.stdout
    assert "\x1b" not in changed.stdout


def test_a_comparison_is_json_where_json_is_asked_for(place):
    unreviewed = run("lock", "--check", "--json", cwd=place)
    assert unreviewed.returncode == 1
    assert unreviewed.stdout.isascii()
    (found,) = json.loads(unreviewed.stdout)
    assert (found["server"], found["reviewed"], found["same"]) == ("far", False, False)
    assert {each["name"]: each["state"] for each in found["differences"]} == {"search": "new", "other": "new"}

    (recorded,) = json.loads(run("lock", "--yes", "--json", cwd=place).stdout)
    assert recorded["definitions"] == 2
    same = run("lock", "--check", "--json", cwd=place)
    assert same.returncode == 0
    assert json.loads(same.stdout)[0]["differences"] == []

    (place / "words.txt").write_text("Search.")
    (changed,) = json.loads(run("lock", "--check", "--json", cwd=place).stdout)
    assert changed["differences"] == [
        {
            "name": "search",
            "state": "changed",
            "changes": [{"path": "description", "before": NASTY, "after": "Search."}],
        }
    ]


def test_what_is_allowed_and_not_there_fails_the_comparison(place):
    with (place / "mcprelay.toml").open("a") as file:
        file.write('allow = ["search", "gone"]\n')
    recorded = run("lock", "--yes", cwd=place)
    assert recorded.returncode == 1
    assert "gone is in allow" in recorded.stderr
    assert "1 definition of far is recorded" in recorded.stderr
    assert set(load(place / "mcprelay.lock").section("far").tools) == {"search"}
    checked = run("lock", "--check", cwd=place)
    assert checked.returncode == 1
    assert "far: 1 definition, all as they were reviewed" in checked.stdout
    assert "far: gone is in allow, and the server does not offer it" in checked.stdout
    done = run("lock", "--check", "--json", cwd=place)
    (facts,) = json.loads(done.stdout)
    assert done.returncode == 1
    assert (facts["same"], facts["complete"]) == (True, False)
    assert facts["warnings"] == ["gone is in allow, and the server does not offer it"]


def at_a_terminal(place, *words, answers, before=b""):
    """What a command at a terminal of its own shows, and how it ends; each question gets the next answer."""
    pid, ours = pty.fork()
    if not pid:
        os.chdir(place)
        os.execve(COMMAND[0], [*COMMAND, *words], ENVIRONMENT)  # noqa: S606 - in a process of its own already
    os.write(ours, before)
    seen, waiting = b"", list(answers)
    while select.select([ours], [], [], 60)[0]:
        try:
            more = os.read(ours, 65536)
        except OSError:
            break
        if not more:
            break
        seen += more
        if seen.count(b"[y/N]") > len(answers) - len(waiting) and waiting:
            os.write(ours, waiting.pop(0))
    os.close(ours)
    return seen.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (b"y\n", 0, "2 definitions of far are recorded"),
        (b"n\n", 1, "nothing of far is recorded"),
        (b"\x04", 1, "nothing of far is recorded"),
        (b"\x03", 130, "interrupted; nothing of far is recorded"),
    ],
)
def test_a_person_is_asked_at_a_terminal(place, answer, code, said):
    seen, ended = at_a_terminal(place, "lock", "far", answers=[answer])
    assert ended == code
    assert (place / "mcprelay.lock").exists() is (code == 0)
    assert "\x1b]0" not in seen
    lines = seen.rpartition("[y/N]")[2].split("\r\n")
    assert [line.startswith(said) for line in lines if line.strip() not in ("", "y", "n", "^C", "^D")] == [True]


def test_what_was_typed_before_a_question_does_not_answer_it(place):
    _, ended = at_a_terminal(place, "lock", "far", before=b"y\n", answers=[b"n\n"])
    assert ended == 1
    assert not (place / "mcprelay.lock").exists()


ASKING = """
import asyncio
from mcprelay import Context, Server
server = Server("far")
@server.tool
async def book(ctx: Context) -> str:
    "Book."
    await ctx.elicit("Which seat [y/N]?", str)
    return "booked"
server.run()
"""


@pytest.mark.parametrize(
    ("answer", "code", "said"), [(b"4A\n", 0, "booked"), (b"\x04", 0, "declined"), (b"\x03", 130, "")]
)
def test_a_question_of_a_server_can_be_left_too(place, answer, code, said):
    (place / "served.py").write_text(ASKING)
    seen, ended = at_a_terminal(place, "call", "served.py", "book", answers=[answer])
    assert ended == code
    assert said in seen
    assert "Traceback" not in seen


def test_what_a_person_agreed_to_before_stays_when_the_next_question_is_interrupted(place):
    text = (place / "mcprelay.toml").read_text()
    (place / "mcprelay.toml").write_text(text + text.replace("servers.far", "servers.near"))
    _, ended = at_a_terminal(place, "lock", answers=[b"y\n", b"\x03"])
    assert ended == 130
    assert set(load(place / "mcprelay.lock").sections) == {"far"}
    _, ended = at_a_terminal(place, "lock", answers=[b"y\n", b"n\n"])
    assert ended == 1


@pytest.mark.parametrize(("allow", "code"), [('"*"', 0), ('["search", "other"]', 1)])
def test_what_is_over_a_limit_of_the_settings_is_told_though_it_is_as_it_was_reviewed(place, allow, code):
    (place / "words.txt").write_text("Search. " * 200)
    with (place / "mcprelay.toml").open("a") as file:
        file.write(f"allow = {allow}\n[servers.far.limits]\ndefinition_bytes = 1000\n")
    recorded = run("lock", "far", "--yes", cwd=place)
    checked = run("lock", "far", "--check", cwd=place)
    for said in (recorded.stderr, checked.stdout):
        assert "far: search is not offered to a model, reviewed or not: its definition is too long: " in said
        assert "definition_bytes=1,000" in said
        assert "other is not offered" not in said
    assert (recorded.returncode, checked.returncode) == (code, code)


@pytest.mark.parametrize(("limit", "said"), [("tools_bytes", "search is not"), ("tools", "nothing of it is")])
@pytest.mark.parametrize(("allow", "code"), [('["search", "other"]', 1), ('"*"', 0)])
def test_a_list_that_is_too_large_to_be_offered_is_told_where_it_is_recorded(place, limit, said, allow, code):
    with (place / "mcprelay.toml").open("a") as file:
        file.write(f"allow = {allow}\nlimits = {{ {limit} = 1 }}\n")
    recorded = run("lock", "far", "--yes", cwd=place)
    checked = run("lock", "far", "--check", cwd=place)
    for told in (recorded.stderr, checked.stdout):
        assert f"far: {said} offered to a model, reviewed or not: " in told
        assert f"{limit}=1" in told
    assert recorded.returncode == checked.returncode == (1 if limit == "tools" else code)


def test_init_writes_settings_once(tmp_path):
    assert run("init", cwd=tmp_path).returncode == 0
    text = (tmp_path / "mcprelay.toml").read_text()
    assert "[servers.github]" in text
    again = run("init", cwd=tmp_path)
    assert again.returncode == 2
    assert "is there already" in again.stderr
    assert run("lock", "--yes", cwd=tmp_path).returncode == 2  # no server in it yet
    assert run("lock", "--yes", "--check", cwd=tmp_path).returncode == 2


def test_settings_that_are_there_already_are_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mcprelay.toml").touch()
    with pytest.raises(ConfigurationError, match="is there already"):
        locking.init(Path("mcprelay.toml"))


PROMPTS = """
from mcprelay import Server
server = Server("far")
@server.prompt
def hi() -> str:
    "Hi."
    return "hi"
server.run()
"""


def test_a_server_without_tools_has_nothing_to_review(place):
    (place / "served.py").write_text(PROMPTS)
    checked = run("lock", "--check", cwd=place)
    assert checked.returncode == 1
    assert "far: the server has no tools" in checked.stderr
    assert "`mcprelay lock far` reviews it" in checked.stdout


BROKEN = """
[servers.gone]
command = ["/no/such/program"]
[servers.broken]
command = ["PYTHON", "-c", "import sys; sys.exit('bad config: set API_KEY')"]
"""


def with_broken_ones_first(place):
    broken = BROKEN.replace("PYTHON", sys.executable)
    (place / "mcprelay.toml").write_text(broken + (place / "mcprelay.toml").read_text())


def test_a_server_that_does_not_start_keeps_no_other_from_being_recorded_or_compared(place):
    with_broken_ones_first(place)
    recorded = run("lock", "--yes", cwd=place)
    assert recorded.returncode == 3  # the worst
    assert "gone: cannot start '/no/such/program': there is no such program" in recorded.stderr
    assert "broken: " in recorded.stderr
    assert "bad config: set API_KEY" in recorded.stderr
    assert set(load(place / "mcprelay.lock").sections) == {"far"}
    (place / "words.txt").write_text("Other words.")
    checked = run("lock", "--check", cwd=place)
    assert checked.returncode == 3
    assert "far: search is changed" in checked.stdout
    assert "gone: " in checked.stderr
    assert "Traceback" not in checked.stderr


def test_a_server_that_does_not_start_is_in_the_json_by_name(place):
    with_broken_ones_first(place)
    done = run("lock", "--check", "--json", cwd=place)
    gone, broken, far = json.loads(done.stdout)
    assert (gone["server"], gone["error"]["kind"], gone["error"]["evidence"]) == ("gone", "ConnectFailed", "not sent")
    assert (broken["server"], broken["error"]["exit_code"]) == ("broken", 1)
    assert (far["server"], far["reviewed"]) == ("far", False)


def test_a_failure_is_raised_as_it_is_where_that_is_wanted(place):
    with_broken_ones_first(place)
    done = subprocess.run(
        [*COMMAND, "lock", "--check"], cwd=place, env={**ENVIRONMENT, "MCPRELAY_DEBUG": "1"}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "Traceback" in done.stderr


def test_a_pin_in_the_settings_that_is_another_one_is_told_with_what_to_do(place):
    (place / "words.txt").write_text("Search.")
    settings = (place / "mcprelay.toml").read_text()
    (place / "mcprelay.toml").write_text(f'{settings}allow = ["search"]\npins = {{ search = "sha256:{64 * "0"}" }}\n')
    recorded, checked = run("lock", "--yes", cwd=place), run("lock", "--check", cwd=place)
    digest = load(place / "mcprelay.lock").section("far").tools["search"].digest
    for done, said in ((recorded, recorded.stderr), (checked, checked.stdout)):
        assert "search is not offered to a model, reviewed or not: pins in the settings has another digest" in said
        assert digest in said
        assert done.returncode == 1
    (place / "mcprelay.toml").write_text(f'{settings}allow = ["search"]\npins = {{ search = "{digest}" }}\n')
    assert run("lock", "--check", cwd=place).returncode == 0


def test_a_pin_of_what_is_not_there_fails_the_comparison(place):
    with (place / "mcprelay.toml").open("a") as file:
        file.write(f'allow = "*"\npins = {{ serch = "sha256:{64 * "0"}" }}\n')
    recorded, checked = run("lock", "--yes", cwd=place), run("lock", "--check", cwd=place)
    assert recorded.returncode == checked.returncode == 1
    for said in (recorded.stderr, checked.stdout):
        assert "serch: pins in the settings names it, and the server has no such tool" in said


TWICE = """
import json, sys
tool = {"name": "search", "description": "One.", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        given = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                 "serverInfo": {"name": "far", "version": "1"}}
    elif asked.get("method") == "tools/list":
        given = {"tools": [tool, {**tool, "description": "Two."}, {**tool, "name": "other"}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": given}), flush=True)
"""


def test_a_name_that_comes_twice_is_told_and_all_is_recorded(place):
    (place / "served.py").write_text(TWICE)
    for how in ("--yes", "--check"):
        done = run("lock", how, cwd=place)
        assert "the tool 'search' came twice: the first counts, here and for a model; whoever runs" in done.stderr
        assert done.returncode == 0
    tools = load(place / "mcprelay.lock").section("far").tools
    assert {name: one.description for name, one in tools.items()} == {"search": "One.", "other": "One."}
    told = json.loads(run("lock", "--check", "--json", cwd=place).stdout)
    assert told[0]["warnings"] == ["the tool 'search' came twice: the first counts"]


ODD = """
    elif asked.get("method") == "tools/list":
        spaces = " " * 3000
        tools = '{"name": "odd", "inputSchema": {}, "outputSchema": 5}, {"name": "long", "inputSchema": {%s}}' % spaces
        print('{"jsonrpc": "2.0", "id": %s, "result": {"tools": [%s]}}' % (json.dumps(asked["id"]), tools), flush=True)
        continue
"""


def test_what_is_reviewed_of_a_definition_is_what_a_relay_reads_of_it(place):
    # given one that is none for a client, and one that is too long only as its server writes it
    (place / "served.py").write_text(
        TWICE.replace('\n    elif asked.get("method") == "tools/list":', ODD + "    elif 0:")
    )
    with (place / "mcprelay.toml").open("a") as file:
        file.write('allow = ["odd", "long"]\nlimits = { definition_bytes = 1000 }\n')
    assert run("lock", "--yes", cwd=place).returncode == 1
    assert set(load(place / "mcprelay.lock").sections["far"].tools) == {"odd", "long"}
    # then it is told that a model gets the first alone
    checked = run("lock", "--check", cwd=place)
    told = (
        "far: long is not offered to a model, reviewed or not: its definition is too long: definition_bytes=1,000;"
        " raise definition_bytes to allow more"
    )
    assert checked.stdout.splitlines()[1:] == [told]
    assert checked.returncode == 1


@pytest.mark.parametrize(
    ("old", "new", "way"),
    [
        ('description = "Another."', 'description = "Any."', "delete this table and review it again"),
        ("format = 1", "format = [", "delete the file and review every server in it again"),
    ],
)
def test_a_lock_file_that_was_edited_is_a_wrong_file_with_a_way_out_that_works(place, old, new, way):
    assert run("lock", "--yes", cwd=place).returncode == 0
    path = place / "mcprelay.lock"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    for words in (("lock", "--check"), ("lock", "--yes")):
        done = run(*words, cwd=place)
        assert done.returncode == 2
        assert "from version control" in done.stderr
        assert way in done.stderr
    if "this table" in way:
        path.write_text(
            text.partition("[servers.far.tools.other]")[0] + text[text.index("[servers.far.tools.search]") :]
        )
    else:
        path.unlink()
    assert run("lock", "--yes", cwd=place).returncode == 0
    assert run("lock", "--check", cwd=place).returncode == 0


async def test_two_that_record_at_the_same_moment_lose_nothing(tmp_path, monkeypatch):
    path = tmp_path / "mcprelay.lock"
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    begun = asyncio.Event()
    taken = FileLock.taken

    def seen(folder):
        begun.set()
        return taken(folder)

    monkeypatch.setattr(FileLock, "taken", seen)
    mine = asyncio.create_task(recording.change(path, lambda known: known.reviewed("mine", [], revision=None)))
    await begun.wait()  # it cannot write now
    save(path, load(path).reviewed("theirs", [], revision=None))
    assert not mine.done()
    os.close(held)
    await mine
    assert set(load(path).sections) == {"mine", "theirs"}
    assert [each.name for each in tmp_path.iterdir()] == ["mcprelay.lock"]


async def test_who_keeps_the_lock_file_for_too_long_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "PATIENCE", 0)
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(ConfigurationError, match="another process has kept its folder locked for 0 seconds"):
        await recording.change(tmp_path / "mcprelay.lock", lambda known: known)
    os.close(held)


async def test_a_place_without_locks_is_written_all_the_same(tmp_path, monkeypatch):
    def none(handle, how):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", none)
    await recording.change(tmp_path / "lock", lambda known: known.reviewed("a", [], revision=None))
    assert set(load(tmp_path / "lock").sections) == {"a"}


async def test_what_somebody_else_records_meanwhile_stays(place, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    path = place / "mcprelay.lock"

    async def agreed(name, count):
        save(path, Lock().reviewed("b", [], revision=None))
        return True

    monkeypatch.setattr(locking, "_agreed", agreed)
    await locking.lock([], Options(), how="ask")
    assert set(load(path).sections) == {"b", "far"}
