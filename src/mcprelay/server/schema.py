"""`Schema`: what a user adds to the JSON Schema that a type gives, for one parameter or for a whole callable.

The module knows the keywords of JSON Schema 2020-12 by their Python names. It does not know Python types; how a keyword
meets a type, and how it is enforced, is `mcprelay.server.shape`'s business.
"""

# JSON values, and what users hand in, are narrowed by looking at them:
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from mcprelay.errors import DefinitionError
from mcprelay.wire.spelling import Spelled

HEADER = "x-mcp-header"
"""The keyword that mirrors an argument into an HTTP header (server/tools, "x-mcp-header")."""


class Format(enum.StrEnum):
    """The formats that JSON Schema 2020-12 defines for strings."""

    DATE = "date"
    DATE_TIME = "date-time"
    DURATION = "duration"
    EMAIL = "email"
    HOSTNAME = "hostname"
    IDN_EMAIL = "idn-email"
    IDN_HOSTNAME = "idn-hostname"
    IPV4 = "ipv4"
    IPV6 = "ipv6"
    IRI = "iri"
    IRI_REFERENCE = "iri-reference"
    JSON_POINTER = "json-pointer"
    REGEX = "regex"
    RELATIVE_JSON_POINTER = "relative-json-pointer"
    TIME = "time"
    URI = "uri"
    URI_REFERENCE = "uri-reference"
    URI_TEMPLATE = "uri-template"
    UUID = "uuid"


class _Described(Struct, metaclass=Spelled, frozen=True, eq=False, omit_defaults=True, rename="camel"):
    """The one thing that may be said by position: `Schema("How many")`."""

    description: str | UnsetType = UNSET


class Schema(_Described, frozen=True, eq=False, omit_defaults=True, rename="camel", kw_only=True):
    """Keywords that are added to, or override, what the type says: `Annotated[int, Schema("How many", minimum=1)]`.

    On a parameter they describe that parameter; on a callable (`@server.tool(schema=Schema(...))`) they describe the
    object of all arguments, and `properties` adds keywords to single parameters. Every constraint stated here is both
    published and enforced. The more specific place wins: a parameter's own `Schema` over the callable's `properties`.

    Attributes:
        description: What it is, for the model.
        definition: A complete JSON Schema that replaces what the type says. Every other keyword here is ignored.
        header: Mirror the argument into the HTTP header `Mcp-Param-<header>`. Strings, integers and booleans only.
        alias: The name that the argument has in JSON, where the Python name will not do.
        extra: Keywords that have no name here, as they are spelled in JSON Schema.
    """

    definition: Mapping[str, Any] | UnsetType = UNSET
    header: str | UnsetType = field(default=UNSET, name=HEADER)
    alias: str | UnsetType = UNSET
    extra: Mapping[str, Any] | UnsetType = UNSET
    title: str | UnsetType = UNSET
    type: str | Sequence[str] | UnsetType = UNSET
    enum: Any = UNSET
    const: Any = UNSET
    default: Any = UNSET
    examples: Any = UNSET
    deprecated: bool | UnsetType = UNSET
    format: str | UnsetType = UNSET
    pattern: str | UnsetType = UNSET
    min_length: int | UnsetType = UNSET
    max_length: int | UnsetType = UNSET
    minimum: float | UnsetType = UNSET
    maximum: float | UnsetType = UNSET
    exclusive_minimum: float | UnsetType = UNSET
    exclusive_maximum: float | UnsetType = UNSET
    multiple_of: float | UnsetType = UNSET
    items: Any = UNSET
    min_items: int | UnsetType = UNSET
    max_items: int | UnsetType = UNSET
    unique_items: bool | UnsetType = UNSET
    properties: Mapping[str, Any] | UnsetType = UNSET
    required: Sequence[str] | UnsetType = UNSET
    additional_properties: Any = UNSET
    min_properties: int | UnsetType = UNSET
    max_properties: int | UnsetType = UNSET

    def keywords(self) -> dict[str, Any]:
        """The JSON Schema keywords, spelled as in JSON Schema; of a `definition`, that definition.

        Raises:
            DefinitionError: A value has no JSON form, or a bound is a truth value.
        """
        if self.definition is not UNSET:
            return dict(_json(self.definition))
        for bound in (self.exclusive_minimum, self.exclusive_maximum):
            if isinstance(bound, bool):
                raise DefinitionError(
                    "Schema(exclusive_minimum=…) and exclusive_maximum take the bound itself, a number."
                )
        found = {keyword: _json(value) for name, keyword in _KEYWORDS if (value := getattr(self, name)) is not UNSET}
        return found if self.extra is UNSET else found | _json(self.extra)


_KEYWORDS = tuple(
    (name, keyword)
    for name, keyword in zip(Schema.__struct_fields__, Schema.__struct_encode_fields__, strict=True)
    if name not in {"definition", "alias", "extra"}
)
"""Python name and JSON Schema name of each keyword that is published."""


def _json(value: Any) -> Any:
    """A keyword's value as JSON: nested `Schema`s, enums and tuples are plain values in the end."""
    if value is None or type(value) in (str, int, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Schema):
        return value.keywords()
    if isinstance(value, enum.Enum):
        return _json(value.value)
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    raise DefinitionError(f"Schema(…) holds {value!r}, which has no JSON form.")
