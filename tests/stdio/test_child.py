"""The client's end, with real processes. `cat` is a server that answers each message with itself."""

import asyncio
import contextlib
import gc
import os
import re
import signal
import time
from pathlib import Path

import pytest

from mcprelay.errors import ConfigurationError, ConnectFailed, Evidence, NotSent
from mcprelay.stdio import process
from mcprelay.stdio.child import ChildChannel
from mcprelay.stdio.line import LineTooLong
from tests.stdio.program import command, descriptors, finish, start

SH = ["sh", "-c"]


@contextlib.asynccontextmanager
async def child(*words: str, **options):
    channel = await ChildChannel.spawn(words, **{"grace": 5.0, **options})
    try:
        yield channel
    finally:
        await channel.aclose()


def alive(pid: int) -> bool:
    """Whether there is such a process. One that ended, and that its parent has not waited for, is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


async def gone(pid: int):
    """Wait until a process that is not our child is gone."""
    async with asyncio.timeout(10):
        while alive(pid):  # noqa: ASYNC110 - nothing tells when somebody else's child ends
            await asyncio.sleep(0.001)


async def everything(channel: ChildChannel) -> list[bytes]:
    lines = []
    while line := await channel.receive():
        lines.append(line)
    return lines


# ------------------------------------------------------------------------------------------------------------ starting


async def test_messages_pass_both_ways():
    async with child("cat") as channel:
        await channel.send(b'{"a":1}')
        await channel.send(b'{"b":2}')
        assert [await channel.receive(), await channel.receive()] == [b'{"a":1}', b'{"b":2}']
        assert channel.exit_code is None
    assert channel.exit_code == 0


async def test_a_child_inherits_no_secret_and_gets_what_it_is_given(monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET_TOKEN", "s")
    async with child("env", env={"GIVEN": "1"}, cwd=tmp_path) as channel:
        variables = dict(line.split(b"=", 1) for line in await everything(channel))
    assert b"SECRET_TOKEN" not in variables
    assert variables[b"GIVEN"] == b"1"
    assert variables[b"PATH"] == os.environ["PATH"].encode()
    async with child("pwd", cwd=tmp_path) as channel:
        assert await channel.receive() == str(tmp_path).encode()


async def test_a_child_inherits_only_its_standard_streams():
    os.set_inheritable(inherited := os.dup(0), True)
    async with child("ls", "/proc/self/fd") as other, child("ls", "/proc/self/fd") as channel:
        for each in (other, channel):
            assert set(await everything(each)) == {b"0", b"1", b"2", b"3"}  # 3 is the folder that ls reads
    os.close(inherited)


async def test_a_child_leads_a_session_of_its_own():
    async with child("cat") as channel:
        assert os.getsid(channel.pid) == os.getpgid(channel.pid) == channel.pid


@pytest.mark.parametrize(
    ("words", "options", "error", "text"),
    [
        (["no-such-program-anywhere"], {}, ConnectFailed, "no such program on PATH. Is it installed?"),
        (["/no/such/program"], {}, ConnectFailed, "there is no such program. Is it installed?"),
        (["cat"], {"cwd": "/no/such/folder"}, ConnectFailed, "working directory '/no/such/folder' does not exist"),
        (["cat -u x"], {}, ConnectFailed, "Give each word by itself, there is no shell: ['cat', '-u', 'x']"),
        (["cat -u", "x", "y"], {}, ConnectFailed, "Give each word by itself, there is no shell: ['cat', '-u', …]"),
        (["no-such-program-anywhere -u"], {}, ConnectFailed, "no such program on PATH. Is it installed?"),
        (["/etc/passwd"], {}, ConnectFailed, "Permission denied"),
        ("cat", {}, ConfigurationError, "must be a list"),
        ([], {}, ConfigurationError, "must be a list"),
        (["cat", "a\0b"], {}, ConfigurationError, "null byte"),
        (["cat", 3], {}, ConfigurationError, "int"),
    ],
)
async def test_what_cannot_be_started_is_told_and_leaves_nothing(words, options, error, text):
    before = descriptors()
    with pytest.raises(error, match=re.escape(text)) as caught:
        await ChildChannel.spawn(words, **options)
    if isinstance(caught.value, ConnectFailed):
        assert caught.value.evidence is Evidence.NOT_SENT
    assert descriptors() == before


async def test_a_start_that_fails_half_way_leaves_nothing(monkeypatch):
    before = descriptors()
    started = []

    def fail(group, *args, **kwargs):
        started.append(group.pid)
        raise RuntimeError("half way")

    monkeypatch.setattr(process.ProcessGroup, "watch", fail)
    with pytest.raises(RuntimeError, match="half way"):
        await ChildChannel.spawn(["cat"])
    gc.collect()
    assert started
    assert not children() & {str(pid) for pid in started}
    assert len(descriptors()) == len(before)


# ------------------------------------------------------------------------------------------------------- what it says


async def test_lines_that_are_not_messages_are_handed_over_like_every_line():
    async with child(*SH, 'echo "Welcome to the server!"; printf "\\377\\n"; exec cat') as channel:
        await channel.send(b"{}")
        assert [await channel.receive() for _ in range(3)] == [b"Welcome to the server!", b"\xff", b"{}"]


async def test_a_message_over_the_limit_is_told_and_the_next_one_received():
    async with child(*SH, "head -c 5000000 /dev/zero; echo; exec cat", message_bytes=100_000) as channel:
        await channel.send(b"{}")
        with pytest.raises(LineTooLong, match="message_bytes"):
            await channel.receive()
        assert await channel.receive() == b"{}"


@pytest.mark.clause("stdio.stderr-no-error")
async def test_standard_error_is_drained_and_its_tail_kept():
    async with child(*SH, "head -c 3000000 /dev/zero >&2; echo last words >&2; exec cat", stderr_bytes=100) as channel:
        await channel.send(b"{}")
        assert await channel.receive() == b"{}"
    assert channel.stderr_tail.endswith("last words\n")
    assert len(channel.stderr_tail) == 100


async def test_each_line_of_standard_error_can_be_seen_as_it_comes():
    lines = []
    async with child(*SH, "echo one >&2; echo two >&2", stderr=lines.append) as channel:
        assert await everything(channel) == []
    assert lines == ["one", "two"]
    assert channel.stderr_tail == "one\ntwo\n"


def test_standard_error_can_be_ours():
    body = """
from mcprelay.stdio import ChildChannel

async def main():
    channel = await ChildChannel.spawn(["sh", "-c", "echo hello >&2"], stderr="inherit")
    await channel.receive()
    await channel.aclose()
    print(repr(channel.stderr_tail))

run(main)
"""
    assert finish(start(body)) == (b"''\n", b"hello\n")


# ------------------------------------------------------------------------------------------------- what is known of it


async def test_when_a_child_ends_its_exit_code_and_last_words_are_known_with_the_end():
    async with child(*SH, "read line; echo dying >&2; exit 3") as channel:
        await channel.send(b"{}")
        since = time.monotonic()
        assert await channel.receive() == b""
        assert (channel.exit_code, channel.stderr_tail) == (3, "dying\n")
        assert time.monotonic() - since < 1


async def test_what_a_child_wrote_before_it_ended_is_received_first():
    async with child(*SH, "for i in 1 2 3; do echo $i; done; exit 1") as channel:
        assert await everything(channel) == [b"1", b"2", b"3"]
        assert channel.exit_code == 1


async def test_a_signal_that_ended_it_is_a_negative_exit_code():
    async with child("cat") as channel:
        os.kill(channel.pid, signal.SIGKILL)
        assert await channel.receive() == b""
        assert channel.exit_code == -signal.SIGKILL


async def test_a_child_that_closes_its_output_and_stays_is_at_its_end_too():
    async with child(*SH, "exec >&-; exec cat >/dev/null") as channel:
        assert await channel.receive() == b""
        assert channel.exit_code is None


async def test_after_its_end_nothing_is_sent():
    async with child(*SH, "exit 7") as channel:
        assert await channel.receive() == b""
        with pytest.raises(NotSent, match="exited with code 7"):
            await channel.send(b"{}")
        assert channel.handed == 0


async def test_of_what_was_sent_before_its_end_it_is_known_what_was_handed_over():
    async with child("sleep", "60") as channel:
        numbers = [channel.send_nowait(b"x" * 50_000) for _ in range(5)]
        await asyncio.sleep(0)
        os.kill(channel.pid, signal.SIGKILL)
        assert await channel.receive() == b""
        assert [number <= channel.handed for number in numbers] == [True, True, False, False, False]


async def test_senders_that_wait_learn_of_its_end():
    async with child("sleep", "60", high_water=1000) as channel:
        channel.send_nowait(b"x" * 500_000)
        sending = [asyncio.ensure_future(channel.send(b"late")) for _ in range(3)]
        await asyncio.sleep(0)
        os.kill(channel.pid, signal.SIGKILL)
        assert [type(error) for error in await asyncio.gather(*sending, return_exceptions=True)] == [NotSent] * 3
        assert channel.handed == 1


async def test_its_last_words_are_complete_although_all_its_ends_are_noticed_at_once():
    for _ in range(20):
        async with child(*SH, "head -c 60000 /dev/zero >&2; echo last words >&2; exit 3") as channel:
            os.waitid(os.P_PID, channel.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - the loop must not run meanwhile
            assert await channel.receive() == b""
            assert channel.exit_code == 3
            assert channel.stderr_tail.endswith("last words\n")


async def test_senders_that_wait_learn_of_its_end_although_others_hold_the_pipes():
    # A shell's job has no input of its own, so it gets the shell's through another number.
    script = "exec 3<&0; (trap '' TERM; sleep 60) <&3 & echo ready; sleep 60"
    async with child(*SH, script, high_water=1000) as channel:
        assert await channel.receive() == b"ready"
        channel.send_nowait(b"x" * 500_000)
        sending = asyncio.ensure_future(channel.send(b"late"))
        await asyncio.sleep(0)
        os.kill(channel.pid, signal.SIGKILL)
        with pytest.raises(NotSent, match="exited with code -9"):
            await sending


async def test_others_that_hold_the_pipes_do_not_hide_its_end():
    async with child(*SH, "trap '' TERM; (sleep 60; :) & echo $!; exit 5") as channel:
        heir = int(await channel.receive())
        since = time.monotonic()
        assert await channel.receive() == b""
        assert channel.exit_code == 5
        assert time.monotonic() - since < 5
    await gone(heir)


# -------------------------------------------------------------------------------------------------------------- ending


@pytest.mark.clause("stdio.shutdown-order", "handshake.lifecycle.stdio-shutdown")
async def test_closing_ends_its_input_and_lets_it_finish():
    async with child(*SH, "trap 'exit 9' TERM; cat >/dev/null; echo bye >&2; exit 4") as channel:
        pass
    assert (channel.exit_code, channel.stderr_tail) == (4, "bye\n")


@pytest.mark.clause("stdio.shutdown-order", "handshake.lifecycle.stdio-shutdown")
async def test_closing_terminates_a_child_that_ignores_the_end_of_its_input():
    async with child(
        *SH, "trap 'echo asked >&2; exit 9' TERM; echo; while :; do sleep 0.01; done", grace=0.2
    ) as channel:
        await channel.send(b"{}")
        await asyncio.sleep(0.05)
    assert channel.exit_code == 9
    assert "asked\n" in channel.stderr_tail


@pytest.mark.clause("stdio.shutdown-order", "handshake.lifecycle.stdio-shutdown")
async def test_closing_kills_a_child_that_ignores_everything_in_bounded_time():
    async with child(*SH, "trap '' TERM; echo ready; while :; do sleep 1; done", grace=0.2) as channel:
        assert await channel.receive() == b"ready"
        since = time.monotonic()
    assert time.monotonic() - since < 3
    assert channel.exit_code == -signal.SIGKILL
    assert str(channel.pid) not in children()


async def test_closing_is_short_by_default_even_then():
    from mcprelay.stdio.child import GRACE, LINGER_SECONDS
    from mcprelay.stdio.process import REAP_SECONDS

    assert 2 * GRACE + LINGER_SECONDS + REAP_SECONDS < 5


async def test_closing_ends_a_child_that_waits_for_us_to_read():
    async with child(*SH, "yes | head -c 5000000; cat >/dev/null; exit 8") as channel:
        await channel.receive()
        await asyncio.sleep(0.05)
    assert channel.exit_code == 8


async def test_a_child_that_wants_to_say_much_before_it_ends_can():
    async with child(*SH, "cat >/dev/null; head -c 3000000 /dev/zero; exit 6") as channel:
        pass
    assert channel.exit_code == 6


async def test_closing_hands_over_what_was_sent(tmp_path):
    out = tmp_path / "out"
    async with child(*SH, f"exec cat >{out}") as channel:
        for _ in range(10):
            channel.send_nowait(b"x" * 99_999)
    assert out.stat().st_size == 1_000_000


async def test_closing_does_not_wait_for_a_child_that_reads_nothing():
    async with child("sleep", "60", grace=0.1) as channel:
        channel.send_nowait(b"x" * 1_000_000)
        since = time.monotonic()
    assert time.monotonic() - since < 3
    assert channel.exit_code == -signal.SIGTERM


async def test_the_whole_group_ends():
    async with child(*SH, "sleep 60 & echo $!; exec cat") as channel:
        helper = int(await channel.receive())
    assert channel.exit_code == 0
    await gone(helper)


async def test_those_that_a_child_leaves_behind_are_asked_before_they_are_killed(tmp_path):
    told = tmp_path / "told"
    helper = f"(trap 'echo told >{told}; exit' TERM; echo $$; while :; do sleep 0.01; done) &"
    async with child(*SH, f"{helper} exec cat") as channel:
        await channel.receive()
    assert told.read_text() == "told\n"


async def test_a_stubborn_helper_is_killed():
    async with child(*SH, "(trap '' TERM; while :; do sleep 1; done) & echo $!; exec cat") as channel:
        helper = int(await channel.receive())
    await gone(helper)


async def test_closing_twice_at_once_and_again_is_closing_once():
    async with child("cat") as channel:
        pending = asyncio.ensure_future(channel.receive())
        await asyncio.sleep(0)
        await asyncio.gather(channel.aclose(), channel.aclose())
        await channel.aclose()
        assert await pending == b""


async def test_a_child_that_crashed_can_be_closed():
    async with child(*SH, "exit 1") as channel:
        await channel.receive()


async def test_cancelling_who_closes_does_not_spare_the_child():
    channel = await ChildChannel.spawn(["sleep", "60"], grace=0.1)
    closing = asyncio.ensure_future(channel.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    await gone(channel.pid)
    await channel.aclose()


# ------------------------------------------------------------------------------------------------- whatever happens


LEFT = """
from mcprelay.stdio import ChildChannel

async def main():
    global channel
    channel = await ChildChannel.spawn(["sh", "-c", "trap '' TERM; sleep 60 & echo $!; wait; sleep 60"], grace=0.1)
    print(channel.pid, int(await channel.receive()), flush=True)
    {then}

{run}
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize(
    ("then", "run"),
    [
        ("pass", "run(main)"),  # the loop is closed, the program ends
        ("del channel", "run(main)\nimport gc; gc.collect(); time.sleep(60)"),  # dropped
        ("raise SystemExit(1)", "run(main)"),
        ("closing = asyncio.ensure_future(channel.aclose()); await asyncio.sleep(0)", "run(main)"),
    ],
)
def test_a_child_that_nobody_closed_is_gone_when_its_loop_or_the_program_ends(loop, then, run):
    program = start(LEFT.format(then=then, run=run), loop=loop)
    pids = [int(pid) for pid in program.stdout.readline().split()]

    async def all_gone():
        await asyncio.gather(*map(gone, pids))

    asyncio.run(all_gone())
    program.kill()
    program.communicate()


def test_a_fork_of_the_program_spares_the_child_when_it_ends():
    then = """
    if (fork := os.fork()) == 0:
        import atexit
        atexit._run_exitfuncs()  # what a fork does that ends by itself
        os._exit(0)
    os.waitpid(fork, 0)
    print(os.waitid(os.P_PID, channel.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), flush=True)
    await channel.aclose()
"""
    program = start(LEFT.format(then=then, run="run(main)"))
    lines = finish(program)[0].splitlines()
    assert lines[-1] == b"None"


@pytest.mark.parametrize("waitid", ["waitid", "no waitid"])
async def test_where_the_kernel_cannot_tell_the_end_of_a_process_a_thread_does(monkeypatch, waitid):
    monkeypatch.delattr(os, "pidfd_open")
    if waitid != "waitid":
        monkeypatch.delattr(os, "waitid")
    async with child(*SH, "read line; exit 3") as channel:
        await channel.send(b"{}")
        assert await channel.receive() == b""
        assert channel.exit_code == 3
    async with child("cat") as channel:
        pass
    assert channel.exit_code == 0
    assert str(channel.pid) not in children()


async def test_500_connections_leave_no_descriptor_process_or_task():
    await cycle()
    before = descriptors(), asyncio.all_tasks(), children()
    for _ in range(500):
        await cycle()
    await asyncio.sleep(0)
    assert (descriptors(), asyncio.all_tasks(), children()) == before


async def cycle():
    async with child("cat") as channel:
        await channel.send(b"{}")
        assert await channel.receive() == b"{}"


def children() -> set[str]:
    """The processes that this one has started and not waited for."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, _, rest = entry.read_text().partition(" (")
            if rest.rpartition(") ")[2].split()[1] == str(os.getpid()):
                found.add(pid)
    return found


async def test_a_child_can_be_used_from_several_tasks_and_closed_by_another():
    channel = await ChildChannel.spawn(["cat"])

    async def send(number):
        await channel.send(b"%d" % number)

    await asyncio.gather(*map(send, range(100)))
    assert sorted([int(await channel.receive()) for _ in range(100)]) == list(range(100))
    await asyncio.create_task(channel.aclose())
    assert channel.exit_code == 0


@pytest.mark.clause("handshake.transports.stdio")
async def test_a_server_of_ours_and_a_client_of_ours_speak_with_each_other():
    body = """
from mcprelay.stdio import open_stdio

async def main():
    channel = await open_stdio()
    print("noise")
    while line := await channel.receive():
        await channel.send(line)
    await channel.aclose()

run(main)
"""
    async with child(*command(body)) as channel:
        message = b'"' + b"x" * 2**24 + b'"'
        await channel.send(message)
        assert await channel.receive() == message
    assert channel.exit_code == 0
    assert channel.stderr_tail == "noise\n"
