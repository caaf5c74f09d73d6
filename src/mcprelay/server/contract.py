"""A handler for a contract: the one value that the contract names is the whole of the arguments.

The handler is compiled like any other, with one argument; what is published and decoded is that argument's own object.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from mcprelay.errors import DefinitionError
from mcprelay.server.catalog import Entry
from mcprelay.server.element import attach, injects, misfit
from mcprelay.server.handler import Handler
from mcprelay.server.output import output_of
from mcprelay.server.report import ArgumentError, ArgumentsInvalid
from mcprelay.server.shape.scope import scope_of_function
from mcprelay.server.shape.walk import Walk
from mcprelay.server.signature import Compiled, compile_call
from mcprelay.types import Tool
from mcprelay.wire import mirror

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcprelay.contract import Contract
    from mcprelay.server import Server
    from mcprelay.server.call import Call


def contract_entry(server: Server, contract: Contract[Any, Any], function: Any, *, inline: bool = False) -> Entry:
    """The tool that a contract describes, handled by a function of one value (and what is injected).

    Raises:
        DefinitionError: The function takes another number of values, or the contract's input is no object.
    """
    compiled = compile_call(function, kind="tool", name=contract.name, strict=server.strict, injects=injects)
    if len(compiled.keys) != 1:
        raise DefinitionError(
            f"the handler of {contract.name!r} ({compiled.place}) takes {len(compiled.keys)} values; a contract's"
            f" handler takes one, a {contract.input.__name__}"
        )
    key = compiled.keys[0]
    schema = _inner(compiled.input_schema, key, contract)
    output = output_of(contract.output, scope_of_function(inspect.unwrap(function), {}), Walk(strict=False), description=None)
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
    attach(function, definition)
    handler = Handler(server, compiled, inline=inline)

    async def answer(call: Call) -> Any:
        try:
            values = _decoded(compiled, key, call.params.arguments)
        except ArgumentsInvalid as error:
            return misfit(call, _rooted(contract.name, key, error))
        return await handler.run(call, values, output.result)

    return Entry(
        contract.name,
        definition,
        answer,
        function=function,
        place=compiled.place,
        header_params=mirror.params_of(schema),
    )


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
