"""The server's end as a client sees it: a process with pipes, files or a terminal."""

import os
import pty
import select
import subprocess
import sys
import time

import pytest

from tests.stdio.program import ENVIRONMENT, command, finish, start

ECHO = """
from mcprelay.stdio import LineTooLong, open_stdio

async def main():
    channel = await open_stdio(message_bytes={limit})
    while True:
        try:
            line = await channel.receive()
        except LineTooLong as error:
            await channel.send(str(error.limit).encode())
            continue
        if not line:
            break
        await handle(channel, line)
    await channel.aclose()

async def handle(channel, line):
    {handle}

run(main)
{after}
"""


def echo(*, limit: int = 64 * 2**20, handle: str = "await channel.send(line)", after: str = "") -> str:
    return ECHO.format(limit=limit, handle=handle, after=after)


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request):
    return request.param


def test_messages_are_answered_in_order_until_the_input_ends(loop):
    program = start(echo(), loop=loop)
    out, err = finish(program, b'{"a":1}\r\n\n{"b":2}\n{"c":3}')
    assert (out, err, program.returncode) == (b'{"a":1}\n{"b":2}\n{"c":3}\n', b"", 0)


@pytest.mark.clause("stdio.exit-on-eof")
def test_an_idle_server_exits_when_its_input_ends(loop):
    program = start(echo(), loop=loop)
    program.stdin.write(b"1\n")
    program.stdin.flush()
    assert program.stdout.readline() == b"1\n"
    since = time.monotonic()
    program.stdin.close()
    assert program.wait(timeout=20) == 0
    assert time.monotonic() - since < 1
    assert program.stdout.read() == b""
    program.stdout.close()
    program.stderr.close()


NOISE = (
    'print("x"); sys.stdout.write("x"); os.write(1, b"x"); '
    "log = logging.Logger('l'); log.addHandler(logging.StreamHandler(sys.stdout)); log.warning('x'); "
    "subprocess.run([sys.executable, '-c', \"print('x')\"]); await channel.send(line)"
)


@pytest.mark.clause("stdio.stdout-pure")
@pytest.mark.clause("stdio.stdout-pure")
def test_nothing_that_a_handler_prints_reaches_the_client(loop):
    out, err = finish(start(echo(handle=NOISE), loop=loop), b"1\n2\n")
    assert out == b"1\n2\n"
    assert err.count(b"x") == 10


@pytest.mark.parametrize("chunk", [4096, 2**16, 2**22])
def test_messages_of_16_mib_and_more_pass(loop, chunk):
    program = start(echo(), loop=loop)
    message = b'"' + b"x" * (17 * 2**20) + b'"\n'
    wire = subprocess.Popen(
        [sys.executable, "-c", f"import sys, os\nwhile d := os.read(0, {chunk}): os.write(1, d)"],
        stdin=subprocess.PIPE, stdout=program.stdin,
    )  # fmt: skip
    program.stdin.close()
    os.set_blocking(program.stdout.fileno(), False)
    got = exchange(wire.stdin, program.stdout, message)
    wire.wait(timeout=20)
    assert got == message
    assert program.wait(timeout=20) == 0
    program.stdout.close()
    program.stderr.close()


def exchange(writes, reads, data: bytes) -> bytes:
    """Write `data` and read until the other side ends, at the same time."""
    os.set_blocking(writes.fileno(), False)
    view, got = memoryview(data), bytearray()
    while True:
        readable, writable, _ = select.select([reads], [writes] if view else [], [], 20)
        assert readable or writable, "nothing happened for 20 s"
        if writable:
            view = view[os.write(writes.fileno(), view) :]
            if not view:
                writes.close()
        if readable:
            if not (chunk := os.read(reads.fileno(), 2**20)):
                return bytes(got)
            got += chunk


def test_a_message_over_the_limit_is_told_and_the_next_one_is_served(loop):
    out, _ = finish(start(echo(limit=100_000), loop=loop), b"1\n" + b"x" * 5_000_000 + b"\n2\n")
    assert out == b"1\nmessage_bytes\n2\n"


def test_a_file_can_be_served(loop, tmp_path):
    path = tmp_path / "in"
    path.write_bytes(b"".join(b"%d\n" % number for number in range(50_000)))
    out = tmp_path / "out"
    with path.open("rb") as reads, out.open("wb") as writes:
        done = subprocess.run(command(echo(), loop=loop), stdin=reads, stdout=writes, timeout=30, check=True)
    assert done.returncode == 0
    assert out.read_bytes() == path.read_bytes()


def test_the_null_device_is_the_end(loop):
    out, err = finish(start(echo(), loop=loop, stdin=subprocess.DEVNULL))
    assert (out, err) == (b"", b"")


def test_a_terminal_can_be_served(loop):
    controller, terminal = pty.openpty()
    program = start(echo(), loop=loop, stdin=terminal, stdout=terminal)
    os.write(controller, b"typed\n")
    seen = b""
    while seen.count(b"typed") < 2:  # once by the terminal, once by the server
        seen += os.read(controller, 1000)
    assert os.get_blocking(terminal)
    os.write(controller, b"\x04")
    assert program.wait(timeout=20) == 0
    os.close(controller)
    os.close(terminal)
    program.stderr.close()


@pytest.mark.parametrize("sent", [b"", b"1\n"])
def test_a_server_whose_client_reads_nothing_any_more_ends_although_its_input_is_open(loop, sent):
    program = start(echo(handle="print(line); await asyncio.sleep(0)"), loop=loop)
    program.stdout.close()
    program.stdin.write(sent)
    program.stdin.flush()
    assert program.wait(timeout=20) == 0
    program.stdin.close()
    program.stderr.close()


def test_standard_streams_are_given_back_when_the_channel_is_closed(loop):
    after = 'print("after", sys.stdin.read(), os.get_blocking(0), os.get_blocking(1))'
    out, err = finish(start(echo(after=after), loop=loop), b"1\n")
    assert out == b"1\nafter  True True\n"
    assert err == b""


def test_a_program_that_secured_its_streams_itself_keeps_them_secured(loop):
    body = "from mcprelay.stdio.descriptor import secure\nsecure()\n" + echo(after='print("noise")')
    out, err = finish(start(body, loop=loop), b"1\n")
    assert (out, err) == (b"1\n", b"noise\n")


def test_a_second_channel_on_the_standard_streams_is_refused(loop):
    body = """
from mcprelay.errors import LocalFault
from mcprelay.stdio import open_stdio

async def main():
    for _ in range(3):
        channel = await open_stdio()
        try:
            await open_stdio()
        except LocalFault as error:
            await channel.send(str(error).encode())
        await channel.aclose()

run(main)
"""
    out, _ = finish(start(body, loop=loop))
    assert (
        out.splitlines() == [b"the standard streams are in use already: one process serves one client over stdio"] * 3
    )


@pytest.mark.clause("stdio.exit-on-eof")
@pytest.mark.clause("stdio.exit-on-eof")
@pytest.mark.parametrize("thread", ["daemon=True", "daemon=False"])
def test_the_process_ends_in_time_although_a_thread_blocks(loop, thread):
    block = f"threading.Thread(target=time.sleep, args=(60,), {thread}).start()"
    handle = block + "; print('blocked'); await channel.send(line)"
    after = "from mcprelay.stdio.server import exit_within\nprint('late', end='')\nexit_within(0.5, code=3)"
    program = start(echo(handle=handle, after=after), loop=loop)
    since = time.monotonic()
    out, err = finish(program, b"1\n")
    assert time.monotonic() - since < 5
    assert out == b"1\nlate"
    assert err == b"blocked\n"
    assert program.returncode == (0 if "True" in thread else 3)


def test_the_process_ends_although_nobody_reads_what_it_printed():
    body = """
from mcprelay.stdio.server import exit_within
threading.Thread(target=time.sleep, args=(60,)).start()
threading.Thread(target=lambda: print("x" * 1_000_000), daemon=True).start()
exit_within(0.1, code=4)
"""
    reads, writes = os.pipe()
    program = subprocess.Popen(command(body), stdout=writes, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    assert program.wait(timeout=20) == 4
    os.close(reads)
    os.close(writes)
