"""Attachments in the forms that several SDKs share, and the sentence for those that an SDK cannot carry."""

from __future__ import annotations

import base64

from mcprelay.relay.media import Media

PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Types of pictures that OpenAI and Anthropic take."""
PORTABLE = PICTURES | {"application/pdf"}
"""Media types that the models of most providers take; sounds they mostly do not."""


def base64_of(media: Media) -> str:
    """The bytes as base64."""
    return base64.b64encode(media.data).decode("ascii")


def data_url(media: Media) -> str:
    """The bytes as a data URL, which nobody fetches."""
    return f"data:{media.mime_type};base64,{base64_of(media)}"


def file_name(media: Media) -> str:
    """A name of ours for a file, because some SDKs demand one."""
    return f"attachment.{media.mime_type.rpartition('/')[2]}"


def left_out(media: Media) -> str:
    """What is said in place of an attachment that cannot be carried: in our words, never the server's."""
    return f"[An attachment of type {media.mime_type}, {len(media.data)} bytes, cannot be shown here and was left out.]"
