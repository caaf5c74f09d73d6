"""Tools, as a client's user calls them: by name, by contract, and by the function that serves one.

Knows the types that checkers see. How a call is made and how it ends is in `tooling`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Never, ParamSpec, TypeAlias, TypeVar, Unpack, overload

from mcprelay.client.catalogue import needs_input
from mcprelay.client.option import CallOptions
from mcprelay.client.outcome import Refused, Result, Succeeded
from mcprelay.client.question import InputRequired, Outcome
from mcprelay.client.tooling import Tooling
from mcprelay.contract import Contract

if TYPE_CHECKING:
    from mcprelay.server.context import Context

I = TypeVar("I")  # noqa: E741 - what goes in
T = TypeVar("T")
P = ParamSpec("P")

Given: TypeAlias = I | Callable[[I], Never]
"""A value of a contract's input type. Nobody gives the function beside it: it has mypy look at the contract first, and
only then at a dictionary that stands for a `TypedDict`, which it cannot tell the type of by itself."""


class ToolCalls:
    """The part of a client that calls tools."""

    _tooling: Tooling

    @overload
    async def call_tool(
        self, tool: Contract[I, T], arguments: Given[I], **options: Unpack[CallOptions]
    ) -> Result[T]: ...
    @overload
    async def call_tool(
        self, tool: str, arguments: Any = None, *, output: type[T], **options: Unpack[CallOptions]
    ) -> Result[T]: ...
    @overload
    async def call_tool(
        self, tool: str, arguments: Any = None, *, output: object = None, **options: Unpack[CallOptions]
    ) -> Result[Any]: ...
    async def call_tool(
        self,
        tool: str | Contract[Any, Any],
        arguments: Any = None,
        *,
        output: Any = None,
        **options: Unpack[CallOptions],
    ) -> Result[Any]:
        """Call a tool.

        Exactly one request is sent where the server is of the newest era: no list is asked for.

        Args:
            tool: Its name, or its contract (`define`).
            arguments: A mapping, or an object with fields; of a contract, a value of its input type.
            output: The type of the value; any JSON when left out. Checkers take what is no class, such as a union or a
                `Literal`, for `Any`.
            options: See `CallOptions`.

        Returns:
            The value, with content and metadata.

        Raises:
            ToolError: The tool said no; its content is inside.
            NeedsInput: It asks something that no handler answers; the question is inside.
            CallFailed: There is no answer, and `evidence` says whether it may have run.
            ConfigurationError: The call cannot be sent as it is. Nothing was.
        """
        outcome = await self._tooling.call(tool, arguments, output, options)
        if type(outcome) is Succeeded:
            return outcome
        if isinstance(outcome, InputRequired):
            raise needs_input(outcome)
        assert isinstance(outcome, Refused), "there is no other outcome"  # noqa: S101 - `Outcome` has three
        raise outcome.error

    @overload
    async def try_call_tool(
        self, tool: Contract[I, T], arguments: Given[I], **options: Unpack[CallOptions]
    ) -> Outcome[T]: ...
    @overload
    async def try_call_tool(
        self, tool: str, arguments: Any = None, *, output: type[T], **options: Unpack[CallOptions]
    ) -> Outcome[T]: ...
    @overload
    async def try_call_tool(
        self, tool: str, arguments: Any = None, *, output: object = None, **options: Unpack[CallOptions]
    ) -> Outcome[Any]: ...
    async def try_call_tool(
        self,
        tool: str | Contract[Any, Any],
        arguments: Any = None,
        *,
        output: Any = None,
        **options: Unpack[CallOptions],
    ) -> Outcome[Any]:
        """Call a tool, and get a refusal or a question as a value: `match` on `Succeeded`, `Refused`, `InputRequired`.

        Arguments as for `call_tool`.

        Raises:
            CallFailed: There is no answer.
            ConfigurationError: The call cannot be sent as it is. Nothing was.
        """
        return await self._tooling.call(tool, arguments, output, options)

    @overload
    def tool(
        self,
        function: Callable[Concatenate[Context[Any], P], Coroutine[Any, Any, T]],
        *,
        name: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Callable[P, Awaitable[T]]: ...
    @overload
    def tool(
        self,
        function: Callable[Concatenate[Context[Any], P], T],
        *,
        name: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Callable[P, Awaitable[T]]: ...
    @overload
    def tool(
        self,
        function: Callable[P, Coroutine[Any, Any, T]],
        *,
        name: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Callable[P, Awaitable[T]]: ...
    @overload
    def tool(
        self, function: Callable[P, T], *, name: str | None = None, **options: Unpack[CallOptions]
    ) -> Callable[P, Awaitable[T]]: ...
    def tool(self, function: Any, *, name: str | None = None, **options: Unpack[CallOptions]) -> Any:
        """The tool that a function serves, typed as the function: `await client.tool(add)(a=1, b=2)`.

        A `Context` that comes first is not part of the call. For other injected parameters use a contract (`define`).

        Args:
            function: A function that a `Server` has registered as a tool; it does not run here.
            name: The tool's name, where it is not the one name that the function is registered under: one of several,
                or what the server makes of it, as where it mounts another.
            options: See `CallOptions`.

        Returns:
            An asynchronous function that gives the tool's value, or raises what `call_tool` does.

        Raises:
            ConfigurationError: The function is no tool, or is one under several names and it is not said which.
        """
        from mcprelay.client.typed import Typed

        async def call(tool: str, arguments: dict[str, Any], kind: Any) -> Result[Any]:
            return await self.call_tool(tool, arguments, output=kind, **options)

        return Typed(function, call, name=name)
