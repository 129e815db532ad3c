"""Every call to the outside fails once, at every place that makes one: an answer or a sentence, and nothing is lost.

A command is run once to find the places: calls of files, folders, locks, SQLite and worker processes that begin at a
line of marginsieve. Then it is run again for each of them, the first and the last time that it is called, with errors
of the system and with a MemoryError. What it says is looked at, then what lies in its folder, and then the same command
is run undisturbed: it must give what it gives where nothing fails.
"""

from __future__ import annotations

import _posixsubprocess
import errno
import io
import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from joblib.externals.loky import get_reusable_executor

import marginsieve
from marginsieve import InputError
from marginsieve.cli.commands import run
from marginsieve.data import make_cohort
from marginsieve.engine.store import FILE, Store

SOURCE = str(Path(marginsieve.__file__).parent)
EVENTS = (  # of Python's audit hooks
    *("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.scandir", "os.listdir", "os.link", "os.truncate"),
    *("tempfile.mkdtemp", "tempfile.mkstemp", "fcntl.flock", "shutil.rmtree", "mmap.__new__"),
)
SYSTEM = (errno.EIO, errno.ENOSPC, errno.EMFILE, errno.ENOLCK, errno.EDQUOT, errno.ENOMEM)
CODES = ("BUSY", "FULL", "IOERR", "READONLY", "LOCKED", "PROTOCOL", "INTERRUPT", "PERM", "CANTOPEN", "AUTH", "ABORT")
CLOCKS = ("seconds", "how", "version")  # of result.json

SUITE = """
[protocol]
name = "nested"
folds = 3
repeats = 1
[[data]]
name = "A"
cohort = { n_samples = 40, n_features = 10, n_relevant = 2 }
[[method]]
name = "fisher"
n_features_to_select = 2
"""
SELECT = "select t.csv --target outcome --methods fisher --n-repeats 1 --cv 3 --without suspects,references,false-share"
COHORT = "cohort out.csv --n-samples 20 --n-features 4 --n-relevant 1 --n-redundant 0"
COMMANDS = {
    "bench": ["bench s.toml --out out --n-jobs 1"],
    "select": [f"{SELECT} --out out --n-jobs 1"],
    "again": [f"{SELECT} --out out --n-jobs 1", f"{SELECT} --out out --n-jobs 1"],
    "report": ["report out --aggregate", f"{SELECT} --out out --n-jobs 1"],
    "predict": ["predict out/model.marginsieve t.csv --out out.csv", f"{SELECT} --out out --n-jobs 1"],
    "suspects": ["suspects t.csv --target outcome --out out.csv", "suspects t.csv --target outcome --out out.csv"],
    "cohort": [COHORT, COHORT],
    "workers": ["bench s.toml --out out --n-jobs 2"],
}  # the command, and what is run before it


@dataclass
class Faults:
    """Counts the calls at each place, and makes one of them fail."""

    place: str = ""
    number: int = 0
    error: BaseException | None = None
    calls: Counter[str] = field(default_factory=Counter)
    fired: bool = False

    def visit(self, kind: str) -> None:
        place = _place(kind)
        if place is None:
            return
        self.calls[place] += 1
        if self.error is not None and place == self.place and self.calls[place] == self.number:
            self.fired = True
            raise self.error


_current: list[Faults] = []


def _place(kind: str) -> str | None:
    """The line of marginsieve that a call begins at; None where another program's import makes it."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(SOURCE):
            return f"{name[len(SOURCE) + 1 :]}:{frame.f_lineno} {kind}"
        if name.startswith("<frozen importlib") or "numba" in name:
            return None
        frame = frame.f_back
    return None


def _hear(event: str, _: Any) -> None:
    if _current and event in EVENTS:
        _current[-1].visit(event)


_hooked: list[bool] = []


class _Cursor(sqlite3.Cursor):
    def execute(self, text: str, *values: Any) -> Any:
        _visit(f"sqlite {text.split()[0]}")
        return super().execute(text, *values)

    def executemany(self, text: str, *values: Any) -> Any:
        _visit(f"sqlite {text.split()[0]}")
        return super().executemany(text, *values)

    def __next__(self) -> Any:
        _visit("sqlite next row")
        return super().__next__()


class _Connection(sqlite3.Connection):
    def cursor(self, *_: Any) -> Any:
        return super().cursor(_Cursor)

    def __exit__(self, kind: Any, *rest: Any) -> Any:
        try:
            if kind is None:
                _visit("sqlite commit")
        except BaseException:
            self.rollback()
            raise
        return super().__exit__(kind, *rest)


def _visit(kind: str) -> None:
    if _current:
        _current[-1].visit(kind)


def _visiting(kind: str, real: Any) -> Any:
    def call(*values: Any, **named: Any) -> Any:
        _visit(kind)
        return real(*values, **named)

    return call


@contextmanager
def injected(faults: Faults) -> Iterator[None]:
    """While the calls are counted, and perhaps one fails."""
    if not _hooked:
        sys.addaudithook(_hear)
        _hooked.append(True)
    connect = sqlite3.connect
    with ExitStack() as patches:
        for owner, name, kind in (
            (os, "fsync", "fsync"),
            (Path, "read_bytes", "read"),
            (Path, "read_text", "read"),
            (_posixsubprocess, "fork_exec", "worker"),
        ):
            patches.enter_context(mock.patch.object(owner, name, _visiting(kind, getattr(owner, name))))
        opened = lambda *values, **named: connect(*values, **named, factory=_Connection)  # noqa: E731
        patches.enter_context(mock.patch.object(sqlite3, "connect", _visiting("sqlite connect", opened)))
        _current.append(faults)
        try:
            yield
        finally:
            _current.pop()


def command(line: str, faults: Faults | None = None) -> tuple[int, str]:
    """The exit code of a command in this process, and what it said; workers of an earlier one are gone."""
    if "--n-jobs 2" in line:
        get_reusable_executor(max_workers=1).shutdown(wait=True, kill_workers=True)
    said = io.StringIO()
    with mock.patch.object(sys, "argv", ["marginsieve", *line.split()]), redirect_stdout(said), redirect_stderr(said):
        if faults is None:
            return run(), said.getvalue()
        with injected(faults):
            return run(), said.getvalue()


def prepare(folder: Path) -> None:
    """The files that the commands need."""
    make_cohort(40, 8, n_relevant=2, effect=2.5, random_state=0).frame().to_csv(folder / "t.csv", index=False)
    (folder / "s.toml").write_text(SUITE)


def outcome(folder: Path) -> dict[str, Any]:
    """What a command has left that no clock decides."""
    found: dict[str, Any] = {}
    if (folder / "out" / "result.json").exists():
        result = json.loads((folder / "out" / "result.json").read_text())
        found["result"] = _without_clocks(result)
    if (folder / "out" / FILE).exists():
        try:
            with closing(Store(folder / "out", write=False)) as store:
                found["damages"] = store.damages()
                found["units"] = {row["key"]: row["metrics"] for row in store.units() if row["status"] == "done"}
        except InputError as error:
            found["damages"] = [] if "is empty: its run ended as it began" in str(error) else [str(error)]
    for path in (folder / "out.csv", folder / "out" / "aggregate.html"):
        if path.exists():
            found[path.name] = path.stat().st_size > 0
    return found


def _without_clocks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_clocks(entry) for name, entry in value.items() if name not in CLOCKS}
    return [_without_clocks(entry) for entry in value] if isinstance(value, list) else value


def errors_at(place: str, number: int) -> list[BaseException]:
    """What a place may be answered: one of many errors of the system, in turn, and that there is no memory."""
    if " sqlite " in place:
        name = CODES[number % len(CODES)]
        error = sqlite3.OperationalError(f"injected {name}")
        error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{name}")
        return [error, MemoryError("injected")]
    if place.endswith(" worker"):
        return [OSError(errno.EAGAIN, "Resource temporarily unavailable"), MemoryError("injected")]
    code = SYSTEM[number % len(SYSTEM)]
    return [OSError(code, os.strerror(code)), MemoryError("injected")]


WRONG = ("Traceback", "an error of marginsieve itself", "damaged", "move it away", "--fresh", "rescued")


NEVER = "the fault never came"


def try_fault(name: str, base: Path, expected: dict[str, Any], faults: Faults) -> list[str]:
    """What is wrong after one fault: what was said, what lies there, what the same command gives then."""
    line, *_ = COMMANDS[name]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(shutil.copytree(base, Path(place) / "f"))
        os.chdir(folder)
        code, said = command(line, faults)
        wrong = [] if faults.fired else [NEVER]
        if (
            code not in (0, 1, 3)
            or any(word in said for word in WRONG)
            or (code and "error:" not in said and "failed:" not in said)
        ):
            wrong.append(f"exit code {code}: {said[-300:]!r}")
        if list(folder.rglob("rescued*")):
            wrong.append("a store was saved that was not damaged")
        if (damages := outcome(folder).get("damages")) not in (None, []):
            wrong.append(f"damaged: {damages}")
        code, said = command(line)
        if code != 0 or (found := outcome(folder)) != expected:
            differ = [] if code else [key for key in expected if found.get(key) != expected[key]]
            wrong.append(f"the same command: exit code {code}, {differ} differ: {said[-300:]!r}")
        if left := [path.name for path in folder.rglob(".marginsieve-*")]:
            wrong.append(f"left: {left}")
        os.chdir(base)
    return wrong


def inject(name: str, every: int = 1, start: int = 0) -> tuple[Counter[str], list[str]]:
    """Faults at every place of a command (or at some); (how many were survived and tried, what was wrong)."""
    counts: Counter[str] = Counter()
    out: list[str] = []
    before = Path.cwd()
    line, *earlier = COMMANDS[name]
    try:
        with tempfile.TemporaryDirectory() as place, mock.patch.object(tempfile, "tempdir", place):
            base, reference = Path(place) / "base", Path(place) / "reference"
            base.mkdir()
            os.chdir(base)
            prepare(base)
            for each in earlier:
                assert command(each)[0] == 0
            os.chdir(shutil.copytree(base, Path(place) / "first"))
            command(line)  # what is loaded and kept once in a process is not looked for
            os.chdir(shutil.copytree(base, reference))
            found = Faults()
            code, said = command(line, found)
            assert code == 0, said
            expected = outcome(reference)
            numbered = [(site, k) for site, times in sorted(found.calls.items()) for k in sorted({1, times})]
            tried = [
                (site, k, error)
                for j, (site, k) in enumerate(numbered)
                for error in errors_at(site, j)
                if name != "workers" or site.endswith(" worker")
            ]
            counts["places"] = len({site for site, *_ in tried})
            for site, k, error in itertools.islice(tried, start, None, every):
                wrong = try_fault(name, base, expected, Faults(site, k, error))
                while wrong == [NEVER] and k > 1:  # how often a store commits is a matter of its clock
                    k -= 1
                    wrong = try_fault(name, base, expected, Faults(site, k, error))
                counts["tried"] += 1
                counts["survived"] += not wrong
                out += [f"{name}, {site}, call {k}, {type(error).__name__} {error}: {each}" for each in wrong]
    finally:
        os.chdir(before)
    return counts, out


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv[1:] = sys.argv[2:]
from marginsieve.cli import main
main()
"""


def with_little_memory(megabytes: int) -> list[str]:
    """What is wrong where a command may take no more memory than this."""
    with tempfile.TemporaryDirectory() as place:
        prepare(Path(place))
        call = [sys.executable, "-c", LIMITED, str(megabytes * 2**20), *COMMANDS["select"][0].split()]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(call, cwd=place, env=environment, capture_output=True, text=True, timeout=300)
        said = done.stdout + done.stderr
        if done.returncode not in (0, 3) or (done.returncode and "error: " not in said):
            return [f"{megabytes} MB: exit code {done.returncode}: {said[-300:]!r}"]
    return []


def main() -> int:
    """All commands, and one under limits of memory."""
    out: list[str] = []
    total: Counter[str] = Counter()
    for name in COMMANDS:
        counts, wrong = inject(name)
        total += counts
        out += wrong
        sys.stdout.write(f"{name}: {dict(counts)}\n")
        sys.stdout.flush()
    for megabytes in (700, 900, 1100, 1500):
        out += with_little_memory(megabytes)
    sys.stdout.write("\n".join([*out, f"faults: {dict(total)}, {len(out)} wrong\n"]))
    return int(bool(out))


if __name__ == "__main__":
    sys.exit(main())
