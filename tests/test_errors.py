"""What errors say, and what they hold for the program."""

import copy
import inspect
import pickle

import pytest
from msgspec import Raw

from mcprelay.errors import (
    AuthorizationRequired,
    CallFailed,
    CallLimitExceeded,
    ConfigurationError,
    ConnectionLost,
    Evidence,
    HttpError,
    LimitExceeded,
    MCPRelayError,
    ProtocolError,
    RemoteError,
    RequestRefused,
    ResourceError,
    ResourceNotFound,
    ResponseInvalid,
    ToolError,
)
from mcprelay.relay.errors import DefinitionChanged, LockUnreadable
from mcprelay.server.report import ArgumentError


def test_a_missing_resource_says_which():
    error = ResourceNotFound("file:///a")
    assert isinstance(error, ResourceError)
    assert (error.uri, str(error)) == ("file:///a", "Resource not found: file:///a")
    assert str(ResourceNotFound("file:///a", "moved")) == "moved"


@pytest.mark.parametrize("status", [200, 399, 600, -1])
def test_a_refusal_has_the_status_of_one(status: int):
    with pytest.raises(ConfigurationError, match=f"from 400 to 599, and not {status}"):
        RequestRefused(status, "no")


def test_a_refusal_keeps_what_is_answered():
    given = {"retry-after": "5"}
    error = RequestRefused(429, "later", headers=given)
    given.clear()
    assert (error.status, error.message, error.headers) == (429, "later", {"retry-after": "5"})
    assert RequestRefused(404, "no").headers == {}


def test_a_call_may_have_run_where_its_evidence_says_so_or_its_answer_leaves_it_open():
    for evidence, may in ((Evidence.NOT_SENT, False), (Evidence.MAYBE_SENT, True)):
        assert CallFailed("x", evidence=evidence, may_have_run=not may).may_have_run is may
    answered = CallFailed("x", evidence=Evidence.ANSWERED)
    assert not answered.may_have_run
    answered.may_have_run = True
    assert answered.may_have_run
    assert pickle.loads(pickle.dumps(answered)).may_have_run  # noqa: S301


def every_error():
    """One of each, with all that it can hold."""
    known = {"evidence": Evidence.MAYBE_SENT, "method": "tools/call", "request_id": 7, "stderr": "last words"}
    yield ToolError("no", content=("a",), structured={"b": 1})
    yield ResourceNotFound("file:///a", "moved")
    yield RequestRefused(429, "later", headers={"retry-after": "5"})
    yield ProtocolError(-31000, "protocol", {"a": 1})
    yield LimitExceeded("body_bytes", 5, actual=6)
    yield ConnectionLost("gone", **known)
    yield CallLimitExceeded("list_bytes", 5, **known)
    yield ResponseInvalid("nonsense", excerpt="<html>", raw=Raw(b"<html></html>"), **known)
    yield RemoteError(-32603, "no", {"x": [1]}, **known)
    yield AuthorizationRequired("who?", status=401, body="b", headers={"a": "b"}, **known)
    yield DefinitionChanged("changed", server="s", tool="t", pinned="1", actual="2")
    yield LockUnreadable("lock", line=3)


@pytest.mark.parametrize("error", list(every_error()), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("carry", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])  # noqa: S301
def test_an_error_arrives_in_another_process_as_it_was(error, carry):
    there = carry(error)
    assert type(there) is type(error)
    assert str(there) == str(error)
    assert vars(there) == vars(error)


def test_every_kind_of_error_can_be_carried():
    assert len(kinds(CallFailed)) > 5
    assert {kind.__reduce__ for kind in kinds(MCPRelayError)} == {MCPRelayError.__reduce__}


def kinds(root: type) -> set[type]:
    return {root, *(each for kind in root.__subclasses__() for each in kinds(kind))}


GIVEN = {
    "evidence": Evidence.MAYBE_SENT,
    "errors": [ArgumentError("/a", "a number", "'x'", "a: must be a number")],
    "head": b"a",
    "tail": b"b",
    "question": None,
    "code": "denied",
    "status": 429,
    "allowed": 5,
    "actual": 7,
    "position": 3,
}
"""What constructors are given that is no text."""


def made(kind: type) -> MCPRelayError:
    """One of a class, made by its constructor from what that demands."""
    parameters = list(inspect.signature(kind.__init__).parameters.items())[1:]
    loose = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    named = [name for name, parameter in parameters if parameter.kind not in loose]
    if not named:
        return kind("what went wrong")
    demanded = {
        name for name in named if inspect.signature(kind.__init__).parameters[name].default is inspect.Parameter.empty
    }
    if issubclass(kind, CallFailed):
        demanded |= {"evidence", "status"} if issubclass(kind, HttpError) else {"evidence"}
    return kind(**{name: GIVEN.get(name, f"some {name}") for name in demanded or {named[0]}})


@pytest.mark.parametrize("kind", sorted(kinds(MCPRelayError), key=lambda kind: kind.__qualname__))
@pytest.mark.parametrize("carry", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])  # noqa: S301
def test_an_error_of_any_kind_says_the_same_in_another_process(kind, carry):
    error = made(kind)
    there = carry(error)
    assert str(error)
    assert (type(there), str(there), there.args) == (type(error), str(error), error.args)
