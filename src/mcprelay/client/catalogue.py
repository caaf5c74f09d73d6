"""What a server has, and how it is had: lists, resources, prompts and completions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from mcprelay.client import keeping, listing, tooling
from mcprelay.client.answer import Asked, prompt_answer, reader
from mcprelay.client.argument import encode, encode_object, members, text
from mcprelay.client.cache import READ
from mcprelay.client.caller import Caller
from mcprelay.client.handler import OPTIONS
from mcprelay.client.listing import Walk
from mcprelay.client.misuse import told_value
from mcprelay.client.option import CallOptions
from mcprelay.client.outcome import Succeeded
from mcprelay.client.question import InputRequired
from mcprelay.client.shelf import Shelf
from mcprelay.client.target import Target
from mcprelay.client.toolbox import Toolbox, header_fault
from mcprelay.contract import Contract
from mcprelay.errors import ConfigurationError, NeedsInput, told
from mcprelay.types import (
    CompleteResult,
    Completion,
    GetPromptResult,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    Tool,
)
from mcprelay.wire.field import shown

if TYPE_CHECKING:
    from msgspec import Raw

    from mcprelay.client.call import Call

_read_resource = reader(ReadResourceResult)
_read_completion = reader(CompleteResult)


class Catalogue:
    """The part of a client that lists and reads."""

    _caller: Caller
    _shelf: Shelf
    _target: Target
    _toolbox: Toolbox
    _tooling: tooling.Tooling

    def list_tools(self, *, fresh: bool = False, **options: Unpack[CallOptions]) -> Walk[Tool]:
        """The server's tools: `await` it for all of them, `async for` them as they come.

        Over HTTP a tool whose `x-mcp-header` annotations are wrong is left out (`Listing.excluded`). A list that the
        server says to have changed while it is read is read again, at most `list_restarts` times; with `async for` an
        item that is another one now comes again, and a warning in the log says how many of them are gone.

        Args:
            fresh: Ask the server, whatever the cache has.
            options: See `CallOptions`; a `timeout` is for each page, a `deadline` for all of them.

        Raises:
            CallFailed: A page failed; what was read before is in `partial`.
        """
        admit = header_fault if self._target.mirrors else _admit
        box = self._toolbox
        return self._shelf.walk(box.kind, admit=admit, done=box.replace, fresh=fresh, options=options)

    def list_resources(self, *, fresh: bool = False, **options: Unpack[CallOptions]) -> Walk[Resource]:
        """The server's resources, as `list_tools` does."""
        return self._shelf.walk(listing.RESOURCES, admit=_admit, done=_done, fresh=fresh, options=options)

    def list_resource_templates(self, *, fresh: bool = False, **options: Unpack[CallOptions]) -> Walk[ResourceTemplate]:
        """The server's resource templates, as `list_tools` does."""
        return self._shelf.walk(listing.TEMPLATES, admit=_admit, done=_done, fresh=fresh, options=options)

    def list_prompts(self, *, fresh: bool = False, **options: Unpack[CallOptions]) -> Walk[Prompt]:
        """The server's prompts, as `list_tools` does."""
        return self._shelf.walk(listing.PROMPTS, admit=_admit, done=_done, fresh=fresh, options=options)

    # --- resources, prompts, completion

    async def read_resource(
        self, uri: str, *, fresh: bool = False, **options: Unpack[CallOptions]
    ) -> ReadResourceResult:
        """Read a resource, from the cache while the server calls it fresh.

        Raises:
            NeedsInput: The server asks something that no handler answers.
            CallFailed: It cannot be read. An unknown resource is a `RemoteError`.
            ConfigurationError: The URI is no string.
        """
        text("uri", uri, wanted="a resource's URI, which is a string")
        call = self._caller.call(READ, b'"uri":%b' % encode(uri), name=uri, options=options)
        kept = None if fresh else await self._shelf.recall(call, uri, options)
        if kept is not None:
            return _read_resource(kept)  # type: ignore[no-any-return]
        return await self._answered(call, self._reading(call, uri, options))  # type: ignore[no-any-return]

    def _reading(self, call: Call, uri: str, options: CallOptions) -> Callable[[Raw], Any]:
        """Reads a resource, and keeps it, unless it was made of answers (utilities/caching, "Cache Key")."""
        first = True
        reading = self._shelf.begin(READ, uri)

        def read(result: Raw) -> Any:
            nonlocal first
            answer = _read_resource(result)
            if first and not isinstance(answer, Asked):
                self._shelf.keep(reading, result, call, options)
            first = False
            return answer

        return read

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: Unpack[CallOptions]
    ) -> GetPromptResult:
        """Get a prompt. Its arguments are strings.

        Raises:
            NeedsInput: The server asks something that no handler answers.
            CallFailed: It cannot be had.
            ConfigurationError: The name or an argument is no string.
        """
        text("name", name, wanted="the name of a prompt, which is a string")
        given = members("arguments", arguments)
        for key, value in given.items():
            if not isinstance(value, str):
                raise ConfigurationError(f"the argument {key!r} of a prompt is a string, not {told_value(value)}")
        params = b'"name":%b' % encode(name)
        if given:
            params += b',"arguments":%b' % encode_object(given, what="arguments")
        call = self._caller.call("prompts/get", params, name=name, options=options)
        return await self._answered(call, prompt_answer)  # type: ignore[no-any-return]

    async def complete(
        self,
        reference: str | Prompt | ResourceTemplate,
        argument: str,
        value: str = "",
        *,
        context: Mapping[str, str] | None = None,
        **options: Unpack[CallOptions],
    ) -> Completion:
        """What an argument of a prompt, or of a resource template, may be completed to.

        Args:
            reference: The prompt or template; a string with `://` in it is a template, another is a prompt's name.
            argument: The argument's name.
            value: What is typed so far.
            context: The arguments that are filled in already.
            options: See `CallOptions`.

        Raises:
            CallFailed: There is no answer.
            ConfigurationError: The reference is none, or the argument is not named by a string.
        """
        given: Any
        for what, given in (("argument", argument), ("value", value)):
            if not isinstance(given, str):
                raise ConfigurationError(f"complete: the {what} is a string, and not {told_value(given)}")
        params: dict[str, Any] = {"ref": _reference(reference), "argument": {"name": argument, "value": value}}
        if filled := members("context", context):
            params["context"] = {"arguments": filled}
        call = self._caller.call("completion/complete", encode_object(params, what="arguments")[1:-1], options=options)
        answer: CompleteResult = await self._answered(call, _read_completion)
        return answer.completion

    def load_question(self, data: bytes, *, output: Any = None) -> InputRequired[Any]:
        """A question that was kept by `question.dump()`: its `answer` goes on with the call over this client.

        Arguments, idempotency key and correlation id are what they were, and a failure says that the call has been sent
        before. Time, `Retry` and progress are this client's.

        Args:
            data: What `dump` gave. It says what is called, so nobody else may have written it.
            output: The type of the value, or the tool's contract; any JSON when left out.

        Raises:
            ConfigurationError: It is something else, in another version of the format, or no question of a tool, a
                prompt or a resource; `output` cannot be read; or a session is spoken with the server.
        """
        kept = keeping.load(data)
        if kept.method == tooling.METHOD:
            return self._tooling.take_up(kept, output.output if isinstance(output, Contract) else output)
        read: Any = {"prompts/get": prompt_answer, READ: _read_resource}.get(kept.method)
        if read is None:
            raise ConfigurationError(f"these bytes hold a question of {shown(kept.method)}, which asks nothing")
        return self._caller.take_up(kept, read, _succeeded)

    async def _answered(self, call: Call, read: Callable[[Raw], Any]) -> Any:
        outcome = await self._caller.converse(call, read, _succeeded)
        if isinstance(outcome, Succeeded):
            return outcome.value
        raise needs_input(outcome)


def _succeeded(_: Call, answer: Any) -> Succeeded[Any]:
    return Succeeded(answer, meta=getattr(answer, "meta", None) or {})


def _admit(_: Any) -> str | None:
    return None


def _done(_: Any) -> None:
    """Nothing is remembered of this list."""


def _reference(reference: Any) -> dict[str, str]:
    if isinstance(reference, Prompt):
        return {"type": "ref/prompt", "name": reference.name}
    if isinstance(reference, ResourceTemplate):
        return {"type": "ref/resource", "uri": reference.uri_template}
    if not isinstance(reference, str):
        wanted = "the name of a prompt, a resource template's URI, a Prompt or a ResourceTemplate"
        raise ConfigurationError(f"complete: the reference is {wanted}, and not {told_value(reference)}")
    if "://" in reference:
        return {"type": "ref/resource", "uri": reference}
    return {"type": "ref/prompt", "name": reference}


def needs_input(asked: InputRequired[Any]) -> NeedsInput:
    """A question that goes to the caller, as the exception that carries it."""
    options = sorted({f"{OPTIONS[request.method]}=" for request in asked.requests.values()})
    keys = told(", ".join(f"{shown(key)}: …" for key in asked.requests))
    return NeedsInput(
        asked,
        f"the server asks, and no handler answers: {asked.message}; give the client {' and '.join(options)}, "
        f"or go on with error.question.answer({{{keys}}})",
    )
