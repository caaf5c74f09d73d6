"""How much work a schema can make, found before anything runs.

A validator walks pairs of a schema and a value. References let a small document name a huge tree of such pairs (two
references to the next of thirty definitions are a billion steps), and recursive ones multiply with the depth of the
value. So the pairs are counted first: once for the schema alone where it has no recursion, and with the value at hand
where it has. The count is an upper bound, and counting is itself bounded: each pair is looked at once.

It knows the shape of the schema and of the value; whether the value fits is not its business.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from mcprelay.wire import numeral
from mcprelay.wire.numeral import Numerals, Rarity, numerals
from mcprelay.wire.pattern import READERS, Toll, charges
from mcprelay.wire.reference import SAME_PLACE, Document, Node, SchemaRefused, subschemas

AGAIN = 3
"""How often a validator may walk what lies beside an `unevaluated…` keyword (measured: 2.6 times for each level)."""
MAX_CHAIN = 512
"""How many pairs may lie inside each other: a validator's stack is finite, and overflowing it ends the process."""
MOST = 10**15
"""Where counting stops growing."""
_BULKY = ("required", "dependentRequired", "properties", "patternProperties")
_BESIDE = ("allOf", "anyOf", "oneOf")
"""Keywords whose schemas are tried one by one; those that are true or false are no pairs."""
_CONSTANTS = ("enum", "const")
"""What is compared as a whole, and told as a whole where it is missed."""
_AGAIN_KEYWORDS = frozenset(("unevaluatedProperties", "unevaluatedItems"))

_EVERY_MEMBER = frozenset(("patternProperties", "unevaluatedProperties"))
_EVERY_ELEMENT = frozenset(("items", "additionalItems", "contains", "unevaluatedItems"))
_LOOKS = 8
"""How many members may be looked at for each pair that is allowed."""

Tolls: TypeAlias = dict[int, tuple[Toll, Toll]]
_Graph: TypeAlias = dict[int, tuple[Node, list[tuple[bool, Node]]]]
_Pair: TypeAlias = tuple[int, int]
_Inner: TypeAlias = list[tuple[Node, Any, int]]


class Load(Struct, frozen=True, kw_only=True):
    """What a schema costs.

    Attributes:
        steps: Upper bound of the steps for each single value, or None where recursion makes it depend on the value.
        toll: Upper bound of what regular expressions take on each single text, names of members included.
        tolls: The same for each single schema that has any, by identity: on the value itself, and on each name in it.
        numerals: The numbers that are compared with those of a value, summed over all ways that lead to them; None
            where there are none, or where the steps depend on the value.
        building: Upper bound of what a compiler unfolds for `unevaluated…` keywords, which follow every reference.
    """

    steps: int | None
    toll: Toll
    tolls: Tolls
    numerals: Numerals | None
    building: int


class Count(Struct, frozen=True, kw_only=True):
    """What a schema costs for one value: `steps`, and how many pairs lie inside each other at most."""

    steps: int
    chain: int


def appraise(document: Document, *, without: frozenset[str] = frozenset()) -> Load:
    """Count what the schema costs, whatever the value.

    Args:
        without: Regular expressions that are not run.

    Raises:
        SchemaRefused: A reference leads back to itself without entering the value, schemas lie too deep inside each
            other, or a reference cannot be followed.
    """
    if isinstance(document.root, bool):
        return Load(steps=1, toll=Toll(), tolls={}, numerals=None, building=0)
    graph = _graph(document.root, document)
    within = {key: (node, [lead for lead in leads if lead[0]]) for key, (node, leads) in graph.items()}
    inner_order = _order(within, [node for node, _ in graph.values()])
    if inner_order is None:
        raise SchemaRefused("a reference in the schema leads back to itself without entering the value")
    building = _unfolded(inner_order, within)
    known = {key: charges(node, without=without) for key, (node, _) in graph.items() if not READERS.isdisjoint(node)}
    order = _order(graph, [document.root])
    if order is None:
        return Load(steps=None, toll=Toll(), tolls=known, numerals=None, building=building)
    steps, toll, numbers = _paths(order, graph, known)
    return Load(steps=steps, toll=toll, tolls=known, numerals=numbers, building=building)


def count(document: Document, value: Any, *, pairs: int, tolls: Tolls, rarity: Rarity) -> Count | None:
    """Count what the schema costs for this value, looking at no more than `pairs` pairs; None if there are more.

    Args:
        tolls: What the schema's regular expressions take, as a `Load` knows it.
        rarity: What the numbers of the value take.
    """
    if isinstance(document.root, bool):
        return Count(steps=1, chain=1)
    plans: dict[int, _Plan] = {}
    done: dict[_Pair, tuple[int, int]] = {}
    stack: list[tuple[Node, Any, _Inner | None]] = [(document.root, value, None)]
    looked = 0
    while stack:
        node, at, inner = stack.pop()
        plan = plans.get(id(node))
        if plan is None:
            plan = plans[id(node)] = _Plan(document, node, tolls.get(id(node)))
        if inner is not None:
            done[id(node), id(at)] = _sum(plan.own(at, rarity), inner, done)
        elif (id(node), id(at)) not in done:
            looked += 1 + plan.looks(at)
            if len(done) + len(stack) > pairs or looked > _LOOKS * pairs:
                return None
            inner = list(islice(plan.pairs(at), pairs + 1))
            if len(inner) > pairs:
                return None
            stack.append((node, at, inner))
            stack.extend((schema, part, None) for schema, part, _ in inner if (id(schema), id(part)) not in done)
    steps, chain = done[id(document.root), id(value)]
    return Count(steps=steps, chain=chain)


def _graph(root: Node, document: Document) -> _Graph:
    """Every schema that can be reached, by identity, with what it leads to."""
    graph: _Graph = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) not in graph:
            leads = list(document.edges(node))
            graph[id(node)] = (node, leads)
            waiting.extend(inner for _, inner in leads)
    return graph


def _order(graph: _Graph, starts: list[Node]) -> list[Node] | None:
    """The schemas, each before those it leads to, or None where one leads back to itself."""
    left: dict[int, bool] = {}
    order: list[Node] = []
    stack: list[tuple[Node, bool]] = [(start, False) for start in starts]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            left[id(node)] = True
            order.append(node)
        elif id(node) not in left:
            left[id(node)] = False
            stack.append((node, True))
            for _, inner in graph[id(node)][1]:
                if left.get(id(inner)) is False:
                    return None
                stack.append((inner, False))
    order.reverse()
    return order


def _unfolded(order: list[Node], within: _Graph) -> int:
    """What lies beside all `unevaluated…` keywords, with every reference followed."""
    size: dict[int, int] = {}
    total = 0
    for node in reversed(order):
        again = _again(node)
        below = sum(size[id(inner)] for _, inner in within[id(node)][1])
        size[id(node)] = min(MOST, 1 + again * below)
        total += size[id(node)] if again > 1 else 0
    return min(MOST, total)


def _paths(order: list[Node], graph: _Graph, known: Tolls) -> tuple[int, Toll, Numerals | None]:
    """The steps, what patterns take and what numbers do, summed over all ways that lead to each schema."""
    numbers: Numerals | None = None
    ways = {id(order[0]): (1, 1)}
    steps = patterns = strain = 0
    for node in order:
        times, chain = ways[id(node)]
        if chain > MAX_CHAIN:
            raise SchemaRefused(f"schemas lie more than {MAX_CHAIN} deep inside each other")
        steps = min(MOST, steps + times * weight(node))
        if not numeral.READERS.isdisjoint(node):
            numbers = (numbers or Numerals()) + numerals(node) * times
        for toll in known.get(id(node), ()):
            patterns = min(MOST, patterns + times * toll.patterns)
            strain = min(MOST, strain + times * toll.strain)
        for same, inner in graph[id(node)][1]:
            before, deepest = ways.get(id(inner), (0, 0))
            more = times * (_again(node) if same else 1)
            ways[id(inner)] = (min(MOST, before + more), max(deepest, chain + 1))
    return steps, Toll(patterns, strain), numbers


def weight(node: Node) -> int:
    """The steps that a schema's own keywords take, numbers and patterns aside: what is long in it is walked."""
    bulk = sum(len(node[name]) for name in _BULKY if isinstance(node.get(name), list | dict)) // 16
    plain = sum(isinstance(inner, bool) for name in _BESIDE for inner in _listed(node, name))
    constants = sum(len(msgspec.json.encode(node[name])) for name in _CONSTANTS if name in node) // 64
    return 1 + bulk + plain + constants


def _listed(node: Node, keyword: str) -> list[Any]:
    found = node.get(keyword)
    return found if isinstance(found, list) else []


def _again(node: Node) -> int:
    return 1 if _AGAIN_KEYWORDS.isdisjoint(node) else AGAIN


def _sum(own: int, inner: _Inner, done: dict[_Pair, tuple[int, int]]) -> tuple[int, int]:
    """A pair's own steps and those of the pairs inside it; and how deep they lie."""
    steps, chain = own, 0
    for schema, part, times in inner:
        below, depth = done[id(schema), id(part)]
        steps, chain = min(MOST, steps + times * below), max(chain, depth)
    return steps, chain + 1


class _Plan:
    """What a validator walks because it walks a schema, found out once for all values that the schema applies to."""

    __slots__ = (
        "additional",
        "again",
        "elements",
        "first",
        "listed",
        "members",
        "named",
        "names",
        "numerals",
        "same",
        "toll",
        "weight",
    )

    def __init__(self, document: Document, node: Node, toll: tuple[Toll, Toll] | None) -> None:
        inner = [(keyword, name, schema) for keyword, name, schema in subschemas(node) if isinstance(schema, dict)]
        references = [schema for schema in document.references(node) if isinstance(schema, dict)]
        self.weight = weight(node)
        self.numerals = None if numeral.READERS.isdisjoint(node) else numerals(node)
        self.again = _again(node)
        self.toll = toll
        self.same = [*references, *(schema for keyword, _, schema in inner if keyword in SAME_PLACE)]
        self.named = {
            name: schema for keyword, name, schema in inner if keyword == "properties" and isinstance(name, str)
        }
        self.names = [schema for keyword, _, schema in inner if keyword == "propertyNames"]
        self.members = [schema for keyword, _, schema in inner if keyword in _EVERY_MEMBER]
        self.additional = [schema for keyword, _, schema in inner if keyword == "additionalProperties"]
        self.listed = listed if isinstance(listed := node.get("properties"), dict) else {}
        self.first = [
            (name, schema) for keyword, name, schema in inner if isinstance(name, int) and keyword not in SAME_PLACE
        ]
        self.elements = [schema for keyword, name, schema in inner if keyword in _EVERY_ELEMENT and name is None]

    def own(self, at: Any, rarity: Rarity) -> int:
        """The steps that a schema's own keywords take on a value; `rarity` is of all that it lies in."""
        steps = self.weight if self.numerals is None else self.weight + self.numerals.on(at, rarity)
        if self.toll is None:
            return steps
        own, named = self.toll
        if isinstance(at, str):
            return steps + own.steps(texts=1, chars=len(at))
        return steps + (named.steps(texts=len(at), chars=sum(map(len, at))) if isinstance(at, dict) else 0)

    def looks(self, at: Any) -> int:
        """How many members and items are looked at to find the pairs, beside these themselves."""
        if isinstance(at, dict):
            return len(at) if self.additional else min(len(at), len(self.named))
        return len(self.first) if isinstance(at, list) else 0

    def pairs(self, at: Any) -> Iterator[tuple[Node, Any, int]]:
        """The pairs that a validator walks because it walks this one, and how often."""
        for schema in self.same:
            yield schema, at, self.again
        parts = self._members(at) if isinstance(at, dict) else self._elements(at) if isinstance(at, list) else ()
        for schema, part in parts:
            yield schema, part, 1

    def _members(self, at: dict[str, Any]) -> Iterator[tuple[Node, Any]]:
        few, many = (at, self.named) if len(at) < len(self.named) else (self.named, at)
        yield from ((self.named[name], at[name]) for name in few if name in many)
        yield from ((schema, name) for schema in self.names for name in at)
        yield from ((schema, part) for schema in self.members for part in at.values())
        for schema in self.additional:
            yield from ((schema, part) for name, part in at.items() if name not in self.listed)

    def _elements(self, at: list[Any]) -> Iterator[tuple[Node, Any]]:
        yield from ((schema, at[index]) for index, schema in self.first if index < len(at))
        yield from ((schema, part) for schema in self.elements for part in at)
