"""How a test is told that its own script is wrong."""

from __future__ import annotations

from mcprelay.errors import LocalFault


class ScriptFault(LocalFault, AssertionError):
    """The script is at fault: it is none, has no answer for a request, or a step of it failed.

    It is the test's own mistake, so it goes through a client as it is: no call fails with it as if the network had.
    """
