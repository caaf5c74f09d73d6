import asyncio
import json
import os
import stat
import sys
import types
from pathlib import Path
from typing import ClassVar

import pytest

from mcprelay.auth import FileStore, KeyringStore, MemoryStore
from mcprelay.auth.login import stored
from mcprelay.auth.store import default_path
from mcprelay.errors import ConfigurationError

posix = pytest.mark.skipif(os.name != "posix", reason="modes of files are a thing of POSIX")


@pytest.fixture
def file(tmp_path) -> FileStore:
    return FileStore(tmp_path / "state" / "tokens.json")


@pytest.fixture(params=["memory", "file"])
def store(request, file):
    return MemoryStore() if request.param == "memory" else file


async def test_what_is_kept_is_found_and_what_is_dropped_is_not(store):
    assert await store.load("a") is None
    await store.save("a", "1")
    await store.save("b", "2")
    await store.save("a", "3")
    assert await store.load("a") == "3"
    await store.drop("a")
    await store.drop("a")
    assert await store.load("a") is None
    assert await store.load("b") == "2"


async def test_a_restart_finds_what_was_kept(file):
    await file.save("ключ", "значение")
    assert await FileStore(file.path).load("ключ") == "значение"


async def test_a_store_shows_nothing_of_what_it_keeps(store):
    await store.save("a", "s3cr3t")
    assert "s3cr3t" not in repr(store)


@pytest.mark.clause("auth-security.storage")
@posix
async def test_the_file_and_its_folder_are_its_owners_alone(file):
    old = os.umask(0)
    try:
        await file.save("a", "1")
    finally:
        os.umask(old)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700


@posix
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o604, 0o666])
async def test_a_file_that_others_can_touch_is_refused_and_left_as_it_is(file, mode):
    await file.save("a", "1")
    file.path.chmod(mode)
    for work in (file.load("a"), file.save("a", "2"), file.drop("a")):
        with pytest.raises(ConfigurationError, match=rf"mode is {mode:04o}.*chmod 600"):
            await work
    file.path.chmod(0o600)
    assert await file.load("a") == "1"


@pytest.mark.parametrize("content", [b"nonsense s3cr3t", b'{"a": 1}', b"[]", b"\xff\xfe"])
async def test_a_file_that_is_something_else_is_refused_without_being_quoted_or_touched(file, content):
    file.path.parent.mkdir()
    file.path.write_bytes(content)
    file.path.chmod(0o600)
    for work in (file.load("a"), file.save("a", "2")):
        with pytest.raises(ConfigurationError, match="is not one") as caught:
            await work
        assert "s3cr3t" not in str(caught.value)
        assert caught.value.__cause__ is None
    assert file.path.read_bytes() == content


async def test_a_change_that_fails_halfway_leaves_the_file_whole(file, monkeypatch):
    await file.save("a", "1")

    def broken(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(ConfigurationError, match="cannot be written: No space left"):
        await file.save("a", "2")
    monkeypatch.undo()
    assert await file.load("a") == "1"
    assert sorted(path.name for path in file.path.parent.iterdir()) == ["tokens.json", "tokens.json.lock"]


async def test_changes_at_once_are_all_kept(file):
    stores = [FileStore(file.path) for _ in range(4)]
    await asyncio.gather(*(stores[n % 4].save(f"k{n}", str(n)) for n in range(40)))
    assert {f"k{n}": str(n) for n in range(40)} == json.loads(file.path.read_text())


WRITER = """
import asyncio, sys
from mcprelay.auth import FileStore
async def main(path, name):
    for n in range(20):
        await FileStore(path).save(f"{name}-{n}", "x")
asyncio.run(main(*sys.argv[1:]))
"""


@posix
async def test_changes_of_several_processes_are_all_kept(file):
    source = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    writers = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(file.path), name, env=source)
        for name in ("a", "b")
    ]
    assert [await writer.wait() for writer in writers] == [0, 0]
    assert len(json.loads(file.path.read_text())) == 40


async def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be"):
        await FileStore(tmp_path / "file" / "tokens.json").save("a", "1")


def test_the_default_place_follows_the_environment(monkeypatch):
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
        assert str(default_path()) == "/somewhere/mcprelay/tokens.json"
    assert FileStore().path == default_path()


async def test_who_has_no_home_is_told_when_a_token_is_to_be_kept_and_not_before(monkeypatch):
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(ConfigurationError, match="no home folder to keep tokens in"):
        FileStore()
    with pytest.raises(ConfigurationError, match="not known"):
        FileStore("~nobody-of-this-name/tokens.json")
    assert await stored("https://example.com/mcp")._vault._store.load("a") is None


# ------------------------------------------------------------------------------------------------------------- keyring


class KeyringError(Exception):
    pass


async def test_the_package_keyring_is_spoken_to_as_it_is():
    package = pytest.importorskip("keyring")
    backend = pytest.importorskip("keyring.backend")

    class InMemory(backend.KeyringBackend):
        priority = 1
        kept: ClassVar[dict[tuple[str, str], str]] = {}

        def get_password(self, service, username):
            return self.kept.get((service, username))

        def set_password(self, service, username, password):
            self.kept[service, username] = password

        def delete_password(self, service, username):
            del self.kept[service, username]

    before = package.get_keyring()
    package.set_keyring(InMemory())
    try:
        await _keeps_finds_and_forgets()
    finally:
        package.set_keyring(before)


async def _keeps_finds_and_forgets() -> None:
    store = KeyringStore("test")
    await store.save("a", "1" * 5000)
    assert await KeyringStore("test").load("a") == "1" * 5000
    await store.drop("a")
    await store.drop("a")
    assert await store.load("a") is None


@pytest.fixture
def keyring(monkeypatch):
    """A keyring package that keeps passwords in a dict; `locked` makes it fail."""
    kept: dict[tuple[str, str], str] = {}
    module = types.ModuleType("keyring")
    module.errors = types.SimpleNamespace(KeyringError=KeyringError)
    module.locked = False

    def get(service, key):
        if module.locked:
            raise module.locked("s3cr3t")
        return kept.get((service, key))

    module.get_password = get
    module.set_password = lambda service, key, value: kept.__setitem__((service, key), value)
    module.delete_password = lambda service, key: kept.pop((service, key))
    monkeypatch.setitem(sys.modules, "keyring", module)
    return module


async def test_the_keyring_keeps_finds_and_forgets(keyring):
    store = KeyringStore("test")
    await store.drop("a")
    await store.save("a", "1")
    assert await KeyringStore("test").load("a") == "1"
    assert await KeyringStore("other").load("a") is None
    await store.drop("a")
    assert await store.load("a") is None


@pytest.mark.parametrize("kind", [KeyringError, RuntimeError, OSError])
async def test_a_locked_keyring_is_told_without_its_details(keyring, kind):
    keyring.locked = kind
    with pytest.raises(ConfigurationError, match="could not be used") as caught:
        await KeyringStore().load("a")
    assert "s3cr3t" not in str(caught.value)


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'mcprelay\[keyring\]'"):
        KeyringStore()
