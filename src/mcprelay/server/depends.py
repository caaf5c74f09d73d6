"""Values that a handler is given and the client does not send: the `Context`, and what `Depends` makes.

What a signature asks for is compiled once into providers. Each call has a `Scope`, in which every dependency is made at
most once; generator dependencies are closed in reverse order after the result is made, whatever became of the call.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from mcprelay.errors import DefinitionError
from mcprelay.server.context import Context

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcprelay.server import Server

    Provider = Callable[["Scope"], Awaitable[Any]]


class Depends:
    """`Annotated[Db, Depends(get_db)]`: the parameter is what `get_db` gives, once per call.

    Args:
        function: Sync or async, a generator of either kind (closed after the call), or a class. Its own parameters may
            be a `Context` or further dependencies.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"Depends({getattr(self.function, '__qualname__', self.function)!s})"


class Scope:
    """The dependencies of one call."""

    __slots__ = ("context", "made", "server", "stack")

    def __init__(self, server: Server, context: Context, stack: contextlib.AsyncExitStack) -> None:
        self.server = server
        self.context = context
        self.stack = stack
        self.made: dict[Any, Any] = {}


async def provide_context(scope: Scope) -> Context:
    """The provider of `Context` parameters."""
    return scope.context


def provider_of(annotation: Any) -> Provider | None:
    """What provides a parameter of that annotation, or None when its value comes from the client."""
    for depends in _marks(annotation):
        return _dependency(depends, ())
    return provide_context if is_context(annotation) else None


def is_context(annotation: Any) -> bool:
    """Whether an annotation is `Context`, or a union with it."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    candidates = get_args(annotation) or (annotation,)
    return any(isinstance(candidate, type) and issubclass(candidate, Context) for candidate in candidates)


def _marks(annotation: Any) -> list[Depends]:
    if get_origin(annotation) is not Annotated:
        return []
    return [mark for mark in get_args(annotation)[1:] if isinstance(mark, Depends)]


def _dependency(depends: Depends, path: tuple[Any, ...]) -> Provider:
    """Compile a dependency, with the dependencies that it has itself."""
    function = depends.function
    if function in path:
        circle = " → ".join(getattr(step, "__qualname__", repr(step)) for step in (*path, function))
        raise DefinitionError(f"these dependencies need each other: {circle}")
    needs = {name: _need(name, annotation, function, path) for name, annotation in _parameters(function).items()}

    async def provide(scope: Scope) -> Any:
        if function not in scope.made:
            values = {name: await need(scope) for name, need in needs.items()}
            scope.made[function] = await _make(function, values, scope)
        return scope.made[function]

    return provide


def _need(name: str, annotation: Any, function: Any, path: tuple[Any, ...]) -> Provider:
    for depends in _marks(annotation):
        return _dependency(depends, (*path, function))
    if is_context(annotation):
        return provide_context
    owner = getattr(function, "__qualname__", repr(function))
    raise DefinitionError(
        f"the dependency {owner} has a parameter {name!r} that nothing provides: annotate it with Context or"
        " Annotated[…, Depends(…)], or give it a default."
    )


def _parameters(function: Any) -> dict[str, Any]:
    """The parameters that have to be provided, with their annotations."""
    target = function.__init__ if isinstance(function, type) else function
    hints = get_type_hints(target, include_extras=True) if hasattr(target, "__annotations__") else {}
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = hints.get(name, parameter.annotation)
        provided = bool(_marks(annotation)) or is_context(annotation)
        variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if provided or (parameter.default is parameter.empty and not variadic):
            found[name] = annotation
    return found


async def _make(function: Any, values: dict[str, Any], scope: Scope) -> Any:
    if inspect.isasyncgenfunction(function):
        return await scope.stack.enter_async_context(contextlib.asynccontextmanager(function)(**values))
    if inspect.isgeneratorfunction(function):
        manager = contextlib.contextmanager(function)(**values)
        return await scope.stack.enter_async_context(_threaded(manager, scope))
    if inspect.iscoroutinefunction(function):
        return await function(**values)
    if isinstance(function, type):
        return function(**values)
    made = await scope.server.threads.run(lambda: function(**values))
    return await made if inspect.isawaitable(made) else made


@contextlib.asynccontextmanager
async def _threaded(manager: Any, scope: Scope) -> Any:
    """A synchronous context manager, entered and left in a worker thread because it may block."""
    value = await scope.server.threads.run(manager.__enter__)
    try:
        yield value
    except BaseException as error:
        told = (type(error), error, error.__traceback__)
        if not await scope.server.threads.run(lambda: manager.__exit__(*told)):
            raise
    else:
        await scope.server.threads.run(lambda: manager.__exit__(None, None, None))
