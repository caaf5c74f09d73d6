"""The commands that call a server, one function each: connect, ask, show."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from mcprelay.cli import asking, show
from mcprelay.cli.argument import words_to_arguments, words_to_strings
from mcprelay.cli.exit import Exit
from mcprelay.cli.target import open_client
from mcprelay.errors import ConfigurationError, RemoteError
from mcprelay.wire.jsonrpc import METHOD_NOT_FOUND
from mcprelay.wire.spelling import closest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Sequence

    from mcprelay.cli.option import Options
    from mcprelay.client import Client
    from mcprelay.client.listening import Listening
    from mcprelay.client.progress import LogMessage, Progress
    from mcprelay.types import Tool


@asynccontextmanager
async def _connected(target: str, options: Options) -> AsyncGenerator[Client]:
    handlers: dict[str, Any] = {"on_elicit": asking.ask} if asking.somebody_is_there() else {}
    if options.log is not None:
        handlers |= {"on_log": _log, "log_level": options.log}
    if sys.stderr.isatty():
        handlers["on_progress"] = _progress
    async with open_client(target, options, **handlers) as client:
        yield client


def _log(message: LogMessage) -> None:
    text = message.data if isinstance(message.data, str) else msgspec.json.encode(message.data).decode()
    show.told(f"[{message.level}] {message.logger + ': ' if message.logger else ''}{text}")


def _progress(progress: Progress) -> None:
    of = "" if progress.total is None else f" of {progress.total:g}"
    show.told(f"… {progress.progress:g}{of} {progress.message or ''}".rstrip())


async def _listed(walk: Awaitable[Any]) -> Any:
    """A list, which is empty where the server does not have that kind at all."""
    try:
        found = await walk
    except RemoteError as error:
        if error.code == METHOD_NOT_FOUND:
            return ()
        raise
    show.warnings(found.warnings)
    show.warnings(f"{each.name} is left out: {each.reason}" for each in found.excluded)
    return found


async def tools(target: str, options: Options) -> None:
    """List tools."""
    async with _connected(target, options) as client:
        found = await _listed(client.list_tools())
    show.as_json(found) if options.json else show.tools(found)


async def resources(target: str, options: Options) -> None:
    """List resources and templates."""
    async with _connected(target, options) as client:
        found = await _listed(client.list_resources())
        templates = await _listed(client.list_resource_templates())
    if options.json:
        show.as_json({"resources": found, "resourceTemplates": templates})
    else:
        show.resources(found, templates)


async def prompts(target: str, options: Options) -> None:
    """List prompts."""
    async with _connected(target, options) as client:
        found = await _listed(client.list_prompts())
    show.as_json(found) if options.json else show.prompts(found)


async def call(target: str, tool: str, words: Sequence[str], arguments: str | None, options: Options) -> None:
    """Call a tool."""
    given = _object(arguments)
    async with _connected(target, options) as client:
        if words:
            given |= words_to_arguments(words, _named(tool, await client.list_tools()).input_schema)
        answer = await client.call_tool(tool, given)
    show.as_json(answer) if options.json else show.result(answer)


def _object(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"--arguments must be a JSON object: {error}") from error


def _named(name: str, found: Sequence[Tool]) -> Tool:
    for tool in found:
        if tool.name == name:
            return tool
    close = closest(name, (tool.name for tool in found))
    meant = f"; did you mean {close}?" if close else ". `mcprelay tools` lists those that there are."
    raise ConfigurationError(f"the server has no tool {name!r}{meant}")


async def read(target: str, uri: str, options: Options) -> None:
    """Read a resource."""
    async with _connected(target, options) as client:
        answer = await client.read_resource(uri)
    show.as_json(answer) if options.json else show.contents(answer)


async def prompt(target: str, name: str, words: Sequence[str], options: Options) -> None:
    """Get a prompt."""
    async with _connected(target, options) as client:
        answer = await client.get_prompt(name, words_to_strings(words))
    show.as_json(answer) if options.json else show.messages(answer)


async def complete(
    target: str, reference: str, argument: str, value: str, *, words: Sequence[str], options: Options
) -> None:
    """Complete an argument."""
    async with _connected(target, options) as client:
        answer = await client.complete(reference, argument, value, context=words_to_strings(words))
    show.as_json(answer) if options.json else show.completion(answer)


async def listen(target: str, updates: Sequence[str], options: Options) -> Exit:
    """Print changes as they happen."""
    async with (
        _connected(target, options) as client,
        client.listen(tools=True, prompts=True, resources=True, updates=updates) as events,
    ):
        show.say("listening (Ctrl-C ends it)")
        _unpromised(events, updates)
        async for event in events:
            _event(event, json=options.json)
    show.say("the server ended it")
    return Exit.DONE


def _unpromised(events: Listening, updates: Sequence[str]) -> None:
    """What nothing comes of may be what the server never tells of."""
    lists = {"tools": "tools_list_changed", "prompts": "prompts_list_changed", "resources": "resources_list_changed"}
    without = [name for name, member in lists.items() if not getattr(events.honored, member)]
    without += [uri for uri in updates if uri not in events.honored.resource_subscriptions]
    if without:
        show.say(f"the server does not promise to tell of changes in {', '.join(without)}")


def _event(event: Any, *, json: bool) -> None:
    said = {"event": type(event).__name__, **msgspec.structs.asdict(event)}
    if json:
        show.as_json_line(said)
    else:
        print(*(show.safe(str(each)) for each in said.values()), flush=True)
