"""Revision 2025-03-26: batches; no structured output, no links, no elicitation, no titles, no version header."""

from mcprelay.revisions.r2025_06_18 import REVISION as NEXT
from mcprelay.revisions.revision import Feature
from mcprelay.revisions.shape import content_by, link_as_text, replace, unstructured, without
from mcprelay.types import (
    ClientCapabilities,
    GetPromptResult,
    Implementation,
    Prompt,
    PromptArgument,
    Resource,
    ResourceTemplate,
    Tool,
    ToolResult,
)

_without_title = without("title", "meta")
_linkless = content_by(link_as_text)


def _prompt(prompt: Prompt) -> Prompt:
    arguments = prompt.arguments and tuple(map(without("title"), prompt.arguments))
    shaped: Prompt = replace(_without_title(prompt), arguments=arguments)
    return shaped


REVISION = NEXT.but(
    "2025-03-26",
    without=Feature.STRUCTURED | Feature.ELICITATION,
    having=Feature.BATCH,
    drop=("elicitation/create",),
    http=replace(NEXT.http, version_header=False),
    shapes={
        Tool: without("title", "meta", "output_schema"),
        Resource: _without_title,
        ResourceTemplate: _without_title,
        Prompt: _prompt,
        PromptArgument: without("title"),
        Implementation: without("title"),
        ClientCapabilities: without("elicitation"),
        ToolResult: lambda result: _linkless[ToolResult](unstructured(result)),
        GetPromptResult: _linkless[GetPromptResult],
    },
)
