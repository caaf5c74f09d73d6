"""Shelves: order, precedence, pages that stay right while entries come and go, lists per caller."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcprelay.errors import DefinitionError, ProtocolError
from mcprelay.revisions import ALL, NEWEST
from mcprelay.server.call import Call, Principal
from mcprelay.server.catalog import Catalog, Shelf
from mcprelay.server.entry import Entry
from mcprelay.types import Tool
from mcprelay.wire.params import ListParams


class NoLink:
    def notify(self, message: bytes) -> None: ...

    async def drain(self) -> None: ...

    async def request(self, method: str, params: bytes) -> Any: ...


def call(*, principal: Principal | None = None, revision: Any = NEWEST) -> Call:
    return Call(revision, 1, revision.methods["tools/list"], ListParams(), b"{}", NoLink(), principal=principal)


def entry(name: str, **options: Any) -> Entry:
    return Entry(name, Tool(name=name, input_schema={"type": "object"}), lambda _: None, **options)


@pytest.fixture
def changes() -> list[str]:
    return []


@pytest.fixture
def shelf(changes: list[str]) -> Shelf:
    return Catalog(changes.append).tools


def names(shelf: Shelf, cursor: str | None = None, **who: Any) -> tuple[list[str], str | None]:
    page = json.loads(shelf.page(call(**who), cursor, members=b"", scope="public", ttl_ms=5))
    return [tool["name"] for tool in page["tools"]], page.get("nextCursor")


def test_entries_keep_the_order_in_which_they_came(shelf: Shelf) -> None:
    for name in ("b", "a", "c"):
        shelf.add(entry(name))

    assert names(shelf) == (["b", "a", "c"], None)


def test_the_same_name_twice_is_an_error_that_names_both_places(shelf: Shelf) -> None:
    shelf.add(entry("a", place="one.py:1"))

    with pytest.raises(DefinitionError, match=r"one\.py:1.*two\.py:2.*replace=True"):
        shelf.add(entry("a", place="two.py:2"))


def test_a_replaced_entry_keeps_its_place_in_the_list(shelf: Shelf) -> None:
    for name in ("a", "b"):
        shelf.add(entry(name))
    shelf.add(entry("a"), replace=True)

    assert names(shelf)[0] == ["a", "b"]


@pytest.mark.parametrize("hand_first", [True, False])
def test_what_is_registered_by_hand_wins_in_every_order(shelf: Shelf, hand_first: bool) -> None:
    hand, found = entry("a", tags=["hand"]), entry("a", by_hand=False)
    for one in (hand, found) if hand_first else (found, hand):
        shelf.add(one)

    assert shelf.entries["a"] is hand
    shelf.replace_found(())
    assert shelf.entries["a"] is hand


def test_every_change_is_told_and_no_change_is_not(shelf: Shelf, changes: list[str]) -> None:
    shelf.add(entry("a"))
    shelf.switch(["a"], False)
    shelf.switch(["a"], False)
    shelf.switch(["a"], True)
    shelf.remove("a")
    shelf.replace_found(())

    assert changes == ["notifications/tools/list_changed"] * 4


def test_what_is_switched_off_is_neither_listed_nor_found(shelf: Shelf) -> None:
    shelf.add(entry("a"))
    shelf.switch(["a"], False)

    assert names(shelf)[0] == []
    assert shelf.get("a", None) is None


def test_an_unknown_name_cannot_be_removed_or_switched(shelf: Shelf) -> None:
    with pytest.raises(KeyError, match="no tool 'x'"):
        shelf.remove("x")
    with pytest.raises(KeyError, match="no tool 'x'"):
        shelf.switch(["x"], True)


def test_pages_follow_each_other_while_entries_come_and_go(shelf: Shelf) -> None:
    shelf.page_size = 2
    for name in "abcde":
        shelf.add(entry(name))

    first, cursor = names(shelf)
    shelf.remove("b")  # the one that the cursor points at
    shelf.add(entry("f"))
    second, cursor = names(shelf, cursor)
    third, end = names(shelf, cursor)

    assert [first, second, third, end] == [["a", "b"], ["c", "d"], ["e", "f"], None]


@pytest.mark.parametrize("cursor", ["", "!", "dG9vbHM6eA==", "cHJvbXB0czox", "ä"])
def test_a_cursor_of_somebody_elses_is_invalid(shelf: Shelf, cursor: str) -> None:
    shelf.add(entry("a"))

    with pytest.raises(ProtocolError) as caught:
        names(shelf, cursor)
    assert caught.value.code == -32602


def test_a_page_is_made_once_until_the_shelf_changes(shelf: Shelf) -> None:
    shelf.add(entry("a"))
    first = shelf.page(call(), None, members=b"", scope="public", ttl_ms=0)

    assert shelf.page(call(), None, members=b"", scope="public", ttl_ms=0) is first
    shelf.add(entry("b"))
    assert shelf.page(call(), None, members=b"", scope="public", ttl_ms=0) is not first


def test_hints_are_said_only_in_revisions_that_have_them(shelf: Shelf) -> None:
    old = ALL["2025-11-25"]

    assert json.loads(shelf.page(call(), None, members=b"", scope="public", ttl_ms=7)) == {
        "tools": [],
        "ttlMs": 7,
        "cacheScope": "public",
    }
    assert json.loads(shelf.page(call(revision=old), None, members=b"", scope="public", ttl_ms=7)) == {"tools": []}


def test_callers_see_what_they_may_and_hidden_is_the_same_as_unknown(shelf: Shelf) -> None:
    shelf.add(entry("open"))
    shelf.add(entry("scoped", requires=["admin"]))
    shelf.add(entry("chosen", visible=lambda who: who is not None and who.subject == "ada"))
    ada, bob = Principal("ada"), Principal("bob", frozenset({"admin"}))

    assert names(shelf)[0] == ["open"]
    assert names(shelf, principal=ada)[0] == ["open", "chosen"]
    assert names(shelf, principal=bob)[0] == ["open", "scoped"]
    assert shelf.get("scoped", ada) is None
    assert shelf.get("scoped", bob) is not None


def test_a_list_that_differs_between_callers_is_private(shelf: Shelf) -> None:
    shelf.add(entry("scoped", requires=["admin"]))

    page = json.loads(shelf.page(call(), None, members=b"", scope="public", ttl_ms=0))
    assert page["cacheScope"] == "private"


def test_the_kept_pages_are_bounded(shelf: Shelf) -> None:
    shelf.add(entry("mine", visible=lambda who: who is not None))
    for number in range(600):
        shelf.page(call(), None, members=b'"n":%d' % number, scope="public", ttl_ms=0)

    assert len(shelf._pages) <= 256
