"""Closing a channel that may be somebody else's code: bounded, and whatever comes of it told in the log."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcprelay.ports import Channel

logger = logging.getLogger("mcprelay.server")


async def close(channel: Channel, grace: float) -> None:
    """Close a channel, and wait no longer than `grace` seconds for it (`Limits.cancel_grace`). Raises nothing."""
    closing = asyncio.ensure_future(channel.aclose())
    try:
        await asyncio.wait([closing], timeout=grace)
        if not closing.done():
            logger.warning("%r is left behind: its aclose() took longer than cancel_grace=%g s", channel, grace)
        elif not closing.cancelled() and (error := closing.exception()) is not None:
            logger.warning("%r could not be closed", channel, exc_info=error)
    finally:
        closing.cancel()
