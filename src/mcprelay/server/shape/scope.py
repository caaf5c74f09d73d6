"""Where the names in a postponed annotation are looked up.

Module, closure and type parameters first; then, since functions and classes defined inside a function may name its
local variables, the frame of that function, if it is still running, which at decoration it is. Nothing is guessed: a
name that none of these has is an error that says the name.
"""

from __future__ import annotations

import builtins
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mcprelay.errors import DefinitionError


class Scope:
    """The names that an annotation may use.

    Attributes:
        module: The namespace of the module.
        local: Names that go before it.
        fallback: Names that are looked up last.
        qualname: The dotted name of what the annotation belongs to, to find the frame around it.
    """

    def __init__(
        self,
        module: Mapping[str, Any],
        *,
        local: Mapping[str, Any],
        qualname: str,
        fallback: Mapping[str, Any] = types.MappingProxyType({}),
    ) -> None:
        self.module = module
        self.local = local
        self.fallback = fallback
        self.qualname = qualname

    def resolve(self, annotation: str | typing.ForwardRef) -> Any:
        """What a postponed annotation stands for.

        Raises:
            DefinitionError: It uses a name that is not there, or is no type.
        """
        text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        module = self.module
        if isinstance(annotation, typing.ForwardRef) and (name := getattr(annotation, "__forward_module__", None)):
            module = vars(sys.modules[name]) if name in sys.modules else module
        if text.isidentifier():  # by far the most common, and free of `eval`
            for names in (self.local, module, vars(builtins)):
                if text in names:
                    return names[text]
        names = dict(self.local)
        try:
            return eval(text, dict(module), names)  # noqa: S307 - the user's own annotation, as Python evaluates it
        except NameError:
            names = {**self.fallback, **_enclosing(self.qualname, self.module), **names}
        except Exception as error:
            raise DefinitionError(f"the annotation {text!r} cannot be evaluated: {error}") from error
        try:
            return eval(text, dict(module), names)  # noqa: S307 - as above
        except NameError as error:
            raise DefinitionError(
                f"the annotation {text!r} uses the name {error.name!r}, which is not there at run time. Import it "
                f"outside `if TYPE_CHECKING:`, or define it before this place."
            ) from error
        except Exception as error:
            raise DefinitionError(f"the annotation {text!r} cannot be evaluated: {error}") from error


def scope_of_function(function: Callable[..., Any], fallback: Mapping[str, Any]) -> Scope:
    """The scope of a function's annotations."""
    local: dict[str, Any] = {parameter.__name__: parameter for parameter in getattr(function, "__type_params__", ())}
    code, closure = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is not None and closure:
        for name, cell in zip(code.co_freevars, closure, strict=True):
            try:
                local[name] = cell.cell_contents
            except ValueError:
                continue  # not assigned yet
    module = getattr(function, "__globals__", None) or _namespace(function)
    return Scope(module, local=local, qualname=getattr(function, "__qualname__", ""), fallback=fallback)


def scope_of_class(cls: type) -> Scope:
    """The scope of the annotations in a class body."""
    local: dict[str, Any] = {parameter.__name__: parameter for parameter in getattr(cls, "__type_params__", ())}
    local[cls.__name__] = cls
    return Scope(_namespace(cls), local=local, qualname=cls.__qualname__, fallback=vars(cls))


def _namespace(owner: Any) -> Mapping[str, Any]:
    module = sys.modules.get(getattr(owner, "__module__", None) or "")
    return {} if module is None else vars(module)


def _enclosing(qualname: str, module: Mapping[str, Any]) -> Mapping[str, Any]:
    """The local variables of the running functions that something was defined in, the innermost going first."""
    names: dict[str, Any] = {}
    for outer in _outer_functions(qualname):
        frame: types.FrameType | None = inspect.currentframe()
        while frame is not None:
            if frame.f_code.co_qualname == outer and frame.f_globals is module:
                names = {**frame.f_locals, **names}
                break
            frame = frame.f_back
    return names


def _outer_functions(qualname: str) -> Iterator[str]:
    """The qualified names of the functions around, innermost first."""
    outer, found, _ = qualname.rpartition(".<locals>.")
    while found:
        yield outer
        outer, found, _ = outer.rpartition(".<locals>.")
