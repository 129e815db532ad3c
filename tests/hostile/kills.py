"""Commands killed at random moments: no process outlives them, no temporary file outlives the next command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from marginsieve.data import make_cohort

SUITE = """
[protocol]
name = "nested"
folds = 3
repeats = 40
[[data]]
name = "toy"
cohort = { n_samples = 60, n_features = 200, n_relevant = 3 }
[[method]]
name = "svm-rfe"
[[method]]
name = "fisher"
"""
HEEDED = "from signal import *; signal(SIGHUP, SIG_DFL); signal(SIGINT, default_int_handler)"  # nohup has both ignored
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
PATIENCE = 5.0  # seconds after which nobody may be left


def prepared(folder: Path) -> dict[str, list[str]]:
    """The commands, and the files that they need."""
    cohort = make_cohort(60, 200, n_relevant=3, random_state=0)
    cohort.frame().to_csv(folder / "t.csv", index=False)
    (folder / "s.toml").write_text(SUITE)
    select = "select t.csv --target outcome --methods svm-rfe,fisher --n-repeats 4 --without suspects --n-jobs 2"
    bench = "bench s.toml --n-jobs 2 --out bench"
    return {"bench": bench.split(), "select": [*select.split(), "--out", "result"]}


def killed(
    folder: Path, command: list[str], number: int, after: float, group: bool = False, times: int = 1
) -> dict[str, object]:
    """Start a command, send it signals after so many seconds, and look what is left.

    `group`: its workers get them too, as when a terminal closes; `times`: so many signals in a row.
    """
    scratch = folder / "tmp"
    scratch.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(scratch), "HOSTILE_MARK": str(folder)}
    call = [sys.executable, "-c", f"{HEEDED}; from marginsieve.cli import main; main()"]
    with (folder / "said.txt").open("w") as said:
        process = subprocess.Popen(
            [*call, *command], cwd=folder, env=environment, stdout=said, stderr=said, start_new_session=True
        )
        time.sleep(after)
        for _ in range(times):
            with suppress(ProcessLookupError):
                (os.killpg if group else os.kill)(process.pid, number)
            time.sleep(0.02)
        process.wait(60)
    end = time.monotonic() + PATIENCE
    while (left := _alive(str(folder))) and time.monotonic() < end:
        time.sleep(0.1)
    for number_ in left:  # told once, not suffered by the next
        os.kill(number_, signal.SIGKILL)
    subprocess.run([*call, "methods", "--json"], cwd=folder, env=environment, check=True, capture_output=True)
    files = sorted(path.name for path in scratch.iterdir())
    beside = [path.name for path in folder.rglob(".marginsieve-*")]
    text = (folder / "said.txt").read_text()
    memory = _shared(process.pid)
    return {"code": process.returncode, "left": left, "files": files, "memory": memory, "beside": beside, "said": text}


def _shared(process: int) -> list[str]:
    """What a process shared with its workers in memory."""
    names = (f"joblib_memmapping_folder_{process}_*", f"sem.loky-{process}-*")
    return sorted(path.name for name in names for path in Path("/dev/shm").glob(name))


def _alive(mark: str) -> list[int]:
    """Processes that have our mark in their environment."""
    out = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if f"HOSTILE_MARK={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    out.append(int(entry.name))
            except OSError:
                continue
    return out


def wrong(found: dict[str, object], number: int) -> list[str]:
    """What must not be, in words."""
    out = [f"{name}: {found[name]}" for name in ("left", "files", "memory", "beside") if found[name]]
    words = ("Traceback", "Exception", *(() if number == signal.SIGKILL else ("resource_tracker",)))
    if any(word in str(found["said"]) for word in words):
        out.append(f"a traceback: {str(found['said'])[-300:]}")
    expected = (-number, 0) if number == signal.SIGKILL else (128 + number, -number, 0)  # -: before Python was up
    if found["code"] not in expected:
        out.append(f"exit code {found['code']}")
    return out


def rounds(count: int, seed: int) -> list[str]:
    """So many kills; what went wrong."""
    rng, out = np.random.default_rng(seed), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = prepared(folder)
        for k in range(count):
            command = ("bench", "select")[k % 2]
            number, after = SIGNALS[(k // 2) % len(SIGNALS)], float(rng.uniform(0.5, 6.0))
            after = float(rng.uniform(0.2, 0.6)) if k % 7 == 6 else after  # while it starts
            group, times = bool(rng.integers(2)), int(rng.choice([1, 1, 2, 4]))
            found = wrong(killed(folder, commands[command], number, after, group, times), number)
            how = f"{signal.Signals(number).name} {times} times to {'all' if group else 'it'} after {after:.2f} s"
            out += [f"{command}, {how}: {one}" for one in found]
    return out


def main() -> int:
    """So many kills (the first argument, or 100)."""
    found = rounds(int(sys.argv[1]) if len(sys.argv) > 1 else 100, seed=0)
    sys.stdout.write("\n".join([*found, f"{len(found)} wrong\n"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
