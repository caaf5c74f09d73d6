"""A lock file that changed is noticed at the very next look, whatever of it changed."""

import os

import pytest

from mcprelay.relay import Lock, LockUnreadable, lockfile
from mcprelay.relay.lock import save
from mcprelay.relay.lockfile import LockFile, Usual
from mcprelay.testing import FakeClock

NAMES = ("a", "b")  # of one length, so that files of either have one size


def written(path, name):
    save(path, Lock().reviewed(name, [], revision=None))
    return path


def test_a_file_of_the_same_size_and_time_is_another_where_it_was_replaced(tmp_path):
    path, beside = written(tmp_path / "lock", "a"), written(tmp_path / "beside", "b")
    seen = LockFile(path)
    assert set(seen.now().sections) == {"a"}
    before = path.stat()
    os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (beside.stat().st_size, beside.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    beside.replace(path)
    assert set(seen.now().sections) == {"b"}


def test_a_file_that_was_written_in_place_is_another(tmp_path):
    path, other = written(tmp_path / "lock", "a"), written(tmp_path / "other", "b")
    seen = LockFile(path)
    seen.now()
    before = path.stat()
    path.write_bytes(other.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert path.stat().st_ino == before.st_ino
    assert set(seen.now().sections) == {"b"}
    path.write_bytes(other.read_bytes()[:-1] + b"# broken [\n[")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(LockUnreadable):
        seen.now()


def test_a_file_that_was_written_in_place_and_given_its_old_time_is_another(tmp_path):
    path, other = written(tmp_path / "lock", "a"), written(tmp_path / "other", "b")
    seen = LockFile(path)
    seen.now()
    before = path.stat()
    path.write_bytes(other.read_bytes())
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # which no program sets, and the system in steps
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert set(seen.now().sections) == {"b"}


def test_a_link_that_leads_elsewhere_is_another_file(tmp_path):
    places = {name: written(tmp_path / name, name) for name in NAMES}
    link = tmp_path / "lock"
    link.symlink_to(places["a"])
    seen = LockFile(os.fspath(link))
    assert set(seen.now().sections) == {"a"}
    link.unlink()
    link.symlink_to(places["b"])
    assert set(seen.now().sections) == {"b"}


def test_what_did_not_change_is_not_read_again_and_is_the_same_lock(tmp_path):
    path = written(tmp_path / "lock", "a")
    seen = LockFile(path)
    assert seen.now() is seen.now()


def test_a_file_that_was_never_there_is_empty_and_one_that_is_gone_is_not(tmp_path):
    path = tmp_path / "lock"
    seen = LockFile(path)
    assert not seen.now().sections
    written(path, "a")
    assert set(seen.now().sections) == {"a"}
    path.unlink()
    with pytest.raises(LockUnreadable, match="it was here and is gone"):
        seen.now()


def test_a_file_that_was_never_there_is_looked_for_once_a_second_by_calls(tmp_path, monkeypatch):
    clock = FakeClock()
    monkeypatch.setattr(lockfile, "monotonic", clock.time)
    path = tmp_path / "lock"
    seen = LockFile(path)
    assert seen.now() is seen.lately()
    written(path, "a")
    assert not seen.lately().sections
    clock.advance(1.0)
    assert set(seen.lately().sections) == {"a"}
    path.unlink()
    with pytest.raises(LockUnreadable):
        seen.lately()
    other = LockFile(tmp_path / "other")
    assert not other.now().sections
    written(tmp_path / "other", "b")
    assert set(other.now().sections) == {"b"}  # whoever offers tools looks at once


def test_why_no_lock_was_read_is_known(tmp_path):
    seen = LockFile(Usual(tmp_path / "lock"))
    assert not seen.now().sections
    assert seen.absence == f"there is no {tmp_path / 'lock'}; `mcprelay lock` writes it"
    written(tmp_path / "lock", "a")
    assert seen.now().sections
    assert seen.absence == ""
    assert LockFile(None).absence == "lock=None"
    assert LockFile(Lock()).absence == ""


def test_a_file_is_the_same_wherever_the_process_goes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "lock", "a")
    seen = LockFile("lock")
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    assert set(seen.now().sections) == {"a"}


def test_a_process_whose_folder_is_gone_has_no_lock_file(tmp_path, monkeypatch):
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    (tmp_path / "inside").rmdir()
    assert not LockFile("lock").now().sections


def test_a_pipe_in_the_place_of_the_file_is_told_at_once_and_nothing_waits_for_it(tmp_path):
    path = tmp_path / "lock"
    os.mkfifo(path)
    with pytest.raises(LockUnreadable, match="it is no regular file"):
        LockFile(path).now()
    with pytest.raises(LockUnreadable, match="it is no regular file"):
        LockFile(os.devnull).now()
