"""Revision 2026-07-28: the newest, which the others are described by."""

from mcprelay.revisions.revision import (
    Era,
    Fault,
    Feature,
    HttpRules,
    Method,
    Revision,
)
from mcprelay.types import (
    CompleteResult,
    DiscoverResult,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    ReadResourceResult,
    ToolResult,
)
from mcprelay.wire.params import (
    AcknowledgedParams,
    CallToolParams,
    CancelledParams,
    CompleteParams,
    GetPromptParams,
    ListenParams,
    ListParams,
    MessageParams,
    NotificationParams,
    Params,
    ProgressParams,
    ReadResourceParams,
    UpdatedParams,
)

_METHODS = (
    Method(name="server/discover", params=Params, result=DiscoverResult),
    Method(name="tools/list", params=ListParams, result=ListToolsResult),
    Method(name="tools/call", params=CallToolParams, result=ToolResult, mirror="name", answerable=True),
    Method(name="resources/list", params=ListParams, result=ListResourcesResult),
    Method(name="resources/templates/list", params=ListParams, result=ListResourceTemplatesResult),
    Method(name="resources/read", params=ReadResourceParams, result=ReadResourceResult, mirror="uri", answerable=True),
    Method(name="prompts/list", params=ListParams, result=ListPromptsResult),
    Method(name="prompts/get", params=GetPromptParams, result=GetPromptResult, mirror="name", answerable=True),
    Method(name="completion/complete", params=CompleteParams, result=CompleteResult),
    Method(name="subscriptions/listen", params=ListenParams),
    Method(name="notifications/cancelled", sender="both", params=CancelledParams, result=None),
    Method(name="notifications/progress", sender="server", params=ProgressParams, result=None),
    Method(name="notifications/message", sender="server", params=MessageParams, result=None),
    Method(name="notifications/tools/list_changed", sender="server", params=NotificationParams, result=None),
    Method(name="notifications/prompts/list_changed", sender="server", params=NotificationParams, result=None),
    Method(name="notifications/resources/list_changed", sender="server", params=NotificationParams, result=None),
    Method(name="notifications/resources/updated", sender="server", params=UpdatedParams, result=None),
    Method(name="notifications/subscriptions/acknowledged", sender="server", params=AcknowledgedParams, result=None),
)

REVISION = Revision(
    name="2026-07-28",
    era=Era.STATELESS,
    features=(
        Feature.STRUCTURED
        | Feature.ANY_STRUCTURED
        | Feature.RESULT_TYPE
        | Feature.CACHE_HINTS
        | Feature.SERVER_INFO
        | Feature.MRTR
        | Feature.ELICITATION
        | Feature.URL_INPUT
        | Feature.SAMPLING_TOOLS
        | Feature.LISTEN
        | Feature.TOOL_INPUT_ERRORS
        | Feature.LOG_PER_REQUEST
        | Feature.COMPLETIONS_CAPABILITY
        | Feature.PROGRESS_MESSAGE
        | Feature.ERRORS_WITHOUT_ID
    ),
    methods={method.name: method for method in _METHODS},
    codes={
        Fault.PARSE: -32700,
        Fault.INVALID_REQUEST: -32600,
        Fault.METHOD_NOT_FOUND: -32601,
        Fault.INVALID_PARAMS: -32602,
        Fault.INTERNAL: -32603,
        Fault.RESOURCE_NOT_FOUND: -32602,
        Fault.HEADER_MISMATCH: -32020,
        Fault.MISSING_CAPABILITY: -32021,
        Fault.UNSUPPORTED_REVISION: -32022,
    },
    http=HttpRules(
        routing_headers=True,
        status={
            Fault.PARSE: 400,
            Fault.INVALID_REQUEST: 400,
            Fault.METHOD_NOT_FOUND: 404,
            Fault.HEADER_MISMATCH: 400,
            Fault.MISSING_CAPABILITY: 400,
            Fault.UNSUPPORTED_REVISION: 400,
        },
    ),
)
