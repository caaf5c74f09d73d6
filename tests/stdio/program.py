"""Programs for tests to start: a preamble that imports this package, on either loop, and a body."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import mcprelay

SOURCE = str(Path(mcprelay.__file__).parents[1])

PREAMBLE = """
import asyncio, logging, os, subprocess, sys, threading, time
sys.path.insert(0, {source!r})

def run(main, loop={loop!r}):
    if loop == "uvloop":
        import uvloop
        return uvloop.run(main())
    return asyncio.run(main())
"""


ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
"""Programs buffer what they print, as they do where nobody told them otherwise."""


def command(body: str, *, loop: str = "asyncio") -> list[str]:
    """How to start the program."""
    return [sys.executable, "-c", PREAMBLE.format(source=SOURCE, loop=loop) + textwrap.dedent(body)]


def start(body: str, *, loop: str = "asyncio", **options) -> subprocess.Popen[bytes]:
    """The program, started, with pipes unless told otherwise."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command(body, loop=loop), **{**pipes, "env": ENVIRONMENT, **options})


def finish(process: subprocess.Popen[bytes], sent: bytes = b"") -> tuple[bytes, bytes]:
    """What it wrote on either output until its end, which must come soon after its input ends."""
    return process.communicate(sent, timeout=20)


def descriptors() -> set[str]:
    """The descriptors that this process has open."""
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}
