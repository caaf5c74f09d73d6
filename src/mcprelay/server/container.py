"""Instances of handler classes: from the user's container, or one of each class, made on first use.

`(Class, "method")` and a class with `__call__` are handlers whose instance somebody has to make. With
`Server(container=fn)`, `fn(Class)` makes it. Without, there is one instance per class, whose constructor parameters are
filled by their annotations, from what `server.bind` knows or from further classes.
"""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING, Any, get_type_hints

from mcprelay.errors import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Callable


class Container:
    """Makes instances.

    Args:
        make: The user's own container: a callable from a type to an instance. It is then asked for everything.
    """

    def __init__(self, make: Callable[[type], Any] | None = None) -> None:
        self._make = make
        self._bound: dict[type, Any] = {}
        self._instances: dict[type, Any] = {}
        self._lock = threading.RLock()

    def bind(self, interface: type, implementation: Any) -> None:
        """Say what stands for a type: a class to make an instance of, or an instance."""
        self._bound[interface] = implementation

    def get(self, wanted: type) -> Any:
        """The instance of a type.

        Raises:
            DefinitionError: A constructor parameter cannot be filled; the message names the chain that leads to it.
        """
        if self._make is not None:
            return self._make(wanted)
        with self._lock:
            return self._get(wanted, ())

    def _get(self, wanted: type, path: tuple[type, ...]) -> Any:
        bound = self._bound.get(wanted, wanted)
        if not isinstance(bound, type):
            return bound
        if bound not in self._instances:
            if bound in path:
                circle = " → ".join(step.__qualname__ for step in (*path, bound))
                raise DefinitionError(
                    f"these classes need each other: {circle}. Break the circle, or bind an instance."
                )
            self._instances[bound] = self._construct(bound, (*path, bound))
        return self._instances[bound]

    def _construct(self, made: type, path: tuple[type, ...]) -> Any:
        if inspect.isabstract(made):
            raise DefinitionError(
                f"{made.__qualname__} is abstract: say server.bind({made.__qualname__}, Implementation)"
            )
        if made.__init__ is object.__init__:
            return made()
        hints = get_type_hints(made.__init__)
        values: dict[str, Any] = {}
        for name, parameter in list(inspect.signature(made.__init__).parameters.items())[1:]:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            hint = hints.get(name)
            if hint in self._bound or (parameter.default is parameter.empty and _is_made(hint)):
                values[name] = self._get(hint, path)  # type: ignore[arg-type]
            elif parameter.default is parameter.empty:
                raise DefinitionError(_unfilled(name, hint, path))
        return made(**values)


def _is_made(hint: Any) -> bool:
    """Whether a parameter of that type can be filled with an instance made here: builtins are values, not services."""
    return isinstance(hint, type) and hint.__module__ != "builtins"


def _unfilled(name: str, hint: Any, path: tuple[type, ...]) -> str:
    chain = " → ".join(step.__qualname__ for step in path)
    said = "no annotation" if hint is None else f"the annotation {getattr(hint, '__qualname__', hint)}"
    return (
        f"{chain} cannot be made: nothing fills the constructor parameter {name!r} with {said}."
        " Bind an instance with server.bind(Type, instance), give the parameter a default, or pass Server(container=…)."
    )
