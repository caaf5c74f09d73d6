"""Values that a handler is given and the client does not send: the `Context`, and what `Depends` makes.

What a signature asks for is compiled once into providers. Each call has a `Scope`, in which every dependency is made at
most once; generator dependencies are closed in reverse order after the result is made, whatever became of the call.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcprelay.errors import DefinitionError
from mcprelay.server.asking import refuse_asking
from mcprelay.server.context import Context
from mcprelay.server.shape.scope import scope_of_function
from mcprelay.server.signature import arms

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Generator, Iterator

    from mcprelay.server import Server

    Provider = Callable[["Scope"], Awaitable[Any]]


class Depends:
    """`Annotated[Db, Depends(get_db)]`: the parameter is what `get_db` gives, once per call.

    Args:
        function: Sync or async, a generator of either kind (closed after the call), or a class. Its own parameters may
            be a `Context` or further dependencies. Without one, the annotated class itself is made.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"Depends({'' if self.function is None else _name(self.function)})"


class Scope:
    """The dependencies of one call."""

    __slots__ = ("context", "made", "server", "stack")

    def __init__(self, server: Server, context: Context[Any], stack: contextlib.AsyncExitStack) -> None:
        self.server = server
        self.context = context
        self.stack = stack
        self.made: dict[Any, Any] = {}


class Overrides:
    """What stands for dependencies meanwhile, for tests."""

    def __init__(self) -> None:
        self._providers: dict[Any, Provider] = {}

    def get(self, function: Any) -> Provider | None:
        """What provides a dependency instead, if anything does."""
        return self._providers.get(function)

    @contextlib.contextmanager
    def put(self, original: Callable[..., Any], replacement: Callable[..., Any]) -> Generator[None, None, None]:
        """Let `replacement` give what `original` would, as long as the context is entered."""
        before = self._providers.get(original)
        self._providers[original] = _dependency(replacement, (original,))
        try:
            yield
        finally:
            if before is None:
                del self._providers[original]
            else:
                self._providers[original] = before


async def provide_context(scope: Scope) -> Context[Any]:
    """The provider of `Context` parameters."""
    return scope.context


def provider_of(annotation: Any) -> Provider | None:
    """What provides a parameter of that annotation, or None when its value comes from the client."""
    function = _depends_on(annotation)
    if function is not None:
        return _overridable(function, _dependency(function, ()))
    return provide_context if is_context(annotation) else None


def is_context(annotation: Any) -> bool:
    """Whether an annotation is `Context`, or a union with it."""
    kinds = [typing.get_origin(arm) or arm for arm, _ in arms(annotation)]
    return any(isinstance(kind, type) and issubclass(kind, Context) for kind in kinds)


def _depends_on(annotation: Any) -> Any:
    """What a `Depends` in an annotation names, or None where there is none."""
    for arm, metadata in arms(annotation):
        for mark in metadata:
            if mark is Depends:
                mark = Depends()  # noqa: PLW2901 - written without parentheses
            if isinstance(mark, Depends):
                return arm if mark.function is None else mark.function
    return None


def _overridable(function: Any, provider: Provider) -> Provider:
    async def provide(scope: Scope) -> Any:
        overrides = scope.server.overrides
        instead = None if overrides is None else overrides.get(function)
        return await (instead or provider)(scope)

    return provide


def _dependency(function: Any, path: tuple[Any, ...]) -> Provider:
    """Compile a dependency, with the dependencies that it has itself."""
    if not callable(function):
        raise DefinitionError(f"Depends({function!r}) names nothing that can be called")
    if function in path:
        circle = " → ".join(map(_name, (*path, function)))
        raise DefinitionError(f"these dependencies need each other: {circle}")
    needs = tuple(
        (name, kind is inspect.Parameter.POSITIONAL_ONLY, _need(name, annotation, function, path))
        for name, kind, annotation in _parameters(function)
    )
    make = _maker(function)
    if not isinstance(function, type):
        refuse_asking(function, {name for name, _, need in needs if need is provide_context})

    async def provide(scope: Scope) -> Any:
        if function not in scope.made:
            given = [(name, positional, await need(scope)) for name, positional, need in needs]
            call = functools.partial(
                function,
                *(value for _, positional, value in given if positional),
                **{name: value for name, positional, value in given if not positional},
            )
            scope.made[function] = await make(call, scope)
        return scope.made[function]

    return provide


def _need(name: str, annotation: Any, function: Any, path: tuple[Any, ...]) -> Provider:
    further = _depends_on(annotation)
    if further is not None:
        return _overridable(further, _dependency(further, (*path, function)))
    if is_context(annotation):
        return provide_context
    raise DefinitionError(
        f"the dependency {_name(function)} has a parameter {name!r} that nothing provides: annotate it with Context or"
        " Annotated[…, Depends(…)], or give it a default."
    )


def _parameters(function: Any) -> Iterator[tuple[str, Any, Any]]:
    """The parameters that have to be provided: name, kind and evaluated annotation."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise DefinitionError(f"the dependency {_name(function)} has no signature that Python can tell") from error
    scope = scope_of_function(inspect.unwrap(_body(function)), {})
    for name, parameter in signature.parameters.items():
        annotation = parameter.annotation
        while isinstance(annotation, (str, typing.ForwardRef)):
            annotation = scope.resolve(annotation)
        provided = _depends_on(annotation) is not None or is_context(annotation)
        variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if provided or (parameter.default is parameter.empty and not variadic):
            yield name, parameter.kind, annotation


def _body(function: Any) -> Any:
    """The function whose names its annotations use."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        constructed: Any = function
        function = constructed.__init__
    if not inspect.isroutine(function):
        function = type(function).__call__
    return getattr(function, "__func__", function)


def _name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__qualname__", None) or repr(function)


# --- making one


def _maker(function: Any) -> Callable[[Callable[[], Any], Scope], Awaitable[Any]]:
    """How what a dependency gives is had, by what kind of callable it is."""
    if isinstance(function, type):
        return _called
    body = _body(function)
    inner = inspect.unwrap(body)
    if inspect.isasyncgenfunction(body):
        return _opened
    if inspect.isgeneratorfunction(body):
        return _opened_in_thread
    if inspect.isasyncgenfunction(inner) or inspect.isgeneratorfunction(inner):
        raise DefinitionError(
            f"the dependency {_name(function)} is a generator behind a wrapper: pass the generator function as it is,"
            " without @contextmanager; it is closed after the call all the same."
        )
    return _awaited if inspect.iscoroutinefunction(body) else _called_in_thread


async def _opened(call: Callable[[], Any], scope: Scope) -> Any:
    return await scope.stack.enter_async_context(contextlib.asynccontextmanager(call)())


async def _opened_in_thread(call: Callable[[], Any], scope: Scope) -> Any:
    return await scope.stack.enter_async_context(_threaded(contextlib.contextmanager(call)(), scope))


async def _called(call: Callable[[], Any], _scope: Scope) -> Any:
    return call()


async def _awaited(call: Callable[[], Any], _scope: Scope) -> Any:
    return await call()


async def _called_in_thread(call: Callable[[], Any], scope: Scope) -> Any:
    made = await scope.server.threads.run(call)
    return await made if inspect.isawaitable(made) else made


@contextlib.asynccontextmanager
async def _threaded(manager: Any, scope: Scope) -> AsyncGenerator[Any, None]:
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
