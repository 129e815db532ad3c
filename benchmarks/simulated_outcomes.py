"""What is promised of numbers and of times to an event, on simulated tables: evidence, false shares, intervals.

    python -m benchmarks.outcomes simulate FOLDER --jobs 16            # all of it; stopped, it goes on from there
    python -m benchmarks.outcomes simulate FOLDER --what evidence --tables 1000
    python -m benchmarks.outcomes simulate FOLDER --quick              # 20 tables of each setting
    python -m benchmarks.outcomes table FOLDER

A table depends on its setting and number alone. FOLDER has a CSV file for each part and outcome, with a row for each
table, written as it is done.
"""

from __future__ import annotations

import csv
import io
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import stats

from marginsieve import nested_cv, recipes
from marginsieve.data import make_cohort
from marginsieve.engine import Pass, score_predictions
from marginsieve.estimators.inputs import encode
from marginsieve.fitting.evidence import WEAK, find_evidence
from marginsieve.fitting.false_share import ridge_false_share
from marginsieve.fitting.rows import Rows
from marginsieve.outcomes import Numbers, Survival
from marginsieve.solvers.execution import one_thread
from marginsieve.solvers.ridge import kernel_ridge
from marginsieve.studies.analyses.false_features import adjust, list_share, marginal_p

from .coverage import BLOCK, CORRELATION
from .evidence import in_blocks, in_groups, mixed
from .false_share import ALIKE, PLANTED, TARGET, Made

OUTCOMES = {"numbers": Numbers(), "survival": Survival()}
TABLES = {"evidence": 1000, "false-share": 200, "coverage": 200}
QUICK = 20
FRESH = 4000  # rows on which a finished model is scored
SUMS_CORRELATION = 0.9  # in blocks of which one column each makes the outcome: all of a block go with it
LISTED = 20  # features of a list whose stated share is compared with the true one


def rng_of(setting: str, number: int) -> np.random.Generator:
    return np.random.default_rng([number, zlib.crc32(setting.encode())])


def encoded(outcome: str, X: Any, y: Any, groups: Any = None) -> Rows:
    """The rows as a study has them."""
    return encode(recipes.clinical_rfe(outcome=outcome), X, y, None, None, groups, OUTCOMES[outcome]).active


# -- tables ----------------------------------------------------------------------------------------------------------


def censor(rng: np.random.Generator, hazard: np.ndarray, censoring: np.ndarray, rate: float = 0.0) -> np.ndarray:
    """(m, 2) times and events from the logarithms of two hazards."""
    end, seen = rng.exponential(np.exp(-censoring - rate)), rng.exponential(np.exp(-hazard))
    return np.column_stack([np.minimum(seen, end), seen <= end])


def null_of_numbers(kind: str, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    if kind.startswith("groups"):
        X, groups = in_groups(rng, rng.integers(2, 5, 24))
        return X, rng.normal(size=24)[groups] + 0.5 * rng.normal(size=len(X)), groups
    if kind.startswith("categories"):
        return mixed(rng, 60), rng.normal(size=60), None
    rows = 20 if kind.startswith("20 rows") else 60
    X = in_blocks(rng, rows, 500) if kind.startswith("blocks") else rng.normal(size=(rows, 200))
    if kind.startswith("skewed"):
        return X, np.exp(1.5 * rng.normal(size=rows)), None
    if kind.startswith("counts"):
        return X, rng.poisson(0.7, rows).astype(float), None
    return X, rng.normal(size=rows), None


def null_of_survival(kind: str, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    if kind.startswith("groups"):
        X, groups = in_groups(rng, rng.integers(2, 5, 30))
        hazard = rng.normal(size=30)[groups]
        return X, censor(rng, hazard, np.zeros(len(X)), -0.5), groups
    if kind.startswith("categories"):
        return mixed(rng, 100), censor(rng, np.zeros(100), np.zeros(100), -0.5), None
    if kind.startswith("blocks"):
        X = in_blocks(rng, 100, 500)
        return X, censor(rng, np.zeros(100), 0.4 * X[:, :50].sum(axis=1) / np.sqrt(5)), None
    rows = 30 if kind.startswith("30 rows") else 100
    settings = {"outcome": "survival", "n_relevant": 0, "effect": 1.0, "censored": 0.3}
    if kind.startswith("censoring by 5"):
        settings |= {"n_censoring": 5, "censored": 0.5}
    elif kind.startswith("censoring by 1"):
        settings |= {"n_censoring": 1, "censored": 0.7, "effect": 3.0}
    elif kind.startswith("85 %"):
        rows, settings["censored"] = 200, 0.85
    cohort = make_cohort(rows, 200, random_state=rng, **settings)
    y = cohort.y.to_numpy(dtype=float)
    if kind.startswith("equal times"):
        y[:, 0] = np.ceil(y[:, 0] / 400.0)
    return cohort.X, y, None


NULL: dict[str, tuple[Callable[..., tuple[Any, Any, Any]], tuple[str, ...]]] = {
    "numbers": (
        null_of_numbers,
        (
            *("independent 60 x 200", "blocks 60 x 500", "categories and gaps 60 x 40", "skewed 60 x 200"),
            *("counts 60 x 200", "groups of 2 to 4 rows", "20 rows x 200"),
        ),
    ),
    "survival": (
        null_of_survival,
        (
            *("independent 100 x 200", "censoring by 5 columns 100 x 200", "censoring by 1 column, 70 %"),
            *("blocks, censoring by 50 columns 100 x 500", "85 % censored 200 x 200", "equal times 100 x 200"),
            *("categories and gaps 100 x 40", "groups of 2 to 4 rows", "30 rows x 200"),
        ),
    ),
}
FAMILIES = {
    "numbers": (
        *(
            "independent 100 x 500",
            "blocks 100 x 500",
            "sums over blocks 100 x 500",
            "mixed 120 x 300",
            "skewed 100 x 500",
        ),
        *("40 rows x 500", "few columns 100 x 50", "no signal 60 x 500"),
    ),
    "survival": (
        *("independent 150 x 500", "blocks 150 x 500", "sums over blocks 150 x 500", "mixed 150 x 300"),
        "censoring by 5 columns 150 x 500",
        *("80 % censored 250 x 300", "few columns 150 x 50", "no signal, censoring by 5 columns 100 x 500"),
    ),
}


def in_correlated_blocks(outcome: str, rows: int, sums: bool, rng: np.random.Generator) -> Made:
    """One column of each of ten blocks moves with the outcome alone; or the outcome is a sum of one from each."""
    r, m, n = SUMS_CORRELATION if sums else CORRELATION, rows, 500
    shared = np.repeat(rng.normal(size=(m, n // BLOCK)), BLOCK, axis=1)
    X = np.sqrt(1 - r) * rng.normal(size=(m, n)) + np.sqrt(r) * shared
    relevant, signs = np.arange(n) % BLOCK == 0, rng.choice([-1.0, 1.0], PLANTED)
    relevant &= np.arange(n) < PLANTED * BLOCK
    f = 0.6 * X[:, relevant] @ signs if sums else np.zeros(m)
    if outcome == "numbers":
        y, move = (value := f + rng.normal(size=m)), value
    else:
        time = rng.exponential(np.exp(-f))
        end, move = rng.exponential(np.e, m), np.log(time) / np.std(np.log(time))
        y = np.column_stack([np.minimum(time, end), time <= end])
    if not sums:
        X[:, relevant] += 0.5 * move[:, None] * signs
    return Made(pd.DataFrame(X), y, relevant)


def planted(outcome: str, family: str, rng: np.random.Generator) -> Made:
    """A table of a family of `FAMILIES`."""
    rows = {"mixed": 120, "40 row": 40, "no sig": 60}.get(family[:6].strip(), 100)
    settings: dict[str, Any] = {"outcome": outcome, "n_relevant": PLANTED, "effect": 0.5}
    if outcome == "survival":
        rows = 250 if family.startswith("80 %") else 100 if family.startswith("no") else 150
        settings |= {"effect": 0.6, "censored": 0.8 if family.startswith("80 %") else 0.3}
        if "censoring by 5" in family:
            settings |= {"n_censoring": 5, "censored": 0.5}
    if family.startswith("no"):
        settings["n_relevant"] = 0
    columns = 50 if family.startswith("few") else 300 if family.startswith("80 %") else 500
    if family.startswith("mixed"):
        columns, settings["n_relevant"] = 270, PLANTED - 3
        settings |= {"n_categorical": 30, "n_categorical_relevant": 3, "missing": 0.02, "effect": 0.7}
    if "blocks" in family:
        return in_correlated_blocks(outcome, rows, family.startswith("sums"), rng)
    cohort = make_cohort(rows, columns, random_state=rng, **settings)
    relevant = np.isin(list(cohort.X.columns), [*cohort.truth.relevant, *cohort.truth.categorical])
    y = cohort.y.to_numpy(dtype=float)
    return Made(cohort.X, np.exp(y) if family.startswith("skewed") else y, relevant)


# -- one table -------------------------------------------------------------------------------------------------------


def test_evidence(outcome: str, setting: str, number: int) -> dict[str, float]:
    """p, and the smallest p of a column, of a table that says nothing of its outcome."""
    X, y, groups = NULL[outcome][0](setting, rng_of(setting, number))
    found = find_evidence(encoded(outcome, X, y, groups), np.random.default_rng(number))
    each = {f"statistic_{k}": float(p) for k, p in enumerate(found.each)}
    return {"p": found.p, "column_p": float(found.column_p.min()), **each}


def false_shares(table: Made, chosen: np.ndarray) -> tuple[float, float]:
    """The share of a list that is not planted, and that goes with no planted column either (|r| < 0.8 with all)."""
    if not chosen.any():
        return 0.0, 0.0
    wrong, relevant = chosen & ~table.relevant, table.relevant
    strict = wrong.sum() / chosen.sum()
    if not table.numbers or not relevant.any() or not wrong.any():
        return strict, strict
    Z = stats.zscore(table.X.to_numpy(dtype=float))
    r = np.abs(Z[:, wrong].T @ Z[:, relevant]).max(axis=1) / len(Z)
    return strict, (r < ALIKE).sum() / chosen.sum()


def list_features(outcome: str, setting: str, number: int) -> dict[str, float]:
    """False share and power of lists at q <= 0.1; the stated and the true share of the first features of a filter."""
    table = planted(outcome, setting, rng_of(setting, number))
    part = encoded(outcome, table.X, table.y)
    known = ridge_false_share(part, np.random.SeedSequence(number), 1)
    p = marginal_p(part, np.random.default_rng(number))
    first = recipes.fisher(outcome=outcome, n_features_to_select=LISTED, random_state=0)
    if not table.numbers:
        first = recipes.clinical_rfe(outcome=outcome, n_features_to_select=LISTED, random_state=0)
    listed = first.fit(table.X, table.y).support_
    out: dict[str, float] = {"stated": list_share(known, p, listed)}
    for name, chosen in (("first", listed), ("closed", known.q <= TARGET), ("marginal", adjust(p) <= TARGET)):
        strict, apart = false_shares(table, chosen)
        power = chosen[table.relevant].mean() if table.relevant.any() else np.nan
        out |= {f"{name}_false": strict, f"{name}_apart": apart, f"{name}_power": power}
        out[f"{name}_features"] = int(chosen.sum())
    return out


#: rows, columns, columns that count, noise in units of the signal's standard deviation times the root of 2
DESIGNS = {
    "weak, 80 rows": (80, 300, 10, 2.5),
    "strong, 80 rows": (80, 300, 5, 0.7),
    "weak, 200 rows": (200, 300, 10, 2.5),
    "strong, 200 rows": (200, 300, 5, 0.7),
    "middle, 120 rows": (120, 500, 10, 1.2),
    "none, 100 rows": (100, 300, 10, 50.0),
}
#: rows, share censored, columns that count and their effect
TIMES = {
    "33 of 110 events, weak": (110, 0.70, 10, 0.25),
    "45 of 90 events, strong": (90, 0.50, 5, 0.8),
    "80 of 160 events, middle": (160, 0.50, 10, 0.4),
    "126 of 180 events, weak": (180, 0.30, 10, 0.25),
}


def draw_numbers(
    rng: np.random.Generator, m: int, n: int, relevant: int, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(m, n))
    return X, X[:, :relevant].sum(axis=1) / np.sqrt(relevant) + noise * rng.normal(size=m) / np.sqrt(2)


def fit_best(X: np.ndarray, y: np.ndarray, count: int = LISTED) -> Callable[[np.ndarray], np.ndarray]:
    """Predictions by ridge regression, penalty by leave-one-out, on the columns most correlated with y."""
    centre, spread = X.mean(axis=0), X.std(axis=0)
    Z = (X - centre) / spread
    chosen = np.sort(np.argsort(-np.abs((y - y.mean()) @ Z))[:count])
    best = kernel_ridge(Z[:, chosen] @ Z[:, chosen].T, y, np.ones(len(y)), None)
    slope = Z[:, chosen].T @ best.coef
    return lambda rows: (rows[:, chosen] - centre[chosen]) / spread[chosen] @ slope + best.intercept


def pass_over(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Pass:
    """Out-of-fold predictions of one draw of five folds."""
    fold, predicted = rng.permutation(len(y)) % 5, np.empty(len(y))
    for k in range(5):
        predicted[fold == k] = fit_best(X[fold != k], y[fold != k])(X[fold == k])
    return Pass(predicted, fold=fold)


def score_numbers(setting: str, number: int) -> tuple[Any, Any]:
    """Scores with their intervals, and those of the finished model on new rows."""
    m, n, relevant, noise = DESIGNS[setting]
    rng = np.random.default_rng([number, m, relevant])
    X, y = draw_numbers(rng, m, n, relevant, noise)
    scores = score_predictions(Numbers().read(X, y), [pass_over(X, y, rng) for _ in range(3)])
    fresh, truth = draw_numbers(rng, FRESH, n, relevant, noise)
    return scores, Numbers().read(fresh, truth).scores(Pass(fit_best(X, y)(fresh)))


def score_times(setting: str, number: int) -> tuple[Any, Any]:
    """The same of the score test's first columns and proportional hazards on them."""
    m, censored, relevant, effect = TIMES[setting]
    cohort = make_cohort(
        m + FRESH,
        300,
        n_relevant=relevant,
        effect=effect,
        outcome="survival",
        censored=censored,
        random_state=rng_of(setting, number),
    )
    X, y = cohort.X.to_numpy(), cohort.y.to_numpy(dtype=float)
    model = recipes.fisher(outcome="survival", n_features_to_select=LISTED, random_state=0)
    scores = nested_cv(model, X[:m], y[:m], cv=5, n_repeats=3, random_state=number).scores()
    fresh = Survival().read(X[m:], y[m:])
    return scores, fresh.scores(Pass(model.fit(X[:m], y[:m]).predict(X[m:])))


def compare_with_truth(outcome: str, setting: str, number: int) -> dict[str, float]:
    """Value, interval and truth of each score."""
    scores, truth = (score_numbers if outcome == "numbers" else score_times)(setting, number)
    out = {}
    for name in scores.value:
        out |= {f"{name}_value": scores.value[name], f"{name}_low": scores.low[name]}
        out |= {f"{name}_high": scores.high[name], f"{name}_truth": truth[name].value}
    return out


PARTS: dict[str, tuple[Callable[[str, str, int], dict[str, float]], dict[str, tuple[str, ...]]]] = {
    "evidence": (test_evidence, {outcome: kinds for outcome, (_, kinds) in NULL.items()}),
    "false-share": (list_features, FAMILIES),
    "coverage": (compare_with_truth, {"numbers": tuple(DESIGNS), "survival": tuple(TIMES)}),
}

# -- all tables ------------------------------------------------------------------------------------------------------


def run_one(what: str, outcome: str, setting: str, number: int) -> tuple[str, str, dict[str, Any]]:
    """A row of a CSV file."""
    start = time.process_time()
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = PARTS[what][0](outcome, setting, number)
    return what, outcome, {"setting": setting, "number": number, **found, "seconds": time.process_time() - start}


def rows_done(file: Path) -> set[tuple[str, int]]:
    """Tables that a file has; a line that was cut is taken off."""
    if not file.exists():
        return set()
    text = file.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        file.write_text(whole, encoding="utf-8")
    return {(row["setting"], int(row["number"])) for row in csv.DictReader(io.StringIO(whole))}


def append(file: Path, row: dict[str, Any]) -> None:
    """Add a row, in one call; the first brings the heading."""
    text = io.StringIO()
    writer = csv.DictWriter(text, row, lineterminator="\n")
    if not file.exists() or not file.stat().st_size:
        writer.writeheader()
    writer.writerow(row)
    with file.open("a", encoding="utf-8") as out:
        out.write(text.getvalue())


def simulate(folder: Path, parts: Iterable[str], outcomes: Iterable[str], tables: int | None, jobs: int) -> None:
    """Run what is missing, all settings' first tables first, and add each row as it is done."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks, since = [], time.perf_counter()
    for what in parts:
        for outcome in outcomes:
            done = rows_done(folder / f"{what}-{outcome}.csv")
            settings, count = PARTS[what][1][outcome], TABLES[what] if tables is None else min(tables, TABLES[what])
            wanted = [(number / count, what, outcome, name, number) for number in range(count) for name in settings]
            tasks += [task for task in wanted if task[3:] not in done]
    tasks.sort(key=lambda task: task[0])
    rows = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(run_one)(*task[1:]) for task in tasks)
    for count, (what, outcome, row) in enumerate(rows, 1):
        append(folder / f"{what}-{outcome}.csv", row)
        if count % 500 == 0 or count == len(tasks):
            print(f"{count:,} of {len(tasks):,} tables, {time.perf_counter() - since:.0f} s", flush=True)


# -- what they say ---------------------------------------------------------------------------------------------------


def say_evidence(frame: pd.DataFrame) -> Iterator[str]:
    yield "| without a signal | tables | p <= .05 | p <= .01 | a column passes | each statistic, p <= .05 | CPU s |"
    yield "|---|---:|---:|---:|---:|---|---:|"
    for setting, part in frame.groupby("setting", sort=False):
        share = float((part["p"] <= WEAK).mean())
        each = " ".join(f"{(part[name] <= WEAK).mean():.3f}" for name in part if name.startswith("statistic"))
        error = np.sqrt(WEAK * (1 - WEAK) / len(part))
        missed = "" if share <= WEAK + 2 * error else " MISSED"
        cells = f"{share:.3f} (± {error:.3f}){missed} | {(part['p'] <= 0.01).mean():.3f}"
        column = (part["column_p"] <= WEAK).mean()
        yield f"| {setting} | {len(part)} | {cells} | {column:.3f} | {each} | {part['seconds'].mean():.2f} |"


def say_false_share(frame: pd.DataFrame) -> Iterator[str]:
    yield (
        "| table | tables | list | false, strictly | nor near a planted one | power | features | first 20: stated | "
        "true | nor near | CPU s |"
    )
    yield "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for setting, part in frame.groupby("setting", sort=False):
        stated = " | ".join(f"{part[name].mean():.2f}" for name in ("stated", "first_false", "first_apart"))
        for name in ("closed", "marginal"):
            strict, apart = (part[f"{name}_{kind}"] for kind in ("false", "apart"))
            cells = [f"{share.mean():.3f} ± {share.std() / np.sqrt(len(part)):.3f}" for share in (strict, apart)]
            cells[1] += " MISSED" if apart.mean() > TARGET + 0.02 else ""
            power = part[f"{name}_power"]
            cells += ["" if power.isna().all() else f"{power.mean():.2f}", f"{part[f'{name}_features'].mean():.1f}"]
            yield (
                f"| {setting} | {len(part)} | {name} | {' | '.join(cells)} | {stated} | {part['seconds'].mean():.2f} |"
            )


def say_coverage(frame: pd.DataFrame) -> Iterator[str]:
    yield "| design | score | tables | held | below | above | width | bias | CPU s |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|"
    for setting, part in frame.groupby("setting", sort=False):
        for name in [column.removesuffix("_value") for column in part if column.endswith("_value")]:
            value, low, high, truth = (part[f"{name}_{end}"] for end in ("value", "low", "high", "truth"))
            below, above = (truth < low).mean(), (truth > high).mean()
            width = (high - low).mean() / (2 * 1.96 * np.sqrt(((value - truth) ** 2).mean()))
            cells = f"{1 - below - above:.3f} | {below:.3f} | {above:.3f} | {width:.2f} | {(value - truth).mean():+.3f}"
            yield f"| {setting} | {name} | {len(part)} | {cells} | {part['seconds'].mean():.2f} |"


SAY = {"evidence": say_evidence, "false-share": say_false_share, "coverage": say_coverage}


def print_results(folder: Path) -> None:
    """What each file of a folder says."""
    for what, say in SAY.items():
        for outcome in OUTCOMES:
            file = folder / f"{what}-{outcome}.csv"
            if file.exists():
                print(f"{what}, {outcome}\n", *say(pd.read_csv(file)), sep="\n", end="\n\n")
