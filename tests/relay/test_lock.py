"""The lock file: whole definitions, written safely, read strictly, merged by hand."""

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcprelay.relay import lock as lock_module
from mcprelay.relay.errors import LockUnreadable
from mcprelay.relay.lock import Lock, Section, key, load, parse, quoted, read, render, save
from mcprelay.relay.pins import define

SEARCH = define(
    {
        "name": "search",
        "title": "Search",
        "description": "Search issues.\nSays \"hello\" and '''hi''' \\ there.  \nEnd",
        "inputSchema": {"type": "object", "properties": {"q'": {"type": "string", "default": 1e-7, "const": None}}},
    }
)
PLAIN = define({"name": "get"})
EVIL = define(
    {
        "name": 'x"]\nformat = 2\n[servers.evil',
        "description": "a\u200b\u202e\x1b[31m\r\n⟨ \U000e0041 👩‍💻 数据 \x7f\x85",
        "inputSchema": {"d": "it'''s\n\u200b\U000e0041 \x1b"},
    }
)


def locked(*definitions, server="github", revision="r1"):
    return Lock().reviewed(server, definitions, revision=revision)


def table_of(definition):
    text = render(locked(definition))
    return text[text.index("[servers.github.tools") :]


# --- writing and reading ----------------------------------------------------------------------------------------------


def test_what_is_written_is_read_again():
    lock = locked(SEARCH, PLAIN, EVIL).reviewed("数 据", [], revision=None)
    assert parse(render(lock)) == lock
    assert lock.section("数 据") == Section()
    assert lock.section("other") is None
    assert lock.without("github").section("github") is None


def test_the_file_reads_well():
    assert table_of(SEARCH) == (
        "[servers.github.tools.search]\n"
        f'digest = "{SEARCH.digest}"\n'
        'title = "Search"\n'
        'description = """\n'
        "Search issues.\n"
        "Says \\\"hello\\\" and '''hi''' \\\\ there. \\u0020\n"
        'End"""\n'
        "input_schema = '''\n"
        "{\n"
        '  "properties": {\n'
        '    "q\\u0027": {\n'
        '      "const": null,\n'
        '      "default": 1e-07,\n'
        '      "type": "string"\n'
        "    }\n"
        "  },\n"
        '  "type": "object"\n'
        "}'''\n"
    )


def test_the_same_lock_is_the_same_text_in_any_order():
    assert render(locked(SEARCH, PLAIN)) == render(locked(PLAIN, SEARCH))


def test_two_changes_are_two_tables_that_can_stand_in_any_order():
    text = render(locked(SEARCH, PLAIN))
    head, get, search = text.split("\n[servers.github.tools.")
    mark = "\n[servers.github.tools."
    assert parse(f"{head}{mark}{search}{mark}{get}") == parse(text)


def test_nothing_that_a_server_wrote_escapes_from_its_string():
    text = render(locked(EVIL))
    assert list(tomllib.loads(text)) == ["format", "servers"]
    assert list(tomllib.loads(text)["servers"]) == ["github"]
    assert not [char for char in text if not char.isprintable() and char != "\n"]
    assert "\u200b" not in text
    assert "数据" in text


numbers = st.floats(allow_nan=False, allow_infinity=False)
names = st.text(min_size=1).filter(lambda name: name.strip())
texts = st.text() | st.text(st.sampled_from("\"'\\\n\r\t #[]=\u200b\x00a"), max_size=20)


@settings(deadline=None)
@given(
    st.dictionaries(
        names,
        st.tuples(st.none() | texts, texts, st.dictionaries(texts, texts | st.integers() | numbers, max_size=3)),
        max_size=3,
    ),
    names,
)
def test_any_definition_comes_back_as_it_was(tools, server):
    definitions = [
        define({"name": name, "title": title, "description": description, "inputSchema": schema})
        for name, (title, description, schema) in tools.items()
    ]
    lock = locked(*definitions, server=server, revision=None)
    assert parse(render(lock)) == lock


@settings(deadline=None)
@given(texts)
def test_any_text_is_quoted_as_toml(text):
    assert tomllib.loads(f"a = {quoted(text)}") == {"a": text}
    assert tomllib.loads(f"{key(text)} = 1") == {text: 1}


def test_line_endings_of_another_system_change_nothing():
    lock = locked(SEARCH, EVIL)
    assert parse(render(lock).replace("\n", "\r\n")) == lock


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_lock_that_is_not_there_is_empty(tmp_path):
    assert load(tmp_path / "mcprelay.lock") == Lock()


def test_saving_replaces_the_file_whole_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "mcprelay.lock"
    save(path, locked(PLAIN))
    assert load(path) == locked(PLAIN)
    path.chmod(0o640)
    save(path, locked(SEARCH))
    assert load(path) == locked(SEARCH)
    assert path.stat().st_mode & 0o7777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["mcprelay.lock"]


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    save(tmp_path / "mcprelay.lock", Lock())
    (tmp_path / "other").write_text("")
    assert (tmp_path / "mcprelay.lock").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    save(tmp_path / "real" / "lock", locked(PLAIN))
    (tmp_path / "link").symlink_to(tmp_path / "real" / "lock")
    save(tmp_path / "link", locked(SEARCH))
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "real" / "lock") == locked(SEARCH)


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "mcprelay.lock"
    save(path, locked(PLAIN))

    def full(handle):
        raise OSError(28, "no space")

    monkeypatch.setattr(lock_module.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        save(path, locked(SEARCH))
    monkeypatch.undo()
    assert load(path) == locked(PLAIN)
    assert [path.name for path in tmp_path.iterdir()] == ["mcprelay.lock"]


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "mcprelay.lock"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(LockUnreadable, match=r"mcprelay\.lock: cannot be read: it is no UTF-8; save it as that"):
        load(path)
    with pytest.raises(LockUnreadable, match="cannot be read: Is a directory; see that"):
        load(tmp_path)


# --- what is no lock --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("format = 2", "has format 2; this version of mcprelay reads format 1"),
        ("format = true", "has format True"),
        ("format = 1.0", "has format 1.0"),
        ("", "says no format"),
        ("format = 1\nother = 1", "stand at the top"),
        ("format = 1\nservers = 5", "stand at the top"),
    ],
)
def test_another_format_says_so_instead_of_calling_every_tool_changed(text, says):
    with pytest.raises(LockUnreadable, match=says) as caught:
        parse(text)
    assert caught.value.line == 1


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("format = 1\n\n[servers", 3, "this is no TOML"),
        ("format = 1\na = '", 2, "this is no TOML"),
        ("format = 1\n[servers.a]\n[servers.a]\n", 3, "this is no TOML"),
        ("format = 1\n<<<<<<< ours\n[servers.a]\n=======\n", 2, "a merge was not finished here"),
        ("a = " + "[" * 100_000, 1, "this is no TOML"),
    ],
)
def test_a_broken_file_is_told_with_its_line(text, line, says):
    with pytest.raises(LockUnreadable, match=f"mcprelay.lock:{line}: {says}") as caught:
        parse(text)
    assert caught.value.line == line


HEAD = "format = 1\n[servers.github]\n"
TABLE = table_of(PLAIN)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD + TABLE.replace("digest =", "digset ="), "digest is missing"),
        (HEAD + TABLE + "extra = 1\n", "extra is not known"),
        (HEAD + TABLE.replace('description = ""', "description = 5"), "description is a int"),
        (HEAD + TABLE.replace('description = ""', 'description = "x"'), "is not what its digest says"),
        (HEAD + TABLE.replace("tools.get", "tools.got"), "is not what its digest says"),
        (HEAD + TABLE.replace("{}'''", "{'''"), "is no definition"),
        (HEAD + TABLE.replace("{}'''", '{},"name":"y"\'\'\''), "is no definition"),
        (HEAD + TABLE.replace("{}'''", '{"a":1,"a":2}' + "'''"), "is no definition"),
        (HEAD + TABLE.replace("{}'''", "[" * 100_000 + "'''"), "is no definition"),
        ("format = 1\n\n[servers.github.tools]\nget = 5\n", "a table should stand here"),
        ("format = 1\n[servers]\ngithub = 5\n", "a table should stand here"),
        ("format = 1\n[servers.github]\nrevision = 5\n", "revision is a int"),
        ("format = 1\n[servers.github]\ntools = 5\n", "tools is a int"),
        ('format = 1\n[servers.github]\n"odd key" = 5\n', '"odd key" is not known'),
    ],
)
def test_a_table_that_is_wrong_is_told_with_its_place(text, says):
    with pytest.raises(LockUnreadable, match=says) as caught:
        parse(text)
    assert "[servers.github" in str(caught.value)
    assert caught.value.line in {None, 2, 3}


@pytest.mark.parametrize("found", ["9" * 5000, '"\\u001b[31m\\nmcprelay.lock: fine"'])
def test_a_format_that_nobody_wrote_is_told_on_one_line_that_commands_nothing(found):
    with pytest.raises(LockUnreadable) as caught:
        parse(f"format = {found}\n")
    assert str(caught.value).isprintable()


def test_a_byte_order_mark_before_the_text_is_no_part_of_it(tmp_path):
    one = Lock().reviewed("far", [define({"name": "t"})], revision=None)
    path = tmp_path / "mcprelay.lock"
    path.write_text(render(one), encoding="utf-8-sig")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert read(path) == one == load(path)
    save(path, load(path))
    assert not path.read_bytes().startswith(b"\xef\xbb\xbf")
    path.write_text("\ufeff<<<<<<< ours\n", encoding="utf-8")
    with pytest.raises(LockUnreadable, match=r"mcprelay\.lock:1: a merge was not finished here"):
        read(path)
    path.write_text(render(one), encoding="utf-16")
    with pytest.raises(LockUnreadable, match="it is no UTF-8; save it as that, or restore it from version"):
        read(path)


def test_a_file_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "mcprelay.lock"
    path.write_text(render(Lock()))
    monkeypatch.setattr(lock_module, "_opened", refused)
    with pytest.raises(
        LockUnreadable,
        match="cannot be read: Permission denied; see that the path is right, and that this process may read it",
    ):
        read(path)
