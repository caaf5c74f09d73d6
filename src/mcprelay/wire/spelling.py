"""Which of the known words was probably meant by one that is not known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import StructMeta

from mcprelay.errors import ConfigurationError

LETTERS = 100
"""How much of a word is compared: it may be a peer's, and comparing takes long words' lengths times each other."""
WORDS = 1000
"""With how many known words it is compared."""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like it, or None where none is like it."""
    import difflib  # a mistake pays for it, not everyone

    found = difflib.get_close_matches(word[:LETTERS], list(islice(known, WORDS)), n=1)
    return found[0] if found else None


class Spelled(StructMeta):
    """The metaclass of Structs that people write: one says which of its options was meant by one that it has not.

    Raises:
        ConfigurationError: There is no such option, or more is given by position than is taken.
    """

    if not TYPE_CHECKING:  # who checks types knows the options

        def __call__(cls, *given: Any, **options: Any) -> Any:  # noqa: N805 - its instances are classes
            """Make one."""
            try:
                return super().__call__(*given, **options)
            except TypeError:
                _check(cls, given, options)
                raise


def _check(kind: Any, given: Sequence[Any], options: Iterable[str]) -> None:
    """See that a Struct has such fields, and takes so many by position.

    Raises:
        ConfigurationError: It does not.
    """
    known: tuple[str, ...] = kind.__struct_fields__
    placed: tuple[str, ...] = kind.__match_args__
    for name in options:
        if name not in known:
            close = closest(name, known)
            meant = f"did you mean {close!r}?" if close else f"there are {', '.join(sorted(known))}"
            raise ConfigurationError(f"{kind.__name__} has no option {name!r}; {meant}")
    if len(given) > len(placed):
        alone = f"{', '.join(placed)} alone" if placed else "nothing"
        named = ", ".join(f"{name}=…" for name in known if name not in placed)
        raise ConfigurationError(
            f"{kind.__name__} takes {alone} by position, and {len(given)} were given; the others have names: {named}"
        )
