"""What is said of a handler where it is registered is looked at there, and not when a client asks for the list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

import pytest

from mcprelay import Client, Complete, ConfigurationError, DefinitionError, Depends, Schema, Server, define, tool
from mcprelay.errors import ConnectFailed


def f() -> str:
    return ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"icons": ["x.png"]}, r"icons= of a tool is a list of Icon\(src=…\), and not \['x\.png'\]"),
        ({"meta": [1]}, "meta= of a tool is a dict that JSON can say"),
        ({"meta": {"a": object()}}, "meta= of a tool is a dict that JSON can say"),
        ({"tags": "abc"}, "tags= of a tool is a list of words, and not 'abc'"),
        ({"tags": [1]}, "tags= of a tool is a list of words"),
        ({"requires": "admin"}, "requires= of a tool is a list of scopes, and not 'admin'"),
        ({"visible": True}, "visible= of a tool is a function of the principal"),
        ({"read_only": "yes"}, "read_only= of a tool is True or False"),
        ({"output_schema": "{}"}, "output_schema= of a tool is a JSON Schema, a dict"),
        ({"schema": {"minimum": 1}}, r"schema= of a tool is a Schema\(…\)"),
        ({"title": 5}, "title= of a tool is a string"),
        ({"name": ""}, "name= of a tool is a string that is not empty"),
    ],
)
@pytest.mark.parametrize(
    "register", [lambda **k: Server("s").tool(**k)(f), lambda **k: Server("s").add_tool(f, **k), tool]
)
def test_an_option_of_another_kind_is_refused_in_words(register: Callable[..., Any], options: Any, said: str):
    with pytest.raises(DefinitionError, match=said):
        register(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"size": "1"},
        {"annotations": {"priority": 1}},
        {"ttl_ms": -1},
        {"cache_scope": "all"},
        {"cache_scope": []},
        {"match": 5},
    ],
)
def test_so_are_those_of_resources(options: Any):
    with pytest.raises(DefinitionError, match=rf"{next(iter(options))}= of a resource is "):
        Server("s").add_resource("a://b", f, **options)


def test_what_is_said_of_the_handler_of_a_contract_too():
    with pytest.raises(DefinitionError, match="requires= of a tool is a list of scopes"):
        Server("s").handle(define("t", input=dict[str, int], output=str), lambda _: "", requires="admin")


class Foreign:
    """Stands for the class of another framework."""

    def __init__(self, function: Any) -> None: ...


Foreign.__name__, Foreign.__module__ = "Depends", "fastapi.params"


@pytest.mark.parametrize("mark", [Depends(f), Schema(min_length=1), Complete(["a"]), Foreign(f)])
def test_a_mark_in_the_place_of_a_default_is_refused_with_the_way_to_write_it(mark: Any):
    def handler(x: str = mark) -> str:
        return x

    with pytest.raises(DefinitionError, match=r"its default is a (\w+)\(…\), .* write x: Annotated\[…, \1\(…\)\]"):
        Server("s").tool(handler)


def test_the_depends_of_another_framework_is_no_argument():
    def handler(x: Any) -> str:
        return x

    handler.__annotations__["x"] = Annotated[str, Foreign(f)]
    with pytest.raises(
        DefinitionError, match="the Depends of fastapi means nothing here: import Depends from mcprelay"
    ):
        Server("s").tool(handler)


async def failing(_: Server) -> AsyncIterator[None]:
    raise OSError("the database is down")
    yield


async def test_a_lifespan_that_fails_is_raised_to_whoever_serves():
    server = Server("s", lifespan=failing)
    with pytest.raises(OSError, match="the database is down"):
        async with server.serve("http", port=0):
            pass


async def test_a_lifespan_that_fails_in_process_is_told_to_the_client_and_is_the_cause():
    with pytest.raises(ConnectFailed, match="the database is down") as caught:
        await Client(Server("s", lifespan=failing)).connect()
    assert isinstance(caught.value.__cause__, OSError)


async def test_run_inside_a_running_loop_says_what_to_do_instead():
    with pytest.raises(ConfigurationError, match=r"say `await server\.serve\(…\)` instead"):
        Server("s").run("http", port=0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"version": 1}, r"version: a string such as '1\.0\.0', and not 1"),
        ({"instructions": 5}, "instructions: a string"),
        ({"icons": ["a"]}, r"icons: a list of Icon\(src=…\)"),
        ({"limits": {"body_bytes": 1}}, r"limits: a Limits\(…\)"),
        ({"logger": "name"}, r"logger: a logging\.Logger"),
        ({"ttl_ms": -1}, "ttl_ms: a number of milliseconds"),
        ({"cache_scope": "all"}, "cache_scope: 'public' or 'private', and not 'all'"),
        ({"cache_scope": []}, r"cache_scope: 'public' or 'private', and not \[\]"),
        ({"cors": "yes"}, "cors: True or False"),
        ({"container": 5}, "container: a function from a type"),
        ({"capabilities": {}}, "capabilities: a ServerCapabilities"),
        ({"sessions": "none"}, "sessions: 'required', 'optional' or 'off'"),
        ({"allowed_hosts": "example.com"}, "allowed_hosts is a list"),
        ({"allowed_origins": "https://example.com"}, "allowed_origins is a list"),
        ({"public_url": "example.com"}, "public_url: 'example.com' is not an http or https URL"),
    ],
)
def test_a_setting_of_a_server_is_looked_at_where_it_is_said(settings: Any, said: str):
    with pytest.raises(ConfigurationError, match=said):
        Server("s", **settings)


def test_a_secret_of_another_kind_is_not_shown():
    with pytest.raises(ConfigurationError, match="state_keys: a list of secrets, and not str$"):
        Server("s", state_keys="hunter2" * 5)


def test_a_server_has_a_name():
    with pytest.raises(ConfigurationError, match="name: a string that is not empty"):
        Server("")


@pytest.mark.parametrize("options", [{"path": 5}, {"sse_path": 5}, {"message_path": None}])
def test_a_path_is_a_path(options: Any):
    with pytest.raises(ConfigurationError, match=rf"{next(iter(options))}: a path such as '/"):
        Server("s").serve("http", **options)


def test_a_mount_is_a_prefix_and_a_server():
    for arguments in (("q", 5), (Server("inner"), "q")):
        with pytest.raises(ConfigurationError, match="mount: a prefix and then a server"):
            Server("s").mount(*arguments)  # type: ignore[arg-type]
