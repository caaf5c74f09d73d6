"""Trust is declared or refused, before anything is sent."""

import pytest

from mcprelay.relay.errors import DefinitionRefused, NotTrusted, SettingWrong, TrustEmpty, TrustUndeclared
from mcprelay.relay.pins import define
from mcprelay.relay.policy import UNDECLARED, declared, pinned


def test_names_are_allowed_exactly_as_they_are_written():
    trust = declared(["search", "Get "])
    assert trust.allows("search")
    assert trust.names_it("search")
    assert not any(trust.allows(name) for name in ("Search", "search ", "Get", "s"))
    trust.require("github")


def test_everything_is_said_out_loud():
    trust = declared("*")
    assert trust.allows("anything")
    assert not trust.names_it("anything")
    assert trust.missing(["a"]) == ()
    trust.require("github")


def test_nothing_said_and_nothing_allowed_are_two_refusals():
    with pytest.raises(TrustUndeclared, match="Nothing says which tools of the server 'github'") as undeclared:
        declared(None).require("github")
    with pytest.raises(TrustEmpty, match="EMPTY") as empty:
        declared([]).require("github")
    assert undeclared.value.code != empty.value.code
    assert undeclared.value.server == empty.value.server == "github"
    assert isinstance(undeclared.value, NotTrusted)
    assert isinstance(empty.value, NotTrusted)
    assert declared(None) == UNDECLARED


def test_what_is_refused_names_what_it_is_about():
    with pytest.raises(TrustUndeclared, match=r'which prompts.*prompts = \["…"\]'):
        declared(None).require("s", what="prompts", key="prompts")


@pytest.mark.parametrize(
    ("allow", "says"),
    [
        ("search", r'is one text and no list of names; write \["search"\]'),
        ("", "is one text"),
        (["*"], 'write "\\*" alone'),
        (["a", "*"], 'write "\\*" alone'),
        (["a", 5], "5 is no name"),
        (["a", None], "None is no name"),
        ([""], "'' is no name"),
        ({"a": 1}, "expected a list of names"),
        (5, "expected a list of names"),
        (True, "expected a list of names"),
    ],
)
def test_a_declaration_that_is_none_is_a_mistake(allow, says):
    with pytest.raises(SettingWrong, match=says):
        declared(allow)


@pytest.mark.parametrize("allow", [["a", "b"], ("a", "b"), {"a", "b"}, iter(["a", "b"])])
def test_any_list_of_names_is_one(allow):
    assert declared(allow).names == {"a", "b"}


def test_what_was_asked_for_and_is_not_offered_is_missing():
    assert declared(["b", "a", "c"]).missing(["a", "x"]) == ("b", "c")
    assert declared(None).missing(["a"]) == ()


def test_what_cannot_be_offered_raises_where_it_was_named_and_only_there():
    with pytest.raises(
        DefinitionRefused, match=r"se⟨U\+200B ZERO WIDTH SPACE⟩ of the server 's' was asked for by name.*: broken"
    ):
        declared(["se\u200b"]).exclude("se\u200b", "broken", server="s")
    declared("*").exclude("se", "broken", server="s")
    declared(["other"]).exclude("se", "broken", server="s")


def test_pins_are_read_whole_or_not_at_all():
    digest = define({"name": "t"}).digest
    pins = pinned({"t": digest, "123": digest[:39]})
    assert pins.check("t", digest) is True
    assert pins.check("123", digest) is True
    assert pins.check("t", "sha256:" + "0" * 64) is False
    assert pins.check("u", digest) is None


@pytest.mark.parametrize(
    ("pins", "says"),
    [({"t": None}, "t: a pin is"), ({"t": "x"}, "t: a pin is"), (["x"], "expected a table"), ("x", "expected a table")],
)
def test_a_pin_that_would_be_lost_is_a_mistake(pins, says):
    with pytest.raises(SettingWrong, match=says):
        pinned(pins)
