"""Our own secrets in what a server says: one that repeats the token that it got tells it to no model, log or traceback.

Knows the token and the secret headers that a server gets, each of eight characters or more: what is shorter would be
found where it is no secret. They are found as they are, and as JSON writes them; what a server disguises passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from mcprelay.relay.settings import Secret

if TYPE_CHECKING:
    from mcprelay.relay.frame import Origin
    from mcprelay.relay.settings import ServerSettings

MARK = "[a secret of this application]"
"""What stands in the place of one."""
_SHORTEST = 8
_MOST = 256
"""Secrets that are learned of one principal: a function may give another token for each call, and many run at once."""
_CAUSES = 16
"""Errors of one chain that are looked at."""
_SCHEMED = frozenset(("authorization", "proxy-authorization"))
"""Headers that hold a scheme before the secret."""
_PLAIN = frozenset(
    (
        *("accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "content-type"),
        *("date", "from", "host", "origin", "referer", "user-agent", "via"),
    )
)
"""Headers whose values say nothing of who calls, and are words that a result may hold."""

Value = TypeVar("Value")


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
        """A text without them."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MARK)
        return text

    def error(self, error: BaseException) -> None:
        """Take them out of an error, out of its notes and attributes, and out of all that led to it."""
        if not self._forms:
            return
        waiting, seen = [error], 0
        while waiting and seen < _CAUSES:
            one, seen = waiting.pop(), seen + 1
            one.args = tuple(self._value(arg) for arg in one.args)
            vars(one).update({name: self._value(value) for name, value in vars(one).items()})
            waiting += [each for each in (one.__cause__, one.__context__) if each is not None]

    def _value(self, value: Value) -> Value:
        """A value that JSON can say without them; any other as it is."""
        if isinstance(value, str):
            return self.text(value)  # type: ignore[return-value]
        try:
            form = msgspec.json.encode(value).decode()
            hidden = self.text(form)
            return value if hidden == form else msgspec.json.decode(hidden, type=type(value))
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
            return value


def _forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """How they may be written, the longest first: one may be a part of another."""
    written = [msgspec.json.encode(one).decode()[1:-1] for one in secrets]
    slashed = [one.replace("/", "\\/") for one in written]  # as some writers of JSON do
    return tuple(sorted({*secrets, *written, *slashed}, key=len, reverse=True))
