"""The typed `params` of every request and notification, and the typed view of a request's `_meta`.

A field that is absent is None or `msgspec.UNSET`; what does not fit is a `msgspec.ValidationError` whose text ends with
the path. Handlers that want the members of `_meta` beyond these read the raw params.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcprelay.types import (
    ClientCapabilities,
    Implementation,
    LogLevel,
    SubscriptionFilter,
)

PREFIX = "io.modelcontextprotocol/"
PROTOCOL_VERSION = PREFIX + "protocolVersion"
CLIENT_INFO = PREFIX + "clientInfo"
CLIENT_CAPABILITIES = PREFIX + "clientCapabilities"
LOG_LEVEL = PREFIX + "logLevel"
SERVER_INFO = PREFIX + "serverInfo"
SUBSCRIPTION_ID = PREFIX + "subscriptionId"
IDEMPOTENCY_KEY = "mcprelay.dev/idempotencyKey"
"""Ours: a client's promise that calls with the same key are the same call (1 to 255 visible ASCII characters)."""
CORRELATION_ID = "mcprelay.dev/correlationId"
"""Ours: what a call and its later rounds are called in the logs of both sides (1 to 128 visible ASCII characters)."""


class RequestMeta(Struct, frozen=True, omit_defaults=True):
    """What `_meta` of a request says to the protocol (basic, "Per-request protocol fields")."""

    progress_token: int | str | None = field(default=None, name="progressToken")
    protocol_version: str | None = field(default=None, name=PROTOCOL_VERSION)
    client_info: Implementation | None = field(default=None, name=CLIENT_INFO)
    client_capabilities: ClientCapabilities | None = field(default=None, name=CLIENT_CAPABILITIES)
    log_level: LogLevel | None = field(default=None, name=LOG_LEVEL)
    idempotency_key: Any = field(default=UNSET, name=IDEMPOTENCY_KEY)  # null is a key, and a malformed one
    correlation_id: Any = field(default=None, name=CORRELATION_ID)
    subscription_id: int | str | None = field(default=None, name=SUBSCRIPTION_ID)


NO_META = RequestMeta()


class Params(Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True):
    """Params that say nothing but `_meta`."""

    meta: RequestMeta = field(default=NO_META, name="_meta")


class AnswerableParams(Params, frozen=True, kw_only=True):
    """Params of a request that may be answered with a question (basic/patterns/mrtr, "Supported Requests")."""

    input_responses: dict[str, Raw] | None = None
    request_state: str | None = None


class CallToolParams(AnswerableParams, frozen=True, kw_only=True):
    """`tools/call`. `arguments` is the JSON of an object, or UNSET."""

    name: str
    arguments: Raw | UnsetType = UNSET


class ReadResourceParams(AnswerableParams, frozen=True, kw_only=True):
    """`resources/read`."""

    uri: str


class GetPromptParams(AnswerableParams, frozen=True, kw_only=True):
    """`prompts/get`."""

    name: str
    arguments: dict[str, str] | None = None


class ListParams(Params, frozen=True, kw_only=True):
    """Every list request."""

    cursor: str | None = None


class Reference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a completion is for: a prompt by name, or a template by its URI."""

    type: str
    name: str | None = None
    uri: str | None = None
    title: str | None = None


class CompleteArgument(Struct, frozen=True, kw_only=True):
    """The argument being completed, as far as it is typed."""

    name: str
    value: str


class CompleteContext(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The arguments that are filled in already."""

    arguments: dict[str, str] | None = None


class CompleteParams(Params, frozen=True, kw_only=True):
    """`completion/complete`."""

    ref: Reference
    argument: CompleteArgument
    context: CompleteContext | None = None


class ListenParams(Params, frozen=True, kw_only=True):
    """`subscriptions/listen`."""

    notifications: SubscriptionFilter


class InitializeParams(Params, frozen=True, kw_only=True):
    """`initialize`, in the handshake era."""

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation


class SetLevelParams(Params, frozen=True, kw_only=True):
    """`logging/setLevel`, in the handshake era."""

    level: LogLevel


class SubscribeParams(Params, frozen=True, kw_only=True):
    """`resources/subscribe` and `resources/unsubscribe`, in the handshake era."""

    uri: str


class NotificationMeta(Struct, frozen=True, omit_defaults=True):
    """What `_meta` of a notification says to the protocol."""

    subscription_id: int | str | None = field(default=None, name=SUBSCRIPTION_ID)


class NotificationParams(Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True):
    """Params of a notification that says nothing but `_meta`."""

    meta: NotificationMeta | None = field(default=None, name="_meta")


class CancelledParams(NotificationParams, frozen=True, kw_only=True):
    """`notifications/cancelled`."""

    request_id: int | str | None = None
    reason: str | None = None


class ProgressParams(NotificationParams, frozen=True, kw_only=True):
    """`notifications/progress`."""

    progress_token: int | str
    progress: float
    total: float | None = None
    message: str | None = None


class MessageParams(NotificationParams, frozen=True, kw_only=True):
    """`notifications/message`: one log record. `data` is any JSON value, null included."""

    level: LogLevel
    logger: str | None = None
    data: Any | UnsetType = UNSET


class UpdatedParams(NotificationParams, frozen=True, kw_only=True):
    """`notifications/resources/updated`."""

    uri: str


class AcknowledgedParams(NotificationParams, frozen=True, kw_only=True):
    """`notifications/subscriptions/acknowledged`: the part of the filter that the server honors."""

    notifications: SubscriptionFilter
