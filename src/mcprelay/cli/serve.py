"""Serving somebody's `Server` from the command line."""

from __future__ import annotations

import sys
from typing import Any

from mcprelay.cli.exit import Exit
from mcprelay.cli.source import find_server
from mcprelay.errors import ConfigurationError

EXIT_SECONDS = 1.0
"""How long a process that served may take to exit when it is done, whatever threads its handlers left behind."""

MOST_DIGITS = 5
"""Of a port. Longer numbers are not even read, which has a limit of its own."""


def serve_stdio(source: str) -> Exit:
    """Serve over standard input and output until the client ends it."""
    server = find_server(source)
    if sys.__stdin__ is not None and _is_terminal():
        hint = "A client starts this command and speaks with it. To be reached over HTTP: --http 127.0.0.1:8000"
        print(f"{server.info.name} speaks MCP on standard input and output. {hint}", file=sys.stderr)
    server.run()
    from mcprelay.stdio.server import exit_within

    exit_within(EXIT_SECONDS)
    return Exit.DONE


def _is_terminal() -> bool:
    import os

    from mcprelay.stdio.descriptor import secure

    descriptors = secure()
    try:
        return os.isatty(descriptors.reads)
    finally:
        descriptors.release()


def serve_http(source: str, address: str, *, reload: bool, **options: Any) -> Exit:
    """Serve over HTTP until it is interrupted, always the same or what the files say at the time."""
    host, port = _parsed(address)
    if reload:
        from mcprelay.cli.reload import serve_http as serve_reloading

        return serve_reloading(source, host=host, port=port, **options)
    find_server(source).run("http", host=host, port=port, **options)
    return Exit.DONE


def _parsed(address: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`, `:PORT` or `PORT`; the host is this machine unless given."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise ConfigurationError(f"--http {address!r}: write HOST:PORT, as in 127.0.0.1:8000")
    if len(port) > MOST_DIGITS or int(port) >= 2**16:
        raise ConfigurationError(f"--http {address!r}: a port is a number from 0 to 65535; 0 takes a free one")
    return host.strip("[]") or "127.0.0.1", int(port)
