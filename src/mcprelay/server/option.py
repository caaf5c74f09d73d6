"""What may be said of a tool, a resource or a prompt when it is registered: once, for every way to register it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from mcprelay.errors import DefinitionError
from mcprelay.server.kind import are_icons, is_count, is_name, is_switch, is_text, one_of
from mcprelay.types import Annotations, Icon
from mcprelay.wire.spelling import closest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcprelay.auth.principal import Principal
    from mcprelay.server.schema import Schema
    from mcprelay.types import CacheScope, Meta


class HandlerOptions(TypedDict, total=False):
    """What may be said of every handler.

    Attributes:
        tags: Words to select by (`Server.disable(tags=…)`). Clients do not see them.
        inline: Whether a `def` handler runs on the event loop instead of in a worker thread; it must not block then.
        timeout: Seconds that a call may take, the client's time for questions not counted; 0 for as long as it takes.
            The server's limit `call_seconds` unless given.
        visible: Who may see and use it, by principal; to others it is unknown. Asked on the event loop, for each list
            and call, so it must not block.
        requires: The scopes that a caller needs to see and use it.
    """

    tags: Iterable[str]
    inline: bool
    timeout: float | None
    visible: Callable[[Principal | None], bool] | None
    requires: Iterable[str]


class Options(HandlerOptions, total=False):
    """What may be said of everything that the handler's own signature and docstring describe.

    Attributes:
        name: What it is called; the function's own name unless given.
        title: A name for people.
        description: What it is for; the docstring unless given.
        meta: The definition's `_meta`.
    """

    name: str | None
    title: str | None
    description: str | None
    meta: Meta | None


class ToolOptions(Options, total=False):
    """What may be said of a tool. Of the hints, what is not said is not sent.

    Attributes:
        icons: Pictures for display.
        read_only: It changes nothing.
        destructive: It may destroy something.
        idempotent: Doing it twice is doing it once.
        open_world: It touches things beyond this server.
        output_schema: What is published for the result, in place of what the return annotation says.
        schema: What is added to the schema of the arguments.
        strict: Whether arguments must have exactly their types; the server's own setting unless given.
    """

    icons: Sequence[Icon] | None
    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None
    output_schema: dict[str, Any] | None
    schema: Schema | None
    strict: bool | None


class ResourceOptions(Options, total=False):
    """What may be said of a resource, or of a template: that has neither icons nor a size.

    Attributes:
        icons: Pictures for display.
        mime_type: The media type of its contents.
        size: Its size in bytes.
        annotations: For whom it is, and how much it matters.
        ttl_ms: For how many milliseconds a client may keep what it read; the server's setting unless given.
        cache_scope: Whether what is kept may serve others too; the server's setting unless given.
        match: Of a template: `match(uri)` gives the values of the variables, or None for a URI that is not its own, in
            place of what RFC 6570 says. Asked on the event loop, so it must not block.
    """

    icons: Sequence[Icon] | None
    mime_type: str | None
    size: int | None
    annotations: Annotations | None
    ttl_ms: int | None
    cache_scope: CacheScope | None
    match: Callable[[str], Mapping[str, Any] | None] | None


class PromptOptions(Options, total=False):
    """What may be said of a prompt.

    Attributes:
        icons: Pictures for display.
    """

    icons: Sequence[Icon] | None


class RunOptions(TypedDict, total=False):
    """How a server is reached.

    Attributes:
        host: Of HTTP: the address to bind.
        port: Of HTTP: the port; 0 for a free one.
        path: Of HTTP: where the endpoint is.
        sse_path: Of HTTP: where the stream of the older HTTP+SSE transport is; None for none.
        message_path: Of HTTP: where its messages are posted.
        ssl_certfile: Of HTTP: a certificate chain, for HTTPS.
        ssl_keyfile: Of HTTP: its key.
        allow_unauthenticated: Of HTTP: whether a server without `auth` may bind more than loopback.
        fd: Of HTTP: a listening TCP socket that this process inherited, in place of `host` and `port`.
        state: Of stdio: the value of `ctx.state`.
    """

    host: str
    port: int
    path: str
    sse_path: str | None
    message_path: str
    ssl_certfile: str | None
    ssl_keyfile: str | None
    allow_unauthenticated: bool
    fd: int
    state: Any


KNOWN: dict[str, frozenset[str]] = {
    "tool": ToolOptions.__optional_keys__,
    "resource": ResourceOptions.__optional_keys__,
    "prompt": PromptOptions.__optional_keys__,
}
"""The options of each kind."""


def check(kind: str, options: Mapping[str, Any]) -> None:
    """Whether a kind of thing has these options, and may have them with these values.

    Raises:
        DefinitionError: It has not, and the message suggests which was meant; or a value will not do.
    """
    unknown = options.keys() - KNOWN[kind]
    if unknown:
        raise DefinitionError(f"a {kind} has no option {min(unknown)!r}.{_advice(kind, min(unknown))}")
    for name, value in options.items():
        if value is not None and name in _RULES:
            fits, expected = _RULES[name]
            if not fits(value):
                from mcprelay.server.words import clipped  # only for a message

                raise DefinitionError(f"{name}= of a {kind} is {expected}, and not {clipped(repr(value))}")


def _advice(kind: str, name: str) -> str:
    close = closest(name, sorted(KNOWN[kind]))
    return f" Did you mean {close!r}?" if close else f" There are {', '.join(sorted(KNOWN[kind]))}."


def _are_words(value: Any) -> bool:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return False
    return not isinstance(value, Collection) or all(isinstance(word, str) for word in value)


def _is_meta(value: Any) -> bool:
    try:
        return isinstance(value, dict) and bool(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError):
        return False


def _is_schema(value: Any) -> bool:
    from mcprelay.server.schema import Schema

    return isinstance(value, Schema)


_SWITCHES = ("inline", "read_only", "destructive", "idempotent", "open_world", "strict")
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (is_name, "a string that is not empty"),
    "title": (is_text, "a string"),
    "description": (is_text, "a string"),
    "mime_type": (is_text, "a media type such as 'text/plain'"),
    "meta": (_is_meta, "a dict that JSON can say"),
    "icons": (are_icons, "a list of Icon(src=…)"),
    "tags": (_are_words, "a list of words"),
    "requires": (_are_words, "a list of scopes"),
    "visible": (callable, "a function of the principal"),
    "match": (callable, "a function of the URI"),
    "output_schema": (lambda value: isinstance(value, dict), "a JSON Schema, a dict"),
    "schema": (_is_schema, "a Schema(…)"),
    "size": (is_count, "a number of bytes"),
    "ttl_ms": (is_count, "a number of milliseconds"),
    "cache_scope": one_of("public", "private"),
    "annotations": (lambda value: isinstance(value, Annotations), "an Annotations(…)"),
} | dict.fromkeys(_SWITCHES, (is_switch, "True or False"))
"""What the values of options must be, in code and in words; `timeout` is `patience`'s."""
