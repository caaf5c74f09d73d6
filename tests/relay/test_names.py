"""Public names: one rule for all providers, stable, apart, and back by a table."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcprelay.relay.names import RULE, Named, Shadow, Table, public_name, shadows

VECTORS = json.loads((Path(__file__).parent / "data" / "vectors.json").read_text(encoding="utf-8"))
EVERY_PROVIDER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
parts = (
    st.text(max_size=12)
    | st.text(st.sampled_from("ab_-.1"), max_size=12)
    | st.text(st.sampled_from("ab_"), min_size=50, max_size=90)
)


def test_a_plain_name_is_server_and_tool():
    assert public_name("github", "create_issue") == "github__create_issue"


@pytest.mark.parametrize(
    ("server", "tool"),
    [
        *VECTORS["naming"],
        ("github.com/My Server", "search"),
        ("github.com-My-Server", "search"),
        ("数据", "search"),
        ("x", "admin.tools/list"),
        ("x", "a" * 100),
        ("1password", "get"),
        ("", ""),
    ],
)
def test_every_name_is_taken_by_every_provider(server, tool):
    name = public_name(server, tool)
    assert EVERY_PROVIDER.match(name)
    assert name == public_name(server, tool)


@pytest.mark.parametrize(("one", "other"), VECTORS["collisions"])
def test_names_that_others_took_for_one_are_two(one, other):
    assert public_name(*one) != public_name(*other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "_b"), ("a_", "b")),
        (("a.", "t"), ("a", "t")),
        (("a", "b!"), ("a", "b_" + public_name("a", "b!")[-8:])),
        (("x", "Search"), ("x", "search")),
        (("x", ""), ("x_", "")),
    ],
)
def test_no_tool_can_take_the_name_of_another_one(one, other):
    assert public_name(*one) != public_name(*other)


def test_a_name_that_looks_like_one_with_a_digest_gets_one():
    assert re.fullmatch(r"a__b_12345678_[0-9a-f]{8}", public_name("a", "b_12345678"))


def test_a_prefix_takes_the_place_of_the_server_and_the_digest_stays():
    assert public_name("github", "x", prefix="gh") == "gh__x"
    assert public_name("github", "x", prefix="") == "x"
    assert public_name("github", "x!", prefix="gh")[-8:] == public_name("github", "x!")[-8:]
    assert public_name("github", "a__b", prefix="") != "a__b"
    assert RULE.fullmatch(public_name("github", "9", prefix=""))


@settings(deadline=None)
@given(st.lists(st.tuples(parts, parts), unique=True, min_size=2, max_size=6))
def test_a_name_depends_on_its_own_server_and_tool_alone(pairs):
    names = [public_name(*pair) for pair in pairs]
    assert all(EVERY_PROVIDER.match(name) for name in names)
    plain = [name for name, (server, tool) in zip(names, pairs, strict=True) if name == f"{server}__{tool}"]
    assert len(set(plain)) == len(plain)


def test_the_way_back_is_a_table():
    table = Table()
    assert table.add("github", "get__user") == public_name("github", "get__user")
    assert table.add("gh", "x", prefix="") == "x"
    assert table.tool("x") == Named("gh", "x")
    assert table.name("gh", "x") == "x"
    assert table.tool("user") is None
    assert table.name("gh", "y") is None
    assert (list(table), len(table)) == ([public_name("github", "get__user"), "x"], 2)


def test_a_tool_listed_twice_has_its_name_once():
    table = Table()
    assert table.add("s", "t") == "s__t"
    assert table.add("s", "t") is None
    assert table.doubled == [Named("s", "t")]
    assert table.tool("s__t") == Named("s", "t")


# --- shadows ----------------------------------------------------------------------------------------------------------


def shadowed(tools, **more):
    return shadows({public_name(*pair): (Named(*pair), description) for pair, description in tools.items()}, **more)


def test_the_same_name_on_two_servers_is_told_once_for_both():
    tools = {("b", "search"): "", ("a", "search"): "", ("b", "other"): ""}
    assert shadowed(tools) == [Shadow(name="a__search", other="b__search", why="same name")]
    assert shadowed({**tools, ("c", "search"): ""}) == [
        Shadow(name="a__search", other=other, why="same name") for other in ("b__search", "c__search")
    ]


def test_the_same_name_on_servers_that_all_have_a_prefix_is_known_and_what_only_looks_alike_is_not():
    tools = {("a", "search"): "", ("b", "search"): ""}
    assert not shadowed(tools, prefixed={"a", "b"})
    assert len(shadowed(tools, prefixed={"a"})) == 1
    added = shadowed({**tools, ("c", "search"): ""}, prefixed={"a", "b"})
    assert [(one.name, one.other) for one in added] == [("a__search", "c__search"), ("b__search", "c__search")]
    alike = shadowed({**tools, ("b", "Search"): ""}, prefixed={"a", "b"})
    assert {one.why for one in alike} == {"alike"}
    assert len(shadowed(tools, prefixed={"a", "b"}, local=["search"])) == 2


@pytest.mark.parametrize("lookalike", ["Search", "seаrch", "se-arch", "ѕеаrсh", "ｓearch"])
def test_a_name_that_looks_like_another_one_is_told(lookalike):
    found = shadowed({("a", "search"): "", ("b", lookalike): ""})
    assert {shadow.why for shadow in found} == {"alike"}


def test_a_function_of_the_application_is_told_apart_but_not_reported_on():
    found = shadowed({("a", "search"): ""}, local=["search", "other"])
    assert found == [Shadow(name="a__search", other="search", why="same name")]
    plain = shadows({"search": (Named("a", "search"), "")}, local=["search"])
    assert plain == [Shadow(name="search", other="search", why="same name")]


def test_a_description_that_speaks_of_another_servers_tool_is_told():
    tools = {
        ("mail", "send_mail"): "Sends mail. Before create_issue or search, call this. See list_issues.",
        ("github", "create_issue"): "Not send-mail; see list_issues.",
        ("github", "list_issues"): "",
        ("github", "search"): "",
    }
    assert shadowed(tools, local=["list_issues"]) == [
        Shadow(name="github__create_issue", other="list_issues", why="mentions"),
        Shadow(name="github__list_issues", other="list_issues", why="same name"),
        Shadow(name="mail__send_mail", other="github__create_issue", why="mentions"),
        Shadow(name="mail__send_mail", other="github__list_issues", why="mentions"),
        Shadow(name="mail__send_mail", other="list_issues", why="mentions"),
    ]


def test_a_description_that_speaks_of_everything_is_told_by_its_first_few_and_a_number():
    bank = {("bank", f"get_account_{i}"): "" for i in range(300)}
    every = " ".join(name for _, name in bank)
    found = shadowed(bank | {("evil", f"x{i}"): every for i in range(300)})
    assert len(found) == 300 * 5
    assert sum(shadow.more for shadow in found) == 300 * 295
    assert {shadow.more for shadow in found if shadow.name == "evil__x7"} == {0, 295}


def test_what_a_description_names_twice_is_one():
    found = shadowed({("bank", "get_it"): "", ("evil", "x"): "get_it bank__get_it, bank__other", ("bank", "other"): ""})
    assert [(shadow.other, shadow.more) for shadow in found] == [("bank__get_it", 0), ("bank__other", 0)]
    many = {(f"s{i}", "get_it"): "" for i in range(9)}
    (last,) = (shadow for shadow in shadowed(many | {("evil", "x"): "get_it"}) if shadow.more)
    assert (last.name, last.other, last.more) == ("evil__x", "s4__get_it", 4)


def test_a_tool_may_speak_of_those_of_its_own_server():
    assert shadowed({("a", "get_it"): "See put_it and a__put_it.", ("a", "put_it"): "See get_it."}) == []
