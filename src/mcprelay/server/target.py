"""What there is to call: functions, methods, partial objects, wrappers, callable objects, classes with `__call__`.

A target says how a callable is called, named and described, and where its annotations are to be read. Nothing here
reads them.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from mcprelay.errors import DefinitionError
from mcprelay.server.shape.scope import Scope, scope_of_function

_NO_NAMES: Mapping[str, Any] = {}


class Target(Struct, frozen=True, kw_only=True):
    """A callable, looked at once.

    Attributes:
        call: What is called, or None where an instance is needed first (`owner` says of what).
        owner: The class whose instance is needed first, or None.
        signature: Its parameters, without the one that an instance fills.
        scope: Where the names in its annotations are found.
        name: What it is called.
        doc: Its docstring, or None.
        place: `file:line` of it, for messages; empty where nobody knows.
        is_async: Whether calling it gives something to await.
        is_generator: Whether calling it gives a generator.
    """

    call: Callable[..., Any] | None
    owner: type | None
    signature: inspect.Signature
    scope: Scope
    name: str
    doc: str | None
    place: str
    is_async: bool
    is_generator: bool


def target_of(
    function: Any, *, owner: type | None = None, name: str | None = None, names: Mapping[str, Any] = _NO_NAMES
) -> Target:
    """Look at a callable.

    Args:
        function: A function, bound method, partial object, wrapper, callable object, or a class with `__call__`.
        owner: The class that `function` was taken from, where it still lacks its instance.
        name: What to call it; its own name unless given.
        names: Names that an annotation may use beyond those of its module.

    Raises:
        DefinitionError: It cannot be called, has no name, or has a signature that Python cannot tell.
    """
    if isinstance(function, classmethod):
        raise DefinitionError("a classmethod is registered through its class: put the decorator on top of nothing else")
    if isinstance(function, staticmethod):
        function, owner = function.__func__, None
    if isinstance(function, type):
        function, owner, given = _own_call(function), function, function.__name__
    else:
        given = _name_of(function)
    body = _body(function)
    inner = inspect.unwrap(body)
    called = name or given
    if called == "<lambda>":
        raise DefinitionError(f"a lambda has no name; give it one with name=… ({_place(inner)})")
    signature = _signature(function, called, skip=owner is not None)
    if owner is None:
        _check_bound(inner, signature)
    return Target(
        call=None if owner is not None else function,
        owner=owner,
        signature=signature,
        scope=scope_of_function(inner, names),
        name=called,
        doc=_doc(function, body, inner, owner),
        place=_place(inner),
        is_async=is_async(function),
        is_generator=inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body),
    )


def is_async(function: Any) -> bool:
    """Whether calling it gives something to await, as far as one can tell without calling it."""
    return inspect.iscoroutinefunction(_body(function))


def inner_of(function: Any) -> Any:
    """The function whose body runs in the end, behind wrappers, methods, partial and callable objects."""
    return inspect.unwrap(_body(function))


def _own_call(cls: type) -> Any:
    """The `__call__` that instances of a class have."""
    for base in cls.__mro__:
        if "__call__" in vars(base):
            return vars(base)["__call__"]
    raise DefinitionError(f"{cls.__name__} has no __call__, so its instances cannot be called")


def _body(function: Any) -> Any:
    """The function that runs, behind partial objects, methods and callable objects; wrappers are left on."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or isinstance(function, type):
        return getattr(function, "__func__", function)
    if not callable(function):
        raise DefinitionError(f"{function!r} cannot be called")
    if hasattr(function, "__wrapped__"):  # an object that stands for a function, as caches are
        return function
    return _own_call(type(function))


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _doc(function: Any, body: Any, inner: Any, owner: type | None) -> str | None:
    """The docstring: the function's, else that of the class whose instances are called."""
    own = getattr(body, "__doc__", None) or getattr(inner, "__doc__", None)
    if own is not None:
        return str(own)
    cls = owner if owner is not None else None if inspect.isroutine(function) else type(function)
    return None if cls is None or cls is functools.partial else cls.__doc__


def _signature(function: Any, name: str, *, skip: bool) -> inspect.Signature:
    try:
        if sys.version_info >= (3, 14):
            import annotationlib

            signature = inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
        else:
            signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise DefinitionError(f"{name} has no signature that Python can tell: {error}") from error
    if not skip:
        return signature
    first, *others = signature.parameters.values()
    if first.kind is inspect.Parameter.VAR_POSITIONAL:
        others = [first, *others]
    return signature.replace(parameters=others)


def _check_bound(function: Any, signature: inspect.Signature) -> None:
    """Refuse a method that was taken from its class: nobody would fill its first parameter.

    Raises:
        DefinitionError: It is one.
    """
    outer = getattr(function, "__qualname__", "").rpartition(".")[0]
    if not outer or outer.endswith("<locals>"):
        return
    first = next(iter(signature.parameters.values()), None)
    if first is not None and first.name in {"self", "cls"} and first.annotation is first.empty:
        raise DefinitionError(
            f"{function.__qualname__} is a method without its object ({_place(function)}). Register the method of an "
            "instance, or mark methods with the free decorators and let the server make the instance."
        )


def _place(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"
