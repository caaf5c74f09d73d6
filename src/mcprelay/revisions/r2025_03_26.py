"""Revision 2025-03-26: batches; no structured output, links, elicitation, titles, dates or `_meta` of content."""

from typing import Any

from mcprelay.revisions.question import bare_roots, each, sampled_by
from mcprelay.revisions.r2025_06_18 import REVISION as NEXT
from mcprelay.revisions.revision import Feature
from mcprelay.revisions.shape import (
    bare,
    bare_contents,
    content_by,
    link_as_text,
    replace,
    undated,
    unstructured,
    without,
)
from mcprelay.types import (
    ClientCapabilities,
    GetPromptResult,
    Implementation,
    ListRootsResult,
    Prompt,
    PromptArgument,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    Tool,
    ToolResult,
)

_without_title = without("title", "meta")
_content = content_by(lambda block: bare(link_as_text(block)))


def _resource(resource: Any) -> Any:
    return undated(_without_title(resource))


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
        Resource: _resource,
        ResourceTemplate: _resource,
        ReadResourceResult: bare_contents,
        Prompt: _prompt,
        PromptArgument: without("title"),
        Implementation: without("title"),
        ClientCapabilities: without("elicitation"),
        ToolResult: lambda result: _content[ToolResult](unstructured(result)),
        GetPromptResult: _content[GetPromptResult],
        ListRootsResult: bare_roots,
        **sampled_by(each(bare)),
    },
)
