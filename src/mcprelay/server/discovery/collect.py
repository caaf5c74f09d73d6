"""What is marked in a module, and what is marked about a thing."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from mcprelay.server.mark import marks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcprelay.server.mark import Mark

    Marked = tuple[Any, Mark]


def elements_in(module: types.ModuleType, file: str) -> Iterator[Marked]:
    """The marked functions, classes, methods and objects of a module, each once, with their marks.

    What the module has from elsewhere is not its own: it is found there.
    """
    seen = set()
    for thing in list(vars(module).values()):
        if id(thing) not in seen:
            seen.add(id(thing))
            yield from (found for found in _marked(thing, module, file))


def _marked(thing: Any, module: types.ModuleType, file: str) -> Iterator[Marked]:
    if isinstance(thing, types.ModuleType):
        return
    own = getattr(thing, "__module__", None) == module.__name__
    for mark in marks_of(thing):
        if own or _is(mark.file, file, module):
            yield thing, mark
    if isinstance(thing, type) and own:
        yield from methods_of(thing)


def _is(marked_in: str, file: str, module: types.ModuleType) -> bool:
    return marked_in in (file, getattr(module, "__file__", None))


def methods_of(cls: type) -> Iterator[Marked]:
    """The methods that are marked in the body of a class itself. Discovery takes these: what is written in a file."""
    for name, value in list(vars(cls).items()):
        marks = marks_of(value)
        if not marks and isinstance(value, (staticmethod, classmethod)):
            marks = marks_of(value.__func__)
        for mark in marks:
            yield (cls, name), mark


def marked_in(thing: Any) -> Iterator[Marked]:
    """What is marked about a thing: a function, a class and its methods, an object's methods, or a module's own.

    A mark on a method is inherited, also by a method that takes its place: a subclass is what its bases promise. A
    mark on a class is that class's own, since two would claim one name.
    """
    if isinstance(thing, types.ModuleType):
        yield from elements_in(thing, getattr(thing, "__file__", None) or "")
        return
    for mark in marks_of(getattr(thing, "__func__", thing)):
        yield thing, mark
    cls: type = thing if isinstance(thing, type) else type(thing)
    marked: set[str] = set()
    for base in cls.__mro__:
        own = [(name, mark) for (_, name), mark in methods_of(base) if name not in marked]
        marked.update(name for name, _ in own)
        for name, mark in own:
            if callable(getattr(cls, name, None)):  # `method = None` takes it away
                yield (thing, name), mark
