"""What a revision is made of: era, features, methods, codes, HTTP rules, shapes."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mcprelay.revisions.shape import is_object_schema, wrapped_content
from mcprelay.types import EmptyResult, ToolResult
from mcprelay.wire.params import Params


class Era(enum.Enum):
    """How the two sides agree on a revision."""

    HANDSHAKE = "handshake"
    """Fixed once by `initialize`, for a session."""
    STATELESS = "stateless"
    """Said on each request."""


class Feature(enum.Flag):
    """What some revisions have and others have not."""

    BATCH = enum.auto()
    """JSON-RPC batches."""
    STRUCTURED = enum.auto()
    """`structuredContent` and `outputSchema`."""
    ANY_STRUCTURED = enum.auto()
    """… of any JSON value, where earlier only objects were allowed."""
    RESULT_TYPE = enum.auto()
    """Every result has a `resultType`."""
    CACHE_HINTS = enum.auto()
    """`ttlMs` and `cacheScope`."""
    SERVER_INFO = enum.auto()
    """A result's `_meta` names the server."""
    MRTR = enum.auto()
    """A server asks by a result, and the request is repeated with the answers."""
    BACK_REQUESTS = enum.auto()
    """A server asks by requests of its own."""
    ELICITATION = enum.auto()
    """`elicitation/create`."""
    URL_INPUT = enum.auto()
    """… in URL mode."""
    SAMPLING_TOOLS = enum.auto()
    """Tools in `sampling/createMessage`."""
    LISTEN = enum.auto()
    """`subscriptions/listen`."""
    TOOL_INPUT_ERRORS = enum.auto()
    """Arguments that do not fit are a tool error that the model may read, where earlier they were a protocol error."""
    LOG_PER_REQUEST = enum.auto()
    """A request says which log messages it wants, where earlier the session did."""
    COMPLETIONS_CAPABILITY = enum.auto()
    """`completions` is declared."""
    PROGRESS_MESSAGE = enum.auto()
    """Progress has a `message`."""
    ERRORS_WITHOUT_ID = enum.auto()
    """An error that answers what could not be read has no id, where earlier its id was null."""


_NOTHING = Feature(0)


class Fault(enum.Enum):
    """What can be wrong with a request."""

    PARSE = "parse error"
    INVALID_REQUEST = "invalid request"
    METHOD_NOT_FOUND = "method not found"
    INVALID_PARAMS = "invalid params"
    INTERNAL = "internal error"
    RESOURCE_NOT_FOUND = "resource not found"
    HEADER_MISMATCH = "header mismatch"
    MISSING_CAPABILITY = "missing client capability"
    UNSUPPORTED_REVISION = "unsupported protocol version"


class Method(Struct, frozen=True, kw_only=True, dict=True):
    """A request or notification of a revision.

    Attributes:
        sender: Who may send it.
        params: The type of its params.
        result: The type of its result, or None for a notification.
        mirror: The field of its params that the `Mcp-Name` header mirrors, or None.
        answerable: Whether it may be answered with a question.
    """

    name: str
    sender: Literal["client", "server", "both"] = "client"
    params: type = Params
    result: Any = EmptyResult
    mirror: str | None = None
    answerable: bool = False

    @cached_property
    def decode(self) -> Callable[[bytes | msgspec.Raw], Any]:
        """Decode the params; raises `msgspec.ValidationError` whose text names the path."""
        return msgspec.json.Decoder(self.params).decode


class HttpRules(Struct, frozen=True, kw_only=True):
    """What Streamable HTTP is in a revision.

    Attributes:
        streamable: Whether the revision has Streamable HTTP at all (else it has the HTTP+SSE pair).
        sessions: `Mcp-Session-Id`, GET streams and DELETE.
        version_header: `MCP-Protocol-Version` is required after the first request.
        routing_headers: `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` mirror the body and are checked against it.
        resumable: Events have ids, and `Last-Event-ID` resumes a stream.
        polling: A server may close a stream before the answer, which the client then resumes.
        status: The HTTP status of an error answer, by fault; 200 for the others.
    """

    streamable: bool = True
    sessions: bool = False
    version_header: bool = True
    routing_headers: bool = False
    resumable: bool = False
    polling: bool = False
    status: Mapping[Fault, int] = {}


class Revision(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """One protocol revision."""

    name: str
    era: Era
    features: Feature
    methods: Mapping[str, Method]
    codes: Mapping[Fault, int]
    http: HttpRules
    shapers: Mapping[type, Callable[[Any], Any]] = {}

    def has(self, feature: Feature) -> bool:
        """Whether the revision has all of these features."""
        return feature in self.features

    def shape(self, value: Any) -> Any:
        """A value of the newest shape as this revision has it: what it lacks is dropped, what it demands is added.

        Raises:
            ConfigurationError: It is a question, or the answer to one, that cannot be said in this revision.
        """
        shaper = self.shapers.get(type(value))
        return value if shaper is None else shaper(value)

    def shape_output(self, result: ToolResult, schema: dict[str, Any] | None) -> ToolResult:
        """The result of a tool that publishes `schema` (in the newest shape, None for none), as this revision has it.

        Where structured content must be an object, the schema decides whether the value is wrapped, and not the value:
        so it fits what `shape` makes of the tool. An error is held against no schema.
        """
        wrapped = (
            schema is not None
            and result.structured_content is not msgspec.UNSET
            and not result.is_error
            and not self.has(Feature.ANY_STRUCTURED)
            and not is_object_schema(schema)
        )
        shaped: ToolResult = self.shape(wrapped_content(result) if wrapped else result)
        return shaped

    def method(self, name: str, sender: str = "client") -> Method | None:
        """The method of that name if `sender` may send it in this revision."""
        method = self.methods.get(name)
        return method if method is not None and method.sender in (sender, "both") else None

    def code(self, fault: Fault) -> int:
        """The JSON-RPC error code of a fault."""
        return self.codes[fault]

    @cached_property
    def status_of(self) -> Mapping[int, int]:
        """The HTTP status of an error answer, by its JSON-RPC code."""
        return {self.codes[fault]: status for fault, status in self.http.status.items()}

    def but(
        self,
        name: str,
        *,
        era: Era | None = None,
        without: Feature = _NOTHING,
        having: Feature = _NOTHING,
        drop: tuple[str, ...] = (),
        add: tuple[Method, ...] = (),
        codes: Mapping[Fault, int] | None = None,
        http: HttpRules | None = None,
        shapes: Mapping[type, Callable[[Any], Any]] | None = None,
    ) -> Revision:
        """An older revision, by what differs from this one. Shapes are applied after those of this one."""
        methods = {key: method for key, method in self.methods.items() if key not in drop}
        return Revision(
            name=name,
            era=era or self.era,
            features=(self.features & ~without) | having,
            methods=methods | {method.name: method for method in add},
            codes={**self.codes, **(codes or {})},
            http=http or self.http,
            shapers=_after(self.shapers, shapes or {}),
        )


def _after(
    first: Mapping[type, Callable[[Any], Any]], then: Mapping[type, Callable[[Any], Any]]
) -> dict[type, Callable[[Any], Any]]:
    """Both sets of shapes; where both have one for a type, one after the other."""

    def chain(one: Callable[[Any], Any], two: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda value: two(one(value))

    return {**first, **{kind: chain(first[kind], step) if kind in first else step for kind, step in then.items()}}
