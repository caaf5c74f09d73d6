"""Instances of handler classes: who makes them, what fills their constructors, and what is said where nothing does."""

from __future__ import annotations

import abc
import logging
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from mcprelay import ConfigurationError, DefinitionError, Server
from mcprelay.server.container import Container
from tests.server.ask import call

if TYPE_CHECKING:
    from decimal import Decimal


class Store(abc.ABC):
    @abc.abstractmethod
    def name(self) -> str: ...


class Memory(Store):
    def __init__(self, prefix: str = "memory") -> None:
        self.prefix = prefix

    def name(self) -> str:
        return self.prefix


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def up(self) -> int:
        """Count."""
        self.count += 1
        return self.count

    def __call__(self) -> int:
        return self.up()


class Tasks:
    def __init__(self, store: Store, counter: Counter, /, *, log: logging.Logger, limit: int = 5, **rest: Any) -> None:
        self.store = store
        self.counter = counter
        self.log = log
        self.limit = limit

    def all(self) -> str:
        return f"{self.store.name()} {self.limit} {self.counter.up()} {self.log.name}"


async def test_one_instance_of_a_class_serves_all_its_methods_and_keeps_its_state():
    server = Server("s")
    server.add_tool((Counter, "up"))
    server.add_tool(Counter, name="again")

    assert [await call(server, "up"), await call(server, "again"), await call(server, "up")] == [1, 2, 3]
    assert server.catalog.tools.entries["up"].definition.description == "Count."


async def test_constructors_are_filled_by_annotation_from_what_is_bound_else_made():
    server = Server("s", logger=logging.getLogger("mine"))
    server.bind(Store, Memory)
    server.add_tool((Tasks, "all"))
    server.add_tool((Counter, "up"))

    assert [await call(server, "all"), await call(server, "up"), await call(server, "all")] == [
        "memory 5 1 mine",
        2,
        "memory 5 3 mine",
    ]


def test_an_instance_stands_for_a_type_also_in_a_union_and_before_a_default():
    class Wants:
        def __init__(self, store: Store | None = None, other: Counter | None = None) -> None:
            self.store = store
            self.other = other

    container = Container()
    memory = Memory("given")
    container.bind(Store, memory)

    wants = container.get(Wants)

    assert wants.store is memory
    assert wants.other is None


def test_classes_that_need_each_other_are_named_in_their_order():
    class One:
        def __init__(self, two: Two) -> None: ...

    class Two:
        def __init__(self, one: One) -> None: ...

    One.__init__.__annotations__["two"] = Two
    Two.__init__.__annotations__["one"] = One

    with pytest.raises(DefinitionError, match=r"need each other: .*One → .*Two → .*One\. Break the circle"):
        Container().get(One)


def test_a_parameter_that_nothing_fills_is_named_with_the_chain_that_leads_to_it():
    class Inner:
        def __init__(self, path: str) -> None: ...

    class Outer:
        def __init__(self, inner: Inner) -> None: ...

    class Bare:
        def __init__(self, thing) -> None: ...  # type: ignore[no-untyped-def]

    Outer.__init__.__annotations__["inner"] = Inner

    with pytest.raises(
        DefinitionError, match=r"Outer → .*Inner cannot be made: .*'path' with the annotation str.*server\.bind"
    ):
        Container().get(Outer)
    with pytest.raises(DefinitionError, match=r"'thing' with no annotation"):
        Container().get(Bare)


def test_an_abstract_class_and_a_protocol_need_something_that_stands_for_them():
    class Named(Protocol):
        def name(self) -> str: ...

    class Wants:
        def __init__(self, named: Named) -> None:
            self.named = named

    Wants.__init__.__annotations__["named"] = Named
    container = Container()

    with pytest.raises(DefinitionError, match=r"Wants → .*Named cannot be made: .*Named is abstract.*server\.bind\("):
        container.get(Wants)
    with pytest.raises(DefinitionError, match=r"Store is abstract"):
        container.get(Store)
    fresh = Container()
    fresh.bind(Named, Memory)
    assert fresh.get(Wants).named.name() == "memory"


def test_a_name_that_is_there_for_type_checkers_only_is_an_error_that_says_so():
    class Wants:
        def __init__(self, amount: Decimal) -> None: ...

    with pytest.raises(DefinitionError, match=r"the name 'Decimal', which is not there at run time"):
        Container().get(Wants)


def test_what_cannot_stand_for_a_type_is_not_bound():
    with pytest.raises(ConfigurationError, match="Counter is no Store"):
        Container().bind(Store, Counter)


def test_a_type_that_is_in_use_is_not_bound_anew():
    container = Container()
    container.get(Counter)
    with pytest.raises(ConfigurationError, match=r"Counter is in use already: bind before the first call"):
        container.bind(Counter, Counter())


async def test_a_container_of_the_users_is_asked_for_each_call():
    asked: list[type] = []

    def make(wanted: type) -> Any:
        asked.append(wanted)
        return wanted()

    server = Server("s", container=make)
    server.add_tool((Counter, "up"))
    assert [await call(server, "up"), await call(server, "up")] == [1, 1]
    assert asked == [Counter, Counter]


async def test_a_container_that_fails_is_an_error_of_the_call_with_a_reference_in_the_log(caplog):
    server = Server("s")
    server.add_tool((Tasks, "all"))

    answer = await call(server, "all")

    assert answer.startswith("error: Internal error")
    assert "Store is abstract" in caplog.text
    assert "Store" not in answer


# --- handlers that are pairs


def test_a_pair_is_a_class_or_an_object_and_the_name_of_a_method():
    server = Server("s")
    counter = Counter()
    server.add_tool((counter, "up"), name="bound")
    server.add_resource("a://b", (Counter, "up"))
    server.add_prompt((Tasks, "all"))
    server.add_tool((Counter, "__call__"), name="called")

    with pytest.raises(DefinitionError, match=r"Counter has no method 'upp'; did you mean 'up'\?"):
        server.add_tool((Counter, "upp"))
    with pytest.raises(DefinitionError, match=r"Counter has no method 'nothing'"):
        server.add_tool((Counter, "nothing"))
    with pytest.raises(DefinitionError, match=r"\(Class, 'method'\)"):
        server.add_tool((Counter, "up", "down"))
    with pytest.raises(DefinitionError, match=r"is no method: it cannot be called"):
        server.add_tool((Counter, "__module__"))


async def test_static_and_class_methods_need_no_instance():
    class Tool:
        def __init__(self, impossible: int) -> None: ...

        @staticmethod
        def one() -> int:
            return 1

        @classmethod
        def two(cls) -> str:
            return cls.__name__

    server = Server("s")
    server.add_tool((Tool, "one"))
    server.add_tool((Tool, "two"))
    assert [await call(server, "one"), await call(server, "two")] == [1, "Tool"]


async def test_a_method_is_looked_up_on_the_instance_that_stands_for_its_class():
    class Louder(Memory):
        def name(self) -> str:
            return "LOUD"

    server = Server("s")
    server.bind(Store, Louder)
    server.add_tool((Store, "name"))
    assert await call(server, "name") == "LOUD"
