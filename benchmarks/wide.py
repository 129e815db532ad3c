"""Short lists against all features and against other libraries' selectors, on wide tables, with the same splits.

    MARGINSIEVE_DATA=... python -m benchmarks.wide run wide.npz --jobs 2       # ours, and scikit-learn's
    MARGINSIEVE_DATA=... python -m benchmarks.wide run ipss.npz --methods ipss --repeats 1        # pip install it
    MARGINSIEVE_DATA=... python -m benchmarks.wide run boruta.npz --methods boruta --repeats 1 --own-cut
    python -m benchmarks.wide table wide.npz peers.npz                         # the tables of docs/choosing.md

2 x 5 outer folds (`--repeats 1`: the first five of them). Peers choose 50 columns (Boruta and ipss their own number)
and get the linear machine that ours get; each is scored with its own cut, which is 0, and with our threshold: halfway
between the classes' medians on five inner folds in which the selection is run anew (not with `--own-cut`).
`suites/wide.toml` is the same comparison of our own methods as a suite.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from scipy import stats
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, f_classif
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from marginsieve import recipes
from marginsieve.outcomes.scores import balanced_threshold
from marginsieve.solvers.execution import one_thread

TABLES = (
    *("COLON", "GLIOMA", "SRBCT", "DLBCL", "LEUKEMIA", "GORDON", "BHAT1", "BHAT2", "BHAT3", "BHAT4"),
    *("CAR1", "CAR2", "CAR3", "CAR4", "LYMPHOMA", "CNS", "VANTVEER"),
)
ALL = "all features"
OPTIONS: dict[str, Any] = {"class_weight": "balanced", "random_state": 0, "similar": None, "positive": 1}
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    ALL: ("fisher", {"n_features_to_select": 1.0}),
    "two-views": ("two_views", {}),
    "two-views, short": ("two_views", {"n_features_to_select": "short"}),
    "two-views, 20": ("two_views", {"n_features_to_select": 20}),
    "two-views, 50": ("two_views", {"n_features_to_select": 50}),
    "stable-fisher": ("stable_fisher", {}),
    "fisher": ("fisher", {}),
    "fisher, 50": ("fisher", {"n_features_to_select": 50}),
    "clinical-rfe": ("clinical_rfe", {}),
    "clinical-rfe, short": ("clinical_rfe", {"n_features_to_select": "short"}),
    "clinical-rfe, 50": ("clinical_rfe", {"n_features_to_select": 50}),
    "svm-rfe, 50": ("svm_rfe", {"n_features_to_select": 50}),
    "kp-cssvm, 50": ("kp_cssvm", {"n_features_to_select": 50}),
}
COUNT = 50


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """(X, y) of a table, y 1 for the positive class; missing cells at their column's mean."""
    from pathlib import Path

    import pandas as pd

    from reproduction.named_problems import load

    if name in ("CNS", "VANTVEER"):
        frame = pd.read_parquet(Path(os.environ["MARGINSIEVE_DATA"]) / f"{name.lower()}.parquet")
        y = frame["target"].isin(["died", "metastasis"]).to_numpy().astype(int)
        X = frame.select_dtypes(np.float32)
    else:
        table = load(name)
        X, y = table.X, (np.asarray(table.y) == table.positive).astype(int)
    X = X.loc[:, X.notna().any()]
    return X.fillna(X.mean()).to_numpy(dtype=float), y


def peers() -> dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
    """Functions of (standardised columns, classes) that give the numbers of the selected columns."""
    trees = ExtraTreesClassifier(500, random_state=0)
    sparse = LinearSVC(penalty="l1", dual=False, class_weight="balanced", random_state=0, max_iter=5000)
    backward = SVC(kernel="linear", class_weight="balanced")
    top = {"max_features": COUNT, "threshold": -np.inf}
    return {
        "SelectKBest(f_classif), 50": _fitted(SelectKBest(f_classif, k=COUNT)),
        "RFE(SVC), 50": _fitted(RFE(backward, n_features_to_select=COUNT, step=0.2)),
        "SelectFromModel(l1), 50": _fitted(SelectFromModel(sparse, **top)),
        "SelectFromModel(ExtraTrees), 50": _fitted(SelectFromModel(trees, **top)),
        "boruta": _boruta,
        "ipss": _ipss,
    }


def _fitted(selector: Any) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda X, y: selector.fit(X, y).get_support(indices=True)


def _boruta(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    from boruta import BorutaPy

    forest = RandomForestClassifier(max_depth=5, class_weight="balanced", random_state=0)
    found = BorutaPy(forest, n_estimators="auto", max_iter=50, random_state=0).fit(X, y)
    return np.flatnonzero(found.support_ | found.support_weak_)


def _ipss(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    from ipss import ipss

    np.random.seed(0)  # noqa: NPY002 - it has no other seed
    found = ipss(X, y, selector="l1", n_jobs=1)
    q = found["q_values"]
    chosen = [int(j) for j, value in q.items() if value <= 0.2]
    return np.array(chosen or [int(min(q, key=q.get))])


def _values(select: Any, X: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, int]:
    """Decision values of new rows by a linear machine on what is selected, and how many columns that is."""
    scaler = StandardScaler().fit(X)
    Z = scaler.transform(X)
    chosen = select(Z, y)
    machine = SVC(kernel="linear", class_weight="balanced").fit(Z[:, chosen], y)
    return machine.decision_function(scaler.transform(new)[:, chosen]), len(chosen)


def one_fold(task: tuple[str, str, int, bool]) -> tuple[float, float, float, float]:
    """(AUC, balanced accuracy at our threshold, balanced accuracy at the own cut, columns)."""
    warnings.simplefilter("ignore")
    name, method, number, own_cut = task
    X, y = read(name)
    train, test = list(RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0).split(X, y))[number]
    if method in OURS:
        recipe, settings = OURS[method]
        made = recipes.get(recipe)(**OPTIONS, **settings).fit(X[train], y[train])
        value = made.decision_function(X[test])
        cut, own, size = 0.0, np.nan, made.n_features_
    else:
        select = peers()[method]
        try:
            value, size = _values(select, X[train], y[train], X[test])
        except ValueError:  # ipss, where a half of the rows has one class only
            return (np.nan,) * 4
        own = balanced_accuracy_score(y[test], value > 0)
        if own_cut:
            return roc_auc_score(y[test], value), np.nan, own, size
        held = np.empty(len(train))
        few = min(5, int(np.bincount(y[train]).min()))
        for a, b in StratifiedKFold(few, shuffle=True, random_state=0).split(X[train], y[train]):
            held[b] = _values(select, X[train][a], y[train][a], X[train][b])[0]
        cut = balanced_threshold(held, np.where(y[train] == 1, 1.0, -1.0), np.ones(len(train)))
    return roc_auc_score(y[test], value), balanced_accuracy_score(y[test], value > cut), own, size


def _one(task: tuple[str, str, int, bool]) -> tuple[float, float, float, float]:
    with one_thread():
        return one_fold(task)


def run(file: str, jobs: int, methods: list[str], tables: list[str], folds: int, own_cut: bool) -> None:
    """Run every method on every fold of every table and keep what `one_fold` gives."""
    kept = {}
    with ProcessPoolExecutor(jobs) as pool:
        tasks = [(table, method, k, own_cut) for method in methods for table in tables for k in range(folds)]
        found = np.array(list(pool.map(_one, tasks, chunksize=1))).reshape(len(methods), len(tables), folds, 4)
    for method, one in zip(methods, found, strict=True):
        kept[method] = one
        print(method, one[:, :, :2].mean(axis=(0, 1)).round(3), np.median(one[:, :, 3]), flush=True)
    np.savez_compressed(file, tables=np.array(tables), **kept)


def table(files: list[str]) -> None:
    """Means over tables, and paired differences from all features with 95 % intervals over tables.

    Files of the same method are joined: their tables follow one another. Where a method has fewer folds or tables, it
    is compared with all features on those.
    """
    kept: dict[str, dict[str, np.ndarray]] = {}
    for file in files:
        content = dict(np.load(file).items())
        names = content.pop("tables").tolist()
        for method, values in content.items():
            kept.setdefault(method, {}).update(zip(names, values, strict=True))
    print(
        "| method | features | balanced accuracy | at its own cut | AUC | less all: balanced accuracy | less all: AUC |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, by_table in kept.items():
        by_table = {one: values for one, values in by_table.items() if np.isfinite(values[:, 0]).all()}
        values = np.array(list(by_table.values()))
        mean, folds = values.mean(axis=1), values.shape[1]
        base = np.array([kept[ALL][one][:folds].mean(axis=0) for one in by_table])
        own = "" if np.isnan(mean[:, 2]).all() else f"{mean[:, 2].mean():.3f}"
        gaps = [_interval(mean[:, k] - base[:, k]) if name != ALL else "" for k in (1, 0)]
        size = np.median(values[:, :, 3])
        accuracy = "" if np.isnan(mean[:, 1]).all() else f"{mean[:, 1].mean():.3f}"
        name += "" if len(by_table) == len(kept[ALL]) else f" ({len(by_table)} tables)"
        print(f"| {name} | {size:,.0f} | {accuracy} | {own} | {mean[:, 0].mean():.3f} | {gaps[0]} | {gaps[1]} |")


def _interval(gap: np.ndarray) -> str:
    if np.isnan(gap).all():
        return ""
    reach = stats.t.ppf(0.975, len(gap) - 1) * gap.std(ddof=1) / np.sqrt(len(gap))
    return f"{gap.mean():+.3f} ({gap.mean() - reach:+.3f} to {gap.mean() + reach:+.3f})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--methods", default="")
    parser.add_argument("--tables", default="")
    parser.add_argument("--repeats", type=int, choices=[1, 2], default=2)
    parser.add_argument("--own-cut", action="store_true")
    given = parser.parse_args()
    if given.what == "table":
        table(given.files)
        return
    every = [*OURS, *(name for name in peers() if name not in ("boruta", "ipss"))]
    methods = [name for name in given.methods.split(";") if name] or every
    tables = [name for name in given.tables.split(",") if name] or list(TABLES)
    run(given.files[0], given.jobs, methods, tables, 5 * given.repeats, given.own_cut)


if __name__ == "__main__":
    main()
