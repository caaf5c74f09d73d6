"""The next start imports what it must and nothing else, and never serves what is not so any more."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcprelay import ConfigurationError, Server
from tests.server.rawclient import RawClient

if TYPE_CHECKING:
    from mcprelay.server.discovery import Found
    from tests.server.discovery.conftest import Program

ADD = '''
@tool(tags=["math"], requires=[])
def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: The first.
    """
    return a + b
'''
ALL = (
    ADD
    + """
from typing import Annotated, Literal

@resource("config://app", mime_type="application/json", size=3)
def settings() -> dict: return {"precision": 2}

@resource("user://{name}")
def user(name: Annotated[str, Complete(["ada", "bob"])]) -> str: return name

@prompt(title="Review")
def review(tone: Literal["kind", "harsh"]) -> str: return tone
"""
)


def start(program: Program, cache: Any, **options: Any) -> tuple[Server, Found]:
    """What a new process would find."""
    program.forget()
    server = program.server()
    return server, server.discover(program / "app", cache=cache, **options)


def imported(program: Program) -> list[str]:
    """The files of the program that are imported at the moment."""
    files = [Path(getattr(module, "__file__", None) or "/") for module in list(sys.modules.values())]
    return sorted(file.name for file in files if file.is_relative_to(program.root))


async def asked(server: Server, method: str, **params: Any) -> dict[str, Any]:
    channel = server.connect()
    answer = await RawClient(channel).ask(method, params)
    await channel.aclose()
    return answer


async def lists(server: Server) -> list[Any]:
    methods = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
    return [(await asked(server, method))["result"] for method in methods]


def text_of(cache: Path) -> str:
    return cache.read_text()


@pytest.fixture
def cache(program: Program) -> Path:
    return program / "kept" / "found.json"


async def test_the_next_start_lists_the_same_without_importing_anything(program: Program, cache: Path):
    program.write("app/x.py", ALL)
    program.write("app/nothing.py", "import sys\nsys.nothing = 1")
    first, found = start(program, cache)
    assert (found.skipped, imported(program)) == (0, ["nothing.py", "x.py"])
    expected = await lists(first)

    second, again = start(program, cache)

    assert (again.skipped, again.files, imported(program)) == (2, 2, [])
    assert (again.tools, again.resources, again.prompts) == (found.tools, found.resources, found.prompts)
    assert await lists(second) == expected
    assert second.catalog.tools.entries["add"].tags == {"math"}


async def test_what_was_not_imported_is_when_it_is_called(program: Program, cache: Path):
    program.write("app/x.py", ALL)
    start(program, cache)
    server, _ = start(program, cache)

    reads = [
        await asked(server, "tools/call", name="add", arguments={"a": 1}),
        await asked(server, "resources/read", uri="config://app"),
        await asked(server, "resources/read", uri="user://ada"),
        await asked(server, "prompts/get", name="review", arguments={"tone": "kind"}),
    ]

    assert imported(program) == ["x.py"]
    assert reads[0]["result"]["structuredContent"] == 3
    assert json.loads(reads[1]["result"]["contents"][0]["text"]) == {"precision": 2}
    assert reads[2]["result"]["contents"][0]["text"] == "ada"
    assert reads[3]["result"]["messages"][0]["content"]["text"] == "kind"


async def test_completions_of_what_was_not_imported(program: Program, cache: Path):
    program.write("app/x.py", ALL)
    start(program, cache)
    server, _ = start(program, cache)

    async def complete(ref: dict[str, str], argument: str) -> dict[str, Any]:
        answer = await asked(server, "completion/complete", ref=ref, argument={"name": argument, "value": ""})
        completion: dict[str, Any] = answer["result"]["completion"]
        return completion

    assert (await complete({"type": "ref/prompt", "name": "review"}, "tone"))["values"] == ["kind", "harsh"]
    assert (await complete({"type": "ref/resource", "uri": "user://{name}"}, "name"))["values"] == ["ada", "bob"]
    assert (await complete({"type": "ref/prompt", "name": "review"}, "nothing"))["values"] == []


@pytest.mark.parametrize("where", ["the file", "a file it imports", "a file that this one imports"])
def test_a_change_of_what_it_rests_on_makes_a_file_be_imported(program: Program, cache: Path, where: str, monkeypatch):
    monkeypatch.syspath_prepend(program.root)
    program.write("deep.py", "LIMIT = 5")
    program.write("model.py", "from deep import LIMIT")
    shown = "from model import LIMIT\n" + ADD.replace("b: int = 2", "b: int = LIMIT")
    program.write("app/x.py", shown)
    program.write("app/y.py", ADD.replace("add", "other"))
    start(program, cache)
    assert start(program, cache)[1].skipped == 2

    if where == "the file":
        program.write("app/x.py", shown.replace("= LIMIT", "= LIMIT + 1"))
    elif where == "a file it imports":
        program.write("model.py", "LIMIT = 6")
    else:
        program.write("deep.py", "LIMIT = 5 + 1")  # of another length: Python's own cache knows seconds and sizes
    server, found = start(program, cache)

    assert found.skipped == 1
    assert server.catalog.tools.entries["add"].definition.input_schema["properties"]["b"]["default"] == 6  # type: ignore[union-attr]
    assert start(program, cache)[1].skipped == 2


def test_a_broken_file_is_tried_again_at_each_start(program: Program, cache: Path):
    program.write("app/x.py", "import nothing_of_that_name")
    assert start(program, cache)[1].broken
    assert start(program, cache)[1].broken
    program.write("nothing_of_that_name.py", "")
    sys.path.insert(0, str(program.root))
    try:
        assert not start(program, cache)[1].broken
    finally:
        sys.path.remove(str(program.root))


def test_a_file_that_registers_by_hand_is_always_imported(program: Program, cache: Path):
    program.write("app/x.py", "import sys\nsys.by_hand.add_tool(lambda: 'x', name='by_hand')" + ADD)

    for _ in range(2):
        program.forget()
        server = program.server()
        sys.by_hand = server  # type: ignore[attr-defined]
        found = server.discover(program / "app", cache=cache)
        assert (found.skipped, sorted(server.catalog.tools.entries)) == (0, ["add", "by_hand"])
    del sys.by_hand  # type: ignore[attr-defined]
    assert "by_hand" not in (cache.read_text() if cache.exists() else "")


async def test_a_file_of_which_a_part_is_code_is_always_imported(program: Program, cache: Path):
    program.write("app/x.py", "@tool(visible=lambda principal: principal is None)\ndef f() -> str: return ''")
    program.write("app/y.py", "@resource('x://{y}', match=lambda uri: {'y': uri})\ndef g(y: str) -> str: return y")
    start(program, cache)

    server, found = start(program, cache)

    assert (found.skipped, found.tools, found.resources) == (0, ("f",), ("x://{y}",))
    assert (await asked(server, "resources/read", uri="any:thing"))["result"]["contents"][0]["text"] == "any:thing"


async def test_what_depends_on_more_than_code_is_exchanged_when_it_is_called(
    program: Program, cache: Path, monkeypatch, caplog
):
    text = "import os\n" + ADD.replace("b: int = 2", "b: int = int(os.environ['DEFAULT'])")
    program.write("app/x.py", text + "\nif os.environ['DEFAULT'] == '2':\n    gone = tool(name='gone')(lambda: 'x')")
    monkeypatch.setenv("DEFAULT", "2")
    assert start(program, cache)[1].tools == ("add", "gone")
    monkeypatch.setenv("DEFAULT", "7")
    server, found = start(program, cache)
    assert found.skipped == 1
    channel = server.connect()
    client = RawClient(channel)
    wanted = {"notifications": {"toolsListChanged": True}}
    await client.request("subscriptions/listen", wanted)
    assert (await client.receive())["method"] == "notifications/subscriptions/acknowledged"

    assert (await client.result("tools/call", {"name": "add", "arguments": {"a": 1}}))["structuredContent"] == 8
    assert (await client.error("tools/call", {"name": "gone", "arguments": {}}))["message"] == "Unknown tool: gone"

    assert "notifications/tools/list_changed" in [notice["method"] for notice in client.notices]
    listed = (await client.result("tools/list"))["tools"]
    assert [tool["name"] for tool in listed] == ["add"]
    assert listed[0]["inputSchema"]["properties"]["b"]["default"] == 7
    assert "is not so any more" in caplog.text
    await channel.aclose()


async def test_a_file_that_fails_when_it_is_imported_for_a_call_is_an_error_of_that_call(
    program: Program, cache: Path, monkeypatch
):
    program.write("app/x.py", "import os\nassert not os.environ.get('FAIL')\n" + ADD)
    start(program, cache)
    server, found = start(program, cache)
    assert found.skipped == 1
    monkeypatch.setenv("FAIL", "1")

    assert (await asked(server, "tools/call", name="add", arguments={"a": 1}))["result"]["isError"]
    monkeypatch.delenv("FAIL")
    assert (await asked(server, "tools/call", name="add", arguments={"a": 1}))["result"]["structuredContent"] == 3


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"format": 1', "null", "[]", '{"format":1,"made_by":"x","files":{"y":{"digest":1}}}', "\x00\xff"],
)
def test_a_cache_that_cannot_be_read_is_as_if_it_were_not_there(program: Program, cache: Path, text: str, caplog):
    program.write("app/x.py", ADD)
    cache.parent.mkdir()
    cache.write_text(text, encoding="latin-1")

    assert start(program, cache)[1].tools == ("add",)
    assert "cannot be read" in caplog.text
    assert start(program, cache)[1].skipped == 1


def test_half_of_a_cache_is_as_if_it_were_not_there(program: Program, cache: Path):
    program.write("app/x.py", ADD)
    start(program, cache)
    whole = cache.read_bytes()
    for length in range(0, len(whole), 37):
        cache.write_bytes(whole[:length])
        assert start(program, cache, save=False)[1].skipped == 0
    assert list(cache.parent.iterdir()) == [cache], "what is written meanwhile is gone"


def test_a_cache_of_another_version_or_format_is_not_used(program: Program, cache: Path):
    program.write("app/x.py", ADD)
    start(program, cache)
    kept = json.loads(cache.read_text())
    for change in ({"format": 0}, {"made_by": "mcprelay 0.0.0"}):
        cache.write_text(json.dumps({**kept, **change}))
        assert start(program, cache)[1].skipped == 0
    program.forget()
    strict = Server("strict", strict=True)
    assert strict.discover(program / "app", cache=cache).skipped == 0


def test_without_save_the_cache_is_left_alone(program: Program, cache: Path):
    program.write("app/x.py", ADD)
    start(program, cache, save=False)
    assert not cache.exists()
    start(program, cache)
    before = cache.read_bytes()
    program.write("app/x.py", ADD.replace("add", "changed"))

    assert start(program, cache, save=False)[1].tools == ("changed",)

    assert cache.read_bytes() == before


def test_a_forced_scan_does_not_trust_the_cache_and_writes_it_anew(program: Program, cache: Path):
    program.write("app/x.py", ADD)
    start(program, cache)
    server, found = start(program, cache, force=True)
    assert (found.skipped, imported(program)) == (0, ["x.py"])
    (program / "app/x.py").unlink()

    assert server.discover(program / "app", cache=cache, force=True).tools == ()

    assert not cache.exists()


class Store(dict[str, str]):
    def set(self, key: str, value: str) -> None:
        self[key] = value

    def delete(self, key: str) -> None:
        self.pop(key, None)


def test_a_cache_may_be_an_object_and_keeps_different_folders_apart(program: Program):
    program.write("app/x.py", ADD)
    program.write("more/y.py", ADD)
    store = Store()
    start(program, store)
    program.server().discover(program / "more", cache=store)

    assert len(store) == 2
    assert start(program, store)[1].skipped == 1
    store.update({key: value.encode() for key, value in store.items()})  # type: ignore[misc]
    assert start(program, store)[1].skipped == 1


def test_a_store_that_fails_stops_nothing(program: Program, caplog):
    class Down:
        def get(self, *_: str) -> None:
            raise ConnectionError("down")

        set = delete = get

    program.write("app/x.py", ADD)

    assert start(program, Down())[1].tools == ("add",)
    assert caplog.text.count("down") == 2
    with pytest.raises(ConfigurationError, match="an object with get, set and delete"):
        start(program, 5)


async def test_what_is_registered_by_hand_wins_over_a_cache_and_is_never_in_it(program: Program, cache: Path):
    program.write("app/x.py", ADD)
    program.forget()
    server = program.server()
    server.add_tool(lambda: "by hand", name="add")
    server.add_tool(lambda: "by hand", name="mine")
    server.discover(program / "app", cache=cache)
    assert "mine" not in text_of(cache)

    server, found = start(program, cache)
    server.add_tool(lambda: "by hand", name="add")

    assert found.skipped == 1
    answer = await asked(server, "tools/call", name="add", arguments={})
    assert answer["result"]["content"][0]["text"] == "by hand"
    assert imported(program) == []


async def test_one_call_of_many_at_once_imports_a_file(program: Program, cache: Path):
    import asyncio

    program.write("app/x.py", "import sys\nsys.counted = getattr(sys, 'counted', 0) + 1\n" + ADD)
    start(program, cache)
    server, _ = start(program, cache)
    sys.counted = 0  # type: ignore[attr-defined]

    answers = await asyncio.gather(
        *(asked(server, "tools/call", name="add", arguments={"a": number}) for number in range(8))
    )

    assert [answer["result"]["structuredContent"] for answer in answers] == list(range(2, 10))
    assert sys.counted == 1  # type: ignore[attr-defined]
    del sys.counted  # type: ignore[attr-defined]
