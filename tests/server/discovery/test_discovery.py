"""What a scan finds, in which order of precedence, and what it says of what it could not take."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import pytest

from mcprelay import ConfigurationError, DefinitionError, Server, tool
from mcprelay.server.subscription import Listener
from mcprelay.types import SubscriptionFilter
from tests.server.rawclient import RawClient

if TYPE_CHECKING:
    from tests.server.discovery.conftest import Program

ADD = '''
@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''


async def called(server: Server, name: str, /, **arguments: object) -> str:
    channel = server.connect()
    result = await RawClient(channel).result("tools/call", {"name": name, "arguments": arguments})
    await channel.aclose()
    text: str = result["content"][0]["text"]
    return text


async def test_marked_functions_are_offered_and_stay_functions(program: Program):
    program.write(
        "handlers/math.py",
        ADD
        + """
@resource("config://app")
def settings() -> dict: return {"precision": 2}

@resource("user://{name}")
def user(name: str) -> str: return name

@prompt
def review(code: str) -> str: return code

assert add(1, 2) == 3
""",
    )
    server = program.server()

    found = server.discover(program / "handlers")

    assert (found.tools, found.resources, found.prompts) == (("add",), ("config://app", "user://{name}"), ("review",))
    assert (found.files, found.broken) == (1, ())
    assert await called(server, "add", a=1, b=2) == "3"


def test_a_file_that_cannot_be_imported_is_reported_and_does_not_stop_the_scan(program: Program, caplog):
    broken = program.write("handlers/a_broken.py", "import nothing_of_that_name")
    wrong = program.write("handlers/b_wrong.py", "def (")
    leaving = program.write("handlers/c_leaving.py", "import sys; sys.exit(3)")
    program.write("handlers/d_good.py", ADD)
    server = program.server()

    found = server.discover(program / "handlers")

    assert found.tools == ("add",)
    assert [one.place for one in found.broken] == [broken, wrong, leaving]
    assert "nothing_of_that_name" in found.broken[0].reason
    assert "SyntaxError" in found.broken[1].reason
    assert "exits when it is imported" in found.broken[2].reason
    assert f"{broken} was skipped" in caplog.text
    assert "Traceback" in caplog.text


def test_an_element_that_cannot_be_offered_is_reported_with_its_line_and_leaves_the_others(program: Program):
    path = program.write(
        "handlers/mixed.py",
        """
@resource("no uri")
def broken() -> str: return ""
"""
        + ADD,
    )
    server = program.server()

    found = server.discover(program / "handlers")

    assert found.tools == ("add",)
    assert found.broken[0].place.startswith(f"{path}:")
    assert "RFC 3986" in found.broken[0].reason


def test_environments_caches_version_control_and_tests_are_left_out(program: Program):
    for folder in (
        ".git",
        ".hidden",
        "__pycache__",
        "venv",
        "site-packages",
        "node_modules",
        "tests",
        "a/tests",
        "own",
    ):
        program.write(f"{folder}/x.py", ADD.replace("add", "no_" + "".join(filter(str.isalpha, folder))))
    (program / "own/pyvenv.cfg").touch()
    program.write("test_x.py", ADD.replace("add", "no_test"))
    program.write("x_test.py", ADD.replace("add", "no_test_either"))
    program.write("conftest.py", ADD.replace("add", "no_conftest"))
    program.write("a/good.py", ADD)

    assert program.server().discover(program.root).tools == ("add",)


@pytest.mark.parametrize(
    ("exclude", "tools"),
    [
        ((), ("one", "two", "three")),
        (["old"], ("one", "three")),
        (["t*.py"], ("one",)),
        (["deep/old"], ("one", "three")),
        (["old/two.py"], ("one", "two", "three")),
        (["*/two.py"], ("one", "three")),
        ("one.py", ("two", "three")),
    ],
)
def test_what_is_excluded_is_a_name_at_any_depth_or_a_path(program: Program, exclude, tools):
    program.write("all/deep/one.py", ADD.replace("add", "one"))
    program.write("all/deep/old/two.py", ADD.replace("add", "two"))
    program.write("all/three.py", ADD.replace("add", "three"))

    assert sorted(program.server().discover(program / "all", exclude=exclude).tools) == sorted(tools)


def test_what_is_named_itself_is_scanned_whatever_it_is_called(program: Program):
    program.write("tests/test_handlers.py", ADD)

    assert program.server().discover(program / "tests/test_handlers.py").tools == ("add",)
    program.forget()
    program.write("venv/x.py", ADD)
    assert program.server().discover([program / "tests", program / "venv"]).tools == ("add",)


def test_folders_that_overlap_are_scanned_once(program: Program):
    program.write("src/app/x.py", ADD)

    found = program.server().discover([program.root, program / "src", program / "src/app/x.py"])

    assert (found.tools, found.files, found.broken) == (("add",), 1, ())


def test_a_folder_that_is_not_there_is_an_error_that_says_where_it_was_looked_for(program: Program):
    with pytest.raises(ConfigurationError, match=r"'handlerz'.*handlerz and .*handlerz"):
        program.server().discover("handlerz")
    program.root.joinpath("x.txt").touch()
    with pytest.raises(ConfigurationError, match="no Python file"):
        program.server().discover(program / "x.txt")


def test_a_relative_folder_lies_beside_the_file_that_asks(program: Program, monkeypatch):
    program.write("app/handlers/x.py", ADD)
    program.write("app/main.py", "server = Server('m'); found = server.discover('handlers')")
    monkeypatch.syspath_prepend(program.root / "app")
    monkeypatch.chdir("/")

    import main

    assert main.found.tools == ("add",)


# --- modules


def test_a_file_is_the_module_that_everybody_else_imports(program: Program, monkeypatch):
    monkeypatch.syspath_prepend(program.root)
    program.write("pack/__init__.py", "")
    program.write("pack/x.py", "from .shared import number\n" + ADD)
    program.write("pack/shared.py", "number = 1")
    server = program.server()

    assert server.discover(program / "pack").tools == ("add",)

    import pack.x

    assert server.catalog.tools.entries["add"].function is pack.x.add


def test_a_file_that_was_imported_before_is_not_imported_twice(program: Program, monkeypatch):
    monkeypatch.syspath_prepend(program.root)
    program.write("counted.py", "import sys\nsys.counted = getattr(sys, 'counted', 0) + 1\n" + ADD)
    monkeypatch.setattr(sys, "counted", 0, raising=False)
    import counted

    server = program.server()
    server.discover(program.root)
    server.discover(program.root, force=True)

    assert sys.counted == 1  # type: ignore[attr-defined]
    assert server.catalog.tools.entries["add"].function is counted.add


def test_a_package_that_is_not_on_the_path_still_has_its_relative_imports(program: Program):
    program.write("elsewhere/pack/__init__.py", "")
    program.write("elsewhere/pack/deep/x.py", "from ..shared import number\n" + ADD)
    program.write("elsewhere/pack/shared.py", "number = 1")

    found = program.server().discover(program / "elsewhere/pack")

    assert (found.tools, found.broken) == (("add",), ())


def test_a_file_named_like_another_module_is_not_mistaken_for_it(program: Program, monkeypatch):
    monkeypatch.syspath_prepend(program.root)
    program.write("tools/json.py", ADD)
    program.write("tools/my-tool.py", ADD.replace("add", "dashed"))
    program.write("tools/a.b.py", ADD.replace("add", "dotted"))
    server = program.server()

    found = server.discover(program / "tools")

    assert sorted(found.tools) == ["add", "dashed"]
    assert "has a dot in its name" in found.broken[0].reason
    assert server.catalog.tools.entries["add"].function.__module__ != "json"


def test_what_a_module_has_from_elsewhere_is_found_there_alone(program: Program, monkeypatch):
    monkeypatch.syspath_prepend(program.root)
    program.write("lib/y.py", ADD)
    program.write("app/x.py", "from lib.y import add\nalias = add")
    server = program.server()

    assert server.discover(program / "app").tools == ()
    assert server.discover([program / "app", program / "lib"], force=True).tools == ("add",)


def test_a_function_behind_a_wrapper_of_another_module_belongs_to_where_it_is_marked(program: Program, monkeypatch):
    monkeypatch.syspath_prepend(program.root)
    program.write(
        "deco.py",
        """
        def plain(function):
            def inner(a: int) -> int: return function(a)
            return inner
        """,
    )
    program.write(
        "app/x.py",
        """
        import functools
        from deco import plain

        @tool(name="wrapped")
        @plain
        def f(a: int) -> int: return a

        half = tool(name="half")(functools.partial(lambda a, b: a + b, b=1))
        """,
    )

    assert program.server().discover(program / "app").tools == ("wrapped", "half")


# --- classes


async def test_methods_are_offered_on_one_instance_that_the_container_makes(program: Program):
    program.write(
        "app/x.py",
        '''
        class Settings:
            precision = 2

        class Calculator:
            def __init__(self, settings: Settings) -> None:
                self.settings = settings

            @tool
            def scale(self, value: float) -> float:
                """Round."""
                return round(value, self.settings.precision)

            @tool
            def set_precision(self, digits: int) -> str:
                self.settings.precision = digits
                return "done"

            @staticmethod
            @tool
            def half(value: float) -> float:
                return value / 2

            @tool
            @classmethod
            def named(cls) -> str:
                return cls.__name__

            @resource("config://calculator")
            def config(self) -> dict:
                return {"precision": self.settings.precision}

        class Child(Calculator):
            pass
        ''',
    )
    server = program.server()

    found = server.discover(program / "app")

    assert (found.tools, found.broken) == (("scale", "set_precision", "half", "named"), ())
    await called(server, "set_precision", digits=1)
    assert await called(server, "scale", value=1.26) == "1.3"
    assert await called(server, "half", value=3) == "1.5"
    assert await called(server, "named") == "Calculator"


async def test_an_invokable_class_is_named_after_itself(program: Program):
    program.write(
        "app/x.py",
        '''
        @tool
        class Greeter:
            """Of people."""

            def __init__(self) -> None:
                self.greeted = 0

            def __call__(self, name: str) -> str:
                """Greet somebody."""
                self.greeted += 1
                return f"{name} {self.greeted}"

        class Shouter:
            @tool(name="shout")
            def __call__(self, text: str) -> str:
                return text.upper()
        ''',
    )
    server = program.server()

    assert server.discover(program / "app").tools == ("Greeter", "shout")
    assert server.catalog.tools.entries["Greeter"].definition.description == "Greet somebody."
    assert await called(server, "Greeter", name="Ada") == "Ada 1"
    assert await called(server, "Greeter", name="Bob") == "Bob 2"
    assert await called(server, "shout", text="a") == "A"


async def test_methods_of_an_abstract_class_need_something_that_stands_for_it(program: Program, monkeypatch):
    monkeypatch.syspath_prepend(program.root)
    program.write(
        "app/x.py",
        """
        import abc

        class Base(abc.ABC):
            @abc.abstractmethod
            def name(self) -> str: ...

            @tool
            def greet(self) -> str:
                return f"I am {self.name()}"

        class Ada(Base):
            def name(self) -> str: return "Ada"
        """,
    )
    server = program.server()

    assert "server.bind(Base" in server.discover(program / "app").broken[0].reason

    from app.x import Ada, Base

    server.bind(Base, Ada)
    assert server.discover(program / "app", force=True).tools == ("greet",)
    assert await called(server, "greet") == "I am Ada"


def test_several_marks_on_one_thing_each_count(program: Program):
    program.write(
        "app/x.py",
        """
        @tool(name="one")
        @tool(name="two")
        @prompt(name="three")
        @resource("a://b")
        def f() -> str: return ""
        """,
    )

    found = program.server().discover(program / "app")

    assert (set(found.tools), found.prompts, found.resources) == ({"one", "two"}, ("three",), ("a://b",))


def test_the_options_of_a_mark_are_those_of_a_registration(program: Program):
    program.write(
        "app/x.py",
        """
        @tool(name="x", title="T", tags=["t"], read_only=True, destructive=False, requires=["s"], meta={"a": 1})
        def f() -> str: return ""

        @resource("a://b", mime_type="text/plain", size=5, annotations=Annotations(priority=0.5))
        def g() -> str: return ""
        """,
    )
    server = program.server()
    server.discover(program / "app")
    entry = server.catalog.tools.entries["x"]

    assert (entry.tags, entry.requires) == ({"t"}, {"s"})
    assert entry.definition.annotations.read_only_hint is True
    assert entry.definition.annotations.destructive_hint is False
    assert entry.definition.annotations.idempotent_hint is None
    assert server.catalog.resources.entries["a://b"].definition.size == 5


def test_a_wrong_option_of_a_mark_is_an_error_where_it_stands():
    with pytest.raises(DefinitionError, match=r"a tool has no option 'nam'\. Did you mean 'name'"):
        tool(nam="x")  # type: ignore[call-overload]


def test_what_takes_no_attributes_cannot_be_marked():
    with pytest.raises(DefinitionError, match=r"register it with server\.add_tool"):
        tool(len)


def test_a_mark_with_a_name_by_position():
    @tool("other", title="T")
    def f() -> str:
        return ""

    server = Server("s")
    server.add(f)
    assert list(server.catalog.tools.entries) == ["other"]


async def test_an_object_with_marked_methods_can_be_added_by_hand():
    class Counter:
        def __init__(self, start: int) -> None:
            self.value = start

        @tool
        def count(self) -> int:
            self.value += 1
            return self.value

    class Louder(Counter):
        pass

    server = Server("s")
    server.add(Louder(5))

    assert await called(server, "count") == "6"
    with pytest.raises(DefinitionError, match="nothing about 5 is marked"):
        server.add(5)


# --- precedence and repetition


@pytest.mark.parametrize("order", ["before", "after", "around"])
async def test_what_is_registered_by_hand_wins_in_every_order(program: Program, order: str, caplog):
    program.write("app/x.py", ADD + "\n" + ADD.replace("add", "other"))
    caplog.set_level(logging.DEBUG, "mcprelay.server")
    server = program.server()

    def mine(a: int, b: int) -> str:
        return "by hand"

    if order == "before":
        server.add_tool(mine, name="add")
    server.discover(program / "app")
    if order != "before":
        server.add_tool(mine, name="add")
    if order == "around":
        server.discover(program / "app", force=True)

    assert await called(server, "add", a=1, b=2) == "by hand"
    assert await called(server, "other", a=1, b=2) == "3"
    assert "the tool 'add' registered by hand shadows the one that was discovered" in caplog.text
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_two_discovered_elements_of_one_name_are_reported_with_both_places(program: Program):
    one = program.write("app/a.py", ADD)
    two = program.write("app/b.py", ADD)
    server = program.server()

    found = server.discover(program / "app")

    assert found.tools == ("add",)
    assert f"two tools 'add': one at {one}:" in found.broken[0].reason
    assert f"one at {two}:" in found.broken[0].reason


def test_a_second_call_does_nothing_unless_forced(program: Program, caplog):
    program.write("app/x.py", ADD)
    program.write("more/y.py", ADD.replace("add", "more"))
    server = program.server()
    first = server.discover(program / "app")

    assert server.discover(program / "app") is first
    assert not caplog.records
    assert server.discover(program / "more") is first
    assert "more was not scanned" in caplog.text
    assert server.discover([program / "app", program / "more"], force=True).tools == ("add", "more")


async def test_a_forced_scan_drops_what_was_found_before_and_listeners_hear_of_it(program: Program):
    path = program.write("app/x.py", ADD)
    server = program.server()
    server.discover(program / "app")
    server.disable("add")
    listener = Listener.of(SubscriptionFilter(tools_list_changed=True))
    server.changes.add(listener)

    program.write("app/x.py", ADD + ADD.replace("add", "changed"))
    found = server.discover(program / "app", force=True)

    assert found.tools == ("add", "changed")
    assert list(server.catalog.tools.entries) == ["changed"], "what is switched off stays so"
    assert await listener.changes() == [("notifications/tools/list_changed", None)]
    program.remove(path)
    assert server.discover(program / "app", force=True).tools == ()
    assert list(server.catalog.tools.entries) == []


def test_a_scan_within_a_scan_is_an_error_of_that_file(program: Program):
    program.write("app/x.py", ADD)
    program.write("app/y.py", "import sys\nsys.present_server.discover('.', force=True)")
    server = program.server()
    sys.present_server = server  # type: ignore[attr-defined]

    found = server.discover(program / "app")

    del sys.present_server  # type: ignore[attr-defined]
    assert found.tools == ("add",)
    assert "a scan is going on" in found.broken[0].reason


async def test_a_server_that_starts_empty_warns_and_names_discover(caplog):
    server = Server("empty")
    await server.start()
    await server.stop()

    assert "server.discover" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING
