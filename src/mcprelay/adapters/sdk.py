"""What an adapter needs of its SDK: the package that brings it, and the reply that its `run` takes.

Knows no SDK. What a reply is, is told by its shape: an SDK has several classes for it, and others have compatible ones.
"""

from __future__ import annotations

import inspect
from types import TracebackType
from typing import Any


class Sdk:
    """`with Sdk("openai-agents"):` around an adapter's imports: one that fails names the package to install.

    Args:
        package: What it is called where packages come from, which is often not the name that is imported.
    """

    def __init__(self, package: str) -> None:
        self._package = package

    def __enter__(self) -> None:
        """Nothing happens before an import fails."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, ModuleNotFoundError):
            told = f"this adapter needs the package {self._package} (pip install {self._package}): {error}"
            raise ModuleNotFoundError(told, name=error.name) from error
        if isinstance(error, ImportError):
            told = f"this adapter needs a newer {self._package} (pip install -U {self._package}): {error}"
            raise ImportError(told, name=error.name, path=error.path) from error  # noqa: TRY004 - no type is wrong


def check_reply(reply: Any, *members: str, takes: str, lists: bool = False) -> None:
    """Refuse what is no reply of the model's.

    Args:
        reply: What `run` was given.
        members: What a reply has.
        takes: What it is, as people write it.
        lists: Whether the members are lists.

    Raises:
        TypeError: It is none.
    """
    if all(hasattr(reply, name) and (not lists or isinstance(getattr(reply, name), list)) for name in members):
        return
    forgotten = ": await it" if inspect.isawaitable(reply) else ""
    if inspect.iscoroutine(reply):
        reply.close()  # which nobody awaits now
    raise TypeError(f"run() takes {takes}, and not a value of the type {type(reply).__name__}{forgotten}")
