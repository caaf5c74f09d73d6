"""The tables of docs/interoperability.md, made of the runs. `python -m tests.interop.table` writes them."""

from pathlib import Path

from tests.interop.run import CLIENTS, FEATURES, REFERENCES, SERVERS, SHOWN, Run

DOCUMENT = Path(__file__).parents[2] / "docs" / "interoperability.md"
BEGIN, END = "<!-- begin: {} -->", "<!-- end: {} -->"
TABLES = {"clients": CLIENTS, "servers": SERVERS, "references": REFERENCES}


def rows(runs: list[Run]) -> list[str]:
    """One row for each peer, revision and set of features; its transports stand together."""
    together: dict[tuple[str, str, frozenset[str]], list[str]] = {}
    for run in runs:
        together.setdefault((run.peer.shown, run.revision, run.lacks), []).append(SHOWN[run.transport])
    found = ["| peer | revision | over | shown by the tests |", "|---|---|---|---|"]
    for (peer, revision, lacks), transports in together.items():
        found.append(f"| {peer} | {revision} | {', '.join(transports)} | {_shown(lacks)} |")
    return found


def _shown(lacks: frozenset[str]) -> str:
    if not lacks:
        return "everything"
    there = [feature for feature in FEATURES if feature not in lacks]
    if len(there) > len(lacks):
        return "everything but " + ", ".join(feature for feature in FEATURES if feature in lacks)
    return ", ".join(there)


def written(text: str) -> str:
    """A document with its tables as they should be.

    Raises:
        ValueError: A table has no place in it.
    """
    for name, runs in TABLES.items():
        begin, end = BEGIN.format(name), END.format(name)
        before, found, rest = text.partition(begin)
        _, found_too, after = rest.partition(end)
        if not found or not found_too:
            raise ValueError(f"the document has no place for {name}: {begin} … {end}")
        text = f"{before}{begin}\n{chr(10).join(rows(runs))}\n{end}{after}"
    return text


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
