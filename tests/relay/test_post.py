"""Why a tool that was offered is not called any more: what is so is told, to the model and to the program."""

import json

import pytest

from mcprelay.errors import DeadlineExceeded, Evidence, ResponseInvalid
from mcprelay.relay import DefinitionChanged, DefinitionRefused, Lock, Relay, ServerUnreachable
from mcprelay.relay.lock import save
from mcprelay.relay.pins import define
from tests.relay.far import ADD, SEARCH, Far, settle

OTHER = {**SEARCH, "description": "Another."}
TWICE = {**SEARCH, "inputSchema": {"type": "object", "TYPE": "object"}}
"""What has a member twice, once it is written in small letters: no definition any more."""
LOCK = Lock().reviewed("far", [define(SEARCH)], revision=None)


def written(*tools):
    return json.dumps(tools).replace("TYPE", "type").encode()


@pytest.fixture
async def held(tmp_path):
    """A server, its lock file, and the tool as it was offered."""
    far, path = Far(), tmp_path / "mcprelay.lock"
    far.tools = written(SEARCH)
    save(path, LOCK)
    async with Relay(servers={"far": {"target": far, "allow": "*", "cache": 0}}, lock=path) as relay:
        yield far, path, (await relay.tools())["far__search"]


def required(framed, kind):
    with pytest.raises(kind) as caught:
        framed.require()
    return str(caught.value)


@pytest.mark.parametrize("now", [Lock(), Lock().reviewed("far", [define(ADD)], revision=None)])
async def test_a_tool_whose_review_is_gone_from_the_lock_file_is_not_said_to_have_changed(held, now):
    far, path, search = held
    save(path, now)
    framed = await search(q="x")
    assert framed.code == "definition"
    assert framed.text == (
        "No review of this tool is on record any more, so this application has withdrawn it. Go on without it."
    )
    assert required(framed, DefinitionRefused) == (
        "far__search: search of the server 'far' is not in the lock file, or not any more, so it is not called;"
        " `mcprelay lock far` reviews it"
    )
    assert not far.of("tools/call")


async def test_a_tool_of_which_another_definition_was_reviewed_meanwhile_is_told_as_that(held):
    _, path, search = held
    save(path, Lock().reviewed("far", [define(OTHER)], revision=None))
    framed = await search(q="x")
    assert framed.text == (
        "This tool is not the one that was reviewed, so this application has withdrawn it. Go on without it."
    )
    assert "far__search: search of the server 'far'" in required(framed, DefinitionChanged)


@pytest.mark.parametrize("now", [[OTHER], [ADD], [TWICE]])
async def test_a_tool_that_the_server_changed_or_took_away_is_told_as_that(held, now):
    far, _, search = held
    far.tools = written(*now)
    framed = await search(q="x")
    assert framed.text == (
        "The server of this tool has changed it, or offers it no more, so this application has withdrawn it. Go on"
        " without it."
    )
    assert "has another definition there now, or none" in required(framed, DefinitionRefused)


async def test_a_list_that_cannot_be_had_says_nothing_of_the_tool(held, monkeypatch):
    far, _, search = held

    async def invalid(*_, **__):
        raise ResponseInvalid("x")

    station = (await search._post.reached()).station
    monkeypatch.setattr(station._client, "list_tools", invalid)
    framed = await search(q="x")
    assert framed.text == (
        "The server's list of tools cannot be had now, so nothing says whether this tool is still what was offered,"
        " and the call was not made. Go on without it."
    )
    assert "far__search: the tools of the server 'far' (Far) cannot be listed" in required(framed, DefinitionRefused)
    await settle()
    assert not far.of("tools/call")


async def test_a_server_that_is_lost_on_the_way_to_the_call_had_nothing_of_the_call(held, monkeypatch):
    _, _, search = held

    async def late(*_, **__):
        raise DeadlineExceeded("x", evidence=Evidence.MAYBE_SENT)

    station = (await search._post.reached()).station
    monkeypatch.setattr(station._client, "list_tools", late)
    framed = await search(q="x")
    assert framed.text == "The call was not answered in time. Nothing was sent, so the call can be made again."
    assert "far__search: the server 'far' (Far): The call was not answered in time." in required(
        framed, ServerUnreachable
    )
