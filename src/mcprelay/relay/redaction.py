"""Our own secrets in what a server says: one that repeats the token that it got tells it to no model, log or traceback.

Knows the token and the secret headers that a server gets, each of eight characters or more: what is shorter would be
found where it is no secret. They are found as they are, and as JSON writes them; what a server disguises passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from heapq import merge
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

import msgspec

from mcprelay.relay.member import members
from mcprelay.relay.settings import Secret

if TYPE_CHECKING:
    from mcprelay.relay.frame import Origin
    from mcprelay.relay.settings import ServerSettings

MARK = "[a secret of this application]"
"""What stands in the place of one."""
_SHORTEST = 8
_MOST = 256
"""Secrets that are learned of one principal: a function may give another token for each call, and many run at once."""
_ERRORS = 64
"""Errors that are looked at, of all that led to one or are in it."""
_SCHEMED = frozenset(("authorization", "proxy-authorization"))
"""Headers that hold a scheme before the secret."""
_PLAIN = frozenset(
    (
        *("accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "content-type"),
        *("date", "from", "host", "origin", "referer", "user-agent", "via"),
    )
)
"""Headers whose values say nothing of who calls, and are words that a result may hold."""


def secrets_of(settings: ServerSettings, token: str | None = None) -> tuple[str, ...]:
    """What a server is sent that nobody else may see; the configured token, if it is a text and no other is given."""
    if token is None and isinstance(settings.token, Secret):
        token = settings.token.value
    found = [] if token is None else [token]
    for name, secret in settings.headers.items():
        if name.lower() in _SCHEMED:
            found.append(secret.value.rpartition(" ")[2])
        elif name.lower() == "cookie":
            found += [each.partition("=")[2].strip() for each in secret.value.split(";")]
        elif name.lower() not in _PLAIN:
            found.append(secret.value)
    return tuple(dict.fromkeys(one for one in found if len(one) >= _SHORTEST))


class Redaction:
    """Puts a mark in the place of secrets.

    Args:
        secrets: The secrets that are always looked for.
    """

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self._given = secrets
        self.secrets = secrets
        self._forms = _forms(secrets)

    def learn(self, secrets: tuple[str, ...]) -> None:
        """Look for these, too. Of more than can be remembered, those are forgotten that came first."""
        if any(one not in self.secrets for one in secrets):
            learned = [one for one in dict.fromkeys((*self.secrets, *secrets)) if one not in self._given]
            self.secrets = (*self._given, *learned[-_MOST:])
            self._forms = _forms(self.secrets)

    def filtered(self, text: str, _: Origin) -> str:
        """A text as a filter of the funnel leaves it."""
        return self.text(text)

    def text(self, text: str) -> str:
        """A text without them. Where some overlap, one mark stands for all that they cover."""
        found = [form for form in self._forms if form in text]
        if not found:
            return text
        parts: list[str] = []
        end = 0
        for start, stop in _covered(text, found):
            parts += (text[end:start], MARK)
            end = stop
        return "".join((*parts, text[end:]))

    def error(self, error: BaseException) -> None:
        """Take them out of an error, of its notes and attributes, and of all errors that led to it or are in it.

        The message of a group of exceptions stays: Python lets nobody set it. Its members are looked at.
        """
        waiting, seen = [error] if self._forms else [], set[int]()
        while waiting and len(seen) < _ERRORS:
            one = waiting.pop(0)
            if id(one) in seen:
                continue
            seen.add(id(one))
            near = [*one.args, *vars(one).values(), one.__cause__, one.__context__]
            near += one.exceptions if isinstance(one, BaseExceptionGroup) else ()
            waiting += [each for each in near if isinstance(each, BaseException)]
            one.args = tuple(map(self._value, one.args))
            vars(one).update({name: self._value(value) for name, value in vars(one).items()})
            self._fields(one)

    def _fields(self, error: BaseException) -> None:
        """Take them out of what Python's own exceptions keep apart from their arguments, such as the name of a file."""
        for kind in type(error).__mro__:
            for name, field in vars(kind).items():
                if isinstance(field, MemberDescriptorType) and not name.startswith("__"):
                    with suppress(AttributeError):
                        setattr(error, name, self._value(getattr(error, name)))

    def _value(self, value: Any) -> Any:
        """A value without them; the same where there is none in it, or where it has no end."""
        try:
            found = self._hidden(value)
            return value if found == value else found
        except RecursionError:
            return value

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.text(value.decode("latin-1")).encode("latin-1")
        if type(value) is dict:
            return members((self._hidden(name), self._hidden(inner)) for name, inner in value.items())
        return type(value)(map(self._hidden, value)) if type(value) in _HOLDERS else self._said(value)

    def _said(self, value: Any) -> Any:
        """Anything else, if JSON can say it; as it is, if not."""
        try:
            form = msgspec.json.encode(value).decode()
            hidden = self.text(form)
            return value if hidden == form else msgspec.json.decode(hidden, type=type(value))
        except (TypeError, ValueError, msgspec.MsgspecError):
            return value


_HOLDERS = frozenset((list, tuple, set, frozenset))


def _covered(text: str, forms: Iterable[str]) -> Iterator[tuple[int, int]]:
    """From where to where a text is covered by these, of which it has one at least."""
    start = stop = -1
    for first, last in merge(*(_places(text, form) for form in forms)):
        if first < stop:
            stop = max(stop, last)
            continue
        if stop > 0:
            yield start, stop
        start, stop = first, last
    yield start, stop


def _places(text: str, form: str) -> Iterator[tuple[int, int]]:
    at = text.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = text.find(form, at + 1)


def _forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """How they may be written."""
    written = [msgspec.json.encode(one).decode()[1:-1] for one in secrets]
    slashed = [one.replace("/", "\\/") for one in written]  # as some writers of JSON do
    return tuple(dict.fromkeys((*secrets, *written, *slashed)))
