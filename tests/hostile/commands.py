"""Odd command lines and files: each ends with a sentence and an exit code that the documentation names."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from . import processes
from .inputs import labels, numbers

LIMIT = 60.0
FAST = "--methods fisher --cv 2 --n-repeats 1 --without suspects"
CODES = (0, 1, 2, 3, 130)
SUITE = """
name = "s"
{top}
[protocol]
name = "nested"
folds = 2
repeats = 1
{protocol}
[[data]]
name = "toy"
cohort = {{ n_samples = 30, n_features = 5, n_relevant = 2 {cohort} }}
{data}
[[method]]
name = "fisher"
n_features_to_select = 2
{method}
"""


def suite(**parts: str) -> bytes:
    fields = dict.fromkeys(("top", "protocol", "cohort", "data", "method"), "")
    return SUITE.format(**{**fields, **parts}).encode()


SUITES = {
    "good": suite(),
    "latin1": 'name = "stra\xdfe"\n'.encode("latin-1") + suite(),
    "empty": b"",
    "broken": b"[[data]\n",
    "nul": b"\x00\x01\x02",
    "no_method": b'[[data]]\nname = "x"\ncohort = {}\n',
    "seed_text": suite(top='seed = "x"'),
    "seed_negative": suite(top="seed = -1"),
    "seed_huge": suite(top=f"seed = {2**62}"),
    "seconds_text": suite(top='seconds = "long"'),
    "seconds_negative": suite(top="seconds = -1"),
    "seconds_zero": suite(top="seconds = 0"),
    "name_number": suite(top="").replace(b'name = "s"', b"name = 5"),
    "name_list": suite(top="").replace(b'name = "s"', b"name = [1]"),
    "folds_text": suite(protocol="").replace(b"folds = 2", b'folds = "two"'),
    "folds_negative": suite().replace(b"folds = 2", b"folds = -2"),
    "folds_one": suite().replace(b"folds = 2", b"folds = 1"),
    "folds_huge": suite().replace(b"folds = 2", b"folds = 1000"),
    "folds_float": suite().replace(b"folds = 2", b"folds = 2.5"),
    "repeats_zero": suite().replace(b"repeats = 1", b"repeats = 0"),
    "repeats_text": suite().replace(b"repeats = 1", b'repeats = "many"'),
    "protocol_list": b"protocol = [1, 2]\n" + suite().replace(b"[protocol]", b"[other]"),
    "protocol_unknown": suite().replace(b'name = "nested"', b'name = "nosuch"'),
    "protocol_field": suite(protocol="nosuch = 1"),
    "sizes_text": suite(protocol='sizes = "x"'),
    "sizes_negative": suite(protocol="sizes = [-3]"),
    "sizes_nan": suite(protocol="sizes = [nan]"),
    "grid_number": suite(protocol="grid = 3"),
    "grid_unknown": suite(protocol='tuned = "nested"\ngrid = { machine__nosuch = [1] }'),
    "grid_scalar": suite(protocol='tuned = "nested"\ngrid = { machine__C = 1 }'),
    "grid_text": suite(protocol='tuned = "nested"\ngrid = { machine__C = ["x"] }'),
    "tuned_number": suite(protocol="tuned = 5"),
    "settings_text": suite(protocol='settings = "x"'),
    "scheme_unknown": suite(protocol='scheme = "x"'),
    "shares_zero": suite(protocol='scheme = "shares"\ntest_share = 0.0'),
    "shares_text": suite(protocol='scheme = "shares"\ntest_share = "x"'),
    "shares_two": suite(protocol='scheme = "shares"\ntest_share = 2.0'),
    "inner_negative": suite(protocol='tuned = "nested"\ninner_folds = -1\ngrid = { machine__C = [1.0] }'),
    "cohort_unknown": suite(cohort=", nosuch = 1"),
    "cohort_text": suite(cohort=', effect = "x"'),
    "cohort_negative": suite().replace(b"n_samples = 30", b"n_samples = -30"),
    "cohort_zero": suite().replace(b"n_features = 5", b"n_features = 0"),
    "cohort_huge": suite().replace(b"n_samples = 30", b"n_samples = 10000000000000"),
    "cohort_list": suite().replace(b"cohort = {", b"cohort = 3 #"),
    "shuffle_negative": suite(data="shuffle = -2"),
    "shuffle_text": suite(data='shuffle = "x"'),
    "data_unknown": suite(data='[[data]]\nname = "NOSUCH"'),
    "data_same": suite(data='[[data]]\nname = "toy"\ncohort = {}'),
    "data_number": suite(data="[[data]]\nname = 5"),
    "data_file_missing": suite(data='[[data]]\nfile = "nosuch.csv"\ntarget = "y"'),
    "data_file_number": suite(data="[[data]]\nfile = 5"),
    "data_file_target": suite(data='[[data]]\nfile = "t.csv"\ntarget = "nosuch"'),
    "data_file_groups": suite(data='[[data]]\nfile = "t.csv"\ntarget = "y"\ngroups = "nosuch"'),
    "data_file_folder": suite(data='[[data]]\nfile = "."\ntarget = "y"'),
    "data_field": suite(data="nosuch = 1"),
    "method_unknown": suite().replace(b'name = "fisher"', b'name = "nosuch"'),
    "method_number": suite().replace(b'name = "fisher"', b"name = 5"),
    "method_field": suite(method="nosuch = 1"),
    "method_text": suite(method='cv = "x"'),
    "method_label": suite(method="label = 5"),
    "method_grid": suite(method="grid = 5"),
    "method_same": suite(method='[[method]]\nname = "fisher"'),
    "method_bad_value": suite(method='machine = "nosuch"'),
    "top_unknown": suite(top="nosuch = 1"),
    "data_not_a_list": b"data = 5\nmethod = 5\n",
    "deep": b"a = " + b"[" * 5000 + b"]" * 5000,
}
RESULTS = {
    "null": b"null",
    "list": b"[]",
    "empty": b"{}",
    "text": b"hello",
    "schema": b'{"schema": 3}',
    "schema_text": b'{"schema": "3"}',
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "binary": bytes(range(256)),
    "huge_number": b'{"schema": ' + b"9" * 5000 + b"}",
}
LINES = [
    "",
    "nosuch",
    "--nosuch",
    "--help",
    "--version",
    "methods",
    "methods --json",
    "methods extra",
    "select",
    "select t.csv",
    "select t.csv --target",
    "select t.csv --target nosuch",
    "select t.csv --target a",
    "select nosuch.csv --target y",
    "select . --target y",
    "select pipe --target y",
    "select pipe.csv --target y",
    "select /dev/null --target y",
    "select /dev/zero --target y",
    "select zero.csv --target y",
    "select socket.csv --target y",
    "select link.csv --target y",
    "select loop.csv --target y",
    "select empty.csv --target y",
    "select header.csv --target y",
    "select binary.csv --target y",
    "select nul.csv --target y",
    "select text.xlsx --target y",
    "select notparquet.parquet --target y",
    "select notgzip.csv.gz --target y",
    "select cutgzip.csv.gz --target y",
    "select oneclass.csv --target y",
    "select onerow.csv --target y",
    "select ragged.csv --target y",
    "select quotes.csv --target y",
    "select utf16.csv --target y --out out1 " + FAST,
    "select huge.csv --target y --out out2 " + FAST,
    f"select {'n' * 300}.csv --target y",
    f"select t.csv --target y --out {'n' * 300} " + FAST,
    f"select t.csv --target {'y' * 5000}",
    "select t.csv --target y --out t.csv " + FAST,
    "select t.csv --target y --out t.csv/sub " + FAST,
    "select t.csv --target y --out /proc/nosuch " + FAST,
    "select t.csv --target y --out /dev/null " + FAST,
    "select t.csv --target y --out foreign " + FAST,
    "select t.csv --target y --out foreignmark " + FAST,
    "select t.csv --target y --out linked " + FAST,
    "select t.csv --target y --out good " + FAST,
    "select t.csv --target y --out good --resume --fresh " + FAST,
    "select t.csv --target y --out new --resume " + FAST,
    "select t.csv --target y --n-features-to-select 0 " + FAST,
    "select t.csv --target y --n-features-to-select -3 " + FAST,
    "select t.csv --target y --n-features-to-select x " + FAST,
    f"select t.csv --target y --n-features-to-select {'9' * 5000} " + FAST,
    "select t.csv --target y --n-features-to-select ² " + FAST,
    "select t.csv --target y --n-features-to-select 100 --out out3 " + FAST,
    "select t.csv --target y --prefilter x " + FAST,
    "select t.csv --target y --prefilter fast:0 " + FAST,
    "select t.csv --target y --prefilter nosuch:5 " + FAST,
    f"select t.csv --target y --prefilter fast:{'9' * 5000} " + FAST,
    "select t.csv --target y --methods nosuch",
    "select t.csv --target y --methods ,",
    "select t.csv --target y --methods fisher,fisher --cv 2 --n-repeats 1 --without suspects --out out4",
    "select t.csv --target y --kernel nosuch " + FAST,
    "select t.csv --target y --minutes 0",
    "select t.csv --target y --minutes -1",
    "select t.csv --target y --minutes nan",
    "select t.csv --target y --minutes inf --out out5 " + FAST,
    "select t.csv --target y --minutes x",
    "select t.csv --target y --cv 1",
    "select t.csv --target y --cv 1000 --methods fisher",
    "select t.csv --target y --cv x",
    "select t.csv --target y --n-repeats 0",
    "select t.csv --target y --n-repeats -1",
    "select t.csv --target y --ensemble 0",
    "select t.csv --target y --max-samples 0 " + FAST,
    "select t.csv --target y --max-samples -1 " + FAST,
    "select t.csv --target y --max-samples 4 --out out6 " + FAST,
    "select t.csv --target y --random-state -1",
    "select t.csv --target y --random-state 99999999999999999999 " + FAST,
    "select t.csv --target y --n-jobs 0",
    "select t.csv --target y --n-jobs -99 --out out7 " + FAST,
    "select t.csv --target y --n-jobs x",
    "select t.csv --target y --groups nosuch",
    "select t.csv --target y --groups y",
    "select t.csv --target y --groups a --out out8 " + FAST,
    "select t.csv --target y --ids nosuch " + FAST,
    "select t.csv --target y --ids a,b,c --out out9 " + FAST,
    "select t.csv --target y --keep nosuch " + FAST,
    'select t.csv --target y --keep "a --out out10 ' + FAST,
    "select t.csv --target y --drop a,b,c,d,e,f " + FAST,
    "select t.csv --target y --drop y " + FAST,
    "select t.csv --target y --drop nosuch " + FAST,
    "select t.csv --target y --positive nosuch " + FAST,
    "select t.csv --target y --positive 1 --out out11 --json " + FAST,
    "select t.csv --target y --separator x " + FAST,
    "select t.csv --target y --separator \\ " + FAST,
    "select t.csv --target y --decimal x " + FAST,
    "select t.csv --target y --encoding nosuch " + FAST,
    "select t.csv --target y --encoding utf-16 " + FAST,
    "select nosuch.csv --target y --as-json",
    "report",
    "report nosuch",
    "report t.csv",
    "report .",
    "report good",
    "report good --out good",
    "report good --out t.csv/x",
    "report good --out /dev/full",
    "report pipe",
    *(f"report results/{name}" for name in RESULTS),
    *(f"report results/{name}/result.json" for name in RESULTS),
    "predict",
    "predict good",
    "predict nosuch t.csv",
    "predict good nosuch.csv",
    "predict good t.csv",
    "predict good t.csv --out t.csv",
    "predict good t.csv --out x.txt",
    "predict good t.csv --out nosuch/deep/p.csv",
    "predict good t.csv --out t.csv/p.csv",
    "predict good t.csv --json",
    "predict good other.csv",
    "predict good empty.csv",
    "predict good pipe.csv",
    "predict t.csv t.csv",
    "predict pipe t.csv",
    "predict . t.csv",
    "predict damaged.marginsieve t.csv",
    "predict empty.csv t.csv",
    "bench",
    "bench nosuch.toml --out b",
    "bench . --out b",
    "bench pipe --out b",
    "bench t.csv --out b",
    *(f"bench suites/{name}.toml --out bench-{name}" for name in SUITES),
    "bench suites/good.toml --out t.csv",
    "bench suites/good.toml --out foreign",
    "bench suites/good.toml --out /proc/x",
    "bench suites/good.toml --out bench-good --metric nosuch",
    "bench suites/good.toml --out bench-good --verify",
    "bench suites/good.toml --out nosuch --verify",
    "bench suites/good.toml --out bench-good --n-jobs 0",
    "bench suites/good.toml --out bench-good --json",
    "bench suites/good.toml --out bench-good --resume --fresh",
    "bench suites/good.toml --out new2 --resume",
    "bench suites/good.toml --out b2 --cluster nosuch",
    "bench suites/good.toml --out b2 --cluster tcp://",
    "bench suites/good.toml --out b2 --cluster tcp://localhost:x",
    "bench suites/good.toml --out good",
    "reproduce",
    "bench suites/good.toml --out b3 --load nosuch",
    "suspects",
    "suspects t.csv",
    "suspects t.csv --target nosuch",
    "suspects t.csv --target y --out x.txt",
    "suspects t.csv --target y --out t.csv",
    "suspects t.csv --target y --clean-rate 0",
    "suspects t.csv --target y --clean-rate 5",
    "suspects t.csv --target y --clean-rate nan",
    "suspects t.csv --target y --groups nosuch",
    "suspects t.csv --target y --drop a,b,c,d,e,f",
    "suspects oneclass.csv --target y",
    "suspects pipe.csv --target y",
    "cohort",
    "cohort c.txt",
    "cohort t.csv",
    "cohort c.csv --n-samples 0",
    "cohort c.csv --n-samples -5",
    "cohort c.csv --n-samples 99999999999999",
    "cohort c.csv --n-features 0",
    "cohort c.csv --n-relevant 5000",
    "cohort c.csv --n-relevant -1",
    "cohort c.csv --n-redundant -1",
    "cohort c.csv --prevalence 0",
    "cohort c.csv --prevalence 2",
    "cohort c.csv --prevalence nan",
    "cohort c.csv --effect nan",
    "cohort c.csv --effect inf",
    "cohort c.csv --flip 2",
    "cohort c.csv --flip -1",
    "cohort c.csv --random-state -1",
    "cohort good",
    "cohort t.csv/c.csv",
    "cohort nosuch/deep/c.csv --n-samples 30 --n-features 5 --n-relevant 2 --n-redundant 0",
    f"cohort {'n' * 300}.csv",
]


@cache
def folder() -> Path:
    """The files that the lines name, in a folder of this process."""
    place = Path(tempfile.mkdtemp(prefix="hostile-"))
    os.chdir(place)
    frame = pd.DataFrame(numbers(), columns=list("abcdef")).assign(y=np.where(labels() > 0, "case", "control"))
    frame.to_csv("t.csv", index=False)
    frame.rename(columns={"a": "z"}).to_csv("other.csv", index=False)
    frame.assign(y="case").to_csv("oneclass.csv", index=False)
    frame.head(1).to_csv("onerow.csv", index=False)
    frame.head(0).to_csv("header.csv", index=False)
    frame.assign(a=[f"{value:.3f}e400" for value in frame["a"]]).to_csv("huge.csv", index=False)
    frame.to_csv("utf16.csv", index=False, encoding="utf-16")
    written = Path("t.csv").read_bytes()
    for name, content in {
        "empty.csv": b"",
        "binary.csv": bytes(range(256)) * 20,
        "nul.csv": written.replace(b"0", b"\x00"),
        "text.xlsx": b"PK",
        "notparquet.parquet": b"PAR1" + b"x" * 100 + b"PAR1",
        "notgzip.csv.gz": b"hello",
        "cutgzip.csv.gz": b"\x1f\x8b\x08\x00abc",
        "ragged.csv": b"a,b,y\n1,2,u\n1,2,3,4,v\n1\n" * 5,
        "quotes.csv": b'a,y\n"1,u\n2,v\n' * 5,
        "damaged.marginsieve": b"PK\x03\x04" + b"x" * 200,
    }.items():
        Path(name).write_bytes(content)
    for name in ("pipe", "pipe.csv"):
        os.mkfifo(name)
    os.symlink("/dev/zero", "zero.csv")
    os.symlink("t.csv", "link.csv")
    os.symlink("loop.csv", "loop.csv")
    Path("foreign").mkdir()
    for name in ("report.html", "results.sqlite", "lock", "result.json"):
        Path("foreign", name).write_text('{"schema": 3}')
    Path("foreignmark").mkdir()
    Path("foreignmark", "marginsieve.json").write_text('{"marginsieve": 5, "schema": 1}')
    Path("linked").mkdir()
    os.symlink(place / "t.csv", "linked/result.json")
    Path("suites").mkdir()
    for name, content in SUITES.items():
        Path("suites", f"{name}.toml").write_bytes(content)
    for name, content in RESULTS.items():
        Path("results", name).mkdir(parents=True)
        Path("results", name, "result.json").write_bytes(content)
    _called(f"select t.csv --target y --out good {FAST}")
    return place


def _called(line: str) -> tuple[int, str]:
    """(exit code, what was said) of a command line, in this process."""
    from marginsieve.cli import main

    out, before = io.StringIO(), sys.argv
    sys.argv = ["marginsieve", *line.split(" ")] if line else ["marginsieve"]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            main()
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    finally:
        sys.argv = before
    return 0, out.getvalue()


def judge(line: str) -> tuple[str, str]:
    """What came of a command line: its table must be as it was, its code one of the documented."""
    folder()
    table = Path("t.csv").read_bytes()
    foreign = {path.name: path.read_bytes() for path in Path("foreign").iterdir()}
    code, said = _called(line)
    if Path("t.csv").read_bytes() != table or foreign != {p.name: p.read_bytes() for p in Path("foreign").iterdir()}:
        return "nonsense", "files of others were changed"
    if code not in CODES or "Traceback" in said:
        return "raw", f"code {code}: {' '.join(said.split())[-300:]}"
    if code == 2 and len(said.split()) < 4:
        return "raw", f"no sentence: {said!r}"
    if code == 0 and line.endswith("--json"):
        json.loads(said)
    return ("good" if code == 0 else "clear"), f"code {code}: {' '.join(said.split())[-200:]}"


def main() -> int:
    """Every line; `say` as an argument shows what was said."""
    tally: dict[str, int] = {}
    wanted = [word for word in sys.argv[1:] if word != "say"]
    lines = [line for line in LINES if all(word in line for word in wanted)]
    for (line,), (kind, said) in processes.run(judge, [(line,) for line in lines], 2, lambda _: LIMIT):
        tally[kind] = tally.get(kind, 0) + 1
        if kind not in ("good", "clear") or "say" in sys.argv:
            sys.stdout.write(f"{kind}: {line[:100]}\n    {said}\n")
    sys.stdout.write(f"{len(lines)} lines: {tally}\n")
    return int(set(tally) - {"good", "clear"} != set())


if __name__ == "__main__":
    sys.exit(main())
