"""Whether planted equivalents are called equivalent, and whether the intervals of the change of AUC hold.

    python -m benchmarks.substitutes run substitutes.npz --jobs 2 --tables 8      # 96 settings, about 7 minutes
    python -m benchmarks.substitutes table substitutes.npz                        # the tables of docs/substitutes.md

A table has ten columns that carry signal and ten noisy copies among 100, and 10,000 further rows on which the change of
AUC is read off: both lists are trained on the table's rows and score the further ones. `fisher` selects 5 or 12.
"""

from __future__ import annotations

import argparse
import itertools
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from unittest.mock import patch

import numpy as np
from sklearn.metrics import roc_auc_score

from marginsieve import recipes
from marginsieve.data import cohort as generated
from marginsieve.engine import nested_cv
from marginsieve.outcomes import Classes
from marginsieve.solvers.execution import one_thread
from marginsieve.studies.analyses.substitutes import MARGIN, find_substitutes, predict_on
from marginsieve.studies.study_data import from_arrays

ROWS, EFFECTS, NOISES, SIZES = (80, 120, 200, 300), (0.5, 0.7, 1.0), (0.1, 0.3, 0.7, 1.2), (5, 12)
NEW = 10_000
COLUMNS = ("seed", "rows", "effect", "noise", "size", "change", "low", "high", "true", "copy", "auc")


def one_table(task: tuple[int, int, float, float, int]) -> list[tuple[float, ...]]:
    """A row for each feature of the list and candidate."""
    warnings.simplefilter("ignore")
    seed, m, effect, noise, size = task
    with one_thread(), patch.object(generated, "COPY_NOISE", noise):
        made = generated.make_cohort(
            m + NEW, 100, n_relevant=10, n_redundant=10, effect=effect, prevalence=0.4, random_state=seed
        )
        X, y = made.X.iloc[:m], made.y.iloc[:m]
        selector = recipes.fisher(n_features_to_select=size, class_weight="balanced", random_state=0, similar=None)
        nested = nested_cv(selector, X, y, n_repeats=3)
        selector.fit(X, y)
        ranked = np.argsort(selector.ranking_)[: selector.n_features_]
        frame = find_substitutes(from_arrays(X, y, None, [], ()).table(Classes()), nested, ranked, None)
        whole = from_arrays(made.X, made.y, None, [], ()).table(Classes())
        part, new = whole.rows.take(np.arange(m)), np.arange(m, m + NEW)
        names, truth = list(made.X.columns), whole.target.codes[new] == whole.target.positive
        pairs = set(made.truth.redundant.items()) | {(b, a) for a, b in made.truth.redundant.items()}
        auc = nested.scores().value["auc"]

        def score(columns: np.ndarray) -> float:
            return float(roc_auc_score(truth, predict_on(part, np.sort(columns), whole.rows, new)["decision"]))

        out, base = [], score(ranked) if len(frame) else 0.0
        for row in frame.itertuples():
            swapped = np.append(ranked[ranked != names.index(row.feature)], names.index(row.substitute))
            copy = (row.feature, row.substitute) in pairs
            out.append((*task, row.change, row.low, row.high, score(swapped) - base, float(copy), auc))
    return out


def run(file: str, jobs: int, tables: int, first_seed: int) -> None:
    settings = list(itertools.product(ROWS, EFFECTS, NOISES, SIZES))
    tasks = [(first_seed + 1000 * i + k, *one) for i, one in enumerate(settings) for k in range(tables)]
    with ProcessPoolExecutor(jobs) as pool:
        rows = [row for some in pool.map(one_table, tasks, chunksize=4) for row in some]
    np.savez_compressed(file, rows=np.array(rows))


def table(file: str) -> None:
    rows = np.load(file)["rows"]
    known = dict(zip(COLUMNS, rows.T, strict=True))
    same = (known["low"] > -MARGIN) & (known["high"] < MARGIN)
    different = np.abs(known["true"]) >= MARGIN
    print(f"{len(rows)} swaps; changes of {MARGIN} or more: {different.sum()}, of which {same[different].sum()} called")
    print(
        "equivalent; one-sided misses of the interval (5 % each are allowed), and copies that are called equivalent:\n"
    )
    print("| | below | above | copies found, AUC below .9 | AUC .9 or more |")
    print("|---|---:|---:|---:|---:|")
    for name, values in (("rows", ROWS), ("effect", EFFECTS), ("noise", NOISES), ("size", SIZES)):
        for value in values:
            at = known[name] == value
            below, above = (known["true"] < known["low"])[at].mean(), (known["true"] > known["high"])[at].mean()
            copies = at & (known["copy"] > 0)
            found = [
                f"{same[some].mean():.0%} of {some.sum()}" if some.any() else ""
                for some in (copies & (known["auc"] < 0.9), copies & (known["auc"] >= 0.9))
            ]
            print(f"| {name} {value:g} | {below:.1%} | {above:.1%} | {found[0]} | {found[1]} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--tables", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=200_000)
    given = parser.parse_args()
    if given.what == "run":
        run(given.file, given.jobs, given.tables, given.first_seed)
    else:
        table(given.file)


if __name__ == "__main__":
    main()
