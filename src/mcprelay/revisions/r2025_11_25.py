"""Revision 2025-11-25: the newest with a handshake, sessions, and requests from the server to the client."""

from typing import Any

from mcprelay.revisions.question import each, object_tools, sampled_by, with_elicitation_id
from mcprelay.revisions.r2026_07_28 import REVISION as NEXT
from mcprelay.revisions.revision import Era, Fault, Feature, HttpRules, Method
from mcprelay.revisions.shape import object_content, object_output
from mcprelay.types import (
    ElicitResult,
    InitializeResult,
    InputRequest,
    ListRootsResult,
    SamplingResult,
    Tool,
    ToolResult,
    ToolUseResult,
)
from mcprelay.wire.params import (
    InitializeParams,
    NotificationParams,
    Params,
    ProgressParams,
    SetLevelParams,
    SubscribeParams,
)


def _structured(block: Any) -> Any:
    """What a tool gave, inside a conversation with a model: structured content is an object there too."""
    return object_content(block) if isinstance(block, ToolUseResult) else block


_conversation = sampled_by(each(_structured))


def _question(request: InputRequest) -> InputRequest:
    return with_elicitation_id(object_tools(_conversation[InputRequest](request)))


REVISION = NEXT.but(
    "2025-11-25",
    era=Era.HANDSHAKE,
    without=(
        Feature.ANY_STRUCTURED
        | Feature.RESULT_TYPE
        | Feature.CACHE_HINTS
        | Feature.SERVER_INFO
        | Feature.MRTR
        | Feature.LISTEN
        | Feature.LOG_PER_REQUEST
    ),
    having=Feature.BACK_REQUESTS,
    drop=("server/discover", "subscriptions/listen", "notifications/subscriptions/acknowledged"),
    add=(
        Method(name="initialize", params=InitializeParams, result=InitializeResult),
        Method(name="ping", sender="both", params=Params),
        Method(name="logging/setLevel", params=SetLevelParams),
        Method(name="resources/subscribe", params=SubscribeParams),
        Method(name="resources/unsubscribe", params=SubscribeParams),
        Method(name="sampling/createMessage", sender="server", params=Params, result=SamplingResult),
        Method(name="elicitation/create", sender="server", params=Params, result=ElicitResult),
        Method(name="roots/list", sender="server", params=Params, result=ListRootsResult),
        Method(name="notifications/initialized", params=NotificationParams, result=None),
        Method(name="notifications/roots/list_changed", params=NotificationParams, result=None),
        Method(name="notifications/elicitation/complete", sender="server", params=NotificationParams, result=None),
        Method(name="notifications/progress", sender="both", params=ProgressParams, result=None),
    ),
    codes={
        Fault.RESOURCE_NOT_FOUND: -32002,
        Fault.HEADER_MISMATCH: -32600,
        Fault.MISSING_CAPABILITY: -32602,  # as for a mode that was not declared (client/elicitation, "Error Handling")
        Fault.UNSUPPORTED_REVISION: -32602,
    },
    http=HttpRules(
        sessions=True,
        resumable=True,
        polling=True,
        status={Fault.PARSE: 400, Fault.INVALID_REQUEST: 400},
    ),
    shapes={
        Tool: object_output,
        ToolResult: object_content,
        InputRequest: _question,
        SamplingResult: _conversation[SamplingResult],
    },
)
