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
    """The methods that are marked in the body of a class itself."""
    for name, value in list(vars(cls).items()):
        marks = marks_of(value)
        if not marks and isinstance(value, (staticmethod, classmethod)):
            marks = marks_of(value.__func__)
        for mark in marks:
            yield (cls, name), mark


def marked_in(thing: Any) -> Iterator[Marked]:
    """What is marked about a thing: a function, a class and its methods, an object's methods, or a module's own."""
    if isinstance(thing, types.ModuleType):
        yield from elements_in(thing, getattr(thing, "__file__", None) or "")
        return
    for mark in marks_of(getattr(thing, "__func__", thing)):
        yield thing, mark
    if isinstance(thing, type):
        yield from methods_of(thing)
        return
    seen = set()
    for cls in type(thing).__mro__:
        for (_, name), mark in methods_of(cls):
            if (name, mark) not in seen and getattr(type(thing), name, None) is getattr(cls, name):
                seen.add((name, mark))
                yield (thing, name), mark
