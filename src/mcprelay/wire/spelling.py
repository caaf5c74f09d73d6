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

        def __call__(cls, *given: Any, **options: Any) -> Any:
            """Make one."""
            try:
                return super().__call__(*given, **options)
            except TypeError:
                cls._check(given, options)
                raise

    def _check(cls, given: Sequence[Any], options: Iterable[str]) -> None:
        known: tuple[str, ...] = cls.__struct_fields__
        placed: tuple[str, ...] = cls.__match_args__
        for name in options:
            if name not in known:
                close = closest(name, known)
                meant = f"did you mean {close!r}?" if close else f"there are {', '.join(sorted(known))}"
                raise ConfigurationError(f"{cls.__name__} has no option {name!r}; {meant}")
        if len(given) > len(placed):
            alone = f"{', '.join(placed)} alone" if placed else "nothing"
            by_name = next(name for name in known if name not in placed)
            raise ConfigurationError(
                f"{cls.__name__} takes {alone} by position, and {len(given)} were given: its options have names, as in "
                f"{cls.__name__}({by_name}=…)"
            )
