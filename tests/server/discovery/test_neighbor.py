"""A file that asks for its neighbor as if the folder were on the path is told how to name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcprelay import Server

if TYPE_CHECKING:
    from tests.server.discovery.conftest import Program

USES = """
{0}
@tool
def answer() -> int:
    return ANSWER
"""


def test_a_neighbor_that_is_not_found_is_said_to_be_one(program: Program):
    program.write("handlers/answers_of_ours.py", "ANSWER = 42")
    program.write("handlers/wrong.py", USES.format("from answers_of_ours import ANSWER"))
    program.write("handlers/right.py", USES.format("from .answers_of_ours import ANSWER"))
    program.write("handlers/absent.py", USES.format("from answers_of_nobody import ANSWER"))
    found = Server("s").discover(program.root / "handlers")
    assert found.tools == ("answer",)
    reasons = {broken.place.rpartition("/")[2]: broken.reason for broken in found.broken}
    assert "write" not in reasons["absent.py"]
    assert reasons["wrong.py"].endswith("`from .answers_of_ours import …`")
