"""The number of features: how steady it is between outer folds, what it costs, and whether it follows the truth.

    MARGINSIEVE_DATA=... python -m benchmarks.sizes --jobs 2

On the wide tables of the papers, 2 x 5 outer folds: the rule of the package beside one standard error below the best of
5 inner folds (the rule that it replaced), with the same ranking. Then generated tables with 5 and with 300 planted
columns.
"""

from __future__ import annotations

import argparse
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from scipy import stats
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

from marginsieve import recipes
from marginsieve.solvers.execution import one_thread

from .wide import read

TABLES = (
    *("COLON", "GLIOMA", "SRBCT", "DLBCL", "LEUKEMIA", "GORDON", "BHAT1", "BHAT2", "BHAT3", "BHAT4"),
    *("CAR1", "CAR2", "CAR3", "CAR4"),
)
OPTIONS: dict[str, Any] = {"class_weight": "balanced", "random_state": 0, "similar": None, "positive": 1}


def one_fold(task: tuple[str, str, int]) -> tuple[int, float, int, float]:
    """(size, AUC) by the rule of the package, then by one standard error."""
    warnings.simplefilter("ignore")
    name, recipe, number = task
    X, y = read(name)
    train, test = list(RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0).split(X, y))[number]
    few = min(5, int(y[train].sum()))
    ours = recipes.get(recipe)(**OPTIONS).fit(X[train], y[train])
    folds = StratifiedKFold(few, shuffle=True, random_state=0)
    curve = recipes.get(recipe)(cv=folds, n_features_to_select="best", **OPTIONS).fit(X[train], y[train]).path_.steps
    steps = sorted((step for step in curve if np.isfinite(step.score)), key=lambda step: step.size)
    score, error = np.array([step.score for step in steps]), np.array([step.score_error for step in steps])
    best = int(np.argmax(score))
    size = next(step.size for step in steps if step.score >= score[best] - error[best] - 1e-12)
    theirs = recipes.get(recipe)(n_features_to_select=size, **OPTIONS).fit(X[train], y[train])
    areas = [roc_auc_score(y[test], one.decision_function(X[test])) for one in (ours, theirs)]
    return ours.n_features_, areas[0], size, areas[1]


def _one_fold(task: tuple[str, str, int]) -> tuple[int, float, int, float]:
    with one_thread():
        return one_fold(task)


def planted(task: tuple[int, float, int]) -> int:
    """The chosen size on a table of 100 x 2,000 with so many planted columns."""
    warnings.simplefilter("ignore")
    count, shift, seed = task
    rng = np.random.default_rng([seed, count])
    y = np.arange(100) % 2
    X = rng.normal(size=(100, 2000))
    X[:, :count] += shift * y[:, None]
    return int(recipes.fisher(**OPTIONS).fit(X, y).n_features_)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--recipes", default="fisher,svm_rfe")
    given = parser.parse_args()
    with ProcessPoolExecutor(given.jobs) as pool:
        for recipe in given.recipes.split(","):
            tasks = [(name, recipe, number) for name in TABLES for number in range(10)]
            kept = np.array(list(pool.map(_one_fold, tasks, chunksize=1))).reshape(len(TABLES), 10, 4)
            print(f"\n### {recipe}\n\n| table | sizes | spread of log2 | AUC | one-SE: sizes | spread | AUC |")
            print("|---|---|---|---|---|---|---|")
            spread = np.log2(kept[:, :, [0, 2]]).std(axis=1, ddof=1)
            area = kept[:, :, [1, 3]].mean(axis=1)
            for k, name in enumerate(TABLES):
                cells = []
                for rule in (0, 1):
                    sizes = kept[k, :, 2 * rule]
                    cells.append(
                        f"{sizes.min():.0f} to {sizes.max():.0f} | {spread[k, rule]:.2f} | {area[k, rule]:.3f}"
                    )
                print(f"| {name} | {' | '.join(cells)} |")
            gain = area[:, 0] - area[:, 1]
            low = gain.mean() - stats.t.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / np.sqrt(len(gain))
            print(
                f"| mean | | {spread[:, 0].mean():.2f} | {area[:, 0].mean():.3f} | | {spread[:, 1].mean():.2f} | ",
                end="",
            )
            print(
                f"{area[:, 1].mean():.3f} |\n\ngain in AUC {gain.mean():+.4f}, lower 95 % bound {low:+.4f}", flush=True
            )
        few, many = (
            [*pool.map(planted, [(count, shift, seed) for seed in range(40)])]
            for count, shift in ((5, 1.2), (300, 0.4))
        )
        print(f"\nmedian size with 5 planted columns {np.median(few):.0f}, with 300 {np.median(many):.0f}")


if __name__ == "__main__":
    main()
