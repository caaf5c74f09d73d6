"""Docstrings: the text for the model, and what is said of each parameter and of the result.

Google, NumPy and reST sections are understood, also mixed. What was understood is taken out of the text, and the rest
stays as it was written. Sections about Python exceptions are dropped: the model never sees those exceptions.

The module knows nothing of signatures; a description of a parameter that does not exist is simply never asked for.
"""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

_PARAMETERS = frozenset({
    "args", "arguments", "params", "parameters", "keyword args", "keyword arguments", "other parameters", "attributes",
})  # fmt: skip
_RESULTS = frozenset({"returns", "return", "yields", "yield"})
_DROPPED = frozenset({"raises", "raise", "exceptions", "except", "warns"})
_SECTIONS = _PARAMETERS | _RESULTS | _DROPPED

_UNDERLINE = re.compile(r"-{3,}\s*\Z")
_FIELD = re.compile(r"[:@](?P<kind>\w+)(?:\s+(?P<argument>[^:\n]+?))?\s*:(?:\s+|\Z)(?P<text>.*)\Z")
_FIELD_PARAMETERS = frozenset(
    {"param", "parameter", "arg", "argument", "key", "keyword", "attr", "ivar", "var", "cvar"}
)
_FIELD_DROPPED = frozenset({"type", "rtype", "raises", "raise", "except", "exception", "vartype", "kwtype"})
_GOOGLE_ITEM = re.compile(r"(?P<name>\*{0,2}[\w.]+)\s*(?:\((?P<type>.*?)\))?\s*:(?:\s+|\Z)(?P<text>.*)\Z")
_NUMPY_ITEM = re.compile(r"(?P<names>\*{0,2}[\w.]+(?:\s*,\s*\*{0,2}[\w.]+)*)\s*(?::.*)?\Z")
_TYPE_PREFIX = re.compile(
    r"(?P<type>[A-Za-z_][\w.]*(?:\[.*?\])?(?:\s*\|\s*[A-Za-z_][\w.]*(?:\[.*?\])?)*)\s*:\s+(?P<text>\S.*)\Z", re.DOTALL
)


class Docstring(NamedTuple):
    """What a docstring says: `text` is what remains when parameters, result and exceptions are taken out."""

    text: str | None
    parameters: dict[str, str]
    returns: str | None


EMPTY = Docstring(None, {}, None)


def parse_docstring(doc: str | None) -> Docstring:
    """Read a docstring. Never raises: what it cannot make out stays in the text."""
    if not doc:
        return EMPTY
    if "\n" not in doc:
        text = doc.strip()
        return Docstring(text or None, {}, None) if not text.startswith((":", "@")) else _scan([text])
    return _scan(inspect.cleandoc(doc).split("\n"))


def _scan(lines: list[str]) -> Docstring:
    parameters: dict[str, str] = {}
    kept: list[str] = []
    results: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        section, start = _section(lines, at)
        if section:
            numpy = start == at + 2
            end = _end_of_section(lines, start, numpy=numpy)
            _read_section(section, lines[start:end], parameters, results, numpy=numpy)
            at = end
        elif (found := _FIELD.match(line)) and _is_field(found):
            end = _end_of_indent(lines, at + 1)
            _read_field(found, lines[at + 1 : end], parameters, results)
            at = end
        else:
            kept.append(line)
            at += 1
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    returns = "\n\n".join(results).strip()
    return Docstring(text or None, parameters, returns or None)


def _section(lines: list[str], at: int) -> tuple[str, int]:
    """The name of the section whose header stands here, and the line where its body begins."""
    line = lines[at]
    if not line or line[0].isspace():
        return "", at
    word = line.rstrip()
    if at + 1 < len(lines) and word.lower() in _SECTIONS and _UNDERLINE.match(lines[at + 1]):
        return word.lower(), at + 2
    if word.endswith(":") and word[:-1].lower() in _SECTIONS and _is_indented(lines, at + 1):
        return word[:-1].lower(), at + 1
    return "", at


def _is_indented(lines: list[str], at: int) -> bool:
    """Whether the next line with text on it is indented."""
    for line in lines[at:]:
        if line.strip():
            return line[0].isspace()
    return False


def _end_of_section(lines: list[str], at: int, *, numpy: bool) -> int:
    if not numpy:
        return _end_of_indent(lines, at)
    while at < len(lines):
        if at + 1 < len(lines) and lines[at].strip() and _UNDERLINE.match(lines[at + 1]):
            return at
        at += 1
    return at


def _end_of_indent(lines: list[str], at: int) -> int:
    """The first line from here that has text at the margin."""
    while at < len(lines) and (not lines[at].strip() or lines[at][0].isspace()):
        at += 1
    return at


def _read_section(
    section: str, body: list[str], parameters: dict[str, str], results: list[str], *, numpy: bool
) -> None:
    if section in _PARAMETERS:
        (_read_numpy_items if numpy else _read_google_items)(_dedent(body), parameters)
    elif section in _RESULTS:
        results.append(_result_text(_dedent(body), numpy=numpy))


def _read_google_items(lines: list[str], parameters: dict[str, str]) -> None:
    name = ""
    texts: dict[str, list[str]] = {}
    for line in lines:
        found = _GOOGLE_ITEM.match(line) if line and not line[0].isspace() else None
        if found:
            name = found["name"].lstrip("*")
            texts[name] = [found["text"]]
        elif name:
            texts[name].append(line)
    parameters.update((name, text) for name, parts in texts.items() if (text := _join(parts)))


def _read_numpy_items(lines: list[str], parameters: dict[str, str]) -> None:
    names: list[str] = []
    texts: dict[str, list[str]] = {}
    for line in lines:
        found = _NUMPY_ITEM.match(line) if line and not line[0].isspace() else None
        if found:
            names = [name.strip().lstrip("*") for name in found["names"].split(",")]
            texts.update((name, []) for name in names)
        else:
            for name in names:
                texts[name].append(line)
    parameters.update((name, text) for name, parts in texts.items() if (text := "\n".join(_dedent(parts)).strip()))


def _result_text(lines: list[str], *, numpy: bool) -> str:
    """The words about the result, without the type that the annotation says better."""
    if numpy and _is_indented(lines, 1):
        return "\n".join(_dedent(lines[1:])).strip()
    text = _join(["", *lines] if numpy else lines)
    found = _TYPE_PREFIX.match(text)
    return found["text"] if found else text


def _is_field(found: re.Match[str]) -> bool:
    kind, argument = found["kind"].lower(), found["argument"]
    return kind in _RESULTS or kind in _FIELD_DROPPED or (kind in _FIELD_PARAMETERS and argument is not None)


def _read_field(found: re.Match[str], more: list[str], parameters: dict[str, str], results: list[str]) -> None:
    kind, text = found["kind"].lower(), _join([found["text"], *more])
    if kind in _RESULTS:
        results.append(text)
    elif kind in _FIELD_PARAMETERS and text:
        parameters[found["argument"].split()[-1].lstrip("*\\")] = text


def _join(parts: list[str]) -> str:
    """A first line and the lines that continue it, as one text."""
    return "\n".join([parts[0], *_dedent(parts[1:])]).strip() if parts else ""


def _dedent(lines: list[str]) -> list[str]:
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[margin:].rstrip() for line in lines]
