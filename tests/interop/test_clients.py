"""Our server under clients of other people: each visits everything that it can, and says what it got."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.interop.house import make
from tests.interop.process import output_of
from tests.interop.run import CLIENTS, LEGACY, Run

pytestmark = pytest.mark.interop

HOUSE = [sys.executable, str(Path(__file__).parent / "house.py")]
FORM = "accept Seat(row=3, side='window', meal=True, name='nobody', budget=1.5)"

EXPECTED: dict[str, dict[str, Any]] = {
    "tools": {"tools": 26},
    "values": {"add": ["3", 3]},
    "errors": {"refuse": [True, "not today"]},
    "resources": {"resources": 8, "text": "some text", "bytes": "AP8="},
    "templates": {"templates": 1, "template": "file a"},
    "prompts": {"prompts": 2, "prompt": "Review this php for all."},
    "completion": {"complete": ["python", "perl", "php"]},
    "progress": {"progress": [1, 2, 3]},
    "forms": {"form": FORM},
    "roots": {"roots": '["file:///work"]'},
    "changes": {"changes": True},
}
"""What a report says of each feature. A client that cannot list something says nothing of its number."""

ONLY_READS = ("langchain",)
"""Clients without lists of resources, templates and prompts."""


@pytest.mark.parametrize("run", CLIENTS, ids=lambda run: run.id)
async def test_a_client_gets_everything_that_our_server_has(run: Run):
    run.peer.install()
    report = await visited(run)
    assert report["revision"] == run.revision
    for feature, expected in EXPECTED.items():
        if not run.shows(feature):
            continue
        numbers = {key for key, value in expected.items() if isinstance(value, int) and key == feature}
        leave = numbers if run.name in ONLY_READS and feature != "tools" else set()
        wanted = {key: value for key, value in expected.items() if key not in leave}
        assert {key: report.get(key) for key in wanted} == wanted, feature
    if run.shows("logs"):
        assert report["logs"][-2:] == ["warning", "error"]
    if run.shows("sampling"):
        assert report["model"].endswith(": A sampled text.")
    check_codes(run, report)


def check_codes(run: Run, report: dict[str, Any]) -> None:
    """Errors, as far as the client hands the codes on."""
    if "unknown tool" in report:
        assert report["unknown tool"] == -32602
    if "unknown resource" in report:
        translated = run.name == "typescript-2"  # it makes the newest code of the older one
        assert report["unknown resource"] == (-32002 if run.revision <= LEGACY and not translated else -32602)


async def visited(run: Run) -> dict[str, Any]:
    """The report of a client that was at our server."""
    ending = ".mjs" if run.program.endswith(("_1", "_2", "inspector")) and "python" not in run.program else ".py"
    program = run.program + ending
    if run.transport == "stdio":
        command = run.peer.command(program, "stdio", json.dumps(HOUSE), *run.arguments)
        return dict(json.loads(await output_of(run.peer, command)))
    async with make().serve("http", port=0) as running:
        url = running.url if run.transport == "http" else running.url.removesuffix("/mcp") + "/sse"
        command = run.peer.command(program, run.transport, url, *run.arguments)
        return dict(json.loads(await output_of(run.peer, command)))
