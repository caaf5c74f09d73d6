"""The commands, their help, and how they end."""

from __future__ import annotations

import asyncio
import inspect
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter, UnknownCommandError, UnusedCliTokensError

from mcprelay import __version__
from mcprelay.cli.exit import Exit, ended
from mcprelay.cli.option import Options
from mcprelay.cli.target import forgotten, marked
from mcprelay.errors import ConfigurationError
from mcprelay.wire.spelling import closest

_PLAIN = Options()
_Flag = Annotated[bool, Parameter(negative="", show_default=False)]
_Many = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
_Target = Annotated[
    str,
    Parameter(
        help="A URL, a .py file, ./folder, module:server or a name in mcprelay.toml; none where a command is behind --."
    ),
]

HELP = """Serve Python to any MCP client, and call any MCP server.

TARGET is a URL, a .py file, ./folder, module:server, a server's name in mcprelay.toml, or a command behind --, as in

    mcprelay tools -- npx -y @modelcontextprotocol/server-everything
"""
CODES = "Exit codes: " + "; ".join(f"{code.value} {code.meaning}" for code in Exit) + "."

app = App(name="mcprelay", help=HELP, help_epilogue=CODES, version=__version__, help_format="plaintext")


def run(words: list[str]) -> Exit:
    """Run a command line, and say how it ended."""
    own = words[: words.index("--")] if "--" in words else words
    return ended(lambda: _run(words), as_json="--json" in own, login_helps=words[:1] != ["login"])


def _run(words: list[str]) -> Any:
    try:
        command, bound, _ = app.parse_args(_arranged(words), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        said = _said(error)
        order = ". All that is not the server's command goes before --" if "--" in words else _without_dashes(words)
        raise ConfigurationError(f"{said}{order} (--help tells more)") from error
    outcome = command(*bound.args, **bound.kwargs)
    return asyncio.run(outcome) if inspect.iscoroutine(outcome) else outcome


def _said(error: CycloptsError) -> str:
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        name, names = error.unused_tokens[0], [each for each in app if not each.startswith("-")]
        close = closest(name, names)
        return f"there is no command {name!r}; {f'did you mean {close}?' if close else 'there are ' + ', '.join(names)}"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"there is no place for {', '.join(map(repr, error.unused_tokens))}"
    return " ".join(str(error).split()).removesuffix(".")


def _without_dashes(words: list[str]) -> str:
    return forgotten(words) if words and words[0] in (*_CALLING, "serve") else ""


def _arranged(words: list[str]) -> list[str]:
    """A command behind `--` takes the place of the target, which is the first word after the command's name."""
    if "--" not in words or not words or words[0] not in _CALLING:
        return words
    at = words.index("--")
    return [words[0], marked(words[at + 1 :]), *words[1:at]]


_CALLING = ("tools", "resources", "prompts", "call", "read", "prompt", "complete", "listen")


@app.command
def serve(
    source: str,
    /,
    *,
    http: str | None = None,
    path: str = "/mcp",
    allow_unauthenticated: _Flag = False,
    reload: _Flag = False,
) -> Exit:
    """Serve the Server in a file or module: over standard input and output, or over HTTP.

    Args:
        source: A .py file with one Server in it, file.py:name, or package.module:name.
        http: HOST:PORT to serve over HTTP at; port 0 takes a free one.
        path: Where the endpoint is, over HTTP.
        allow_unauthenticated: Let a server without auth be reached from other machines.
        reload: Load it anew whenever a Python file in its folder changes; who is connected stays connected.
    """
    if http is None:
        from mcprelay.cli import reload as reloading
        from mcprelay.cli import serve as serving

        return reloading.serve_stdio(source) if reload else serving.serve_stdio(source)
    from mcprelay.cli.serve import serve_http

    return serve_http(source, http, reload=reload, path=path, allow_unauthenticated=allow_unauthenticated)


@app.command
async def tools(target: _Target, /, *, options: Options = _PLAIN) -> None:
    """List a server's tools."""
    from mcprelay.cli import calling

    await calling.tools(target, options)


@app.command
async def resources(target: _Target, /, *, options: Options = _PLAIN) -> None:
    """List a server's resources and resource templates."""
    from mcprelay.cli import calling

    await calling.resources(target, options)


@app.command
async def prompts(target: _Target, /, *, options: Options = _PLAIN) -> None:
    """List a server's prompts."""
    from mcprelay.cli import calling

    await calling.prompts(target, options)


@app.command
async def call(
    target: _Target, tool: str, /, *words: str, arguments: str | None = None, options: Options = _PLAIN
) -> None:
    """Call a tool with key=value words, whose types are those of the tool's schema.

    Args:
        tool: The tool's name.
        words: The arguments, key=value. A list is JSON, or the key several times.
        arguments: All arguments as one JSON object; key=value words go over it.
    """
    from mcprelay.cli import calling

    await calling.call(target, tool, words, arguments, options)


@app.command
async def read(target: _Target, uri: str, /, *, options: Options = _PLAIN) -> None:
    """Read a resource.

    Args:
        uri: The resource's URI.
    """
    from mcprelay.cli import calling

    await calling.read(target, uri, options)


@app.command
async def prompt(target: _Target, name: str, /, *words: str, options: Options = _PLAIN) -> None:
    """Get a prompt.

    Args:
        name: The prompt's name.
        words: Its arguments, key=value.
    """
    from mcprelay.cli import calling

    await calling.prompt(target, name, words, options)


@app.command
async def complete(
    target: _Target, reference: str, argument: str, value: str = "", /, *words: str, options: Options = _PLAIN
) -> None:
    """Complete an argument of a prompt, or a variable of a resource template.

    Args:
        reference: The prompt's name, or the template as it is listed.
        argument: The argument's name.
        value: What is typed so far.
        words: The other arguments that are known already, key=value.
    """
    from mcprelay.cli import calling

    await calling.complete(target, reference, argument, value, words=words, options=options)


@app.command
async def listen(
    target: _Target,
    /,
    *,
    update: _Many = (),
    options: Options = _PLAIN,
) -> Exit:
    """Print a server's changes as they happen, until Ctrl-C.

    Args:
        update: The URI of a resource whose changes matter. May be repeated.
    """
    from mcprelay.cli import calling

    return await calling.listen(target, update, options)


@app.command
async def lock(
    *names: str,
    check: _Flag = False,
    yes: _Flag = False,
    options: Options = _PLAIN,
) -> Exit:
    """Review the tools of servers in mcprelay.toml, and record them in mcprelay.lock.

    Args:
        names: The servers; all of them unless named.
        check: Compare only; ends with 1 where something is not as it was reviewed.
        yes: Record without asking; ends with 1 where a list was not complete, or not clear.
    """
    from mcprelay.cli import locking

    if check and yes:
        raise ConfigurationError("--check compares and --yes records: give one of them")
    return await locking.lock(names, options, how="check" if check else "yes" if yes else "ask")


@app.command
def init() -> None:
    """Write a commented mcprelay.toml into this folder."""
    from pathlib import Path

    from mcprelay.cli import locking
    from mcprelay.relay.config import FILE

    locking.init(Path(FILE))


@app.command
async def login(
    target: str,
    /,
    *,
    scope: Annotated[str | None, Parameter(show_default=False)] = None,
    client_id: Annotated[str | None, Parameter(show_default=False)] = None,
    client_secret: Annotated[str | None, Parameter(env_var="MCPRELAY_CLIENT_SECRET", show_default=False)] = None,
    port: Annotated[int, Parameter(show_default=False)] = 0,
    paste: _Flag = False,
    allow_host: _Many = (),
) -> None:
    """Log in at a server that asks for authorization, and keep the token.

    Args:
        target: Its URL, or its name in mcprelay.toml, whose proxy and certificates are used then.
        scope: Scopes to ask for beside those that the server wants, with spaces between them.
        client_id: A client that you registered by hand, for a server that registers none by itself.
        client_secret: Its secret, where it has one. In the environment it is seen by fewer than on the command line.
        port: The PORT of the redirect URI http://127.0.0.1:PORT/callback that it was registered with; any without it.
        paste: Open no browser here: show the address, and read the one that a browser elsewhere ends at.
        allow_host: A host or network that the server may name although it is not public. May be repeated.
    """
    from mcprelay.cli import account

    wishes = account.Wishes(
        scope=scope, client_id=client_id, client_secret=client_secret, port=port, paste=paste, allowed_hosts=allow_host
    )
    await account.login(target, wishes)


@app.command
async def logout(target: str, /) -> None:
    """Log out: forget the token of a server.

    Args:
        target: Its URL, or its name in mcprelay.toml.
    """
    from mcprelay.cli import account

    await account.logout(target)
