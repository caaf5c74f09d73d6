"""Authentication challenges: `WWW-Authenticate` values to `Challenge` and back (RFC 9110, sections 11.2 to 11.6.1).

Knows the grammar, also where it is ambiguous: a comma separates parameters and challenges alike, and one header may
hold several challenges, as may several headers. Reading never raises: what fits no rule is passed over up to the next
comma. Does not know what a scheme's parameters mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

_TCHARS = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_is_token = re.compile(_TCHARS).fullmatch
_scheme = re.compile(rf"({_TCHARS})(?=[ \t,]|\Z)(?![ \t]*=)[ \t]*").match
_token68 = re.compile(r"([A-Za-z0-9\-._~+/]+=*)[ \t]*(?=,|\Z)").match
_param = re.compile(rf"({_TCHARS})[ \t]*=[ \t]*").match
_quoted = re.compile(r'"((?:[^"\\]|\\.)*)(?:"|\\?\Z)', re.DOTALL).match
_bare = re.compile(r"[^\s,]*")
_gap = re.compile(r"[ \t,]*")
_junk = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*(?:"|\\?\Z))*', re.DOTALL)
_escape = re.compile(r"\\(.)", re.DOTALL)
_not_quotable = re.compile(r"[^\t\x20-\x7e]")


class Challenge(Struct, frozen=True):
    """One challenge.

    Attributes:
        scheme: The scheme as it was sent; `is_scheme` compares it.
        params: The parameters by lower-cased name. Of one that came twice, which no server may send, the first counts.
        token68: The single value that some schemes have instead of parameters, or None.
    """

    scheme: str
    params: Mapping[str, str] = {}
    token68: str | None = None

    def is_scheme(self, name: str) -> bool:
        """Whether this is a challenge of that scheme; schemes have no case."""
        return self.scheme.lower() == name.lower()

    def __str__(self) -> str:
        return format_challenge(self)


def parse(values: str | Iterable[str]) -> tuple[Challenge, ...]:
    """The challenges of one header value or of several, in order.

    Unquoted values that are no tokens, such as URLs, are taken up to the next comma or space, because servers send
    them.
    """
    text = values if isinstance(values, str) else ", ".join(values)
    return tuple(_challenges(text))


def find(challenges: Iterable[Challenge], scheme: str) -> Challenge | None:
    """The first challenge of a scheme, or None."""
    return next((challenge for challenge in challenges if challenge.is_scheme(scheme)), None)


def format_challenge(challenge: Challenge) -> str:
    """The header value of one challenge; every parameter is quoted.

    A value can say anything without ending the header or the string: quotes and backslashes are escaped, line ends and
    other control characters become spaces, and what is not ASCII becomes `?`.

    Raises:
        ValueError: The scheme or a parameter's name is not a token, or `token68` is not one: a mistake of the program.
    """
    for name in (challenge.scheme, *challenge.params):
        if not _is_token(name):
            raise ValueError(f"{name!r} is not a token and cannot name a scheme or a parameter")
    if challenge.token68 is not None:
        found = _token68(challenge.token68)
        if found is None or found.group(1) != challenge.token68 or challenge.params:
            raise ValueError(f"{challenge.token68!r} is not a token68 that stands alone")
        return f"{challenge.scheme} {challenge.token68}"
    said = ", ".join(f"{name}={_quote(value)}" for name, value in challenge.params.items())
    return f"{challenge.scheme} {said}" if said else challenge.scheme


def format_challenges(challenges: Iterable[Challenge]) -> str:
    """The header value of several challenges."""
    return ", ".join(map(format_challenge, challenges))


def _quote(value: str) -> str:
    safe = _not_quotable.sub(lambda bad: " " if bad.group() < " " or bad.group() == "\x7f" else "?", value)
    return '"' + safe.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _challenges(text: str) -> Iterator[Challenge]:
    """Walk the text once: at each place either a scheme begins, or what stands there is passed over."""
    place = _after(_gap, text, 0)
    while place < len(text):
        begun = _scheme(text, place)
        if begun is None:
            place = _after(_gap, text, _after(_junk, text, place))
            continue
        alone = _token68(text, begun.end())
        if alone is not None:
            yield Challenge(begun.group(1), token68=alone.group(1))
            place = _after(_gap, text, alone.end())
            continue
        params: dict[str, str] = {}
        place = _read_params(text, begun.end(), params)
        yield Challenge(begun.group(1), params)


def _read_params(text: str, place: int, params: dict[str, str]) -> int:
    """Read parameters into `params`; returns the place where something else begins."""
    place = _after(_gap, text, place)
    while (named := _param(text, place)) is not None:
        quoted = _quoted(text, named.end())
        if quoted is None:
            place = _after(_bare, text, named.end())
            value = text[named.end() : place]
        else:
            place = quoted.end()
            value = _escape.sub(r"\1", quoted.group(1))
        params.setdefault(named.group(1).lower(), value)
        place = _after(_gap, text, place)
    return place


def _after(skipped: re.Pattern[str], text: str, place: int) -> int:
    """The place after what a pattern that may match nothing skips."""
    found = skipped.match(text, place)
    return place if found is None else found.end()
