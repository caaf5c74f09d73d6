"""Revision 2024-11-05: the HTTP+SSE pair; no audio, no tool annotations, no messages in progress."""

from mcprelay.revisions.question import each, no_sound, sampled_by
from mcprelay.revisions.r2025_03_26 import REVISION as NEXT
from mcprelay.revisions.revision import Feature, HttpRules
from mcprelay.revisions.shape import audio_as_text, content_by, without
from mcprelay.types import Resource, Tool
from mcprelay.wire.params import ProgressParams

REVISION = NEXT.but(
    "2024-11-05",
    without=Feature.BATCH | Feature.COMPLETIONS_CAPABILITY | Feature.PROGRESS_MESSAGE,
    http=HttpRules(streamable=False, sessions=True, version_header=False),
    shapes={
        Tool: without("annotations"),
        Resource: without("size"),
        ProgressParams: without("message"),
        **content_by(audio_as_text),
        **sampled_by(each(no_sound)),
    },
)
