"""Other outcomes than classes on real tables, and how often their intervals hold the truth.

python -m benchmarks.outcomes numbers FOLDER     the short and the long list beside ridge regression, lasso and forests
python -m benchmarks.outcomes survival FOLDER    the lists beside proportional hazards on all features and a filter
python -m benchmarks.outcomes simulate FOLDER    what is promised, on simulated tables (`simulated_outcomes`)
python -m benchmarks.outcomes table FOLDER       the same of what is there

Of the first two FOLDER holds the tables as Parquet files, the outcome in the columns `target`, or `time` and `event`.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

import marginsieve

from .simulated_outcomes import OUTCOMES, QUICK, TABLES, print_results, simulate

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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["numbers", "survival", "simulate", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--what", dest="parts", default=",".join(TABLES))
    parser.add_argument("--outcomes", default=",".join(OUTCOMES))
    parser.add_argument("--tables", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.what == "numbers":
        compare_numbers(given.folder, given.names or list(NUMBERS))
    elif given.what == "survival":
        compare_survival(given.folder, given.names or list(SURVIVAL))
    else:
        if given.what == "simulate":
            tables = QUICK if given.quick else given.tables
            simulate(given.folder, given.parts.split(","), given.outcomes.split(","), tables, given.jobs)
        print_results(given.folder)


if __name__ == "__main__":
    main()
