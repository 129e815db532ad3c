"""Whether the stated share of false features holds, on tables with known relevant columns.

    python -m benchmarks.false_share run tables.npz --jobs 16                     # the closed form, marginal tests
    python -m benchmarks.false_share run searches.npz --recipes fisher,ipss --jobs 16
    python -m benchmarks.false_share run lists.npz --recipes first-20 --jobs 16
    python -m benchmarks.false_share table tables.npz searches.npz lists.npz

Lists are cut at q <= 0.1: by ridge regression in closed form ("closed"), by a test of each column alone ("marginal"),
by a recipe's own search ("fisher"), by ipss (pip install ipss), which has the base "l1" in all families. "first-20" is
the list of the 20 first features of svm-rfe (of mixed tables two-views), with the share that the closed form states of
it. A column is a hit "strictly" if it is planted, "by block" if its correlation with a planted one is at least 0.8 in
size; a planted column is found once. An empty list has no false share and no power.
"""

from __future__ import annotations

import argparse
import os
import re
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd

from marginsieve import recipes
from marginsieve.data import make_cohort
from marginsieve.estimators.inputs import encode
from marginsieve.fitting.false_share import FEWEST_PAIRS, FEWEST_SHUFFLES, false_share, ridge_false_share
from marginsieve.fitting.rows import Rows
from marginsieve.solvers.execution import one_thread
from marginsieve.studies.analyses.false_features import adjust, list_share, marginal_p

TARGET = 0.1
PLANTED, BLOCK, ALIKE = 10, 10, 0.8
FAMILIES = (
    *("independent 100 x 500", "independent 60 x 1,000", "blocks 100 x 500", "blocks 60 x 1,000"),
    *("mixed 120 x 300", "real columns 62 x 2,000", "no signal 60 x 500", "40 rows x 500"),
    *("heavy tails 80 x 600", "AR(1) 120 x 400", "half of the positives without signal 100 x 300"),
    *("12 % positives 250 x 100", "mixed, 12 % positives 200 x 300", "100 planted 100 x 500", "few columns 100 x 50"),
    *("factors, 100 planted 100 x 500", "no signal, 5 positives 60 x 500", "no signal in real columns 62 x 2,000"),
    *("three classes 120 x 300", "groups of 4 rows 120 x 300", "real columns, the others dealt out anew 62 x 2,000"),
)


@dataclass(frozen=True)
class Made:
    """A table, its outcome, whether each column is planted, and the rows' groups."""

    X: pd.DataFrame
    y: np.ndarray
    relevant: np.ndarray
    groups: np.ndarray | None = None

    @property
    def numbers(self) -> bool:
        """Whether all columns are numbers."""
        return all(kind.kind == "f" for kind in self.X.dtypes)

    def part(self) -> Rows:
        """The rows as a study has them."""
        return encode(recipes.clinical_rfe(), self.X, self.y, None, None, self.groups).active


def made(family: str, seed: int) -> Made:
    """A table of a family."""
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    if family.startswith("mixed"):
        return _mixed("12 %" in family, seed)
    if "real columns" in family:
        return _real(rng, signal=not family.startswith("no"), anew="anew" in family)
    rows, columns = (int(part.replace(",", "")) for part in re.findall(r"([\d,]+)(?: rows)? x ([\d,]+)", family)[0])
    y, shift = _outcome(family, rows), {60: 1.2, 40: 1.2, 80: 1.2, 250: 0.8}.get(rows, 1.0)
    relevant = np.arange(columns) < (100 if "100 planted" in family else PLANTED)
    if family.startswith("no"):
        relevant[:] = False
    if family.startswith("blocks"):
        relevant = (np.arange(columns) % BLOCK == 0) & (np.arange(columns) < PLANTED * BLOCK)
    if family.startswith("AR(1)"):
        relevant = np.arange(columns) % (columns // PLANTED) == 0
    X, shifted = _columns(family, rows, columns, rng), shift * y[:, None]
    if family.startswith("half"):
        shifted = 1.6 * (y * (np.arange(rows) % 4 == 1))[:, None]
    if family.startswith("three"):
        shifted = y[:, None] == np.arange(PLANTED) % 3
    X[:, relevant] += shifted[:, : relevant.sum()]
    return Made(pd.DataFrame(X), y, relevant, np.arange(rows) // 4 if family.startswith("groups") else None)


def _outcome(family: str, rows: int) -> np.ndarray:
    """The class of each row."""
    if "positives" in family and not family.startswith("half"):
        return (np.arange(rows) < (5 if "5 positives" in family else 0.12 * rows)).astype(int)
    if family.startswith("groups"):
        return np.arange(rows) // 4 % 2
    return np.arange(rows) % (3 if family.startswith("three") else 2)


def _columns(family: str, rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Columns without a signal; but for those of groups and heavy tails their variance is 1."""
    if family.startswith("heavy"):
        return rng.standard_t(3, size=(rows, columns)) / np.sqrt(3)
    X = rng.normal(size=(rows, columns))
    if family.startswith("blocks"):
        return np.sqrt(1 - ALIKE) * X + np.sqrt(ALIKE) * np.repeat(rng.normal(size=(rows, columns // BLOCK)), BLOCK, 1)
    if family.startswith("AR(1)"):  # r = 0.8^distance
        for j in range(1, columns):
            X[:, j] = 0.8 * X[:, j - 1] + 0.6 * X[:, j]
    if family.startswith("factors"):  # five of them are half of each column
        return np.sqrt(0.5) * (X + rng.normal(size=(rows, 5)) @ rng.normal(size=(5, columns)) / np.sqrt(5))
    if family.startswith("groups"):  # rows of a group have half of their variance in common
        return np.sqrt(0.5) * (X + np.repeat(rng.normal(size=(rows // 4, columns)), 4, axis=0))
    return X


def _real(rng: np.random.Generator, signal: bool, anew: bool) -> Made:
    """COLON's columns, and an outcome that ten of them make, or none.

    All others go with the ten, and so with the outcome; dealt out `anew`, rows as a whole, they say nothing of it.
    """
    X = real_columns()
    if not signal:
        y = rng.permutation(np.arange(len(X)) < 22).astype(int)
        return Made(pd.DataFrame(X), y, np.zeros(X.shape[1], dtype=bool))
    chosen = rng.choice(X.shape[1], PLANTED, replace=False)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    value = Z[:, chosen] @ rng.choice([-1.0, 1.0], PLANTED) + 0.5 * rng.normal(size=len(X))
    relevant = np.isin(np.arange(X.shape[1]), chosen)
    if anew:
        X = np.where(relevant, X, X[rng.permutation(len(X))])
    return Made(pd.DataFrame(X), (value > np.median(value)).astype(int), relevant)


def _mixed(rare: bool, seed: int) -> Made:
    """270 numbers and 30 categories; where a class is rare, three of the planted columns are categories."""
    given = {"n_features": 270, "n_categorical": 30, "effect": 1.2, "missing": 0.02, "random_state": seed}
    if rare:
        cohort = make_cohort(200, n_relevant=PLANTED - 3, n_categorical_relevant=3, prevalence=0.12, **given)
    else:
        cohort = make_cohort(120, n_relevant=PLANTED, prevalence=0.4, **given)
    relevant = np.isin(list(cohort.X.columns), [*cohort.truth.relevant, *cohort.truth.categorical])
    return Made(cohort.X, (cohort.y == "case").to_numpy().astype(int), relevant)


def real_columns() -> np.ndarray:
    """The expression values of COLON."""
    from reproduction.named_problems import load

    return np.asarray(load("COLON").X.to_numpy(dtype=float))


def hits(table: Made, chosen: np.ndarray) -> tuple[float, float, float, float, int]:
    """(false share, power) strictly, then by block, and the length of the list; no power where nothing is planted."""
    count, relevant = int(chosen.sum()), table.relevant
    planted = np.flatnonzero(relevant)
    if not count or not len(planted):
        power = 0.0 if len(planted) else np.nan
        return float(count > 0), power, float(count > 0), power, count
    strict = float((chosen & ~relevant).sum() / count)
    alike = np.zeros((len(planted), len(relevant)), dtype=bool)
    alike[np.arange(len(planted)), planted] = True
    if table.numbers:
        alike |= np.array([_near(table.X.to_numpy(dtype=float), j) for j in planted])
    hit = alike.any(axis=0)
    found = alike[:, chosen].any(axis=1)
    block = float((chosen & ~hit).sum() / max((chosen & ~hit).sum() + found.sum(), 1))
    return strict, float(chosen[relevant].mean()), block, float(found.mean()), count


def _near(Z: np.ndarray, j: int) -> np.ndarray:
    D = Z - Z.mean(axis=0)
    with np.errstate(all="ignore"):
        r = D.T @ D[:, j] / np.sqrt((D**2).sum(axis=0) * (D[:, j] ** 2).sum())
    return np.abs(r) >= ALIKE


def one_table(task: tuple[str, int, tuple[str, ...]]) -> np.ndarray:
    """(methods, 6): what `hits` gives of each method's list, and the share that is stated of it."""
    warnings.simplefilter("ignore")
    family, seed, methods = task
    table = made(family, seed)
    lists = [_list_of(method, table, seed) for method in methods]
    return np.array([[*hits(table, chosen), stated] for chosen, stated in lists])


def _list_of(method: str, table: Made, seed: int) -> tuple[np.ndarray, float]:
    """The list, and the share of false features that is stated of it."""
    if method == "ipss":
        return _ipss(table.X, table.y, seed), TARGET
    if method == "marginal":
        return adjust(_marginal(table, seed)) <= TARGET, TARGET
    if method in ("closed", "first-20"):
        known = ridge_false_share(table.part(), np.random.SeedSequence(seed), 1)
        if method == "closed":
            return known.q <= TARGET, TARGET
        recipe = recipes.get("svm_rfe" if table.numbers else "two_views")
        first = recipe(n_features_to_select=20, random_state=0, class_weight="balanced")
        first.fit(table.X, table.y, groups=table.groups)
        return first.support_, list_share(known, _marginal(table, seed), first.support_)
    selector = recipes.get(method if table.numbers else "two_views")(random_state=0, class_weight="balanced")
    part = encode(selector, table.X, table.y, None, None, table.groups).active
    found = false_share(selector.plan(part), part, FEWEST_PAIRS, FEWEST_SHUFFLES, np.random.SeedSequence(seed), 1)
    return found.q <= TARGET, TARGET


def _marginal(table: Made, seed: int) -> np.ndarray:
    """p of each column alone, as in a study."""
    return marginal_p(table.part(), np.random.default_rng(seed))


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
    names = ["table", "method", "tables", "stated", "false, strictly", "power", "false, by block", "power"]
    print(f"| {' | '.join([*names, 'has a list', 'features'])} |\n|---|---|{'---:|' * 8}")
    for file in files:
        for key, values in np.load(file).items():
            family, method = key.split("|")
            empty = np.isnan(values[:, 1]).all()  # nothing is planted
            mean, error = values.mean(axis=0), values.std(axis=0) / np.sqrt(len(values))
            cells = [f"{mean[5]:.2f}"]
            for share in (0, 2):
                cells += [f"{mean[share]:.3f} ± {error[share]:.3f}", "" if empty else f"{mean[share + 1]:.2f}"]
            cells += [f"{np.mean(values[:, 4] > 0):.2f}", f"{mean[4]:.1f}"]
            print(f"| {family} | {method} | {len(values)} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--recipes", default="closed,marginal")
    parser.add_argument("--families", default="")
    given = parser.parse_args()
    if given.what == "table":
        table(given.files)
        return
    families = [name for name in given.families.split(";") if name] or list(FAMILIES)
    run(given.files[0], given.tables, given.jobs, tuple(given.recipes.split(",")), families)


if __name__ == "__main__":
    main()
