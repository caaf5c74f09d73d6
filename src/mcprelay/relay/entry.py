"""One table of settings, read key by key: what is wrong is noted with its place, and what nobody asked for is wrong."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from mcprelay.relay.budget import Limits
from mcprelay.relay.errors import SettingWrong
from mcprelay.relay.policy import UNDECLARED, Trust, declared
from mcprelay.relay.settings import Secret
from mcprelay.wire.spelling import closest

_VARIABLE = re.compile(r"\$(\$\{)|\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}|(\$\{)")
_OPTIONAL = frozenset(name for name, value in asdict(Limits()).items() if value is None)


class Problems:
    """The mistakes in one source, told together.

    Attributes:
        source: What it is called.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._found: list[str] = []

    @property
    def number(self) -> int:
        """How many there are so far."""
        return len(self._found)

    def add(self, key: str, problem: str) -> None:
        """Note a mistake."""
        self._found.append(f"{self.source}: {key}: {problem}")

    def settle(self) -> None:
        """Raise what was noted, if anything was.

        Raises:
            SettingWrong: Something was.
        """
        if self._found:
            raise SettingWrong(self._found)


class Entry:
    """A table, read key by key. A getter gives None for a key that is missing or wrong; `done` tells the other keys."""

    def __init__(self, table: Mapping[str, Any], where: str, problems: Problems, *, env: Mapping[str, str]) -> None:
        self._table = table
        self._where = where
        self._problems = problems
        self._env = env
        self._known: list[str] = []

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._table

    def wrong(self, key: str, problem: str) -> None:
        """Note a mistake at a key."""
        self._problems.add(f"{self._where}.{key}" if self._where else key, problem)

    def any(self, key: str) -> Any:
        """What the key says, as it is."""
        self._known.append(key)
        return self._table.get(key)

    def text(self, key: str) -> str | None:
        """A text, with its variables."""
        value = self.any(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self.wrong(key, f"expected a text, not {_kind(value)}")
            return None
        before = self._problems.number
        filled = self.filled(value, key)
        return filled if self._problems.number == before else None

    def path(self, key: str, folder: Path) -> Path | None:
        """A path, relative to a folder. In code it may be a path object."""
        value = self.any(key)
        if isinstance(value, os.PathLike):
            return folder / value
        text = self.text(key)
        if text == "":
            self.wrong(key, "is empty; expected the path of a file")
        return folder / text if text else None

    def choice(self, key: str, options: Iterable[str]) -> str | None:
        """One of several words."""
        value = self.any(key)
        if value is None or value in options:
            return value  # type: ignore[no-any-return]
        self.wrong(key, f"expected {' or '.join(map(repr, options))}, not {value!r}{meant(str(value), options)}")
        return None

    def flag(self, key: str) -> bool:
        """True or false; false where nothing is said."""
        value = self.any(key)
        if not isinstance(value, bool | None):
            self.wrong(key, f"expected true or false, not {_kind(value)}")
        return value is True

    def number(self, key: str, *, least: float) -> float | None:
        """A number, `least` or more."""
        value = self.any(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            self.wrong(key, f"expected a number of at least {least:g}, not {value!r}")
            return None
        return float(value)

    def seconds(self, key: str) -> float | None:
        """A time that something may take: none at all would refuse everything."""
        value = self.any(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            self.wrong(key, f"expected a number of seconds above 0, not {value!r}")
            return None
        return float(value)

    def table(self, key: str) -> dict[str, Any]:
        """A table; an empty one where there is none."""
        value = self.any(key)
        if value is not None and not isinstance(value, Mapping):
            self.wrong(key, f"expected a table, not {_kind(value)}")
        return dict(value) if isinstance(value, Mapping) else {}

    def inner(self, key: str) -> Entry:
        """A table, to be read key by key."""
        return Entry(self.table(key), f"{self._where}.{key}" if self._where else key, self._problems, env=self._env)

    def texts(self, key: str) -> dict[str, Secret]:
        """A table of texts, with their variables. What is no text is written as JSON."""
        found = {}
        for name, value in self.table(key).items():
            if isinstance(value, Secret):
                found[name] = value
            else:
                text = value if isinstance(value, str) else json.dumps(value)
                found[name] = Secret(self.filled(text, f"{key}.{name}"))
        return found

    def names(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self.any(key)
        if value is not None and not (isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)):
            self.wrong(key, f"expected a list of texts, not {_kind(value)}")
            return ()
        return tuple(value or ())

    def trust(self, key: str) -> Trust:
        """A declaration."""
        try:
            return declared(self.any(key))
        except SettingWrong as wrong:
            self.wrong(key, str(wrong))
            return UNDECLARED

    def limits(self, key: str, before: Limits) -> Limits:
        """Bounds, over those that hold already."""
        said = self.any(key)
        if isinstance(said, Limits):  # in code they may be one value
            return said
        if said is not None and not isinstance(said, Mapping):
            kind = _kind(said)
            right = "a table, or mcprelay.relay.Limits(…)" if kind.startswith("mcprelay.") else "a table"
            self.wrong(key, f"expected {right}, not {kind}")
            return before
        inner = self.inner(key)
        found: dict[str, int | None] = {}
        for name in asdict(before):
            if inner.has(name) and inner.any(name) is False and name in _OPTIONAL:
                found[name] = None
            elif inner.has(name):
                value = inner.number(name, least=1)
                if value is not None and not value.is_integer():  # an infinite one is none either
                    inner.wrong(name, f"expected a whole number, not {value!r}")
                    value = None
                found |= {} if value is None else {name: int(value)}
        inner.done(asdict(before))
        return replace(before, **found)

    def filled(self, text: str, key: str) -> str:
        """A text with its variables filled in: `${NAME}`, `${NAME:-default}`; `$${` stands for `${`."""

        def fill(match: re.Match[str]) -> str:
            escaped, name, has_default, default, broken = match.groups()
            if escaped:
                return "${"
            if broken:
                self.wrong(key, "${ without a name and a brace after it; write ${NAME}, or $${ for the characters")
                return ""
            value = self._env.get(name)
            if has_default:
                return value or default
            if value is None:
                self.wrong(
                    key, f"the variable {name} is not set; set it, or write ${{{name}:-}} where it may be missing"
                )
                return ""
            return value

        return _VARIABLE.sub(fill, text)

    def done(self, known: Iterable[str] = (), *, elsewhere: Mapping[str, str] | None = None) -> None:
        """Note every key that nobody asked for.

        Args:
            known: Keys that were asked for in another way.
            elsewhere: Keys that are known from other places, with what is right here.
        """
        options = [*self._known, *known]
        for key in self._table:
            if key not in options:
                right = (elsewhere or {}).get(str(key))
                then = meant(str(key), options) if right is None else f": {right}"
                self.wrong(str(key), f"is not known here{then}")


def _kind(value: Any) -> str:
    kind = type(value)
    if kind.__module__.partition(".")[0] == "mcprelay":  # several of our classes have the same name
        return f"{kind.__module__}.{kind.__qualname__}"
    names = {dict: "a table", list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(kind, kind.__name__)


def meant(word: str, options: Iterable[str]) -> str:
    """What ends a sentence about a word that is not known: which one it may have been."""
    close = closest(word, options)
    return f"; did you mean {close!r}?" if close else ""
