"""Public names: what a tool of a server is called before a model.

One rule for all providers: `[A-Za-z_][A-Za-z0-9_-]{0,63}`. A name is `prefix__tool`, where the prefix is the server's
configured name unless another one is set. Where that form would lose something, or could be another tool's, it ends in
`_` and eight hexadecimal digits of a digest of server and tool. So a name depends on its own server and tool alone: it
is the same in every process and every order, and adding a server renames nothing. The way back is a table, never a
split.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec import Struct

from mcprelay.relay.confusable import skeleton

LONGEST = 64
RULE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""What every provider takes."""
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")
_DIGESTED = re.compile(r"_[0-9a-f]{8}")


class Named(Struct, frozen=True):
    """A tool of a server."""

    server: str
    tool: str


def public_name(server: str, tool: str, *, prefix: str | None = None) -> str:
    """The name of a tool before a model.

    Args:
        server: The configured name.
        tool: The name that the server gives the tool, as it is.
        prefix: Instead of the configured name; empty for none.
    """
    before = server if prefix is None else prefix
    plain = f"{before}__{tool}" if before else tool
    return plain if _is_its_own(before, tool, plain) else _with_digest(server, tool, plain)


def _is_its_own(before: str, tool: str, plain: str) -> bool:
    """Whether no other server and tool can have this form: it reads as two parts in one way, and as no digest."""
    return (
        RULE.fullmatch(plain) is not None
        and "__" not in before
        and "__" not in tool
        and not before.endswith("_")
        and not (before and tool.startswith("_"))
        and tool != ""
        and _DIGESTED.fullmatch(plain[-9:]) is None
    )


def _with_digest(server: str, tool: str, plain: str) -> str:
    digest = hashlib.sha256(msgspec.json.encode([server, tool])).hexdigest()[:8]
    folded = _OTHER.sub("_", plain)
    if not re.match("[A-Za-z_]", folded):
        folded = f"_{folded}"
    return f"{folded[: LONGEST - 9]}_{digest}"


class Table:
    """The names of a set of tools, both ways.

    Attributes:
        doubled: Tools that came after another one of the same public name; they have no name here.
    """

    def __init__(self) -> None:
        self._tools: dict[str, Named] = {}
        self._names: dict[Named, str] = {}
        self.doubled: list[Named] = []

    def add(self, server: str, tool: str, *, prefix: str | None = None) -> str | None:
        """Name a tool. None where its name is taken, by itself (a server that lists it twice) or by another one."""
        named = Named(server, tool)
        name = public_name(server, tool, prefix=prefix)
        if name in self._tools:
            self.doubled.append(named)
            return None
        self._tools[name] = named
        self._names[named] = name
        return name

    def tool(self, name: str) -> Named | None:
        """The tool of a public name."""
        return self._tools.get(name)

    def name(self, server: str, tool: str) -> str | None:
        """The public name of a tool."""
        return self._names.get(Named(server, tool))

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


class Shadow(Struct, frozen=True, kw_only=True):
    """Something about a tool that could make a model, or a person, take it for another one.

    Attributes:
        name: The public name.
        other: The public name, or the local function, that it may be taken for.
        why: `same name` (of tools of two servers), `alike` (names that look the same), or `mentions` (its description
            speaks of the other one).
        more: How many others it speaks of beside those that are told: a description may name all tools there are.
    """

    name: str
    other: str
    why: str
    more: int = 0


def shadows(
    tools: Mapping[str, tuple[Named, str]], *, local: Iterable[str] = (), prefixed: Collection[str] = ()
) -> list[Shadow]:
    """What may be taken for something else.

    Args:
        tools: Public names, with the tool and its description.
        local: Names of the application's own functions that stand beside them.
        prefixed: Servers to which the settings give a prefix: that two of these have a tool of one name is known.
    """
    found = [*_alike(tools, local, prefixed), *_mentions(tools, local)]
    return sorted(set(found), key=lambda shadow: (shadow.name, shadow.other, shadow.why))


class _One(NamedTuple):
    """A tool among those of one name, or a function of the application, which has no server."""

    name: str
    server: str
    own: str


def _alike(tools: Mapping[str, tuple[Named, str]], local: Iterable[str], prefixed: Collection[str]) -> Iterator[Shadow]:
    """Tools whose own names are the same, or look the same, over the servers and the application's functions.

    One is enough to say so, and says it of both: a group may be as large as its servers like.
    """
    groups: dict[str, list[_One]] = {}
    for name, (named, _) in tools.items():
        groups.setdefault(skeleton(named.tool), []).append(_One(name, named.server, named.tool))
    for name in local:
        groups.setdefault(skeleton(name), []).append(_One(name, "", name))
    for group in groups.values():
        first = min(group, key=lambda one: (one.server != "", one.server in prefixed, one.name))
        for one in group:
            same = one.own == first.own
            known = same and one.server in prefixed and first.server in prefixed
            if one is first or not one.server or known:
                continue
            name, other = sorted((one.name, first.name)) if first.server else (one.name, first.name)
            yield Shadow(name=name, other=other, why="same name" if same else "alike")


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{3,}")


_MENTIONED = 5
"""How many tools that one description speaks of are told one by one."""


def _mentions(tools: Mapping[str, tuple[Named, str]], local: Iterable[str]) -> Iterator[Shadow]:
    """Descriptions that speak of a tool of another server, or of a function of the application."""
    spoken = _Spoken(tools, local)
    for name, (named, description) in tools.items():
        words = {word.rstrip(".-") for word in set(_WORD.findall(description)) if _is_telling(word)}
        others, number = spoken.of(words, besides=named.server)
        for other in others:
            more = number - len(others) if other == others[-1] else 0
            yield Shadow(name=name, other=other, why="mentions", more=more)


class _Spoken:
    """The names that descriptions may speak of: each word is looked at once, however many tools have it as a name."""

    def __init__(self, tools: Mapping[str, tuple[Named, str]], local: Iterable[str]) -> None:
        self._public = {name: named for name, (named, _) in tools.items()}
        self._own: dict[str, dict[str, list[str]]] = {}
        self._numbers: Counter[str] = Counter()
        for own, server, name in (
            *((named.tool, named.server, name) for name, named in self._public.items()),
            *((name, "", name) for name in local),
        ):
            self._own.setdefault(own, {}).setdefault(server, []).append(name)
            self._numbers[own] += 1

    def of(self, words: set[str], *, besides: str) -> tuple[list[str], int]:
        """The first few tools of other servers that these words name, and how many there are."""
        found: list[str] = []
        number = 0
        for word in sorted(words):
            own, public = self._own.get(word, {}), self._public.get(word)
            number += self._numbers[word] - len(own.get(besides, ()))
            others = (name for server, names in own.items() if server != besides for name in names)
            found.extend(islice(others, _MENTIONED - len(found)))
            if public is not None and public.server != besides and public.tool not in words:
                number += 1
                found.extend([word][: _MENTIONED - len(found)])
        return found, number


def _is_telling(word: str) -> bool:
    """Whether a word is a name rather than plain English: `search` is both, so it tells nothing."""
    return "_" in word or "-" in word.rstrip(".-") or word.lower() != word
