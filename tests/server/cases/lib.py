"""Where a module of a user's has the context from, under another name (T33)."""

from mcprelay import Context

__all__ = ["Context"]
