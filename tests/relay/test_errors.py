"""Refusals have stable codes, and their sentences hold local words only."""

import pytest

from mcprelay.errors import ConfigurationError, MCPRelayError
from mcprelay.relay import errors
from mcprelay.relay.difference import differences
from mcprelay.relay.pins import define


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
