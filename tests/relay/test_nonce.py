"""Words that nobody can guess are given once: to one frame, in one thread, in one process."""

import os
import string
import sys
import threading

import pytest

from mcprelay.relay.nonce import SIZE, _waiting, nonce


def test_each_is_given_once_in_whatever_thread():
    given = []

    def take():
        given.extend(nonce() for _ in range(1_000))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(given)) == 4_000
    assert all(len(one) == 2 * SIZE and set(one) <= set(string.hexdigits.lower()) for one in given)


def test_a_copy_of_the_process_under_another_number_gives_none_that_wait_in_it(monkeypatch):
    nonce()
    waiting = {word for words in _waiting.values() for word in words}
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as after a fork that Python does not hear of
    assert waiting.isdisjoint([nonce() for _ in range(200)])


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not forked there")
def test_a_child_that_is_forked_gives_none_that_its_parent_gives():
    nonce()  # now some are waiting
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:  # pragma: no cover - the child is not measured
        os.write(theirs, "".join(nonce() for _ in range(200)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    digits = os.read(ours, 200 * 2 * SIZE).decode()
    os.close(ours)
    os.close(theirs)
    of_child = {digits[at : at + 2 * SIZE] for at in range(0, len(digits), 2 * SIZE)}
    assert len(of_child) == 200
    assert of_child.isdisjoint(nonce() for _ in range(200))
