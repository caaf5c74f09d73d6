"""The `mcprelay` command.

This module secures the standard streams of a server before anything else is imported: whatever an import prints must
not reach the client. The commands are in `app`; nothing of the product imports this package.
"""

from __future__ import annotations

import sys

SERVE = "serve"


def main(argv: list[str] | None = None) -> None:
    """Run the command line and end the process with an exit code (see `exit.Exit`)."""
    words = sys.argv[1:] if argv is None else argv
    if _speaks_on_standard_streams(words):
        from mcprelay.stdio.descriptor import secure

        secure()
    sys.exit(_run(words))


def _run(words: list[str]) -> int:
    if len(words) == 2 and words[0] == SERVE and not words[1].startswith("-"):
        # What a client starts most often needs no parser, whose import takes longer than all the rest.
        from mcprelay.cli.exit import ended
        from mcprelay.cli.serve import serve_stdio

        return ended(lambda: serve_stdio(words[1]), as_json=False)
    from mcprelay.cli.app import run

    return run(words)


def _speaks_on_standard_streams(words: list[str]) -> bool:
    if words[:1] != [SERVE]:
        return False
    return not any(word in ("-h", "--help", "--version") or word.split("=")[0] == "--http" for word in words)
