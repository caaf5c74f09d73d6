"""The signature compiler: a callable becomes a schema, a decoder of arguments and a call, once, when it is decorated.

What there is to call is `target`'s business, what types say is `shape`'s, how arguments are read is `binding`'s. What
is injected is the caller's: a predicate tells which parameters never come from the client; those are in no schema.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from mcprelay.errors import DefinitionError
from mcprelay.server.binding import Binder
from mcprelay.server.docstring import Docstring, parse_docstring
from mcprelay.server.output import NO_OUTPUT, Output, output_of
from mcprelay.server.plan import Added, Injects, Plan, Thunk, Values
from mcprelay.server.schema import Schema
from mcprelay.server.shape import JsonSchema
from mcprelay.server.shape.walk import NoJsonForm, Walk
from mcprelay.server.target import Target, target_of
from mcprelay.types import PromptArgument

CallKind: TypeAlias = Literal["tool", "prompt", "resource"]
_NO_NAMES: Mapping[str, Any] = {}


class Compiled:
    """A callable, compiled.

    Attributes:
        name: What it is called.
        description: What its docstring says, without what was said of parameters and result.
        place: `file:line` of it, for messages.
        input_schema: What is published for its arguments.
        output: What becomes of what it returns.
        injections: The parameters that are injected, in the order in which `call` wants their values.
        keys: The names of its arguments in JSON, in order.
        required: Those of them that must come.
        completions: Where suggestions for arguments come from, by argument.
        is_async: Whether it is an `async def`. Something else may still return an awaitable: await what can be awaited.
        is_generator: Whether it is a generator function, plain or asynchronous.
        owner: The class whose instance must be made before it can be called (see `on`), or None.
    """

    def __init__(
        self, target: Target, plan: Plan, *, binder: Binder, schema: JsonSchema, output: Output, text: str | None
    ) -> None:
        self.name = target.name
        self.description = text
        self.place = target.place
        self.input_schema = schema
        self.output = output
        self.injections = tuple(plan.injections)
        self.keys = tuple(field.key for field in plan.record.fields)
        self.required = frozenset(field.key for field in plan.record.fields if field.required)
        self.completions = plan.completions
        self.is_async = target.is_async
        self.is_generator = target.is_generator
        self.owner = target.owner
        self.decode = binder.decode
        self.bind = binder.bind
        self._plan = plan
        if target.call is not None:
            self.call: Thunk = plan.thunk(target.call)

    @property
    def output_schema(self) -> JsonSchema | None:
        """What is published for its result."""
        return self.output.schema

    @property
    def takes_others(self) -> bool:
        """Whether it takes arguments under names that no parameter has."""
        return self._plan.record.extra is not None

    @property
    def prompt_arguments(self) -> tuple[PromptArgument, ...]:
        """Its arguments as a prompt publishes them."""
        said = self.input_schema.get("properties", {})
        return tuple(
            PromptArgument(
                name=key,
                title=said.get(key, {}).get("title"),
                description=said.get(key, {}).get("description"),
                required=key in self.required,
            )
            for key in self.keys
        )

    def on(self, instance: Any, method: str = "__call__") -> Thunk:
        """The call on an instance of `owner`: `on(instance)(values, injected)`."""
        return self._plan.thunk(instance if method == "__call__" else getattr(instance, method))

    def arguments(self, values: Values) -> dict[str, Any]:
        """What `decode` gave, by the names in JSON: for those who want to look at it."""
        return dict(zip(self.keys, values, strict=False))


def compile_call(
    function: Any,
    *,
    kind: CallKind = "tool",
    name: str | None = None,
    strict: bool = False,
    injects: Injects | None = None,
    schema: Schema | None = None,
    output_schema: JsonSchema | UnsetType | None = UNSET,
    owner: type | None = None,
    names: Mapping[str, Any] = _NO_NAMES,
) -> Compiled:
    """Compile a callable. The result does everything that a call needs; nothing is looked at again.

    Args:
        function: Anything that can be called; see `mcprelay.server.target`.
        kind: What it serves: only a tool publishes what it returns.
        name: What to call it, its own name unless given.
        strict: Whether a tool's arguments must have exactly their types. `3.0` is an integer all the same. Of prompts
            and resources every argument is a string on the wire, so that there is always something to read from it.
        injects: Which parameters are injected.
        schema: What the user adds for the arguments as a whole.
        output_schema: An output schema to publish instead of the annotation's; None to publish none.
        owner: The class that `function` was taken from, where it still lacks its instance.
        names: Names that annotations may use beyond those of their module.

    Raises:
        DefinitionError: It cannot be served as it is written. The message says which parameter, where, and what to do.
    """
    target = target_of(function, owner=owner, name=name, names=names)
    docs = parse_docstring(target.doc)
    strict = strict and kind == "tool"
    walk = Walk(strict=strict)
    try:
        plan = Plan(target, docs, walk, injects or _nothing, Added.of(schema))
        published, binder = plan.binder(strict=strict)
        output = _output(target, kind, walk, docs, output_schema)
    except DefinitionError as error:
        where = f" ({target.place})" if target.place else ""
        raise DefinitionError(f"{kind} {target.name}{where}: {error}") from error
    return Compiled(target, plan, binder=binder, schema=published, output=output, text=docs.text)


def arms(annotation: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """The types that an annotation may be, each with its metadata, `None` left out: for predicates of injection.

    `Annotated[Context | None, x]` gives `[(Context, (x,))]`.
    """
    if typing.get_origin(annotation) is typing.Annotated:
        inner, *metadata = typing.get_args(annotation)
        return [(arm, (*own, *metadata)) for arm, own in arms(inner)]
    if isinstance(annotation, type) or not _is_union(annotation):
        return [] if annotation is type(None) else [(annotation, ())]
    return [arm for argument in typing.get_args(annotation) for arm in arms(argument)]


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in {typing.Union, types.UnionType}


def _output(
    target: Target, kind: CallKind, walk: Walk, docs: Docstring, given: JsonSchema | UnsetType | None
) -> Output:
    if kind != "tool" or given is None:
        return NO_OUTPUT
    try:
        if given is UNSET and not target.is_generator:
            return output_of(target.signature.return_annotation, target.scope, walk, description=docs.returns)
        if given is UNSET:
            return NO_OUTPUT
        output = Output(None, given)
        output.compile()
        return output
    except NoJsonForm as error:
        advice = "or, where what it returns is content and no data, say `-> Any`."
        raise DefinitionError(f"its result: {error}; {advice}") from error
    except DefinitionError as error:
        raise DefinitionError(f"its result: {error}") from error


def _nothing(_name: str, _annotation: Any) -> None:
    """Nothing is injected."""
