"""Newline-delimited messages over descriptors: this process's own standard streams, and those of a child process.

    line          lines out of a byte stream, without I/O
    source        bytes as they come from a descriptor, on the loop or through a thread
    outlet        lines into a descriptor, with exact knowledge of what was handed over
    channel       `LineChannel`: the two joined, over any pair of descriptors (a socket, a named pipe)
    descriptor    0, 1 and 2 secured, so that nothing but the protocol reaches the protocol
    server        `open_stdio`: the server's end
    environment   what a child inherits
    process       a process group that is reaped whatever happens
    child         `ChildChannel`: the client's end

Nothing here knows JSON: whole lines in, whole lines out. Importing the package loads none of its modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcprelay.stdio.channel import LineChannel
    from mcprelay.stdio.child import ChildChannel
    from mcprelay.stdio.line import LineTooLong
    from mcprelay.stdio.server import StdioChannel, open_stdio

__all__ = ["ChildChannel", "LineChannel", "LineTooLong", "StdioChannel", "open_stdio"]

_HOME = {
    "ChildChannel": "child",
    "LineChannel": "channel",
    "LineTooLong": "line",
    "StdioChannel": "server",
    "open_stdio": "server",
}


def __getattr__(name: str) -> object:
    """Load the module of a public name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
