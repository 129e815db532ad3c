"""Whether the stated share of false features holds: tables with known relevant columns, next to ipss in the same run.

    python -m benchmarks.false_share run tables.npz --tables 200 --jobs 16               # fisher, marginal tests, ipss
    python -m benchmarks.false_share run views.npz --tables 100 --recipes two_views --jobs 16
    python -m benchmarks.false_share table tables.npz views.npz

Lists are cut at q <= 0.1. A column is a hit "strictly" if it is planted, "by block" if its correlation with a planted
one is at least 0.8 in size; a planted column is found once. An empty list has no false share and no power. ipss
(pip install ipss) has the base "l1" in all families.
"""

from __future__ import annotations

import argparse
import os
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
from scipy import stats

from marginsieve import recipes
from marginsieve.criteria import MixedTest
from marginsieve.data import make_cohort
from marginsieve.estimators.inputs import encode
from marginsieve.fitting.false_share import PAIRS, SHUFFLES, false_share
from marginsieve.solvers.execution import one_thread

TARGET = 0.1
PLANTED, BLOCK, ALIKE = 10, 10, 0.8
FAMILIES = (
    *("independent 100 x 500", "independent 60 x 1,000", "blocks 100 x 500", "blocks 60 x 1,000"),
    *("mixed 120 x 300", "real columns 62 x 2,000", "no signal 60 x 500", "40 rows x 500"),
)


def made(family: str, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """(X, y, whether each column is planted)."""
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    if family.startswith("mixed"):
        cohort = make_cohort(
            120, 270, n_relevant=PLANTED, n_categorical=30, effect=1.2, missing=0.02, prevalence=0.4, random_state=seed
        )
        relevant = np.isin(list(cohort.X.columns), list(cohort.truth.relevant))
        return cohort.X, (cohort.y == "case").to_numpy().astype(int), relevant
    if family.startswith("real"):
        X = real_columns()
        chosen = rng.choice(X.shape[1], PLANTED, replace=False)
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        value = Z[:, chosen] @ rng.choice([-1.0, 1.0], PLANTED) + 0.5 * rng.normal(size=len(X))
        y = (value > np.median(value)).astype(int)
        return pd.DataFrame(X), y, np.isin(np.arange(X.shape[1]), chosen)
    rows, columns = {"4": (40, 500)}.get(family[0], (100, 500) if "100" in family else (60, 1000))
    columns = 500 if family.startswith("no") else columns
    y = np.arange(rows) % 2
    X = rng.normal(size=(rows, columns))
    relevant = np.arange(columns) < PLANTED
    if family.startswith("blocks"):
        X = np.sqrt(1 - ALIKE) * X + np.sqrt(ALIKE) * np.repeat(rng.normal(size=(rows, columns // BLOCK)), BLOCK, 1)
        relevant = (np.arange(columns) % BLOCK == 0) & (np.arange(columns) < PLANTED * BLOCK)
    if family.startswith("no"):
        relevant[:] = False
    X[:, relevant] += (1.0 if rows == 100 else 1.2) * y[:, None]
    return pd.DataFrame(X), y, relevant


def real_columns() -> np.ndarray:
    """The expression values of COLON."""
    from reproduction.named_problems import load

    return np.asarray(load("COLON").X.to_numpy(dtype=float))


def hits(X: pd.DataFrame, chosen: np.ndarray, relevant: np.ndarray) -> tuple[float, float, float, float, int]:
    """(false share, power) strictly, then by block, and the length of the list."""
    count = int(chosen.sum())
    planted = np.flatnonzero(relevant)
    if not count:
        return 0.0, 0.0, 0.0, 0.0, 0
    power = float(chosen[relevant].mean()) if len(planted) else np.nan
    strict = float((chosen & ~relevant).sum() / count)
    alike = np.zeros((len(planted), X.shape[1]), dtype=bool)
    Z = X.to_numpy(dtype=float) if all(kind.kind == "f" for kind in X.dtypes) else None
    for k, j in enumerate(planted):
        alike[k] = np.arange(X.shape[1]) == j
        if Z is not None:
            alike[k] |= _near(Z, j)
    hit = alike.any(axis=0)
    found = alike[:, chosen].any(axis=1)
    block = float((chosen & ~hit).sum() / max((chosen & ~hit).sum() + found.sum(), 1))
    return strict, power, block, float(found.mean()) if len(planted) else np.nan, count


def _near(Z: np.ndarray, j: int) -> np.ndarray:
    D = Z - Z.mean(axis=0)
    with np.errstate(all="ignore"):
        r = D.T @ D[:, j] / np.sqrt((D**2).sum(axis=0) * (D[:, j] ** 2).sum())
    return np.abs(r) >= ALIKE


def one_table(task: tuple[str, int, tuple[str, ...]]) -> np.ndarray:
    """(methods, 5): what `hits` gives of each method's list."""
    warnings.simplefilter("ignore")
    family, seed, methods = task
    X, y, relevant = made(family, seed)
    return np.array([hits(X, _list_of(method, X, y, seed), relevant) for method in methods])


def _list_of(method: str, X: pd.DataFrame, y: np.ndarray, seed: int) -> np.ndarray:
    if method == "ipss":
        return _ipss(X, y, seed)
    if method == "marginal":
        encoded = encode(recipes.clinical_rfe(), X, y, None)
        p = 10.0 ** -MixedTest()(encoded.table, np.where(y == 1, 1.0, -1.0)[None], np.ones(len(y)))
        return np.asarray(stats.false_discovery_control(np.clip(p, 0.0, 1.0)) <= TARGET)
    numbers = method == "two_views" or all(kind.kind == "f" for kind in X.dtypes)
    selector = recipes.get(method if numbers else "two_views")(random_state=0, class_weight="balanced")
    encoded = encode(selector, X, y, None)
    part, _ = encoded.part()
    found = false_share(selector.plan(encoded), part, PAIRS, SHUFFLES, np.random.SeedSequence(seed), 1)
    return found.q <= TARGET


def _ipss(X: pd.DataFrame, y: np.ndarray, seed: int) -> np.ndarray:
    from ipss import ipss

    np.random.seed(seed)  # noqa: NPY002 - it has no other seed
    wide = pd.get_dummies(X.fillna(X.mean(numeric_only=True)), dummy_na=False).astype(float)
    owner = [
        next(k for k, name in enumerate(X.columns) if str(c) == str(name) or str(c).startswith(f"{name}_"))
        for c in wide
    ]
    q = ipss(wide.to_numpy(), y, selector="l1", n_jobs=1)["q_values"]
    chosen = np.zeros(X.shape[1], dtype=bool)
    chosen[[owner[int(j)] for j, value in q.items() if value <= TARGET]] = True
    return chosen


def _one(task: tuple[str, int, tuple[str, ...]]) -> np.ndarray:
    with one_thread():
        return one_table(task)


def run(file: str, tables: int, jobs: int, methods: tuple[str, ...], families: list[str]) -> None:
    """Lists of every method on every table."""
    kept = {}
    with ProcessPoolExecutor(jobs) as pool:
        for family in families:
            tasks = [(family, seed, methods) for seed in range(tables)]
            found = np.array(list(pool.map(_one, tasks, chunksize=1)))
            for k, method in enumerate(methods):
                kept[f"{family}|{method}"] = found[:, k]
            print(family, found.mean(axis=0).round(3).tolist(), flush=True)
            np.savez_compressed(file, **kept)


def table(files: list[str]) -> None:
    """Shares of false features and power, strictly / by block, with standard errors of the shares."""
    print("| table | method | tables | false, strictly | power | false, by block | power | has a list | features |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for file in files:
        for key, values in np.load(file).items():
            family, method = key.split("|")
            mean, error = np.nanmean(values, axis=0), np.nanstd(values, axis=0) / np.sqrt(len(values))
            cells = [
                f"{mean[0]:.3f} ± {error[0]:.3f}",
                f"{mean[1]:.2f}",
                f"{mean[2]:.3f} ± {error[2]:.3f}",
                f"{mean[3]:.2f}",
            ]
            cells += [f"{np.mean(values[:, 4] > 0):.2f}", f"{mean[4]:.1f}"]
            print(f"| {family} | {method} | {len(values)} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--recipes", default="fisher,marginal,ipss")
    parser.add_argument("--families", default="")
    given = parser.parse_args()
    if given.what == "table":
        table(given.files)
        return
    families = [name for name in given.families.split(";") if name] or list(FAMILIES)
    run(given.files[0], given.tables, given.jobs, tuple(given.recipes.split(",")), families)


if __name__ == "__main__":
    main()
