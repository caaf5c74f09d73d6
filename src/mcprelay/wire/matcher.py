"""Reading a URI back through a template: which values would have expanded to it.

A simple variable, a label, a path segment or a path parameter holds anything but `/`, `?` and `#`; `{+x}` holds these
too, as far as no later part of the template begins with them. Query parameters come in any order, and any of them may
be missing; so may every variable whose operator brings its own first character. Values are percent-decoded after the
split, and none climbs out of its place (`capture`). The cost is linear in the URI (`section`).

Knows how a template falls into path, query and fragment. Does not know which resource it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcprelay.wire import capture
from mcprelay.wire.capture import Matched, Taker
from mcprelay.wire.expression import Expression, Literal, Variable
from mcprelay.wire.section import Ambiguous, Rules, Section, literal

_PATH, _QUERY, _FRAGMENT = range(3)
_scheme = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:").match


class Matcher:
    """A template compiled for reading.

    Raises:
        Ambiguous: Nothing tells where one of its variables ends; the text says which.
    """

    __slots__ = ("_match", "_prefixes", "_takers")

    def __init__(self, parts: Sequence[Literal | Expression]) -> None:
        path, query, fragment = _sections(parts)
        later = ("?#" if query else "") + ("#" if fragment else "")
        compiled = [
            _path(path, Rules("/?#", later, capture.in_segment, capture.in_path, "./;")),
            *_query(query),
            *_fragment(fragment),
        ]
        self._takers: Sequence[Taker] = tuple(taker for _, takers in compiled for taker in takers)
        self._match = re.compile("".join(regex for regex, _ in compiled) + r"\Z").match
        self._prefixes = _prefixes(parts)

    def match(self, uri: str) -> Matched | None:
        """The values of the variables, without those that the URI leaves out; None where it is not such a URI."""
        found = self._match(uri)
        if found is None:
            return None
        matched: Matched = {}
        for take, text in zip(self._takers, found.groups(), strict=True):
            if text is not None and not take(text, matched):
                return None
        return matched if not self._prefixes or self._join_prefixes(matched) else None

    def _join_prefixes(self, matched: Matched) -> bool:
        """Give a prefix the name of its variable, or hold it against the whole where there is one."""
        for variable in self._prefixes:
            value = matched.pop(variable.key, None)
            whole = matched.setdefault(variable.name, value) if value is not None else None
            if value is not None and (not isinstance(whole, str) or whole[: variable.prefix] != value):
                return False
        return True


def _sections(
    parts: Sequence[Literal | Expression],
) -> tuple[list[Literal | Expression], list[Literal | Expression], list[Literal | Expression]]:
    """The parts of the path, of the query and of the fragment."""
    sections: tuple[list[Literal | Expression], ...] = ([], [], [])
    at = _PATH
    for part in parts:
        if isinstance(part, Literal):
            for text in re.findall(r"[?#]?[^?#]*", part.text):
                if at == _FRAGMENT and text[:1] == "#":
                    raise Ambiguous("a URI has only one '#', and the template has two")
                at = _next(at, text[:1])
                if text:
                    sections[at].append(Literal(text))
        else:
            if part.operator.symbol in ("?", "#") and at >= "?#".index(part.operator.symbol) + 1:
                raise Ambiguous(f"{part} begins what has begun before")
            at = _next(at, part.operator.first)
            sections[at].append(part)
    path, query, fragment = (_joined(section) for section in sections)
    return path, query, fragment


def _next(at: int, first: str) -> int:
    """The section after this character: `?` begins the query of a path, `#` the fragment of either."""
    return _FRAGMENT if first == "#" or at == _FRAGMENT else _QUERY if first == "?" else at


def _joined(parts: Sequence[Literal | Expression]) -> list[Literal | Expression]:
    """The parts with literals that stand together made one."""
    joined: list[Literal | Expression] = []
    for part in parts:
        if isinstance(part, Literal) and joined and isinstance(joined[-1], Literal):
            joined[-1] = Literal(joined[-1].text + part.text)
        else:
            joined.append(part)
    return joined


def _path(parts: list[Literal | Expression], rules: Rules) -> tuple[str, Sequence[Taker]]:
    """The path; a scheme that the template spells out has no case."""
    head = ""
    first = parts[0] if parts else None
    scheme = _scheme(first.text) if isinstance(first, Literal) else None
    if scheme is not None and isinstance(first, Literal):
        head = f"(?i:{literal(scheme.group())})"
        rest = first.text[scheme.end() :]
        parts = [*([Literal(rest)] if rest else []), *parts[1:]]
    section = Section.of(parts, rules)
    return head + section.regex, section.takers


def _query(parts: Sequence[Literal | Expression]) -> list[tuple[str, Sequence[Taker]]]:
    """A query that is spelled out, then parameters by name."""
    named = next((index for index, part in enumerate(parts) if _symbol(part) in ("?", "&")), len(parts))
    variables: list[Variable] = []
    for part in parts[named:]:
        if not isinstance(part, Expression) or part.operator.symbol not in ("?", "&"):
            raise Ambiguous(f"what follows {parts[named]} in the query could be another parameter")
        variables.extend(part.variables)
    rules = Rules("&#", "&#" if variables else "#", capture.in_query, capture.in_query)
    spelled = Section.of(parts[:named], rules)
    if not variables:
        return [(spelled.regex, spelled.takers)]
    begin = "&" if named else r"\?"
    return [
        (spelled.regex, spelled.takers),
        (rf"((?>(?:{begin}[^\0#]*)?))", [capture.pairs(variables, "&", capture.in_query)]),
    ]


def _fragment(parts: Sequence[Literal | Expression]) -> list[tuple[str, Sequence[Taker]]]:
    first = parts[0] if parts else None
    if isinstance(first, Expression):
        if len(parts) > 1:
            raise Ambiguous(f"what follows {first} could be part of it")
        return [(r"(?>(?:#([^\0]*))?)", [_listed(first)])]
    section = Section.of(parts, Rules("#", "#", capture.in_query, capture.in_query))
    return [(section.regex, section.takers)]


def _listed(part: Expression) -> Taker:
    """What takes the text of a fragment's expression."""
    if len(part.variables) == 1:
        return capture.one(part.variables[0], capture.in_query)
    if any(variable.explode for variable in part.variables):
        raise Ambiguous(f"{part} mixes a list with other variables, so nothing tells where the list ends")
    return capture.several(part.variables, ",", capture.in_query)


def _symbol(part: Literal | Expression) -> str:
    return part.operator.symbol if isinstance(part, Expression) else ""


def _prefixes(parts: Sequence[Literal | Expression]) -> tuple[Variable, ...]:
    found = [variable for part in parts if isinstance(part, Expression) for variable in part.variables]
    return tuple(sorted((variable for variable in found if variable.prefix), key=lambda v: -(v.prefix or 0)))
