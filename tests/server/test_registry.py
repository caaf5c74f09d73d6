"""Registering by hand: options, names, duplicates, what comes and goes while the server runs."""

from __future__ import annotations

import abc
import asyncio
import functools
import threading
from typing import Any

import pytest

from mcprelay import Annotations, ConfigurationError, DefinitionError, Icon, Schema, Server
from mcprelay.server.mark import tool
from mcprelay.types import ServerCapabilities
from tests.server.ask import call, connected, error, names, result


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_every_option_of_a_tool_is_published_as_the_specification_names_it():
    server = Server("s")
    icon = Icon(src="data:image/png;base64,AA==", mime_type="image/png", sizes=("any",))
    server.add_tool(
        add,
        name="plus",
        title="Plus",
        description="Adds.",
        icons=[icon],
        meta={"example.com/a": 1},
        read_only=True,
        destructive=False,
        idempotent=True,
        open_world=False,
        output_schema={"type": "integer", "minimum": 0},
        schema=Schema(properties={"a": {"maximum": 9}}),
    )

    [tool] = (await result(server, "tools/list"))["tools"]

    assert tool == {
        "name": "plus",
        "title": "Plus",
        "description": "Adds.",
        "icons": [{"src": icon.src, "mimeType": "image/png", "sizes": ["any"]}],
        "_meta": {"example.com/a": 1},
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
        "outputSchema": {"type": "integer", "minimum": 0},
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer", "maximum": 9}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
    }


async def test_what_is_not_said_is_not_sent():
    server = Server("s")
    server.add_tool(add)
    server.add_tool(add, name="other", destructive=False)

    plain, other = (await result(server, "tools/list"))["tools"]

    assert set(plain) == {"name", "description", "inputSchema", "outputSchema"}
    assert other["annotations"] == {"destructiveHint": False}


async def test_every_option_of_a_prompt_a_resource_and_a_template():
    server = Server("s")
    icon = Icon(src="https://example.com/i.png")
    told = {"title": "T", "description": "D", "meta": {"a": 1}}
    said = {"title": "T", "description": "D", "_meta": {"a": 1}}
    worth = Annotations(audience=("user",), priority=0.5, last_modified="2025-01-12T15:00:58Z")
    server.add_prompt(lambda: "", name="p", icons=[icon], **told)  # type: ignore[arg-type]
    server.add_resource(
        "a://b",
        lambda: "",
        name="r",
        mime_type="text/plain",
        size=0,
        annotations=worth,
        icons=[icon],
        **told,  # type: ignore[arg-type]
    )
    server.add_resource("a://{c}", lambda c: "", name="t", mime_type="text/plain", annotations=worth, **told)  # type: ignore[arg-type]

    drawn = {"icons": [{"src": "https://example.com/i.png"}]}
    weighed = {"annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"}}
    typed = {"mimeType": "text/plain"}
    assert (await result(server, "prompts/list"))["prompts"] == [{"name": "p", **said, **drawn}]
    [resource] = (await result(server, "resources/list"))["resources"]
    assert resource == {"uri": "a://b", "name": "r", "size": 0, **said, **drawn, **weighed, **typed}
    [template] = (await result(server, "resources/templates/list"))["resourceTemplates"]
    assert template == {"uriTemplate": "a://{c}", "name": "t", **said, **weighed, **typed}


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (lambda s: s.tool(nam="x"), r"a tool has no option 'nam'\. Did you mean 'name'\?"),
        (lambda s: s.resource("a://b", outputschema={}), r"a resource has no option 'outputschema'"),
        (lambda s: s.prompt(readonly=True), r"a prompt has no option 'readonly'\. There are "),
        (
            lambda s: s.add_resource("a://{c}", lambda c: "", name="t", icons=[Icon(src="x")]),
            r"a://\{c\} cannot have icons",
        ),
        (lambda s: s.add_resource("a://{c}", lambda c: "", name="t", size=1), r"a://\{c\} cannot have size"),
        (lambda s: s.add_resource("a://b", lambda: "", name="t", size=-1), r"size= of a resource is a number of bytes"),
        (
            lambda s: s.add_resource("a://b", lambda: "", name="t", annotations=Annotations(priority=2)),
            r"priority of a resource is from 0 to 1, and not 2",
        ),
        (
            lambda s: s.add_resource("a://b", lambda: "", name="t", annotations=Annotations(audience=("system",))),
            r"'user' and 'assistant', and not 'system'",
        ),
        (lambda s: s.add_tool(lambda: "", name="no spaces"), r"the tool name 'no spaces' has ' ' in it"),
        (lambda s: s.add_tool(lambda: "", name="x" * 129), r"at most 128 are allowed"),
        (lambda s: s.add_tool(lambda: ""), r"a lambda has no name; give it one with name="),
        (lambda s: s.add_resource(lambda: ""), r"missing 1 required positional argument"),
        (lambda s: s.resource(add), r"@server\.resource\('config://app'\)"),
        (lambda s: s.add_resource(add, "a://b"), r"a resource needs its URI.*: the function comes after it"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(register: Any, message: str):
    with pytest.raises((DefinitionError, TypeError), match=message):
        register(Server("s"))


async def test_decorators_work_bare_with_options_and_with_a_name_and_leave_the_function_alone():
    server = Server("s")

    @server.tool
    def one() -> str:
        return "1"

    @server.tool()
    async def two() -> str:
        return "2"

    @server.tool("three", title="T")
    def other() -> str:
        return "3"

    @server.prompt("p")
    def prompt() -> str:
        return "4"

    assert (one(), await two(), other(), prompt()) == ("1", "2", "3", "4")
    assert await names(server) == ["one", "two", "three"]
    assert await names(server, "prompts") == ["p"]


async def test_anything_that_can_be_called_is_a_handler():
    class Adder:
        def __init__(self, number: int = 1) -> None:
            self.number = number

        def __call__(self, x: int) -> int:
            """Add to it."""
            return x + self.number

        def method(self, x: int) -> int:
            return x * self.number

    @functools.lru_cache
    def cached(x: int) -> int:
        return x

    server = Server("s")
    server.add_tool(functools.partial(add, b=10), name="partial")
    server.add_tool(Adder(5), name="object")
    server.add_tool(Adder(5).method)
    server.add_tool(Adder)
    server.add_tool(cached)

    assert await call(server, "partial", {"a": 1}) == 11
    assert await call(server, "object", {"x": 1}) == 6
    assert await call(server, "method", {"x": 2}) == 10
    assert await call(server, "Adder", {"x": 1}) == 2
    assert await call(server, "cached", {"x": 3}) == 3


def test_a_name_that_is_taken_is_an_error_that_names_both_places():
    server = Server("s")
    server.add_tool(add)

    with pytest.raises(
        DefinitionError, match=r"two tools 'add': one at .*test_registry\.py:\d+, one at .*test_registry\.py:\d+"
    ):

        @server.tool(name="add")
        def other() -> str:
            return ""

    server.add_resource("a://b", lambda: "", name="x")
    with pytest.raises(DefinitionError, match="two resources 'a://b'"):
        server.add_resource("a://b", lambda: "", name="y")


async def test_a_name_may_be_replaced_on_purpose_and_keeps_its_place():
    server = Server("s")
    server.add_tool(add)
    server.add_tool(add, name="last")

    @server.tool(name="add", replace=True)
    def other() -> str:
        return "other"

    assert await names(server) == ["add", "last"]
    assert await call(server, "add") == "other"


# --- while it runs


async def test_what_comes_and_goes_at_run_time_is_told_and_many_changes_are_told_once():
    server = Server("s")
    server.add_tool(add)
    async with connected(server) as client:
        await client.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        assert (await client.receive())["method"] == "notifications/subscriptions/acknowledged"

        for number in range(100):
            server.add_tool(add, name=f"tool{number}")
        server.remove_tool("tool7")
        server.disable("tool8")

        assert (await client.receive())["method"] == "notifications/tools/list_changed"
        listed = [tool["name"] for tool in (await client.result("tools/list"))["tools"]]
        assert (len(listed), "tool7" in listed, "tool8" in listed) == (99, False, False)
        assert client.notices == [], "a hundred changes are one"


async def test_changes_from_another_thread_are_told_too():
    server = Server("s")
    server.add_prompt(lambda: "", name="p")
    async with connected(server) as client:
        await client.request("subscriptions/listen", {"notifications": {"promptsListChanged": True}})
        await client.receive()

        thread = threading.Thread(target=lambda: server.add_prompt(lambda: "", name="q"))
        thread.start()
        await asyncio.to_thread(thread.join)

        assert (await client.receive())["method"] == "notifications/prompts/list_changed"


async def test_things_are_disabled_and_enabled_by_name_and_by_tag():
    server = Server("s")
    server.add_tool(add, name="one", tags=["admin"])
    server.add_tool(add, name="two", tags=["admin", "x"])
    server.add_tool(add, name="three")
    server.add_resource("a://b", lambda: "text", name="r", tags=["admin"])
    server.add_resource("a://c/{d}", lambda d: d, name="t", tags=["admin"])

    server.disable("three", tags=["admin"])

    assert await names(server) == []
    assert (await error(server, "tools/call", {"name": "one", "arguments": {}}))["message"] == "Unknown tool: one"
    assert (await error(server, "resources/read", {"uri": "a://b"}))["data"] == {"uri": "a://b"}
    assert (await error(server, "resources/read", {"uri": "a://c/x"}))["data"] == {"uri": "a://c/x"}

    server.enable("a://b", tags=["x"])
    assert await names(server) == ["two"]
    assert await names(server, "resources") == ["a://b"]
    assert await names(server, "templates") == []
    with pytest.raises(KeyError, match="'nothing'"):
        server.disable("nothing")
    server.enable("a://c/{d}")
    assert await names(server, "templates") == ["a://c/{d}"]


def test_what_is_not_there_cannot_be_removed():
    server = Server("s")
    for remove in (server.remove_tool, server.remove_prompt, server.remove_resource):
        with pytest.raises(KeyError, match="'x'"):
            remove("x")
    server.add_resource("a://{b}", lambda b: b, name="t")
    server.remove_resource("a://{b}")
    assert len(server.catalog.templates) == 0


# --- what is declared


def test_capabilities_follow_from_what_is_registered():
    server = Server("s")
    assert server.capabilities == ServerCapabilities(logging={})
    server.add_tool(add)
    server.add_resource("a://b", lambda: "", name="r")
    assert server.capabilities == ServerCapabilities(
        tools={"listChanged": True}, resources={"listChanged": True, "subscribe": True}, logging={}
    )
    server.add_prompt(lambda: "", name="p")
    assert server.capabilities.prompts == {"listChanged": True}
    assert server.capabilities.completions == {}


async def test_what_was_declared_stays_declared_although_nothing_is_left_of_it():
    server = Server("s")
    server.add_tool(add)
    assert server.capabilities.tools is not None
    server.remove_tool("add")
    server.add_prompt(lambda: "", name="p")
    server.disable("p")

    assert await names(server) == []
    assert await names(server, "prompts") == []
    assert (await error(server, "resources/list"))["code"] == -32601


async def test_capabilities_can_be_declared_in_their_place():
    server = Server("s", capabilities=ServerCapabilities(tools={}, extensions={"example.com/x": {}}))
    server.add_tool(add)
    server.add_prompt(lambda: "", name="p")

    assert (await result(server, "server/discover"))["capabilities"] == {
        "tools": {},
        "extensions": {"example.com/x": {}},
    }
    assert (await error(server, "prompts/list"))[
        "message"
    ] == "Method not found: prompts/list (this server has no prompts)"


def test_revisions_are_chosen_by_name():
    with pytest.raises(ConfigurationError, match=r"among: there is no revision '1\.0'"):
        Server("s", among=["1.0"])
    with pytest.raises(ConfigurationError, match="at least one"):
        Server("s", among=[])


class Shelved:
    @tool
    def find(self, title: str) -> str:
        """Find a book."""
        return f"base {title}"

    @tool
    @staticmethod
    def count() -> int:
        return 1

    @tool("gone")
    def taken_away(self) -> str:
        return ""


class Library(Shelved):
    taken_away = None  # type: ignore[assignment]

    def find(self, title: str) -> str:
        return f"library {title}"

    @tool
    def lend(self, title: str) -> str:
        return f"lent {title}"


class Named(Library):
    @tool("search")
    def find(self, title: str) -> str:
        return f"named {title}"


@pytest.mark.parametrize("made", [lambda cls: cls, lambda cls: cls()], ids=["class", "object"])
async def test_marks_on_methods_are_inherited_also_by_what_takes_their_place(made: Any):
    server = Server("books")
    server.add(made(Library))
    assert sorted(await names(server)) == ["count", "find", "lend"]
    assert await call(server, "find", {"title": "Emma"}) == "library Emma"
    assert await call(server, "count") == 1
    other = Server("books")
    other.add(made(Named))
    assert sorted(await names(other)) == ["count", "lend", "search"]
    assert await call(other, "search", {"title": "Emma"}) == "named Emma"


async def test_an_abstract_base_says_what_its_subclasses_offer():
    class Store(abc.ABC):
        @tool
        @abc.abstractmethod
        def get(self, key: str) -> str: ...

    class Memory(Store):
        def get(self, key: str) -> str:
            """Read one."""
            return f"memory {key}"

    server = Server("stores")
    server.add(Memory)
    assert await call(server, "get", {"key": "a"}) == "memory a"


def test_a_mark_on_a_class_is_its_own():
    @tool
    class Add:
        def __call__(self, a: int) -> int:
            return a

    class More(Add):
        pass

    with pytest.raises(DefinitionError, match="nothing about .*More.* is marked"):
        Server("x").add(More)
