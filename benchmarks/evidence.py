"""Whether the p of the evidence holds, what it finds, and how far it depends on the seed.

python -m benchmarks.evidence run null.npz --what null --tables 1000       # tables without a signal
python -m benchmarks.evidence run power.npz --what power --tables 250      # weak signals
python -m benchmarks.evidence run shuffled.npz --what shuffled --tables 40  # the same by shuffled studies, slow
python -m benchmarks.evidence run seeds.npz --what seeds                   # real tables, in MARGINSIEVE_DATA
python -m benchmarks.evidence table null.npz power.npz shuffled.npz seeds.npz
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pandas as pd

from marginsieve import recipes
from marginsieve.estimators.inputs import encode
from marginsieve.fitting.evidence import CLEAR, STATISTICS, WEAK, find_evidence
from marginsieve.outcomes import Classes
from marginsieve.solvers.execution import one_thread

from .coverage import BLOCK, CORRELATION, EVIDENCE, cohort

Rows = tuple[Any, np.ndarray, np.ndarray | None]  # X, y and groups
PROMISE = 0.064  # share of p <= .05: .05 and two standard errors of 1,000 tables
NULL = (
    *("independent", "blocks", "categories", "a rare class", "groups"),
    *("groups of any size", "size by class", "groups of both classes", "a few of them", "three classes", "20 rows"),
)
POWER = (
    *(setting.name for setting in EVIDENCE if setting.shift),
    *("one column", "200 columns", "one category", "blocks with a signal", "groups with a signal"),
)
REAL = ("COLON", "CNS", "VANTVEER", "GLIOMA", "DLBCL", "HEPATITIS", "HEART", "DIABETES", "SONAR", "ARRHYTHMIA")
SOME_ROWS = 24  # of each real table once more, or nearly all have the smallest p that there is
SEEDS = 4
FACTOR, SMALL, BOTH = 1.5, 0.01, 0.015  # p of two seeds: within the factor if both are at least small, else both below

# -- tables ----------------------------------------------------------------------------------------------------------


def labels(rng: np.random.Generator, rows: int, positives: int) -> np.ndarray:
    return rng.permutation((np.arange(rows) < positives).astype(int))


def in_blocks(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    shared = np.repeat(rng.normal(size=(rows, columns // BLOCK)), BLOCK, 1)
    return np.sqrt(1 - CORRELATION) * rng.normal(size=(rows, columns)) + np.sqrt(CORRELATION) * shared


def mixed(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """20 numbers and 20 categories of two to six levels, not equally frequent; 5 % of the cells empty."""
    frame = pd.DataFrame(rng.normal(size=(rows, 20))).add_prefix("x")
    for k in range(20):
        levels = 2 + k % 5
        codes = rng.choice(levels, rows, p=rng.dirichlet(np.full(levels, 3.0)))
        frame[f"c{k}"] = pd.Categorical.from_codes(codes, list("abcdef"[:levels]))
    return frame.mask(rng.random(frame.shape) < 0.05)


def in_groups(rng: np.random.Generator, sizes: np.ndarray, columns: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a correlation of .8 in their group, and the groups."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    shared = rng.normal(size=(len(sizes), columns))[groups]
    return np.sqrt(0.8) * shared + np.sqrt(0.2) * rng.normal(size=shared.shape), groups


def null_table(kind: str, rng: np.random.Generator) -> Rows:
    """A table whose columns say nothing of the labels."""
    if kind == "groups of both classes":  # sites, which differ in the columns and in the share of positives
        X, groups = in_groups(rng, np.full(6, 12))
        y = (rng.random(72) < np.repeat(rng.uniform(0.2, 0.8, 6), 12)).astype(int)
        y[:2] = 0, 1
        return X, y, groups
    if kind == "a few of them":
        X, groups = in_groups(rng, np.full(24, 3))
        y = labels(rng, 24, 10)[groups]
        y[::36] = 1 - y[::36]
        return X, y, groups
    if kind in ("groups", "groups of any size", "size by class"):
        label = labels(rng, 24, 10)
        sizes = {"groups": rng.integers(2, 5, 24), "size by class": 2 + 3 * label}.get(kind, rng.integers(1, 16, 24))
        X, groups = in_groups(rng, sizes)
        return X, label[groups], groups
    if kind == "blocks":
        return in_blocks(rng, 60, 500), labels(rng, 60, 24), None
    if kind == "categories":
        return mixed(rng, 60), labels(rng, 60, 24), None
    if kind == "three classes":
        return rng.normal(size=(60, 200)), rng.permutation(np.repeat([0, 1, 2], [12, 20, 28])), None
    rows, positives = {"a rare class": (100, 8), "20 rows": (20, 8)}.get(kind, (60, 24))
    return rng.normal(size=(rows, 200)), labels(rng, rows, positives), None


def table_with_signal(kind: str, rng: np.random.Generator) -> Rows:
    """A table of `POWER`."""
    for setting in EVIDENCE:
        if setting.name == kind:
            return *cohort(setting, rng)[:2], None
    if kind == "one category":  # 70 against 30 %
        frame, y = mixed(rng, 60), labels(rng, 60, 24)
        frame["c0"] = np.where(rng.random(60) < np.where(y == 1, 0.75, 0.25), "a", "b")
        return frame, y, None
    if kind == "groups with a signal":
        X, groups = in_groups(rng, rng.integers(2, 5, 24))
        y = labels(rng, 24, 10)[groups]
        X[:, :10] += 0.8 * y[:, None]
        return X, y, groups
    if kind == "blocks with a signal":
        X, y = in_blocks(rng, 60, 500), labels(rng, 60, 24)
        X[:, : 3 * BLOCK : BLOCK] += 0.8 * y[:, None]
        return X, y, None
    y, X = labels(rng, 60, 24), rng.normal(size=(60, 1000))
    shifted, shift = (1, 1.5) if kind == "one column" else (200, 0.2)
    X[:, :shifted] += shift * y[:, None]
    return X, y, None


def real_table(name: str, rows: int | None) -> Rows:
    """One of the papers' binary problems, or some of its rows, half of either class where there are as many."""
    from reproduction.named_problems import load

    data = load(name)
    _, y, counts = np.unique(np.asarray(data.y), return_inverse=True, return_counts=True)
    X = data.X.reset_index(drop=True)
    if rows is not None:
        rng = np.random.default_rng(0)
        of_rarer = min(rows // 2, int(counts.min()))
        chosen = [rng.permutation(np.flatnonzero(y == k)) for k in np.argsort(counts, kind="stable")]
        kept = np.sort(np.concatenate([chosen[0][:of_rarer], chosen[1][: rows - of_rarer]]))
        X, y = X.iloc[kept].reset_index(drop=True), y[kept]
    return X.loc[:, X.notna().any()], y, None


# -- tests -----------------------------------------------------------------------------------------------------------


def by_evidence(rows: Rows, seed: int) -> list[float]:
    """p, the p of each statistic, the smallest of a column, and seconds."""
    X, y, groups = rows
    part = encode(recipes.two_views(), X, y, None, None, groups).active
    start = time.process_time()
    found = find_evidence(part, np.random.default_rng(seed))
    return [found.p, *found.each, float(found.column_p.min()), time.process_time() - start]


def by_shuffled_study(rows: Rows) -> list[float]:
    """p of a study with the Fisher score on 99 shuffled labellings, and seconds."""
    from marginsieve.studies.analyses.shuffled_study import above_chance
    from marginsieve.studies.analysis import Shape, StudyRun
    from marginsieve.studies.options import StudyOptions
    from marginsieve.studies.planning import choose
    from marginsieve.studies.selection import prepare_method
    from marginsieve.studies.study_data import from_arrays

    X, y, _ = rows
    start = time.process_time()
    options = StudyOptions(methods="fisher", positive=1)
    data = from_arrays(X, y, ids=())
    table = data.table(Classes(positive=1))
    choice = choose(Shape(*X.shape, False, float(np.mean(y))), options)
    methods = [prepare_method(method, table, choice.options) for method in choice.methods]
    p = above_chance(StudyRun(data, table, choice, options, methods), 99).p
    return [p, time.process_time() - start]


def one(task: tuple[str, str, int]) -> list[float]:
    """One table, which depends on its kind and number alone."""
    warnings.simplefilter("ignore")
    what, kind, number = task
    with one_thread():
        if what == "seeds":
            name, rows = kind.split(", ")
            return by_evidence(real_table(name, None if rows == "all" else SOME_ROWS), number)
        place, make = (NULL.index(kind), null_table) if what == "null" else (100 + POWER.index(kind), table_with_signal)
        rows = make(kind, np.random.default_rng([number, place]))
        return by_shuffled_study(rows) if what == "shuffled" else by_evidence(rows, number)


def run(file: str, what: str, tables: int, jobs: int, kinds: list[str]) -> None:
    """Test tables of each kind and keep what was found."""
    every = {"null": NULL, "power": POWER, "shuffled": POWER[:4]}.get(what, ())
    every = every or tuple(f"{name}, {rows}" for rows in ("all", str(SOME_ROWS)) for name in REAL)
    kept = {}
    with ProcessPoolExecutor(jobs) as pool:
        for kind in kinds or every:
            tasks = [(what, kind, number) for number in range(SEEDS if what == "seeds" else tables)]
            kept[f"{what}|{kind}"] = found = np.array(list(pool.map(one, tasks)))
            print(
                what, kind, (found <= WEAK).mean(axis=0).round(3).tolist(), found.mean(axis=0).round(3)[-1], flush=True
            )
            np.savez_compressed(file, **kept)


# -- what they say ---------------------------------------------------------------------------------------------------


def say_null(known: dict[str, np.ndarray]) -> Iterable[str]:
    yield "| tables without a signal | tables | p <= .05 | p <= .01 | a column passes | each statistic, p <= .05 |"
    yield "|---|---:|---:|---:|---:|---|"
    for kind, found in known.items():
        error, each = np.sqrt(WEAK * (1 - WEAK) / len(found)), (found[:, 1:6] <= WEAK).mean(axis=0)
        share = f"{(found[:, 0] <= WEAK).mean():.3f} (± {error:.3f}) | {(found[:, 0] <= CLEAR).mean():.3f}"
        alone = " ".join(f"{value:.3f}" for value in each)
        yield f"| {kind} | {len(found)} | {share} | {(found[:, 6] <= WEAK).mean():.3f} | {alone} |"


def say_power(known: dict[str, np.ndarray]) -> Iterable[str]:
    yield f"| signal | tables | p <= .05 | p <= .01 | a column passes | {' | '.join(STATISTICS)} | CPU s |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for kind, found in known.items():
        cells = [(found[:, 0] <= WEAK).mean(), (found[:, 0] <= CLEAR).mean(), (found[:, 6] <= WEAK).mean()]
        cells += (found[:, 1:6] <= WEAK).mean(axis=0).tolist()
        yield f"| {kind} | {len(found)} | {' | '.join(f'{value:.2f}' for value in cells)} | {found[:, 7].mean():.1f} |"


def say_shuffled(known: dict[str, np.ndarray]) -> Iterable[str]:
    yield "| signal, shuffled study | tables | p <= .05 | CPU s |"
    yield "|---|---:|---:|---:|"
    for kind, found in known.items():
        yield f"| {kind} | {len(found)} | {(found[:, 0] <= WEAK).mean():.2f} | {found[:, 1].mean():.1f} |"


def say_seeds(known: dict[str, np.ndarray]) -> Iterable[str]:
    yield "| table, rows | p of the seeds | largest / smallest | promise | CPU s |"
    yield "|---|---|---:|---|---:|"
    for kind, found in known.items():
        p = found[:, 0]
        kept = p.max() <= FACTOR * p.min() if p.min() >= SMALL else p.max() < BOTH
        cells = f"{' '.join(f'{value:.4f}' for value in p)} | {p.max() / p.min():.2f} | {'kept' if kept else 'MISSED'}"
        yield f"| {kind} | {cells} | {found[:, 7].mean():.1f} |"


SAY: dict[str, Callable[[dict[str, np.ndarray]], Iterable[str]]] = {
    "null": say_null,
    "power": say_power,
    "shuffled": say_shuffled,
    "seeds": say_seeds,
}


def table(files: list[str]) -> None:
    """What each file says."""
    for file in files:
        kept = dict(np.load(file))
        for what, say in SAY.items():
            known = {key.split("|")[1]: found for key, found in kept.items() if key.split("|")[0] == what}
            if known:
                print("\n".join(say(known)), end="\n\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("do", choices=["run", "table"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--what", choices=list(SAY), default="null")
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--kinds", default="")
    given = parser.parse_args()
    if given.do == "table":
        table(given.files)
        return
    run(given.files[0], given.what, given.tables, given.jobs, [name for name in given.kinds.split(";") if name])


if __name__ == "__main__":
    main()
