"""For tests of programs that use mcprelay, and of implementations of its ports.

    FakeClock                        time that passes when told to
    ScriptedChannel, ScriptedSender  the other side of a wire, as the test says
    memory_channels                  a connected pair of channels
    check_channel, check_sender, check_store, check_log, check_bus
                                     what each port of `mcprelay.ports` promises, as a test

Importing the package loads none of its modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcprelay.testing.answer import Answer, Cut, result
    from mcprelay.testing.channel import ScriptedChannel
    from mcprelay.testing.clock import FakeClock
    from mcprelay.testing.fault import ScriptFault
    from mcprelay.testing.kit.bus import check_bus
    from mcprelay.testing.kit.channel import check_channel
    from mcprelay.testing.kit.log import check_log
    from mcprelay.testing.kit.sender import check_sender
    from mcprelay.testing.kit.store import check_store
    from mcprelay.testing.memory import memory_channels
    from mcprelay.testing.sender import ScriptedSender

__all__ = [
    "Answer",
    "Cut",
    "FakeClock",
    "ScriptFault",
    "ScriptedChannel",
    "ScriptedSender",
    "check_bus",
    "check_channel",
    "check_log",
    "check_sender",
    "check_store",
    "memory_channels",
    "result",
]

_HOME = {
    "Answer": "answer",
    "Cut": "answer",
    "FakeClock": "clock",
    "ScriptFault": "fault",
    "ScriptedChannel": "channel",
    "ScriptedSender": "sender",
    "check_bus": "kit.bus",
    "check_channel": "kit.channel",
    "check_log": "kit.log",
    "check_sender": "kit.sender",
    "check_store": "kit.store",
    "memory_channels": "memory",
    "result": "answer",
}


def __getattr__(name: str) -> object:
    """Load the module of a public name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *_HOME})
