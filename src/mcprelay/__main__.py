"""`python -m mcprelay`: the command line where the script `mcprelay` is not on PATH."""

from mcprelay.cli import main

main()
