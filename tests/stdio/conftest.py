"""Everything about descriptors is tested on both loops."""

import asyncio

import uvloop


def pytest_asyncio_loop_factories():
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
