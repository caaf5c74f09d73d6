"""Which of the known words was probably meant by one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

LETTERS = 100
"""How much of a word is compared: it may be a peer's, and comparing takes long words' lengths times each other."""
WORDS = 1000
"""With how many known words it is compared."""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like it, or None where none is like it."""
    import difflib  # a mistake pays for it, not everyone

    found = difflib.get_close_matches(word[:LETTERS], list(islice(known, WORDS)), n=1)
    return found[0] if found else None
