"""Run every benchmark and print a table; the exit code counts the targets that were missed."""

import sys

from . import criteria, elimination, engine, harmony, mixed, programs, rows, scaling, start
from .timing import HEADING


def main():
    print(HEADING, flush=True)
    missed = 0
    for module in (start, elimination, criteria, mixed, harmony, programs, scaling, rows, engine):
        for result in module.run():
            print(result.row(), flush=True)
            missed += int(result.ratio < result.target)
    return missed


sys.exit(main())
