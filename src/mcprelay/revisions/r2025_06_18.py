"""Revision 2025-06-18: no icons, no URL elicitation, no tools in sampling, no stream that is polled."""

from mcprelay.revisions.r2025_11_25 import REVISION as NEXT
from mcprelay.revisions.revision import Feature
from mcprelay.revisions.shape import replace, without
from mcprelay.types import (
    Implementation,
    Prompt,
    Resource,
    ResourceLink,
    ResourceTemplate,
    Tool,
)

_without_icons = without("icons")

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
    },
)
