"""What a function of the application makes of a text that a model may read: a filter, a counter of tokens.

Where one fails, nothing of the text is shown, and the log says where it failed without a word of the text.
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Callable
from math import inf
from typing import Any

from mcprelay.relay.errand import WaitCancelled
from mcprelay.relay.trace import traced

log = logging.getLogger("mcprelay.relay")


class Withheld(Exception):
    """Something of this application that has to look at a text failed: `__cause__` says how."""


def filtered(sieve: Callable[..., Any], text: str, origin: Any) -> str:
    """What a filter leaves of a text.

    Raises:
        Withheld: It raised, or gave no text.
    """
    found: str = _look(sieve, text, origin, gives=_is_text, right="a filter gives a text (str)")
    return found


def counted(counter: Callable[..., Any], text: str) -> float:
    """How many tokens a counter counts.

    Raises:
        Withheld: It raised, or gave no number.
    """
    found: float = _look(counter, text, gives=_is_count, right="a counter of tokens gives their number")
    return found


def _is_text(found: Any) -> bool:
    return isinstance(found, str)


def _is_count(found: Any) -> bool:
    return isinstance(found, int | float) and 0 <= found < inf


def _look(look: Callable[..., Any], *seen: Any, gives: Callable[[Any], bool], right: str) -> Any:
    """What a function gives.

    Args:
        gives: Whether what it gave is what such a function gives: a coroutine, for one, has looked at nothing yet.
        right: What that is, in words.
    """
    name = getattr(look, "__qualname__", type(look).__qualname__)
    try:
        found = look(*seen)
    except (Exception, CancelledError) as error:  # noqa: BLE001 - whatever it is, the text stays here
        cause = error if isinstance(error, Exception) else WaitCancelled()  # nobody cancels what does not wait
        said = f"{name} raised {type(error).__name__}"
        withheld = "%s; the text that it was to look at is withheld\n%s"
        log.error(withheld, said, traced(error))  # noqa: TRY400 - the exception's own words could hold the text
    else:
        if gives(found):
            return found
        cause = TypeError(f"{name} gave {type(found).__name__}: {right}, and at once, not as a coroutine")
        log.error("%s; the text that it was to look at is withheld", cause)
    raise Withheld("The answer is withheld, because a check of this application failed.") from cause
