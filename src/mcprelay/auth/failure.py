"""Saying what went wrong: which step, at which URL, and what came back.

Knows how to make text of other people safe to show, and that no secret may be in it. Decides nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from mcprelay.auth.address import parse
from mcprelay.errors import AuthorizationRequired, MCPRelayError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcprelay.ports import Request
    from mcprelay.wire.challenge import Challenge

_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")
_SHORTEST_SECRET = 6
_CREDENTIALS = ("authorization", "dpop")


class StepFailed(MCPRelayError):
    """A step on the way to a token failed. It stays inside `mcprelay.auth`, where it becomes `AuthorizationRequired`.

    Attributes:
        step: What was tried, as a noun: `token request`.
        sentence: The URL and what came back.
        error: The OAuth error code that came back, or an empty text.
        verdict: What it means: `for now` (another attempt may succeed), `final` (the same attempt never will),
            `unclear` (whoever answered did not speak OAuth: a captive portal, a proxy, a page that has moved), or
            `missing` (what was looked for is simply not there).
    """

    def __init__(
        self,
        step: str,
        sentence: str,
        *,
        error: str = "",
        verdict: Literal["for now", "final", "unclear", "missing"] = "for now",
    ) -> None:
        super().__init__(f"{step} failed: {sentence}")
        self.step = step
        self.sentence = sentence
        self.error = error
        self.verdict = verdict


class OAuthError(Struct, frozen=True):
    """An OAuth error response, cleaned.

    Attributes:
        error: The code, `invalid_grant` and its like.
        description: The peer's own words, or an empty text: untrusted.
    """

    error: str
    description: str = ""

    def __str__(self) -> str:
        return f"{self.error}: {self.description}" if self.description else self.error

    @classmethod
    def read(cls, body: bytes, *, secrets: Iterable[str | None] = ()) -> OAuthError | None:
        """The error in a body, or None when there is none.

        Args:
            body: What came back.
            secrets: What was sent and must not be shown, should the peer quote it.
        """
        try:
            found = msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        code = found.get("error")
        if not isinstance(code, str):
            return None
        known = list(secrets)
        description = redacted(str(found.get("error_description") or ""), known)
        return cls(clean(redacted(code, known), limit=60), clean(description))


def clean(text: object, *, limit: int = 200) -> str:
    """Text of a peer, on one line, without what a reader cannot see, and not longer than `limit` characters."""
    plain = _INVISIBLE.sub(" ", str(text)).strip()
    return plain if len(plain) <= limit else plain[:limit] + "…"


def redacted(text: str, secrets: Iterable[str | None]) -> str:
    """The text without any of the secrets, should a peer have sent one back."""
    for secret in sorted((s for s in secrets if s and len(s) >= _SHORTEST_SECRET), key=len, reverse=True):
        text = text.replace(secret, "[redacted]")
    return text


def shown(url: str) -> str:
    """A URL as it may be shown: without its query, which can hold a key, and without a name and a password."""
    try:
        place = parse(url)
    except ValueError:
        # What is no URL that can be used may still hold a name and a password, and a fragment can hold a token.
        return clean(re.sub(r"//[^/?#]*@", "//", re.split(r"[?#]", url, maxsplit=1)[0]))
    return place.root + place.path


def required(
    request: Request, status: int, headers: Mapping[str, str], *, said: str, challenge: Challenge | None = None
) -> AuthorizationRequired:
    """The error for a request that the server refused.

    Args:
        request: The refused request.
        status: 401 or 403.
        headers: The headers of the refusal.
        said: What was tried and came out, or what to do: a sentence without a full stop.
        challenge: The parsed challenge that the client understands, or None.

    A server that quotes the token back does not get it into the error.
    """
    secrets = [value.rpartition(" ")[2] for name, value in request.headers if name.lower() in _CREDENTIALS]
    headers = {name: redacted(value, secrets) for name, value in headers.items()}
    if challenge is not None:
        params = {redacted(name, secrets): redacted(value, secrets) for name, value in challenge.params.items()}
        challenge = msgspec.structs.replace(challenge, params=params)
    asked = "" if challenge is None else f", asking for {describe(challenge)}"
    return AuthorizationRequired(
        redacted(f"{shown(request.url)} answered {status}{asked}. {said[:1].upper()}{said[1:]}.", secrets),
        status=status,
        headers=headers,
        challenge=challenge,
    )


def describe(challenge: Challenge) -> str:
    """A challenge in a few words: the scheme, the error and the scopes."""
    words = [clean(challenge.scheme, limit=20)]
    words += [f'{name}="{clean(value)}"' for name in ("error", "scope") if (value := challenge.params.get(name))]
    return " ".join(words)
