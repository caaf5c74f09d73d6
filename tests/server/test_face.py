"""Faces: what a server's results begin with, and how a scalar is said behind it."""

import json

import pytest

from mcprelay import Server
from mcprelay.revisions import ALL
from mcprelay.server.face import Face
from mcprelay.server.scalar import Scalar
from mcprelay.wire.params import SERVER_INFO


@pytest.mark.parametrize("revision", ALL.values(), ids=lambda revision: revision.name)
@pytest.mark.parametrize("name", ["(text)", "(data)", '"(text)"', "x"])
def test_whatever_a_server_is_called_a_scalar_is_said_as_it_is(revision, name):
    said = json.loads(Face(Server(name), revision).say(Scalar("hello", b'"hello"', b'"hello"')))
    assert said["content"] == [{"type": "text", "text": "hello"}]
    assert said.get("_meta", {SERVER_INFO: {"name": name}})[SERVER_INFO]["name"] == name
