"""Which regular expressions of somebody else's schema are run here, and what the schema is without the others.

A pattern is run if the linear-time engine takes it within a bound on its compiled size. One with look-around or a
back-reference, or one that is written for another dialect, is not run: the schema is loosened so that it accepts
everything that it accepted before, and whoever owns it still checks the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from mcprelay.wire.automaton import girth, strain
from mcprelay.wire.change import Changes
from mcprelay.wire.reference import REFERENCES, Node, Schema, mapped, subschemas

PATTERN_BYTES = 1 << 17
"""Bound on what one compiled pattern may take, and on what running it may take beside that."""
LARGEST = 2 * PATTERN_BYTES
"""What a pattern and the states it was in are estimated at, at most: the engine takes nothing much larger."""
_STRICT = ("unevaluatedProperties", "unevaluatedItems")
"""Keywords that forbid what no other keyword looked at: they tighten when another one is loosened."""
_UNSURE = frozenset((*REFERENCES, *_STRICT))


_CONTENTS = ("contentMediaType", "contentEncoding")
_CONTENT = 16
"""Steps for each 64 characters of a text that is decoded, or read as JSON, to see whether it is what a schema says."""
READERS = frozenset(("pattern", "patternProperties", *_CONTENTS))
"""Keywords that make a validator read texts."""


class Toll(Struct, frozen=True):
    """What regular expressions, and whatever else reads texts, take where they are run.

    Attributes:
        patterns: How many there are.
        strain: Steps that they take for each 64 characters.
    """

    patterns: int = 0
    strain: int = 0

    def steps(self, *, texts: int, chars: int) -> int:
        """The steps they take on so many texts that have so many characters together."""
        return self.patterns * texts + self.strain * chars // 64


def engine() -> Any:
    """The options that make jsonschema-rs run patterns in linear time."""
    from jsonschema_rs import RegexOptions

    return RegexOptions(size_limit=PATTERN_BYTES, dfa_size_limit=PATTERN_BYTES)


def patterns(root: Schema) -> Iterator[str]:
    """Every regular expression in a schema document, wherever a schema may lie."""
    waiting: list[Schema] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            pattern, named = node.get("pattern"), node.get("patternProperties")
            if isinstance(pattern, str):
                yield pattern
            if isinstance(named, dict):
                yield from named
            waiting.extend(inner for _, _, inner in subschemas(node))


def expense(root: Schema, *, most: int) -> int:
    """Bytes that the regular expressions of a schema take once they have run, about; once over `most`, no more."""
    size = 0
    for pattern in patterns(root):
        size += girth(pattern, most=LARGEST)
        if size > most:
            break
    return size


def charges(node: Node, *, without: frozenset[str] = frozenset()) -> tuple[Toll, Toll]:
    """What a schema takes to read a text, and the name of a member; the patterns `without` are not run."""
    pattern, named = node.get("pattern"), node.get("patternProperties")
    own = [pattern] if isinstance(pattern, str) else []
    names = named if isinstance(named, dict) else ()
    contents = [_CONTENT for keyword in _CONTENTS if keyword in node]
    return _toll(own, without, contents), _toll(names, without, [])


def _toll(listed: Iterable[str], without: frozenset[str], others: list[int]) -> Toll:
    steps = [strain(pattern, most=LARGEST) for pattern in listed if pattern not in without]
    return Toll(patterns=len(steps) + len(others), strain=sum(steps) + sum(others))


def plainly(node: Schema, where: str = "") -> Any:
    """The same schema with patterns that are quickly compiled in the place of its own: its form alone is the same."""
    if not isinstance(node, dict):
        return node
    kept = {keyword: value for keyword, value in node.items() if keyword != "pattern" or not isinstance(value, str)}
    if isinstance(named := kept.get("patternProperties"), dict):
        kept["patternProperties"] = {f"^{number}$": inner for number, inner in enumerate(named.values())}
    return mapped(kept, where, plainly)


def runnable(pattern: str) -> bool:
    """Whether the linear-time engine takes this pattern."""
    from jsonschema_rs import Draft202012Validator

    try:
        Draft202012Validator({"pattern": pattern}, offline=True, pattern_options=engine())
    except ValueError:
        return False
    return True


class Loosened:
    """A schema without some of its patterns. `schema` accepts whatever the original accepts; `changes` says what went.

    Dropping a demand loosens a schema only where more is accepted when a part accepts more. Below `not`, `if` and
    `oneOf` that is not so, and neither where `unevaluated…` and `additionalProperties` watch: those go as well.
    """

    def __init__(self, root: Schema, *, without: frozenset[str]) -> None:
        self._told = Changes()
        self._without = without
        self._affected = _affected(root, without)
        self.schema = self._copy(root, "#")
        self.changes = self._told.told

    def _copy(self, node: Schema, where: str) -> Schema:
        if not isinstance(node, dict):
            return node
        kept = {keyword: value for keyword, value in node.items() if not self._drops(node, keyword, where)}
        if isinstance(named := kept.get("patternProperties"), dict) and not self._without.isdisjoint(named):
            kept["patternProperties"] = {key: value for key, value in named.items() if key not in self._without}
            kept.pop("additionalProperties", None)
            self._note(where, "patternProperties")
        return mapped(kept, where, self._copy)

    def _drops(self, node: Node, keyword: str, where: str) -> bool:
        if keyword == "pattern":
            dropped = isinstance(node[keyword], str) and node[keyword] in self._without
        elif keyword in {"then", "else"}:
            dropped = self._touched(node.get("if", True))
        elif keyword in {"not", "if"}:
            dropped = self._touched(node[keyword])
        elif keyword == "oneOf":
            dropped = isinstance(node[keyword], list) and any(map(self._touched, node[keyword]))
        elif keyword == "maxContains":
            dropped = self._touched(node.get("contains", True))
        else:
            dropped = keyword in _STRICT
        if dropped:
            self._note(where, keyword)
        return dropped

    def _touched(self, inner: Schema) -> bool:
        """Whether a schema holds something that goes, or a reference, behind which something may."""
        return id(inner) in self._affected

    def _note(self, where: str, keyword: str) -> None:
        self._told.append(f"{where}: {keyword} is not checked here: a pattern in it cannot run in linear time")


def _affected(root: Schema, without: frozenset[str]) -> set[int]:
    """The schemas, by identity, that hold something that goes, or a reference, behind which something may."""
    found: set[int] = set()
    waiting: list[tuple[Schema, bool]] = [(root, False)]
    while waiting:
        node, leaving = waiting.pop()
        if not isinstance(node, dict):
            continue
        inner = [schema for _, _, schema in subschemas(node)]
        if not leaving:
            waiting.append((node, True))
            waiting.extend((schema, False) for schema in inner)
        elif _goes(node, without) or any(id(schema) in found for schema in inner):
            found.add(id(node))
    return found


def _goes(node: Node, without: frozenset[str]) -> bool:
    """Whether a schema itself has what goes, or a reference."""
    pattern, named = node.get("pattern"), node.get("patternProperties")
    return (
        (isinstance(pattern, str) and pattern in without)
        or (isinstance(named, dict) and not without.isdisjoint(named))
        or not _UNSURE.isdisjoint(node)
    )
