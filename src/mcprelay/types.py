"""Definitions, content and results, in the shape of the newest revision.

The same frozen values stand at both ends: what a server registers is what a client lists, a lock file pins and a test
compares. A field that the peer left out is None (or the field's natural zero); only where null and absent differ in
meaning (`ToolResult.structured`) is absent `msgspec.UNSET`. What a peer sent beyond these fields survives in `.raw`,
the value's own JSON, which is outside equality and is never emitted.

Nothing here knows how a result travels, or which revision is spoken: `mcprelay.revisions` does.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar, Literal, Self, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field

Role: TypeAlias = Literal["user", "assistant"]
LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LOG_LEVELS: tuple[LogLevel, ...] = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""In ascending severity, RFC 5424."""
CacheScope: TypeAlias = Literal["public", "private"]
RequestId: TypeAlias = int | str
Json: TypeAlias = Any
Meta: TypeAlias = dict[str, Any]


class Value(Struct, frozen=True, omit_defaults=True, rename="camel", dict=True):
    """What every wire value has: camel-cased names on the wire, absent fields left out, `.raw` beside it."""

    raw: ClassVar[Raw | None] = None


class Icon(Value, frozen=True, kw_only=True):
    """A picture for display. `src` is an https: or data: URI."""

    src: str
    mime_type: str | None = None
    sizes: tuple[str, ...] | None = None
    theme: str | None = None


class Annotations(Value, frozen=True, kw_only=True):
    """Hints about content: for whom it is, how much it matters (0 to 1), when it changed (ISO 8601)."""

    audience: tuple[str, ...] | None = None
    priority: float | None = None
    last_modified: str | None = None


class Implementation(Value, frozen=True):
    """Self-reported identity of a client or server: for display and logs, never for decisions."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    icons: tuple[Icon, ...] | None = None
    website_url: str | None = None


class ClientCapabilities(Value, frozen=True, kw_only=True):
    """What a client can be asked for. A member that is not None is declared, an empty mapping included."""

    roots: dict[str, Any] | None = None
    sampling: dict[str, Any] | None = None
    elicitation: dict[str, Any] | None = None
    experimental: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None


class ServerCapabilities(Value, frozen=True, kw_only=True):
    """What a server offers. A member that is not None is declared, an empty mapping included."""

    tools: dict[str, Any] | None = None
    resources: dict[str, Any] | None = None
    prompts: dict[str, Any] | None = None
    completions: dict[str, Any] | None = None
    logging: dict[str, Any] | None = None
    experimental: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None


# --- definitions ------------------------------------------------------------------------------------------------------


class ToolAnnotations(Value, frozen=True, kw_only=True):
    """Hints about a tool's behavior. From a server that is not trusted they grant nothing."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class Tool(Value, frozen=True, kw_only=True):
    """A tool's definition (server/tools, "Tool")."""

    name: str
    title: str | None = None
    description: str | None = None
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: ToolAnnotations | None = None
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = field(default=None, name="_meta")


class Resource(Value, frozen=True, kw_only=True):
    """A resource's definition. `size` is in bytes."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = field(default=None, name="_meta")


class ResourceTemplate(Value, frozen=True, kw_only=True):
    """A family of resources, by an RFC 6570 template."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = field(default=None, name="_meta")


class PromptArgument(Value, frozen=True, kw_only=True):
    """One argument of a prompt; its value is a string."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool | None = None


class Prompt(Value, frozen=True, kw_only=True):
    """A prompt's definition."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] | None = None
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = field(default=None, name="_meta")


# --- content ----------------------------------------------------------------------------------------------------------


class ResourceContents(Value, frozen=True, kw_only=True):
    """What is in a resource: `text`, or `blob` bytes, never both."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: bytes | None = None
    meta: Meta | None = field(default=None, name="_meta")


class Text(Value, frozen=True, tag_field="type", tag="text"):
    """Text content."""

    text: str
    annotations: Annotations | None = None
    meta: Meta | None = field(default=None, name="_meta")

    @classmethod
    def code(cls, source: str, lang: str = "") -> Self:
        """Text that is a fenced code block. The fence is longer than any run of backticks inside `source`."""
        longest = run = 0
        for char in source:
            run = run + 1 if char == "`" else 0
            longest = max(longest, run)
        fence = "`" * max(3, longest + 1)
        return cls(f"{fence}{lang}\n{source}\n{fence}")


class Image(Value, frozen=True, tag_field="type", tag="image"):
    """A picture: `data` are the decoded bytes (base64 is the wire's business)."""

    data: bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Meta | None = field(default=None, name="_meta")

    @classmethod
    def from_path(cls, path: str | os.PathLike[str], *, mime_type: str | None = None) -> Self:
        """Read a file now; the media type is guessed from its name unless given."""
        return cls(read_file(path), mime_type or guess_mime_type(os.fspath(path), "image/png"))


class Audio(Value, frozen=True, tag_field="type", tag="audio"):
    """Sound: `data` are the decoded bytes."""

    data: bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Meta | None = field(default=None, name="_meta")

    @classmethod
    def from_path(cls, path: str | os.PathLike[str], *, mime_type: str | None = None) -> Self:
        """Read a file now; the media type is guessed from its name unless given."""
        return cls(read_file(path), mime_type or guess_mime_type(os.fspath(path), "audio/wav"))


class ResourceLink(Value, frozen=True, kw_only=True, tag_field="type", tag="resource_link"):
    """A pointer to a resource that the client may read."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None
    meta: Meta | None = field(default=None, name="_meta")


class EmbeddedResource(Value, frozen=True, tag_field="type", tag="resource"):
    """A resource's contents, inside a result."""

    resource: ResourceContents
    annotations: Annotations | None = None
    meta: Meta | None = field(default=None, name="_meta")


class Unknown(Struct, frozen=True):
    """Content of a kind that this version does not know, or that does not decode as its kind. Kept as it came."""

    type: str
    raw: Raw


ContentBlock: TypeAlias = Text | Image | Audio | ResourceLink | EmbeddedResource
"""What a result's content is made of; a client also meets `Unknown`."""


class PromptMessage(Value, frozen=True):
    """One message of a prompt: a role and one content block."""

    role: Role
    content: ContentBlock

    @classmethod
    def user(cls, content: str | ContentBlock) -> Self:
        """What the user says."""
        return cls("user", Text(content) if isinstance(content, str) else content)

    @classmethod
    def assistant(cls, content: str | ContentBlock) -> Self:
        """What the assistant says."""
        return cls("assistant", Text(content) if isinstance(content, str) else content)


# --- results ----------------------------------------------------------------------------------------------------------


class ToolResult(Value, frozen=True, kw_only=True):
    """What `tools/call` answers.

    `structured_content` may be any JSON value, null included: absent is `msgspec.UNSET`.
    """

    content: tuple[ContentBlock, ...]
    structured_content: Json | UnsetType = UNSET
    is_error: bool = False
    meta: Meta | None = field(default=None, name="_meta")


class Cacheable(Value, frozen=True, kw_only=True):
    """A result with a freshness hint: fresh for `ttl_ms` milliseconds, for one caller or for all."""

    ttl_ms: int | None = None
    cache_scope: CacheScope | None = None
    meta: Meta | None = field(default=None, name="_meta")


class ListToolsResult(Cacheable, frozen=True, kw_only=True):
    """One page of tools."""

    tools: tuple[Tool, ...]
    next_cursor: str | None = None


class ListResourcesResult(Cacheable, frozen=True, kw_only=True):
    """One page of resources."""

    resources: tuple[Resource, ...]
    next_cursor: str | None = None


class ListResourceTemplatesResult(Cacheable, frozen=True, kw_only=True):
    """One page of resource templates."""

    resource_templates: tuple[ResourceTemplate, ...]
    next_cursor: str | None = None


class ListPromptsResult(Cacheable, frozen=True, kw_only=True):
    """One page of prompts."""

    prompts: tuple[Prompt, ...]
    next_cursor: str | None = None


class ReadResourceResult(Cacheable, frozen=True, kw_only=True):
    """What `resources/read` answers: the resource, or several below it."""

    contents: tuple[ResourceContents, ...]


class GetPromptResult(Value, frozen=True, kw_only=True):
    """What `prompts/get` answers."""

    description: str | None = None
    messages: tuple[PromptMessage, ...]
    meta: Meta | None = field(default=None, name="_meta")


class Completion(Value, frozen=True, kw_only=True):
    """Suggested values, at most 100; `total` says how many there are."""

    values: tuple[str, ...]
    total: int | None = None
    has_more: bool | None = None


class CompleteResult(Value, frozen=True, kw_only=True):
    """What `completion/complete` answers."""

    completion: Completion
    meta: Meta | None = field(default=None, name="_meta")


class DiscoverResult(Cacheable, frozen=True, kw_only=True):
    """What `server/discover` answers."""

    supported_versions: tuple[str, ...]
    capabilities: ServerCapabilities
    instructions: str | None = None


class InitializeResult(Value, frozen=True, kw_only=True):
    """What `initialize` answers, in the handshake era."""

    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | None = None
    meta: Meta | None = field(default=None, name="_meta")


class EmptyResult(Value, frozen=True, kw_only=True):
    """A result that says nothing but that it is one."""

    meta: Meta | None = field(default=None, name="_meta")


# --- what a server asks a client --------------------------------------------------------------------------------------


class InputRequest(Value, frozen=True):
    """One question of a server: `elicitation/create`, `sampling/createMessage` or `roots/list`, with its params."""

    method: str
    params: dict[str, Any] | None = None


class InputRequiredResult(Value, frozen=True, kw_only=True):
    """A result that is a question: answer it and repeat the request with the answers and the state, byte for byte."""

    input_requests: dict[str, InputRequest] | None = None
    request_state: str | None = None
    meta: Meta | None = field(default=None, name="_meta")


class ElicitResult(Value, frozen=True, kw_only=True):
    """A person's answer to a form or an address: what they did, and what they filled in."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None
    meta: Meta | None = field(default=None, name="_meta")


class ToolUse(Value, frozen=True, kw_only=True, tag_field="type", tag="tool_use"):
    """A model's wish to call a tool, inside a sampled message."""

    id: str
    name: str
    input: dict[str, Any]
    meta: Meta | None = field(default=None, name="_meta")


class ToolUseResult(Value, frozen=True, kw_only=True, tag_field="type", tag="tool_result"):
    """What a tool answered to a `ToolUse`."""

    tool_use_id: str
    content: tuple[ContentBlock, ...]
    structured_content: Json | UnsetType = UNSET
    is_error: bool = False
    meta: Meta | None = field(default=None, name="_meta")


SamplingContent: TypeAlias = Text | Image | Audio | ToolUse | ToolUseResult


class SamplingMessage(Value, frozen=True):
    """One message of a conversation with a model."""

    role: Role
    content: SamplingContent | tuple[SamplingContent, ...]
    meta: Meta | None = field(default=None, name="_meta")


class SamplingResult(Value, frozen=True, kw_only=True):
    """What the client's model answered."""

    role: Role
    content: SamplingContent | tuple[SamplingContent, ...]
    model: str
    stop_reason: str | None = None
    meta: Meta | None = field(default=None, name="_meta")

    @property
    def blocks(self) -> tuple[SamplingContent, ...]:
        """The content as blocks, whether one or several came."""
        return self.content if isinstance(self.content, tuple) else (self.content,)

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block.text for block in self.blocks if isinstance(block, Text))


class Root(Value, frozen=True):
    """A folder or file of the client's that the server may work in."""

    uri: str
    name: str | None = None
    meta: Meta | None = field(default=None, name="_meta")


class ListRootsResult(Value, frozen=True, kw_only=True):
    """The client's roots."""

    roots: tuple[Root, ...]
    meta: Meta | None = field(default=None, name="_meta")


class SubscriptionFilter(Value, frozen=True, kw_only=True):
    """Which changes a client wants to hear of."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: tuple[str, ...] = ()


def read_file(path: str | os.PathLike[str]) -> bytes:
    """A file's bytes, read now."""
    with open(path, "rb") as file:  # noqa: PTH123 - keeps pathlib out of `import mcprelay`'s cost
        return file.read()


def guess_mime_type(path: str, default: str) -> str:
    """The media type that a file's name suggests, or `default`."""
    import mimetypes

    return mimetypes.guess_type(str(path))[0] or default
