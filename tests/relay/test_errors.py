"""Refusals have stable codes, and their sentences hold local words only."""

import copy
import pickle

import pytest

from mcprelay.errors import CallLimitExceeded, ConfigurationError, Evidence, MCPRelayError
from mcprelay.relay import errors
from mcprelay.relay.difference import differences
from mcprelay.relay.frame import Funnel
from mcprelay.relay.pins import define
from mcprelay.types import Text, ToolResult


def kinds(root=errors.RelayError):
    yield root
    for kind in root.__subclasses__():
        yield from kinds(kind)


def test_every_refusal_is_one_of_the_packages_errors_with_a_code_of_its_own():
    found = list(kinds())
    assert all(issubclass(kind, MCPRelayError) for kind in found)
    assert len({kind.code for kind in found}) == len(found)


def test_every_code_stands_in_the_modules_tree():
    for kind in kinds():
        if kind is not errors.RelayError:
            assert f" {kind.__name__} " in errors.__doc__
            assert kind is errors.NotTrusted or f" {kind.code} " in errors.__doc__


def test_a_wrong_setting_is_a_configuration_error_with_all_its_problems():
    error = errors.SettingWrong(["a: b", "c: d"], server="s")
    assert isinstance(error, ConfigurationError)
    assert (error.problems, str(error), error.server) == (("a: b", "c: d"), "a: b\nc: d", "s")


def test_a_changed_definition_carries_both_digests_and_what_changed():
    before, after = define({"name": "t", "description": "a"}), define({"name": "t", "description": "b"})
    error = errors.DefinitionChanged(
        "changed", server="s", tool="t", pinned=before.digest, actual=after.digest, changes=differences(before, after)
    )
    assert (error.pinned, error.actual, error.tool) == (before.digest, after.digest, "t")
    assert [change.path for change in error.changes] == ["description"]


@pytest.mark.parametrize("kind", [errors.Unauthorized, errors.ServerUnreachable, errors.ToolFailed])
def test_a_refusal_says_which_server_it_is_about(kind):
    assert kind("words", server="s").server == "s"


def every_refusal():
    """One of each kind, with all that it can hold."""
    changes = differences(define({"name": "t", "description": "a"}), define({"name": "t", "description": "b"}))
    given = {
        errors.SettingWrong: (["a: b", "c: d"],),
        errors.DefinitionRefused: {"withdrawn": "gone"},
        errors.DefinitionChanged: {"tool": "t", "pinned": "1", "actual": "2", "changes": changes},
        errors.LockUnreadable: {"line": 3},
        errors.Unauthorized: {"scopes": ["read"]},
        errors.ServerUnreachable: {"stderr": "last words"},
        errors.CallDenied: {"gate": "closed"},
        errors.CallRefused: {"code": "withheld"},
        errors.ResultTooLarge: {"allowed": 3, "actual": 5},
    }
    for kind in kinds():
        more = given.get(kind, {})
        server = {} if kind is errors.LockUnreadable else {"server": "s"}
        yield kind(*more, **server) if isinstance(more, tuple) else kind("words", **server, **more)


CARRIED = pytest.mark.parametrize(
    "carry",
    [lambda one: pickle.loads(pickle.dumps(one)), copy.copy, copy.deepcopy],  # noqa: S301
    ids=["pickle", "copy", "deepcopy"],
)


@CARRIED
@pytest.mark.parametrize("error", list(every_refusal()), ids=lambda error: type(error).__name__)
def test_a_refusal_that_was_raised_for_an_answer_arrives_with_the_answer(error, carry):
    """An answer leads to what was raised, which leads back to the answer."""
    framed = Funnel("s").failure(error, tool="s__t")
    with pytest.raises(type(error)) as caught:
        framed.require()
    assert caught.value is error
    there = carry(error)
    assert type(there) is type(error)
    assert str(there) == str(error)
    assert str(there).startswith("s__t: ")
    assert vars(there).keys() == vars(error).keys()
    for name, value in vars(error).items():
        if name != "framed":
            assert getattr(there, name) == value
    assert (there.framed.asked, there.framed.text, there.framed.code) == ("s__t", framed.text, framed.code)
    assert type(there.framed.cause) is type(error)
    again = carry(framed)
    with pytest.raises(type(error), match="s__t: "):
        again.require()


@CARRIED
@pytest.mark.parametrize(
    ("framed", "kind"),
    [
        (Funnel("s").result(ToolResult(content=(Text("no"),), is_error=True), tool="s__t"), errors.ToolFailed),
        (
            Funnel("s").failure(CallLimitExceeded("list_bytes", 5, evidence=Evidence.ANSWERED), tool="s__t"),
            errors.ResultTooLarge,
        ),
        (Funnel("s").failure(ValueError("no"), tool="s__t"), errors.CallRefused),
    ],
)
def test_a_refusal_that_was_made_for_an_answer_arrives_with_the_answer(framed, kind, carry):
    with pytest.raises(kind) as caught:
        framed.require()
    there = carry(caught.value)
    assert str(there) == str(caught.value)
    assert (there.framed.asked, there.framed.text) == ("s__t", framed.text)
    assert there.framed.result == framed.result
