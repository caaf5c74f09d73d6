"""Recorded halves of clients and servers of other people, played to our server and our client (see tests/interop)."""

import pytest

from mcprelay import Client
from mcprelay.client.memory import Memory
from tests.interop.house import make
from tests.interop.record import RECORDED, name_of
from tests.interop.run import CLIENTS, SERVERS
from tests.interop.visit import ANSWERS, use_everything
from tests.matrix import conversation
from tests.matrix.conversation import RecordedServer
from tests.matrix.tape import Tape


@pytest.mark.parametrize("run", [run for run in RECORDED if run in CLIENTS], ids=lambda run: run.id)
async def test_our_server_answers_a_client_of_other_people_as_recorded(run):
    talk = conversation.read(run.revision)[name_of(run)]
    assert await conversation.play_client(talk, make().connect())


@pytest.mark.parametrize("run", [run for run in RECORDED if run in SERVERS], ids=lambda run: run.id)
async def test_our_client_understands_a_server_of_other_people_as_recorded(run):
    server = RecordedServer(conversation.read(run.revision)[name_of(run)])
    async with Client(server, revision=run.revision, memory=Memory(), **ANSWERS) as client:
        await use_everything(client, run)
    assert server.fault is None, server.fault


@pytest.mark.parametrize("run", RECORDED, ids=lambda run: f"{name_of(run)}-{run.revision}")
def test_what_we_said_to_other_people_is_what_its_schema_describes(run):
    tape = Tape(run.revision)
    for one in conversation.read(run.revision)[name_of(run)]:
        tape.check(one)
    we = "server" if run in CLIENTS else "client"
    assert [fault for fault in tape.faults if f"message from the {we}" in fault] == []
