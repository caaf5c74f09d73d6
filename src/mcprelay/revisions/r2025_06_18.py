"""Revision 2025-06-18: no icons, URL elicitation or lists in forms; sampling of one block, without tools."""

from mcprelay.revisions.question import plain_form, sampled_by, single, toolless
from mcprelay.revisions.r2025_11_25 import REVISION as NEXT
from mcprelay.revisions.revision import Feature
from mcprelay.revisions.shape import content_by, replace, without
from mcprelay.types import (
    ClientCapabilities,
    Implementation,
    InputRequest,
    Prompt,
    Resource,
    ResourceLink,
    ResourceTemplate,
    SamplingResult,
    Tool,
)

_without_icons = without("icons")


def _block(block: object) -> object:
    """A content block; only links have icons."""
    return _without_icons(block) if isinstance(block, ResourceLink) else block


_conversation = sampled_by(single, message_meta=False)


def _question(request: InputRequest) -> InputRequest:
    return plain_form(_conversation[InputRequest](toolless(request)))


def _capabilities(declared: ClientCapabilities) -> ClientCapabilities:
    """What a client can be asked for: forms and plain sampling, which have no members here."""
    elicitation = declared.elicitation
    if elicitation is not None:
        elicitation = {} if not elicitation or "form" in elicitation else None
    sampling: dict[str, object] | None = None if declared.sampling is None else {}
    shaped: ClientCapabilities = replace(declared, elicitation=elicitation, sampling=sampling)
    return shaped


REVISION = NEXT.but(
    "2025-06-18",
    without=Feature.URL_INPUT | Feature.SAMPLING_TOOLS | Feature.TOOL_INPUT_ERRORS | Feature.ERRORS_WITHOUT_ID,
    drop=("notifications/elicitation/complete",),
    http=replace(NEXT.http, polling=False),
    shapes={
        Tool: _without_icons,
        Resource: _without_icons,
        ResourceTemplate: _without_icons,
        ResourceLink: _without_icons,
        Prompt: _without_icons,
        Implementation: without("icons", "description", "website_url"),
        ClientCapabilities: _capabilities,
        InputRequest: _question,
        SamplingResult: _conversation[SamplingResult],
        **content_by(_block),
    },
)
