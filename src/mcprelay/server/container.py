"""Instances of handler classes: from the user's container, or one of each class, made on first use.

`(Class, "method")` and a class with `__call__` are handlers whose instance somebody has to make. With
`Server(container=fn)`, `fn(Class)` makes it, for each call anew: how long it lives is that container's business.
Without, there is one instance per class, whose constructor parameters are filled by their annotations, from what
`server.bind` knows or from further classes.
"""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING, Any, get_type_hints

from mcprelay.errors import ConfigurationError, DefinitionError

if TYPE_CHECKING:
    from collections.abc import Callable


class Container:
    """Makes instances.

    Args:
        make: The user's own container: a callable from a type to an instance. It is then asked for everything that is
            not bound here.

    Attributes:
        keeps: Whether there is one instance of each class.
    """

    def __init__(self, make: Callable[[type], Any] | None = None) -> None:
        self.keeps = make is None
        self._make = make
        self._bound: dict[Any, Any] = {}
        self._instances: dict[type, Any] = {}
        self._used: set[Any] = set()
        self._lock = threading.RLock()

    def bind(self, interface: type, implementation: Any) -> None:
        """Say what stands for a type: a class to make an instance of, or an instance.

        Raises:
            ConfigurationError: The class cannot stand for the type, or the type is in use already.
        """
        if isinstance(implementation, type) and isinstance(interface, type):
            _check_stands_for(interface, implementation)
        with self._lock:
            if interface in self._used:
                raise ConfigurationError(
                    f"{_name(interface)} is in use already: bind before the first call that needs it"
                )
            self._bound[interface] = implementation

    def makes(self, wanted: type) -> bool:
        """Whether there is a chance to make an instance: an abstract class needs something that stands for it."""
        return self._make is not None or wanted in self._bound or not inspect.isabstract(wanted)

    def get(self, wanted: type) -> Any:
        """The instance of a type.

        Raises:
            DefinitionError: A constructor parameter cannot be filled; the message names the chain that leads to it.
        """
        if self._make is not None and wanted not in self._bound:
            return self._make(wanted)
        with self._lock:
            return self._get(wanted, ())

    def _get(self, wanted: Any, path: tuple[type, ...]) -> Any:
        self._used.add(wanted)
        bound = self._bound.get(wanted, wanted)
        if not isinstance(bound, type):
            return bound
        if self._make is not None and bound not in self._bound:
            return self._make(bound)
        if bound not in self._instances:
            if bound in path:
                circle = " → ".join(map(_name, (*path, bound)))
                raise DefinitionError(
                    f"these classes need each other: {circle}. Break the circle, or bind an instance."
                )
            self._instances[bound] = self._construct(bound, (*path, bound))
        return self._instances[bound]

    def _construct(self, made: Any, path: tuple[type, ...]) -> Any:
        if inspect.isabstract(made) or getattr(made, "_is_protocol", False):
            raise DefinitionError(
                f"{_chain(path)} cannot be made: {_name(made)} is abstract."
                f" Say server.bind({_name(made)}, Implementation)."
            )
        if made.__init__ is object.__init__:
            return made()
        values = {}
        hints = _hints(made, path)
        for name, parameter in list(inspect.signature(made.__init__).parameters.items())[1:]:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            found = self._filled(name, parameter, hints.get(name), path)
            if found is not _DEFAULT:
                values[name] = found
        positional = [
            values.pop(name)
            for name, parameter in inspect.signature(made.__init__).parameters.items()
            if parameter.kind is parameter.POSITIONAL_ONLY and name in values
        ]
        return made(*positional, **values)

    def _filled(self, name: str, parameter: inspect.Parameter, hint: Any, path: tuple[type, ...]) -> Any:
        """The value of a constructor parameter: what is bound, else its default, else an instance made here."""
        from mcprelay.server.signature import arms

        choices = [arm for arm, _ in arms(hint)]
        for choice in choices:
            if _hashable(choice) and choice in self._bound:
                return self._get(choice, path)
        if parameter.default is not parameter.empty:
            return _DEFAULT
        if len(choices) == 1 and _is_service(choices[0]):
            return self._get(choices[0], path)
        raise DefinitionError(_unfilled(name, hint, path))


_DEFAULT = object()


def _check_stands_for(interface: type, implementation: type) -> None:
    try:
        fits = issubclass(implementation, interface)
    except TypeError:  # a protocol that cannot be checked at run time
        return
    if not fits and not getattr(interface, "_is_protocol", False):
        raise ConfigurationError(
            f"{_name(implementation)} is no {_name(interface)}, so it cannot stand for it: bind a subclass or an"
            " instance"
        )


def _hints(made: Any, path: tuple[type, ...]) -> dict[str, Any]:
    try:
        return get_type_hints(made.__init__, include_extras=True)
    except NameError as error:
        raise DefinitionError(
            f"{_chain(path)} cannot be made: an annotation of its constructor uses the name {error.name!r}, which is"
            " not there at run time. Import it outside `if TYPE_CHECKING:`."
        ) from error


def _hashable(choice: Any) -> bool:
    return getattr(choice, "__hash__", None) is not None


def _is_service(hint: Any) -> bool:
    """Whether a parameter of that type can be filled with an instance made here: builtins are values, not services."""
    return isinstance(hint, type) and hint.__module__ != "builtins"


def _name(of: Any) -> str:
    return getattr(of, "__qualname__", None) or repr(of)


def _chain(path: tuple[type, ...]) -> str:
    return " → ".join(map(_name, path))


def _unfilled(name: str, hint: Any, path: tuple[type, ...]) -> str:
    said = "no annotation" if hint is None else f"the annotation {_name(hint)}"
    return (
        f"{_chain(path)} cannot be made: nothing fills the constructor parameter {name!r} with {said}."
        " Bind an instance with server.bind(Type, instance), give the parameter a default, or pass Server(container=…)."
    )
