"""`mcprelay.lock`: the definitions that a person has reviewed, whole, each with its digest.

The file is TOML with one table for each tool, so that it reads well in a diff and two versions of it can be merged by
hand, in any order of the tables. Schemas are JSON inside of it, one member a line. Whatever a server wrote is escaped
where a reader could not see it, so nothing of it escapes from its string.

What a digest says is checked on reading: a definition that was changed by hand is not the one that was reviewed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from mcprelay.relay import given
from mcprelay.relay.errors import DefinitionRefused, LockUnreadable
from mcprelay.relay.pins import Definition, define
from mcprelay.relay.reveal import escaped, hidden, legible

FORMAT = 1
BOM = "\ufeff"
"""What some editors put before a text in UTF-8, and TOML and JSON do not have."""
HEAD = """\
# mcprelay.lock: tool definitions as they were reviewed. Commit it, read its diffs, and do not edit what it records:
# `mcprelay lock` writes it, `mcprelay lock --check` compares it with what the servers offer. Tables may stand in any
# order, so two versions can be merged by keeping the tables of both.
"""


class Section(Struct, frozen=True, kw_only=True):
    """What was reviewed of one server.

    Attributes:
        tools: By the server's own name of each.
        revision: The protocol revision that they were read in. Older ones have no titles, so a difference of revisions
            is told before a difference of definitions.
    """

    tools: dict[str, Definition] = field(default_factory=dict)
    revision: str | None = None


class Lock(Struct, frozen=True, kw_only=True):
    """All that was reviewed. A server without a section was never reviewed; one with an empty section has no tools."""

    sections: dict[str, Section] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, section in given.mapping("Lock: sections", self.sections, of="servers and sections").items():
            given.text("Lock: the name of a server", name)
            given.instance(f"Lock: what is said of {name}", section, Section, like="a section, as reviewed() makes it")

    def section(self, server: str) -> Section | None:
        """What was reviewed of a server, or None."""
        return self.sections.get(server)

    def reviewed(self, server: str, definitions: Iterable[Definition], *, revision: str | None) -> Lock:
        """A lock with this section in place of the server's old one.

        Raises:
            SettingWrong: One of them is no definition.
        """
        found = given.instances("Lock: what was reviewed", definitions, Definition, like="a list of definitions")
        section = Section(tools={one.name: one for one in found}, revision=revision)
        return Lock(sections={**self.sections, server: section})

    def without(self, server: str) -> Lock:
        """A lock without the section of a server."""
        return Lock(sections={name: section for name, section in self.sections.items() if name != server})


def load(path: str | os.PathLike[str]) -> Lock:
    """Read a lock file; one that is not there is empty.

    Raises:
        LockUnreadable: It is no lock file, it has another format, or its definitions are not those of its digests.
    """
    try:
        return read(path)
    except FileNotFoundError:
        return Lock()


def read(path: str | os.PathLike[str]) -> Lock:
    """Read a lock file that is there.

    Raises:
        FileNotFoundError: It is not.
        LockUnreadable: As for `load`.
    """
    try:
        with open(path, encoding="utf-8", opener=_opened) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise LockUnreadable(f"{path}: cannot be read: it is no regular file")
            text = file.read()
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error
    return parse(text, source=str(path))


def unreadable(path: str | os.PathLike[str], error: OSError | UnicodeDecodeError) -> LockUnreadable:
    """A lock file that cannot be read, for a reason that is none of its text."""
    if isinstance(error, UnicodeDecodeError):
        why = f"it is no UTF-8; save it as that, or {_RESTORE}"
    else:
        why = f"{error.strerror or type(error).__name__}; see that the path is right, and that this process may read it"
    return LockUnreadable(f"{path}: cannot be read: {why}")


def _opened(path: str, flags: int) -> int:
    """Open a file without waiting for whoever writes into it, where it is a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def save(path: str | os.PathLike[str], lock: Lock) -> None:
    """Write a lock file so that a reader finds the old one or the new one, whole. Its permissions stay as they are.

    Raises:
        OSError: It could not be written; the old one is untouched.
    """
    target = Path(path).resolve()  # a link stays a link
    beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        with beside.open("xb") as file:
            file.write(render(lock).encode())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            beside.chmod(target.stat().st_mode & 0o7777)
        beside.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the renaming durable, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# --- writing ----------------------------------------------------------------------------------------------------------


def render(lock: Lock) -> str:
    """The lock as the text of its file: the same lock is always the same text."""
    blocks = [f"{HEAD}format = {FORMAT}\n"]
    for server, section in sorted(lock.sections.items()):
        revision = f"revision = {quoted(section.revision)}\n" if section.revision is not None else ""
        blocks.append(f"[servers.{key(server)}]\n{revision}")
        blocks.extend(_table(server, definition) for _, definition in sorted(section.tools.items()))
    return "\n".join(blocks)


def _table(server: str, definition: Definition) -> str:
    title = "" if definition.title is None else f"title = {quoted(definition.title)}\n"
    return (
        f"[servers.{key(server)}.tools.{key(definition.name)}]\n"
        f"digest = {quoted(definition.digest)}\n"
        f"{title}"
        f"description = {quoted(definition.description)}\n"
        f"input_schema = '''\n{_schema(definition)}'''\n"
    )


def _schema(definition: Definition) -> str:
    """The schema as JSON, one member a line. An apostrophe would end the string that it stands in."""
    material = json.loads(definition.canonical)["inputSchema"]
    text = json.dumps(material, indent=2, ensure_ascii=False)
    return escaped(text).replace("'", "\\u0027")


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def key(name: str) -> str:
    """A name as a key of a table."""
    return name if _BARE.fullmatch(name) else f'"{_in_toml(name)}"'


def quoted(text: str) -> str:
    """A text as a TOML string: over several lines where it has some."""
    if "\n" not in text:
        return f'"{_in_toml(text)}"'
    # A space at the end of a line is written out, because editors drop it.
    whole = re.sub(r" (?=\n)", r"\\u0020", "\n".join(_in_toml(line) for line in text.split("\n")))
    return f'"""\n{whole}"""'


def _in_toml(text: str) -> str:
    return re.sub(r'[^ -~]|["\\]', lambda match: _toml_char(match[0]), text)


def _toml_char(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if not hidden(char) and char not in "\t\n":
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"


# --- reading ----------------------------------------------------------------------------------------------------------

_AT_LINE = re.compile(r"\(at line (\d+)")
_RESTORE = (
    "restore it from version control, or delete the file and review every server in it again with `mcprelay lock`"
)
"""What to do about a file that is no lock: the command does not write over what it cannot read."""


def parse(text: str, *, source: str = "mcprelay.lock") -> Lock:
    """The lock that the text of a file says.

    Raises:
        LockUnreadable: See `load`. The sentence names the line where it can.
    """
    import tomllib

    text = text.removeprefix(BOM)
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number that has too many digits
        raise _unparsed(text, source, error) from None
    found = tree.pop("format", None)
    if type(found) is not int or found != FORMAT:
        says = "says no format" if found is None else f"has format {legible(repr(found))}"
        reads = f"this version of mcprelay reads format {FORMAT}; use the one that wrote it, or {_RESTORE}"
        raise LockUnreadable(f"{source}: {says}; {reads}", line=1)
    servers = tree.pop("servers", {})
    if tree or not isinstance(servers, dict):
        wrong = "only `format` and tables of `servers` stand at the top"
        raise LockUnreadable(f"{source}: {wrong}; {_RESTORE}", line=1)
    reading = _Reading(text, source)
    return Lock(sections={server: reading.section(server, table) for server, table in servers.items()})


def _unparsed(text: str, source: str, error: Exception) -> LockUnreadable:
    conflict = re.search(r"^<{7}( |$)", text, re.MULTILINE)
    if conflict:
        line = text.count("\n", 0, conflict.start()) + 1
        hint = "a merge was not finished here: keep the tables of both sides and remove the marks"
        return LockUnreadable(f"{source}:{line}: {hint}", line=line)
    place = _AT_LINE.search(str(error))
    line = int(place[1]) if place else text.count("\n") + 1
    return LockUnreadable(f"{source}:{line}: this is no TOML; {_RESTORE}", line=line)


class _Reading:
    """The tables of one file."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source

    def section(self, server: str, table: Any) -> Section:
        where = f"servers.{key(server)}"
        self._members(table, where, required={}, optional={"revision": str, "tools": dict})
        tools = {
            name: self._tool(name, one, f"{where}.tools.{key(name)}") for name, one in table.get("tools", {}).items()
        }
        return Section(tools=tools, revision=table.get("revision"))

    def _tool(self, name: str, table: Any, where: str) -> Definition:
        required = {"digest": str, "description": str, "input_schema": str}
        self._members(table, where, required=required, optional={"title": str})
        try:
            definition = _defined(name, table)
        except (DefinitionRefused, ValueError, RecursionError):
            raise self._wrong(where, "what is recorded is no definition") from None
        if definition.digest != table["digest"]:
            raise self._wrong(where, "what is recorded is not what its digest says: it was changed by hand")
        return definition

    def _members(self, table: Any, where: str, *, required: Mapping[str, type], optional: Mapping[str, type]) -> None:
        """See that a table has the members that it must have, and no others."""
        if not isinstance(table, dict):
            raise self._wrong(where, "a table should stand here")
        for name, kind in {**required, **optional}.items():
            if name not in table and name in required:
                raise self._wrong(where, f"{name} is missing")
            if name in table and not isinstance(table[name], kind):
                raise self._wrong(where, f"{name} is a {type(table[name]).__name__}")
        for name in table:
            if name not in required and name not in optional:
                raise self._wrong(where, f"{key(name)} is not known")

    def _wrong(self, where: str, what: str) -> LockUnreadable:
        at = self._text.find(f"[{where}]")
        line = self._text.count("\n", 0, at) + 1 if at >= 0 else None
        place = self._source if line is None else f"{self._source}:{line}"
        then = "restore the file from version control, or delete this table and review it again with `mcprelay lock`"
        return LockUnreadable(f"{place}: [{where}]: {what}; {then}", line=line)


def _defined(name: str, table: dict[str, Any]) -> Definition:
    """The definition that a table records, read as strictly as one that a server sends."""
    schema = table["input_schema"].encode()
    msgspec.json.decode(schema)  # one JSON value, so that nothing of it becomes a member of the definition
    rest = msgspec.json.encode({"name": name, "title": table.get("title"), "description": table["description"]})
    return define(rest[:-1] + b',"inputSchema":' + schema + b"}")
