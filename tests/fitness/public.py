"""Verifies that every public symbol has a type that a user's type checker knows: `python -m tests.fitness.public`.

The type checkers let a value of unknown type pass inside of the package, where JSON is taken apart. This command says
where such a value would be handed to a user.
"""

import json
import os
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run pyright's verification and list what is unknown; the return value is the exit code."""
    environment = Path(sys.prefix)
    variables = {
        **os.environ,
        "VIRTUAL_ENV": str(environment),
        "PATH": os.pathsep.join([str(environment / "bin"), os.environ.get("PATH", "")]),
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
    }
    command = ["pyright", "--verifytypes", "mcprelay", "--ignoreexternal", "--outputjson"]
    process = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    report = json.loads(process.stdout)["typeCompleteness"]
    counts = report["exportedSymbolCounts"]
    for symbol in report["symbols"]:
        if not symbol["isExported"] or symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]:
            continue
        print(symbol["name"])
        for finding in symbol["diagnostics"]:
            print(f"    {finding['message'].splitlines()[0]}")
    known = counts["withKnownType"] + counts["withAmbiguousType"]
    print(f"public symbols with a type: {known}, without one: {counts['withUnknownType']}")
    return 1 if counts["withUnknownType"] or not known else 0


if __name__ == "__main__":
    sys.exit(main())
