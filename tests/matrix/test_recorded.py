"""The client's half of every recorded conversation, played to our server; the server's half is played by `house`."""

import pytest

from mcprelay import revisions
from tests.matrix import conversation
from tests.matrix.conftest import RECORDING
from tests.matrix.house import furnished
from tests.matrix.tape import Tape

pytestmark = pytest.mark.skipif(RECORDING, reason="what is recorded is not there before the end")

CONVERSATIONS = [
    (name, talk) for name in revisions.ALL for talk in sorted(conversation.read(name)) if talk.startswith("test_")
]
"""Those between our two sides; see `test_foreign` for the others."""


@pytest.mark.parametrize(("revision", "talk"), CONVERSATIONS)
async def test_the_server_says_what_was_recorded(revision: str, talk: str):
    passed = await conversation.play_client(conversation.read(revision)[talk], furnished().connect())
    assert passed


@pytest.mark.parametrize(("revision", "talk"), CONVERSATIONS)
def test_every_recorded_message_is_what_its_schema_describes(revision: str, talk: str):
    tape = Tape(revision)
    for one in conversation.read(revision)[talk]:
        tape.check(one)
    assert tape.faults == []


@pytest.mark.parametrize("revision", revisions.ALL)
def test_there_are_conversations_of_every_revision(revision: str):
    assert len(conversation.read(revision)) > 40
