"""The documentation says what is run, and nothing else."""

from tests.interop.peer import PEERS
from tests.interop.run import CLIENTS, FEATURES, REFERENCES, SERVERS
from tests.interop.table import DOCUMENT, written

ALL = [*CLIENTS, *SERVERS, *REFERENCES]


def test_the_tables_of_the_documentation_are_those_of_the_runs():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == written(text), "run python -m tests.interop.table"


def test_every_peer_is_run_and_every_run_has_a_peer():
    assert {run.name for run in ALL} == set(PEERS)


def test_a_run_lacks_only_features_that_there_are():
    for run in ALL:
        assert run.lacks <= set(FEATURES), run.id


def test_no_run_is_told_twice():
    for runs in (CLIENTS, SERVERS, REFERENCES):
        assert len({run.id for run in runs}) == len(runs)
