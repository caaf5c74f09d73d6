"""Descriptors 0, 1 and 2 belong to the process, so every test is a program of its own."""

import os
import subprocess
import sys

import pytest

from tests.stdio.program import SOURCE, command, finish, start

SECURE = "from mcprelay.stdio.descriptor import secure\nd = secure()\n"


def test_whatever_a_program_writes_reaches_standard_error_and_only_the_protocol_reaches_the_output():
    program = start(
        SECURE
        + """
print("print")
sys.stdout.write("write\\n")
os.write(1, b"os.write\\n")
log = logging.getLogger(); log.addHandler(logging.StreamHandler(sys.stdout)); log.warning("logging")
subprocess.run([sys.executable, "-c", "print('subprocess')"])
subprocess.run("echo shell", shell=True)
os.write(d.writes, b"protocol")
"""
    )
    out, err = finish(program)
    assert out == b"protocol"
    assert set(err.split()) == {b"print", b"write", b"os.write", b"logging", b"subprocess", b"shell"}


def test_what_waited_in_the_buffer_before_goes_to_standard_error():
    out, err = finish(start('sys.stdout.write("early")\n' + SECURE))
    assert (out, err) == (b"", b"early")


def test_what_is_printed_after_is_written_line_by_line():
    program = start(SECURE + 'print("now")\nos._exit(0)')
    assert finish(program) == (b"", b"now\n")


def test_handlers_and_their_children_read_nothing_of_the_protocol():
    program = start(
        SECURE
        + """
print(repr(sys.stdin.read()))
print(subprocess.run([sys.executable, "-c", "import sys; print(repr(sys.stdin.read()))"], capture_output=True).stdout)
os.write(d.writes, os.read(d.reads, 100))
"""
    )
    out, err = finish(program, b"protocol")
    assert out == b"protocol"
    assert err.split() == [b"''", b"b\"''\\n\""]


def test_children_inherit_no_descriptor_of_the_protocol():
    program = start(SECURE + 'subprocess.run(["ls", "/proc/self/fd"], close_fds=False)')
    _, err = finish(program)
    assert {int(fd) for fd in err.split()} <= {0, 1, 2, 3}  # 3 is the folder that ls reads


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)])
def test_a_descriptor_that_was_closed_is_opened_on_the_null_device(closed, tmp_path):
    report = tmp_path / "report"
    body = SECURE + (
        f"""
with open({str(report)!r}, "w") as file:
    print(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:3], min(d.reads, d.writes) > 2, file=file)
    print(os.readlink("/proc/self/fd/0"), file=file)
    print("end" if {closed!r}[0] == 0 and os.read(d.reads, 1) == b"" else "-", file=file)
print("noise")
"""
    )
    redirections = "".join(f" {fd}{'<' if fd == 0 else '>'}&-" for fd in closed)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@"{redirections}', "sh", *command(body)],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=True,
    )  # fmt: skip
    first, second, third = report.read_text().splitlines()
    assert first == "[0, 1, 2] True"
    assert second == os.devnull
    assert third == ("end" if 0 in closed else "-")
    assert done.stdout == b""
    assert done.stderr == (b"" if {1, 2} & set(closed) else b"noise\n")  # without an output Python has no `sys.stdout`


def test_what_was_secured_is_given_back_when_all_have_released_it():
    program = start(
        SECURE
        + """
secure()
d.release()
print("still secured")
d.release()
print("free", sys.stdin.read(), sys.stdout.line_buffering)
sys.stdout.flush()
os.write(1, b"direct")
print(sorted(int(fd) for fd in os.listdir("/proc/self/fd")), file=sys.stderr)
"""
    )
    out, err = finish(program, b"input")
    assert out == b"free input False\ndirect"
    assert err == b"still secured\n[0, 1, 2, 3]\n"


def test_it_is_secured_once():
    program = start(SECURE + "assert secure() is d\nos.write(d.writes, b'yes')")
    assert finish(program)[0] == b"yes"


def test_securing_works_under_a_low_limit_of_open_files():
    program = start(
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))\n"
        + SECURE
        + "os.write(d.writes, b'yes')"
    )
    assert finish(program)[0] == b"yes"


@pytest.mark.parametrize("stream", ["None", "__import__('io').StringIO()", "__import__('io').BytesIO()"])
def test_a_replaced_standard_output_does_no_harm(stream):
    program = start(f"sys.stdout = {stream}\n" + SECURE + "d.release()\nos.write(1, b'yes')")
    assert finish(program)[0] == b"yes"


def test_securing_imports_nothing_that_takes_time():
    probe = (
        f"import sys; sys.path.insert(0, {SOURCE!r})\n"
        "from mcprelay.stdio.descriptor import secure; secure()\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, timeout=20, check=True)
    assert done.stdout == b""
    assert set(done.stderr.split()) & {b"asyncio", b"cyclopts", b"logging", b"msgspec", b"rich", b"subprocess"} == set()
