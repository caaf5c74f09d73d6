"""URIs and URI templates: what RFC 3986 refuses, and RFC 6570 in both directions.

Knows what a URI is made of. The grammar of templates is `expression`, reading a URI back is `matcher`. Does not know
schemes: what a host, a path or a query mean is their owner's business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TypeAlias

from mcprelay.wire.expression import Expression, Literal, TemplateInvalid, Value, parse
from mcprelay.wire.matcher import Matcher
from mcprelay.wire.section import Ambiguous

__all__ = ["Specificity", "Template", "TemplateInvalid", "check_uri"]

Specificity: TypeAlias = tuple[tuple[tuple[int, int], ...], int]

_scheme = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:").match
_not_allowed = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]").search
_authority = re.compile(r"//([^/?#]*)").match
_user = re.compile(r"[^\[\]@]*@").match
_host = re.compile(r"(\[[0-9A-Fa-f:.]*\]|\[v[0-9A-Fa-f]+\.[^\[\]@/]+\]|[^\[\]:@]*)(?::([0-9]*))?").fullmatch

_WIDE, _OPTIONAL, _SIMPLE, _MIXED, _FIXED = range(5)


def check_uri(uri: str) -> str | None:
    """Why RFC 3986 refuses this text as a URI, or None for a URI. The sentence says where, in characters from 0."""
    scheme = _scheme(uri)
    if scheme is None:
        return f"{uri[:40]!r} does not begin with a scheme such as 'config:' or 'https:'"
    bad = _not_allowed(uri)
    if bad is not None:
        return _why_not_allowed(bad)
    second = uri.find("#", uri.find("#") + 1) if "#" in uri else -1
    if second >= 0:
        return f"a second '#' at position {second}; inside of a fragment it is written %23"
    authority = _authority(uri, scheme.end())
    if authority is not None:
        wrong = _why_no_authority(authority.group(1))
        if wrong is not None:
            return f"{wrong} at position {authority.start(1)}"
    place = scheme.end() if authority is None else authority.end()
    for bracket in "[]":
        found = uri.find(bracket, place)
        if found >= 0:
            return (
                f"{bracket!r} at position {found}, which is for an IPv6 host; elsewhere it is written %{ord(bracket):X}"
            )
    return None


def _why_not_allowed(bad: re.Match[str]) -> str:
    if bad.group() == "%":
        return f"'%' at position {bad.start()} is not followed by two hexadecimal digits; the character itself is %25"
    octets = bad.group().encode("utf-8", "surrogatepass")
    return f"{bad.group()!r} at position {bad.start()} must be written {''.join(f'%{octet:02X}' for octet in octets)}"


def _why_no_authority(authority: str) -> str | None:
    user = _user(authority)
    host = _host(authority[user.end() if user else 0 :])
    if host is None:
        return f"{authority!r} is not a host, with a user and a port or without,"
    if host.group(1)[:1] == "[" and host.group(1)[1:2] not in ("v", "V"):
        from ipaddress import IPv6Address

        try:
            IPv6Address(host.group(1)[1:-1])
        except ValueError:
            return f"{host.group(1)!r} is not an IPv6 address"
    return None


class Template:
    """A URI template: values to a URI, and a URI back to values.

    Args:
        text: The template.

    Attributes:
        text: The same.
        variables: The names of its variables, each once, in order.
        required: Those that every URI of the template has.

    Raises:
        TemplateInvalid: The text breaks the grammar of RFC 6570; the error has the position.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = parse(text)
        expressions = [part for part in self._parts if isinstance(part, Expression)]
        self.variables = _names(expressions)
        self.required = frozenset(_names([part for part in expressions if part.operator.symbol in ("", "+")]))

    def __repr__(self) -> str:
        return f"Template({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def expand(self, values: Mapping[str, Value]) -> str:
        """The URI that these values give. A variable that is missing or None leaves nothing; further names are ignored.

        Raises:
            ValueError: A prefix is asked of a list or an association, or a text has a lone surrogate.
        """
        return "".join(part.expand(values) for part in self._parts)

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """The values of which this URI is the expansion, or None where it is none.

        Values are percent-decoded. An exploded variable is a list. A variable that the URI leaves out has no entry,
        which only those that are not `required` can. The time taken is linear in the URI.

        A value never climbs: a single segment that is `.` or `..` or holds a slash, a backslash or a NUL in whatever
        encoding, and a path with such segments, are no match.

        Raises:
            TemplateInvalid: The template has an `ambiguity`, so it cannot be read back.
        """
        matcher = self._matcher
        if isinstance(matcher, Matcher):
            return matcher.match(uri)
        raise TemplateInvalid(self.text, 0, matcher)

    @property
    def ambiguity(self) -> str | None:
        """Why URIs cannot be read back through this template, or None when they can."""
        return None if isinstance(self._matcher, Matcher) else self._matcher

    def check(self) -> str | None:
        """Why this template cannot name resources, or None: its URIs are none by RFC 3986, or it has an `ambiguity`."""
        sample = self.expand(dict.fromkeys(self.variables, "x"))
        first = self._parts[0] if self._parts else None
        if isinstance(first, Expression) and first.operator.symbol == "+":
            sample = f"x:{sample}"  # the variable may bring the scheme
        return check_uri(sample) or self.ambiguity

    @cached_property
    def specificity(self) -> Specificity:
        """An order in which the template that says more about a URI is greater, so the greatest that matches wins.

        Compared segment by segment from the left: fixed text, then text with variables, then a variable alone, then one
        that may be missing, then one that holds any number of segments. Of two that are equal so far, the one with
        fewer query parameters is greater.
        """
        segments: list[list[int]] = [[_FIXED, 0]]
        parameters = 0
        for part in self._parts:
            if isinstance(part, Literal):
                _weigh_literal(part.text, segments)
            elif part.operator.symbol in ("?", "&"):
                parameters += len(part.variables)
            else:
                _weigh_expression(part, segments)
        return tuple((kind, length) for kind, length in segments), -parameters

    @cached_property
    def _matcher(self) -> Matcher | str:
        try:
            return Matcher(self._parts)
        except Ambiguous as error:
            return str(error)


def _names(expressions: list[Expression]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(variable.name for part in expressions for variable in part.variables))


def _weigh_literal(text: str, segments: list[list[int]]) -> None:
    first, *others = text.split("/")
    last = segments[-1]
    last[1] += len(first)
    if first and last[0] == _SIMPLE:
        last[0] = _MIXED
    segments.extend([_FIXED, len(other)] for other in others)


def _weigh_expression(part: Expression, segments: list[list[int]]) -> None:
    if part.operator.symbol == "/":
        segments.extend([_WIDE if variable.explode else _OPTIONAL, 0] for variable in part.variables)
        return
    last = segments[-1]
    if part.operator.keeps_reserved:
        last[0] = _WIDE
    elif part.operator.symbol == "" and last[0] == _FIXED:
        last[0] = _MIXED if last[1] else _SIMPLE
    elif last[0] == _FIXED:
        last[0] = _MIXED
