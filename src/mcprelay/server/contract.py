"""A handler for a contract: the one value that the contract names is the whole of the arguments.

The handler is compiled like any other, with one argument; what is published and decoded is that argument's own object.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, ForwardRef

from msgspec import UNSET, Raw

from mcprelay.errors import DefinitionError
from mcprelay.server.element import Taken, attach, injects, misfit
from mcprelay.server.entry import Entry
from mcprelay.server.output import output_of
from mcprelay.server.report import ArgumentError, ArgumentsInvalid
from mcprelay.server.shape.scope import Scope
from mcprelay.server.shape.walk import Walk
from mcprelay.server.target import target_of
from mcprelay.types import Tool
from mcprelay.wire import mirror

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcprelay.auth.principal import Principal
    from mcprelay.contract import Contract
    from mcprelay.server import Server
    from mcprelay.server.call import Call
    from mcprelay.server.signature import Compiled


def contract_entry(
    server: Server,
    contract: Contract[Any, Any],
    function: Any,
    *,
    inline: bool = False,
    timeout: float | None = None,
    tags: Iterable[str] = (),
    visible: Callable[[Principal | None], bool] | None = None,
    requires: Iterable[str] = (),
) -> Entry:
    """The tool that a contract describes, handled by a function of one value (and what is injected).

    Raises:
        DefinitionError: The function takes another number of values, or the contract's input is no object.
    """
    taken = Taken(_typed(function, contract), kind="tool", name=contract.name, strict=server.strict)
    compiled = taken.compiled
    if len(compiled.keys) != 1:
        raise DefinitionError(
            f"the handler of {contract.name!r} ({compiled.place}) takes {len(compiled.keys)} values; a contract's"
            f" handler takes one, a {contract.input.__name__}"
        )
    key = compiled.keys[0]
    schema = _inner(compiled.input_schema, key, contract)
    scope = Scope({}, local={}, qualname="")
    output = output_of(contract.output, scope, Walk(strict=False), description=None)
    definition = Tool(
        name=contract.name,
        title=contract.title,
        description=contract.description if contract.description is not None else compiled.description,
        input_schema=schema,
        output_schema=output.schema,
        annotations=contract.annotations,
        icons=contract.icons,
        meta=contract.meta,
    )
    attach(function[0] if isinstance(function, tuple) else function, definition)
    handler = taken.handler(server, inline=inline, timeout=timeout)

    finish = functools.partial(output.outcome, file_bytes=server.limits.file_bytes)

    async def answer(call: Call) -> Any:
        try:
            values = _decoded(compiled, key, call.params.arguments)
        except ArgumentsInvalid as error:
            return misfit(call, _rooted(contract.name, key, error))
        return await handler.run(call, values, finish)

    return Entry(
        contract.name,
        definition,
        answer,
        function=function,
        place=compiled.place,
        visible=visible,
        requires=requires,
        header_params=mirror.params_of(schema),
        tags=tags,
    )


def _typed(function: Any, contract: Contract[Any, Any]) -> Any:
    """The handler, taking the contract's input where its own annotation says less.

    Raises:
        DefinitionError: Its own annotation says something else.
    """
    if isinstance(function, (tuple, type)):
        return function
    target = target_of(function, name=contract.name)
    parameters = list(target.signature.parameters.values())
    for at, parameter in enumerate(parameters):
        annotation = parameter.annotation
        while isinstance(annotation, (str, ForwardRef)):
            annotation = target.scope.resolve(annotation)
        if injects(parameter.name, annotation) is not None:
            continue
        if annotation is contract.input:
            return function
        if not _takes(annotation, contract.input):
            raise DefinitionError(
                f"the handler of {contract.name!r} ({target.place}) takes a {annotation.__name__}, and the contract's"
                f" input is {contract.input.__name__}"
            )
        parameters[at] = parameter.replace(annotation=contract.input)
        typed: Any = functools.partial(function)
        typed.__signature__ = target.signature.replace(parameters=parameters)
        return typed
    return function


def _takes(annotation: Any, given: Any) -> bool:
    """Whether a parameter so annotated takes values of a type, as far as one can tell."""
    if not isinstance(annotation, type) or annotation in (Any, inspect.Parameter.empty):
        return True
    try:
        return issubclass(given, annotation)
    except TypeError:
        return True


def _decoded(compiled: Compiled, key: str, arguments: Any) -> Any:
    data = b"{}" if arguments is UNSET else bytes(arguments)
    return compiled.decode(Raw(b'{"%b":%b}' % (key.encode(), data)))


def _inner(schema: Mapping[str, Any], key: str, contract: Contract[Any, Any]) -> dict[str, Any]:
    """The schema of the one argument, as a schema of its own."""
    inner = dict(schema["properties"][key])
    shelf = schema.get("$defs", {})
    reference = inner.pop("$ref", None)
    if reference is not None:
        inner = {**shelf[reference.removeprefix("#/$defs/")], **inner}
    if inner.get("type") != "object":
        raise DefinitionError(
            f"the input of the contract {contract.name!r} is {contract.input!r}, which is no JSON object:"
            " use a dataclass, a Struct, a TypedDict or a model"
        )
    return inner | ({"$defs": shelf} if shelf else {})


def _rooted(name: str, key: str, error: ArgumentsInvalid) -> ArgumentsInvalid:
    """The same errors, seen from inside the one value."""
    prefix = f"/{key}"
    return ArgumentsInvalid(
        name,
        [
            ArgumentError(
                one.path.removeprefix(prefix),
                one.expected,
                one.got,
                one.message.removeprefix(f"{key}.").removeprefix(f"{key}: "),
            )
            for one in error.errors
        ],
    )
