"""How much of the library one command crosses: functions and files of ours that `marginsieve select` runs.

Someone who follows one command, to mend or to extend it, has this much to cross, so it is counted as a cost beside time
and memory. A function is a code object of ours that is entered, lambdas and comprehensions too (from Python 3.12 on
most comprehensions have none of their own: compare counts of one version). A file is one that is loaded or entered,
from the first import on. The table is generated, 60 x 60; one job, one repeat, otherwise the defaults.

    python -m benchmarks.walk [--list]
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

MOST_FUNCTIONS, MOST_FILES = 1_000, 140
COHORT = ["--samples", "60", "--features", "60", "--relevant", "6", "--redundant", "0", "--effect", "1.5"]
SELECT = ["--target", "outcome", "--jobs", "1", "--repeats", "1"]


def cross(command: list[str], source: str) -> set[CodeType]:
    """The code of ours that a command line enters, imports included: nothing of ours may be imported yet."""
    crossed: set[CodeType] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(source):
            crossed.add(frame.f_code)

    text, before, status = io.StringIO(), sys.argv, 0
    sys.argv = ["marginsieve", *command]
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        sys.setprofile(look)
        try:
            from marginsieve.cli import main as run

            run()
        except SystemExit as end:
            status = end.code
        finally:
            sys.setprofile(None)
            sys.argv = before
    if status:
        raise SystemExit(f"the command ended with {status}: {text.getvalue()}")
    return crossed


def main() -> int:
    """Print both numbers, and with --list the files with theirs; 1 where there are more than there may be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="the files, each with the number of its functions")
    line = parser.parse_args()
    found = importlib.util.find_spec("marginsieve")  # looks for it and imports nothing
    source = str(Path(found.origin).parent)
    with tempfile.TemporaryDirectory() as folder:
        table = f"{folder}/table.csv"
        made = [sys.executable, "-m", "marginsieve", "cohort", table, *COHORT]
        subprocess.run(made, check=True, capture_output=True)
        crossed = cross(["select", table, *SELECT, "--out", f"{folder}/result"], source)
    functions = [code for code in crossed if code.co_name != "<module>"]
    files = {code.co_filename: 0 for code in crossed} | Counter(code.co_filename for code in functions)
    if line.list:
        for path, count in sorted(files.items()):
            print(f"{count:5d} {Path(path).relative_to(source)}")
    print(f"{len(functions)} functions in {len(files)} files (at most {MOST_FUNCTIONS} in {MOST_FILES})")
    return int(len(functions) > MOST_FUNCTIONS or len(files) > MOST_FILES)


if __name__ == "__main__":
    raise SystemExit(main())
