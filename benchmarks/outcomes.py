"""Other outcomes than classes on real tables, and how often their intervals hold the truth.

python -m benchmarks.outcomes numbers FOLDER     the short and the long list beside ridge regression, lasso and forests
python -m benchmarks.outcomes survival FOLDER    the lists beside proportional hazards on all features and a filter
python -m benchmarks.outcomes coverage           intervals on simulated tables, against 4,000 new rows

FOLDER holds the tables as Parquet files, the outcome in the columns `target`, or `time` and `event`.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

import marginsieve
from marginsieve.engine import Pass, score_predictions
from marginsieve.outcomes import Numbers
from marginsieve.solvers.ridge import kernel_ridge

ANALYSES = ("shuffled-study", "false-share", "substitutes", "other-lists", "unexplained", "suspects", "effects")
#: tables of numbers, and what is done to them: logarithms of a skewed outcome, copies of a row as a group, a sample
NUMBERS = {
    "eyedata": {},
    "gasoline": {},
    "tecator": {"copies": True},
    "liver_toxicity": {"log": True},
    "sacramento": {"log": True},
    "wage": {"rows": 800},
    "bodyfat": {},
}


def read_numbers(path, log=False, copies=False, rows=None):
    """Features, outcome and groups of a table of numbers."""
    frame = pd.read_parquet(path)
    if rows is not None:
        frame = frame.sample(rows, random_state=0).reset_index(drop=True)
    y = frame.pop("target")
    groups = pd.factorize(frame.astype(str).agg("|".join, axis=1))[0] if copies else None
    return frame, np.log(y) if log else y, groups


def compare_numbers(folder, names):
    """A line for each table: R2 of the lists, of all features and of the models for reference, and differences."""
    lines = []
    for name in names:
        since = time.process_time()
        X, y, groups = read_numbers(Path(folder, f"{name}.parquet"), **NUMBERS[name])
        study = marginsieve.study(
            X, y, groups=groups, outcome="numbers", methods="two-views", cv=5, n_repeats=2, without=ANALYSES, ids=()
        )
        result = study.result
        references = {row["title"]: row for row in result["analyses"]["references"]["compared"]}
        longer = result["lists"]["long"]
        score = {
            "table": name,
            "rows": len(X),
            "columns": X.shape[1],
            "features": result["n_features_over_folds"]["median"],
            "short": result["scores"]["r2"]["value"],
            "long": longer["scores"]["r2"]["value"] if longer else None,
            "all": result["methods"][-1]["scores"]["r2"]["value"],
            **{title: row["scores"]["r2"]["value"] for title, row in references.items()},
            "seconds": time.process_time() - since,
        }
        print(score, flush=True)
        lines.append(score)
    table = pd.DataFrame(lines).set_index("table")
    print_table(table)
    print("means", table.mean(numeric_only=True).round(3).to_dict(), "medians", table["features"].median())
    for rival in ("all", "ridge regression", "lasso", "random forest"):
        print("short less", rival, *interval_of_mean(table["short"] - table[rival]))


#: tables of times with at least 70 columns, no patient twice, chosen before any result; the smaller ones first
SURVIVAL = ("mcl", "vdxs", "gse7390", "nsbcd", "aml_bull", "ovarian_gse51088", "dlbcl", "dbcd", "ovarian_sites")


def compare_survival(folder, names):
    """A line for each table: C of the lists, of the list by the Cox score, of the ranking machine, of proportional
    hazards on all features, and of the Cox lasso."""
    lines = []
    for name in names:
        since = time.process_time()
        frame = pd.read_parquet(Path(folder, f"{name}.parquet")).drop(columns="site", errors="ignore")
        y = pd.DataFrame({"time": frame.pop("time"), "event": frame.pop("event") == 1})
        methods = "clinical-rfe,fisher,svm-rfe"
        study = marginsieve.study(frame, y, methods=methods, cv=5, n_repeats=2, without=ANALYSES, ids=())
        result = study.result
        ours, by_filter, ranking, every = result["methods"]
        longer = result["lists"]["long"]
        line = {
            "table": name,
            "rows": len(frame),
            "columns": frame.shape[1],
            "events": int(y["event"].sum()),
            "features": result["n_features_over_folds"]["median"],
            "short": ours["scores"]["c"]["value"],
            "long": longer["scores"]["c"]["value"] if longer else ours["scores"]["c"]["value"],
            "Cox score": by_filter["scores"]["c"]["value"],
            "ranking": ranking["scores"]["c"]["value"],
            "all": every["scores"]["c"]["value"],
            "Cox lasso": result["analyses"]["references"]["compared"][0]["scores"]["c"]["value"],
            "seconds": time.process_time() - since,
        }
        print(line, flush=True)
        lines.append(line)
    table = pd.DataFrame(lines).set_index("table")
    print_table(table)
    print("means", table.mean(numeric_only=True).round(3).to_dict(), "median", table["features"].median())
    for rival in ("all", "Cox score", "Cox lasso", "ranking"):
        print("short less", rival, *interval_of_mean(table["short"] - table[rival]))


def print_table(table):
    """A table of Markdown."""
    print(f"| table | {' | '.join(table.columns)} |", "|---|" + "---:|" * len(table.columns), sep="\n")
    for name, row in table.iterrows():
        print(f"| {name} | " + " | ".join(f"{value:.3g}" if value < 1000 else f"{value:.0f}" for value in row) + " |")


def interval_of_mean(differences):
    """Mean and 95 % interval over tables."""
    d = np.asarray(differences, dtype=float)
    reach = stats.t.ppf(0.975, len(d) - 1) * d.std(ddof=1) / np.sqrt(len(d))
    return [round(float(value), 4) for value in (d.mean(), d.mean() - reach, d.mean() + reach)]


DESIGNS = {  # rows, columns, columns that count, noise
    "weak, 80 rows": (80, 300, 10, 2.5),
    "strong, 80 rows": (80, 300, 5, 0.7),
    "weak, 200 rows": (200, 300, 10, 2.5),
    "strong, 200 rows": (200, 300, 5, 0.7),
    "middle, 120 rows": (120, 500, 10, 1.2),
    "none, 100 rows": (100, 300, 10, 50.0),
}


def draw(rng, m, n, relevant, noise):
    X = rng.normal(size=(m, n))
    return X, X[:, :relevant].sum(axis=1) / np.sqrt(relevant) + noise * rng.normal(size=m) / np.sqrt(2)


def fit_best(X, y, count=20):
    """Predictions by ridge regression, penalty by leave-one-out, on the columns most correlated with y."""
    centre, spread = X.mean(axis=0), X.std(axis=0)
    Z = (X - centre) / spread
    chosen = np.sort(np.argsort(-np.abs((y - y.mean()) @ Z))[:count])
    best = kernel_ridge(Z[:, chosen] @ Z[:, chosen].T, y, np.ones(len(y)), None)
    slope = Z[:, chosen].T @ best.coef
    return lambda rows: (rows[:, chosen] - centre[chosen]) / spread[chosen] @ slope + best.intercept


def pass_over(X, y, rng):
    """Out-of-fold predictions of one draw of five folds."""
    fold, predicted = rng.permutation(len(y)) % 5, np.empty(len(y))
    for k in range(5):
        predicted[fold == k] = fit_best(X[fold != k], y[fold != k])(X[fold == k])
    return Pass(predicted, fold=fold)


def measure_coverage(cohorts=200):
    """How often intervals hold what the finished model scores on new rows, misses below and above apart."""
    for name, (m, n, relevant, noise) in DESIGNS.items():
        misses, widths, errors = {}, {}, {}
        for seed in range(cohorts):
            rng = np.random.default_rng([seed, m, relevant])
            X, y = draw(rng, m, n, relevant, noise)
            target = Numbers().read(X, y)
            scores = score_predictions(target, [pass_over(X, y, rng) for _ in range(3)])
            fresh, truth = draw(rng, 4000, n, relevant, noise)
            true = Numbers().read(fresh, truth).scores(Pass(fit_best(X, y)(fresh)))
            for metric, value in scores.value.items():
                low, high, right = scores.low[metric], scores.high[metric], true[metric].value
                misses.setdefault(metric, []).append((right < low, right > high))
                widths.setdefault(metric, []).append(high - low)
                errors.setdefault(metric, []).append(value - right)
        for metric, each in misses.items():
            below, above = np.mean(each, axis=0)
            ratio = np.mean(widths[metric]) / (2 * 1.96 * np.sqrt(np.mean(np.square(errors[metric]))))
            print(
                f"| {name} | {metric} | {1 - below - above:.3f} | {below:.3f} | {above:.3f} | {ratio:.2f} | "
                f"{np.mean(errors[metric]):+.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or [""]
    if what == "numbers":
        compare_numbers(rest[0], rest[1:] or list(NUMBERS))
    elif what == "survival":
        compare_survival(rest[0], rest[1:] or list(SURVIVAL))
    elif what == "coverage":
        measure_coverage(*map(int, rest))
    else:
        sys.exit(__doc__)
