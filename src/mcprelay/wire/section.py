"""One section of a template, its path, query or fragment, as a regular expression.

Every step of the expression is decided by what it sees: a variable ends at a character that it cannot hold, or at the
first occurrence of the text that follows it, and is never tried again with another length. So the cost is linear in the
URI, whatever a peer sends. Only one optional expression may be given up again for text behind it that begins like it.
Where nothing tells where one variable ends and the next begins, the section is `Ambiguous`.

Knows parts of a template, and which characters end a variable. What becomes of the captured text is `capture`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import TypeAlias

from msgspec import Struct

from mcprelay.errors import MCPRelayError
from mcprelay.wire import capture
from mcprelay.wire.capture import Judge, Taker
from mcprelay.wire.expression import Expression, Literal, Variable

_tokens = re.compile(r"%[0-9A-Fa-f]{2}|.", re.DOTALL).findall


class Ambiguous(MCPRelayError):
    """No URI can be read back through this template; the text says why."""


class Rules(Struct, frozen=True):
    """What a kind of section lets its variables hold.

    Attributes:
        ends: Characters that no variable holds.
        ends_wide: Characters that not even `{+x}` holds.
        judge: Which values a variable may have.
        judge_wide: Which values `{+x}` may have.
        operators: The operators that the section reads back.
    """

    ends: str
    ends_wide: str
    judge: Judge
    judge_wide: Judge
    operators: str = ""


class Slot(Struct, frozen=True):
    """A variable that is always there, and the characters that end it beside those of its section."""

    variable: Variable
    ends: str = ""

    def __str__(self) -> str:
        return f"{{{self.variable}}}"


_Part: TypeAlias = Literal | Slot | Expression


class Section:
    """The compiled section.

    Attributes:
        regex: The expression.
        takers: What to do with each of its groups.
    """

    def __init__(self, rules: Rules, *, reverse: bool = False) -> None:
        self.takers: list[Taker] = []
        self._rules = rules
        self._reverse = reverse
        self._pieces: list[str] = []
        self._retried: Expression | None = None

    @classmethod
    def of(cls, parts: Iterable[Literal | Expression], rules: Rules) -> Section:
        """Compile the parts of a section.

        Raises:
            Ambiguous: Nothing tells where one of its variables ends.
        """
        section = cls(rules)
        section._compile(list(_flat(parts)))
        return section

    @property
    def regex(self) -> str:
        """The expression of the whole section."""
        return "".join(self._pieces)

    def _compile(self, parts: Sequence[_Part]) -> None:
        wide = [part for part in parts if isinstance(part, Expression) and part.operator.symbol == "+"]
        if not wide:
            self._run(deque(parts), before_wide=False)
            return
        place = parts.index(wide[0])
        before, behind = parts[:place], parts[place + 1 :]
        self._run(deque(before), before_wide=True)
        following = behind[0] if behind else None
        if isinstance(following, Literal) and set(following.text) & set(self._rules.ends_wide):
            soft, hard = _split(following, self._rules.ends_wide, reverse=False)
            self._wide(wide[0], before, [Literal(soft)])
            self._compile([hard or Literal(""), *behind[1:]])
            return
        if len(wide) > 1:
            raise Ambiguous(f"{wide[0]} and {wide[1]} can both hold '/', so nothing tells where the first one ends")
        self._wide(wide[0], before, behind)

    def _run(self, rest: deque[_Part], *, before_wide: bool) -> None:
        while rest:
            part = rest.popleft()
            if isinstance(part, Literal):
                self._pieces.append(literal(part.text, reverse=self._reverse))
            elif isinstance(part, Slot):
                self._slot(part, rest, before_wide=before_wide)
            else:
                self._optional(part, rest, before_wide=before_wide)

    # --- a variable that is always there

    def _slot(self, slot: Slot, rest: deque[_Part], *, before_wide: bool) -> None:
        following = rest[0] if rest else None
        if isinstance(following, Slot) or (following is None and before_wide):
            raise Ambiguous(f"nothing separates {slot} from {following or 'the variable after it'}")
        ends = self._ends(slot.ends, rest)
        self.takers.append(capture.one(slot.variable, self._rules.judge))
        char = none_of(ends)
        if not isinstance(following, Literal):
            self._must_end(slot, rest)
            self._pieces.append(f"({char}++)")
            return
        rest.popleft()
        if ";" in _first_characters(rest):
            ends += ";"
            char = none_of(ends)
        soft, hard = _split(following, ends, reverse=self._reverse)
        if slot.variable.explode and "," in soft:
            raise Ambiguous(f"{slot} is a list, so nothing tells where it ends and {following.text!r} begins")
        text = literal(soft, reverse=self._reverse)
        if hard is not None:
            rest.appendleft(hard)
        if not soft:
            self._pieces.append(f"({char}++)")
        elif hard is not None or self._closes(rest, ends, before_wide=before_wide):
            self._pieces.append(f"(?>({char}+){text}(?!{char}))")
        else:
            self._pieces.append(f"(?>({char}+?){text})")

    def _must_end(self, part: Slot | Expression, rest: deque[_Part]) -> None:
        """Refuse variables that end at an optional one when, in its absence, they could hold the text behind it."""
        behind = _always_there(rest)
        if rest and rest[0] is not behind and isinstance(behind, Literal) and behind.text[0] not in self._rules.ends:
            raise Ambiguous(f"{part} could hold {behind.text!r} where {rest[0]} is missing")

    def _closes(self, rest: deque[_Part], ends: str, *, before_wide: bool) -> bool:
        """Whether whatever comes begins with a character that the variable cannot hold, or nothing comes."""
        behind = _always_there(rest)
        after = not before_wide if behind is None else isinstance(behind, Literal) and behind.text[0] in ends
        return after and set(_first_characters(rest)) <= set(ends)

    # --- variables that may be missing, which begin with their operator's character

    def _optional(self, part: Expression, rest: deque[_Part], *, before_wide: bool) -> None:
        if part.operator.symbol not in self._rules.operators:
            raise Ambiguous(f"{part} is not read back where it stands")
        following = rest[0] if rest else None
        while isinstance(following, Expression) and following.operator is part.operator:
            part = Expression(part.operator, part.variables + following.variables)
            rest.popleft()
            following = rest[0] if rest else None
        if isinstance(following, Slot) or (following is None and before_wide):
            raise Ambiguous(f"nothing separates {part} from {following or 'the variable after it'}")
        exploded = any(variable.explode for variable in part.variables)
        if exploded and len(part.variables) > 1 and part.operator.symbol != ";":
            raise Ambiguous(f"{part} mixes a list with other variables, so nothing tells where the list ends")
        self._must_end(part, rest)
        if isinstance(following, Literal) and following.text[0] not in self._rules.ends:
            self._optional_before_text(part, following, rest, before_wide=before_wide)
        elif part.operator.symbol == ";":
            self._parameters(part, rest)
        elif exploded:
            self._list(part, rest)
        else:
            self._chain(part, rest)

    def _optional_before_text(
        self, part: Expression, following: Literal, rest: deque[_Part], *, before_wide: bool
    ) -> None:
        """One variable that ends where the text begins; or the text alone."""
        variable = part.variables[0]
        if len(part.variables) > 1 or variable.explode or part.operator.symbol == ";":
            raise Ambiguous(f"nothing tells where {part} ends and {following.text!r} begins")
        self._slot(Slot(variable), rest, before_wide=before_wide)
        left = rest[0].text if rest and isinstance(rest[0], Literal) else ""
        alone = literal(following.text.removesuffix(left))
        once = "(?>"
        if following.text[0] == part.operator.first:
            self._retry(part)
            once = "(?:"
        self._pieces.append(f"{once}{re.escape(part.operator.first)}{self._pieces.pop()}|{alone})")

    def _parameters(self, part: Expression, rest: deque[_Part]) -> None:
        if ";" in _first_characters(rest):
            raise Ambiguous(f"{part} could hold the parameters of a later expression where {rest[0]} is missing")
        char = none_of(self._ends(";", rest))
        self._pieces.append(f"((?>(?:;{char}*)*))")
        self.takers.append(capture.pairs(part.variables, ";", self._rules.judge))

    def _list(self, part: Expression, rest: deque[_Part]) -> None:
        first = part.operator.first
        items = f"(?:{re.escape(first)}{none_of(self._ends(first, rest))}++)*"
        if first == "/" and _always_there(rest) is not None:
            if len(rest) > 1:
                raise Ambiguous(f"{part} can take any number of segments, so only text may follow it")
            self._retry(part)
            self._pieces.append(f"({items})")
        else:
            self._pieces.append(f"((?>{items}))")
        self.takers.append(capture.led(capture.several(part.variables, first, self._rules.judge)))

    def _ends(self, own: str, rest: deque[_Part]) -> str:
        """What ends a variable: the section's characters, its operator's, and those of operators that follow."""
        return self._rules.ends + own + _first_characters(rest)

    def _chain(self, part: Expression, rest: deque[_Part]) -> None:
        """Each variable there may be only when those before it are."""
        first = part.operator.first
        ends = self._ends(first if len(part.variables) > 1 else "", rest)
        chain = ""
        for _ in part.variables:
            chain = f"(?:{re.escape(first)}({none_of(ends)}++){chain})?"
        self.takers.extend(capture.one(variable, self._rules.judge) for variable in part.variables)
        if first == "/" and _always_there(rest) is not None:
            self._retry(part)
            self._pieces.append(chain)
        else:
            self._pieces.append(f"(?>{chain})")

    def _retry(self, part: Expression) -> None:
        if self._retried is not None:
            raise Ambiguous(f"{self._retried} and {part} may both be missing before text that begins like them")
        self._retried = part

    # --- the one variable that holds nearly anything

    def _wide(
        self,
        part: Expression,
        before: Sequence[_Part],
        behind: Sequence[_Part],
    ) -> None:
        rules = self._rules
        judge = rules.judge_wide
        last = before[-1] if before else None
        if judge is capture.in_path and isinstance(last, Literal) and last.text.endswith("/"):
            judge = capture.in_path_after_slash
        several = len(part.variables) > 1
        if several and any(variable.explode for variable in part.variables):
            raise Ambiguous(f"{part} mixes a list with other variables, so nothing tells where the list ends")
        char = none_of(rules.ends_wide + ("," if several else ""))
        takers = [capture.one(variable, judge) for variable in part.variables]
        text = "".join(piece.text for piece in behind if isinstance(piece, Literal))
        captured = ",".join(f"({char}+)" for _ in takers)
        if all(isinstance(piece, Literal) for piece in behind):
            self._pieces.append(f"(?>{captured}{literal(text)}(?!{none_of(rules.ends_wide)}))")
            self.takers.extend(takers)
            return
        if several:
            raise Ambiguous(f"nothing tells where {part} ends, because variables follow it")
        pattern, behind_takers = self._behind(part, behind)
        self._pieces.append(f"({char}++)")
        self.takers.append(capture.trailing(pattern, behind_takers, takers[0]))

    def _behind(self, part: Expression, behind: Sequence[_Part]) -> tuple[re.Pattern[str], Sequence[Taker]]:
        """What follows the wide variable, to be found from the end backwards: there it begins at a known place."""
        if self._retried is not None:
            raise Ambiguous(f"{self._retried} may be missing, and then nothing tells where {part} begins")
        only = behind[0]
        if (
            len(behind) == 1
            and isinstance(only, Expression)
            and only.operator.symbol == "."
            and len(only.variables) == 1
        ):
            label = only.variables[0]
            if not label.explode and "." in self._rules.operators:
                taker = capture.one(label, self._rules.judge)
                return re.compile(rf"(?>(?:({none_of(self._rules.ends + '.')}++)\.)?)"), [taker]
        for piece in behind:
            if isinstance(piece, Expression):
                raise Ambiguous(f"nothing tells where {part} ends and {piece} begins")
        section = Section(self._rules, reverse=True)
        section._run(deque(reversed(behind)), before_wide=True)
        return re.compile(section.regex), section.takers


def literal(text: str, *, reverse: bool = False) -> str:
    """The expression for a literal: triplets in either case, and what is not ASCII encoded or not."""
    pieces = [_token(token, reverse=reverse) for token in _tokens(text)]
    return "".join(reversed(pieces) if reverse else pieces)


def none_of(characters: str) -> str:
    """The expression for one character that is none of these, and not NUL."""
    return rf"[^\0{re.escape(characters)}]"


def _token(token: str, *, reverse: bool) -> str:
    if len(token) == 3:
        return _triplet(token, reverse=reverse)
    if token.isascii():
        return re.escape(token)
    encoded = [_triplet(f"%{octet:02X}", reverse=reverse) for octet in token.encode()]
    return f"(?:{token}|{''.join(reversed(encoded) if reverse else encoded)})"


def _triplet(triplet: str, *, reverse: bool) -> str:
    digits = [f"[{digit.lower()}{digit.upper()}]" if digit.isalpha() else digit for digit in triplet[1:]]
    return f"{digits[1]}{digits[0]}%" if reverse else f"%{digits[0]}{digits[1]}"


def _flat(parts: Iterable[Literal | Expression]) -> Iterable[_Part]:
    """Simple expressions as the variables and commas that they are."""
    for part in parts:
        if isinstance(part, Literal) or part.operator.symbol:
            yield part
            continue
        for index, variable in enumerate(part.variables):
            if index:
                yield Literal(",")
            if variable.explode and len(part.variables) > 1:
                raise Ambiguous(f"{part} mixes a list with other variables, so nothing tells where the list ends")
            yield Slot(variable, "," if len(part.variables) > 1 else "")


def _always_there(rest: Iterable[_Part]) -> _Part | None:
    """The next part that is no optional expression."""
    return next((piece for piece in rest if not isinstance(piece, Expression)), None)


def _first_characters(rest: Iterable[_Part]) -> str:
    """With which characters the optional expressions begin that come next, up to the first that is always there."""
    coming = takewhile(lambda piece: isinstance(piece, Expression), rest)
    return "".join(piece.operator.first for piece in coming if isinstance(piece, Expression))


def _split(following: Literal, ends: str, *, reverse: bool) -> tuple[str, Literal | None]:
    """A literal up to the first character that ends the variable before it, and the rest; from its end in reverse."""
    text = following.text
    places = [index for index, character in enumerate(text) if character in ends]
    if not places:
        return text, None
    if reverse:
        return text[places[-1] + 1 :], Literal(text[: places[-1] + 1])
    return text[: places[0]], Literal(text[places[0] :])
