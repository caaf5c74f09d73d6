"""From a function to an entry of the catalog: its definition, and what answers a call for it.

The signature compiler says what a callable takes and gives, `handler` runs it; this module adds what registration says
of tools and prompts, and `address` what it says of resources.
"""

from __future__ import annotations

import contextlib
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mcprelay.contract import check_tool_name
from mcprelay.errors import DefinitionError, ProtocolError
from mcprelay.revisions import Fault, Feature
from mcprelay.server.asking import refuse_asking
from mcprelay.server.depends import provide_context, provider_of
from mcprelay.server.entry import Entry
from mcprelay.server.handler import Handler
from mcprelay.server.messages import prompt_result
from mcprelay.server.report import ArgumentsInvalid
from mcprelay.server.signature import Compiled, compile_call
from mcprelay.types import Prompt, Text, Tool, ToolAnnotations, ToolResult
from mcprelay.wire import mirror
from mcprelay.wire.spelling import closest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from mcprelay.auth.principal import Principal
    from mcprelay.server import Server
    from mcprelay.server.call import Call
    from mcprelay.server.schema import Schema
    from mcprelay.types import Icon, Meta

ERRORS = "mcprelay.dev/errors"
"""The `_meta` key under which a tool error lists the arguments that do not fit."""


class Taken:
    """A handler as it was given, compiled: a callable, a class with `__call__`, or `(Class, "method")`.

    Args:
        function: What was given.
        options: The options of the compiler.

    Attributes:
        given: The handler as it was given.
        function: What is called for it.
    """

    def __init__(self, function: Any, **options: Any) -> None:
        self.given = self.function = function
        self._owner: type | None = None
        self._method = "__call__"
        if isinstance(function, tuple):
            self._take_method(function)
        self.compiled: Compiled = compile_call(self.function, owner=self._owner, injects=injects, **options)
        if not self.compiled.is_async:
            asking = self.function if not isinstance(self.function, type) else self.function.__call__
            refuse_asking(asking, {each.name for each in self.compiled.injections if each.token is provide_context})

    def _take_method(self, given: tuple[Any, ...]) -> None:
        if len(given) != 2 or not isinstance(given[1], str):
            raise DefinitionError(f"a handler that is a tuple is (Class, 'method'), and not {given!r}")
        owner, name = given
        found = inspect.getattr_static(owner, name, None)
        if found is None:
            raise DefinitionError(f"{_named(owner)} has no method {name!r}{_suggestion(owner, name)}")
        if not isinstance(owner, type) or isinstance(found, (staticmethod, classmethod)):
            found = getattr(owner, name)
        elif name == "__call__":
            found = owner
        else:
            self._owner, self._method = owner, name
        if not callable(found):
            raise DefinitionError(f"{_named(owner)}.{name} is no method: it cannot be called")
        self.function = found

    def handler(self, server: Server, *, inline: bool, timeout: float | None) -> Handler:
        """What runs it for a server."""
        return Handler(server, self.compiled, inline=inline, timeout=timeout, method=self._method)


def _named(owner: Any) -> str:
    return getattr(owner, "__qualname__", None) or repr(owner)


def _suggestion(owner: Any, name: str) -> str:
    close = closest(name, (each for each in dir(owner) if not each.startswith("__")))
    return f"; did you mean {close!r}?" if close else ""


def injects(_name: str, annotation: Any) -> Any:
    """What provides a parameter, or None when its value comes from the client."""
    return provider_of(annotation)


def attach(function: Any, tool: Tool) -> None:
    """Leave a tool's definition on its function, beside those under other names, so that a client can call through it.

    What takes no attributes has none.
    """
    with contextlib.suppress(AttributeError, TypeError):
        target = getattr(function, "__func__", function)
        if isinstance(target, type):
            return
        before: tuple[Tool, ...] = vars(target).get("__mcp__", ())
        if before is getattr(getattr(target, "__wrapped__", None), "__mcp__", None):
            before = ()  # functools.wraps has copied them
        target.__mcp__ = (*(each for each in before if each.name != tool.name), tool)


def completions_of(server: Server, compiled: Compiled) -> dict[str, Any]:
    """What completes each argument: `await source(call, typed, others)`."""

    def adapted(complete: Any) -> Callable[[Call, str, Mapping[str, str]], Awaitable[Sequence[str]]]:
        async def source(_call: Call, typed: str, others: Mapping[str, str]) -> Sequence[str]:
            found: Sequence[str] = await complete(typed, others, run=server.threads.run)
            return found

        return source

    return {name: adapted(complete) for name, complete in compiled.completions.items()}


# --- tools


def tool_entry(
    server: Server,
    function: Any,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    icons: Sequence[Icon] | None = None,
    meta: Meta | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    output_schema: dict[str, Any] | None = None,
    schema: Schema | None = None,
    tags: Iterable[str] = (),
    strict: bool | None = None,
    inline: bool = False,
    timeout: float | None = None,
    visible: Callable[[Principal | None], bool] | None = None,
    requires: Iterable[str] = (),
    by_hand: bool = True,
) -> Entry:
    """A tool. See `Server.add_tool`."""
    taken = Taken(
        function,
        kind="tool",
        name=name,
        strict=server.strict if strict is None else strict,
        schema=schema,
        output_schema=UNSET if output_schema is None else output_schema,
    )
    compiled = taken.compiled
    check_tool_name(compiled.name, compiled.place)
    hints = ToolAnnotations(
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        open_world_hint=open_world,
    )
    definition = Tool(
        name=compiled.name,
        title=title,
        description=description if description is not None else compiled.description,
        input_schema=compiled.input_schema,
        output_schema=compiled.output_schema,
        annotations=None if hints == ToolAnnotations() else hints,
        icons=tuple(icons) if icons else None,
        meta=meta,
    )
    attach(taken.function, definition)
    return Entry(
        compiled.name,
        definition,
        _tool_runner(taken.handler(server, inline=inline, timeout=timeout), compiled),
        function=function,
        place=compiled.place,
        visible=visible,
        requires=requires,
        by_hand=by_hand,
        header_params=mirror.params_of(compiled.input_schema),
        tags=tags,
    )


def _tool_runner(handler: Handler, compiled: Compiled) -> Callable[[Call], Awaitable[Any]]:
    decode, run = compiled.decode, handler.run
    finish = partial(compiled.output.outcome, file_bytes=handler.file_bytes)

    def answer(call: Call) -> Awaitable[Any]:
        arguments = call.params.arguments
        try:
            values = decode(None if arguments is UNSET else arguments)
        except ArgumentsInvalid as error:
            return _refusal(call, error)
        return run(call, values, finish)

    return answer


async def _refusal(call: Call, error: ArgumentsInvalid) -> ToolResult:
    return misfit(call, error)


def misfit(call: Call, error: ArgumentsInvalid) -> ToolResult:
    """Arguments that do not fit: for the model to read where the revision has it so, else a protocol error."""
    if not call.revision.has(Feature.TOOL_INPUT_ERRORS):
        raise invalid(call, error)
    return ToolResult(content=(Text(str(error)),), is_error=True, meta={ERRORS: error.data()})


def invalid(call: Call, error: ArgumentsInvalid) -> ProtocolError:
    """Arguments that do not fit, as a protocol error."""
    return ProtocolError(call.revision.code(Fault.INVALID_PARAMS), str(error), {"errors": error.data()})


# --- prompts


def prompt_entry(
    server: Server,
    function: Any,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    icons: Sequence[Icon] | None = None,
    meta: Meta | None = None,
    tags: Iterable[str] = (),
    inline: bool = False,
    timeout: float | None = None,
    visible: Callable[[Principal | None], bool] | None = None,
    requires: Iterable[str] = (),
    by_hand: bool = True,
) -> Entry:
    """A prompt. See `Server.add_prompt`."""
    taken = Taken(function, kind="prompt", name=name, strict=server.strict)
    compiled = taken.compiled
    if not compiled.name:
        raise DefinitionError(f"a prompt needs a name that is not empty ({compiled.place}): give it one with name=")
    definition = Prompt(
        name=compiled.name,
        title=title,
        description=description if description is not None else compiled.description,
        arguments=compiled.prompt_arguments or None,
        icons=tuple(icons) if icons else None,
        meta=meta,
    )
    handler = taken.handler(server, inline=inline, timeout=timeout)

    def finish(value: Any) -> Any:
        return prompt_result(value, description=definition.description)

    async def answer(call: Call) -> Any:
        try:
            values = compiled.bind(call.params.arguments or {})
        except ArgumentsInvalid as error:
            raise invalid(call, error) from None
        return await handler.run(call, values, finish)

    return Entry(
        compiled.name,
        definition,
        answer,
        function=function,
        place=compiled.place,
        visible=visible,
        requires=requires,
        by_hand=by_hand,
        completions=completions_of(server, compiled),
        tags=tags,
    )
