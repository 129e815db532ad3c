"""How often the stated intervals cover the truth: cohorts with a known truth, studied by the engine itself.

    python -m benchmarks.coverage run cohorts.npz --cohorts 400 --jobs 16     # cohorts of every setting
    python -m benchmarks.coverage run default.npz --size short --cohorts 200 --settings weak-60x500,...
    python -m benchmarks.coverage run nested.npz --intervals nested --settings weak-60x500-30,...
    python -m benchmarks.coverage table cohorts.npz                           # coverage and widths, for coverage.md
    python -m benchmarks.coverage fixed --cohorts 2000                        # of one model on new cohorts
    python -m benchmarks.coverage evidence --cohorts 1000 --jobs 16           # how often a signal is claimed

Columns are normal, so that the decision value of a linear machine is normal in each class and the truth (the score of
the model on all rows, for new rows with the table's mix of classes) is an integral over one dimension, not an estimate.
"""

from __future__ import annotations

import argparse
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special, stats
from sklearn.metrics import average_precision_score

from marginsieve import nested_cv, recipes
from marginsieve.engine import scoring
from marginsieve.engine.nested import nested_errors, nested_splits, pair_splits, score_on_splits
from marginsieve.engine.units import PlainTable
from marginsieve.outcomes import Classes, ClassTarget
from marginsieve.outcomes.scores import CLASS_METRICS, log_odds, ranking_aucs
from marginsieve.solvers.execution import one_thread

SCORED = ("balanced_accuracy", "auc", "pr_auc", "accuracy", "brier", "ppv", "npv", "calibration_slope")
GRID = (np.arange(2000) + 0.5) / 2000  # quantiles that stand for a class of new rows
PLANTED = 10
BLOCK, CORRELATION = 10, 0.8


@dataclass(frozen=True)
class Setting:
    """Rows, columns and positives of a cohort; `shift` of the planted columns between the classes."""

    family: str
    rows: int
    columns: int
    positives: int
    shift: float
    blocks: bool = False

    @property
    def name(self) -> str:
        return f"{self.family}-{self.rows}x{self.columns}-{self.positives}"


SETTINGS = (
    Setting("none", 40, 500, 20, 0.0),
    Setting("none", 60, 500, 12, 0.0),
    Setting("none", 100, 2000, 30, 0.0),
    Setting("none", 200, 20, 100, 0.0),
    Setting("weak", 40, 20, 20, 0.3),
    Setting("weak", 60, 500, 30, 0.7),
    Setting("weak", 100, 2000, 20, 0.8),
    Setting("weak", 200, 500, 40, 0.4),
    Setting("strong", 40, 500, 20, 1.4),
    Setting("strong", 60, 2000, 12, 1.6),
    Setting("strong", 100, 20, 30, 0.9),
    Setting("strong", 200, 2000, 100, 0.8),
    Setting("correlated", 40, 2000, 10, 1.2, True),
    Setting("correlated", 60, 500, 12, 0.8, True),
    Setting("correlated", 100, 500, 50, 0.6, True),
    Setting("correlated", 200, 2000, 40, 0.5, True),
)
CHECKS = (  # had no part in the choice of the factors
    Setting("none", 80, 1000, 24, 0.0),
    Setting("none", 150, 100, 75, 0.0),
    Setting("weak", 80, 1000, 40, 0.6),
    Setting("weak", 150, 100, 30, 0.35),
    Setting("strong", 80, 1000, 24, 1.1),
    Setting("strong", 150, 100, 45, 0.7),
    Setting("correlated", 80, 1000, 16, 0.9, True),
    Setting("correlated", 150, 100, 75, 0.4, True),
)
EVIDENCE = (  # true AUC of all columns together about 0.5, 0.65 and 0.75
    Setting("none", 60, 200, 24, 0.0),
    Setting("weak", 60, 200, 24, 0.42),
    Setting("strong", 60, 200, 24, 0.62),
)


def cohort(setting: Setting, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(X, y, shift of each column between the classes); planted columns are in blocks of their own."""
    m, n = setting.rows, setting.columns
    y = (np.arange(m) < setting.positives).astype(int)
    shift = np.zeros(n)
    X = rng.normal(size=(m, n))
    if setting.blocks:
        X = np.sqrt(1 - CORRELATION) * X + np.sqrt(CORRELATION) * np.repeat(rng.normal(size=(m, n // BLOCK)), BLOCK, 1)
        shift[: PLANTED * BLOCK : BLOCK] = setting.shift
    else:
        shift[:PLANTED] = setting.shift
    return X + y[:, None] * shift, y, shift


def truth_of(selector: Any, setting: Setting, shift: np.ndarray) -> dict[str, float]:
    """What a fitted linear selector scores on new rows, by the normal distribution of its decision value."""
    w, b = selector.coef_.ravel(), float(selector.intercept_.ravel()[0])
    full = np.zeros(len(shift))
    full[selector.support_ if len(w) < len(shift) else slice(None)] = w
    variance = full @ full
    if setting.blocks:
        variance = (1 - CORRELATION) * variance + CORRELATION * (full.reshape(-1, BLOCK).sum(axis=1) ** 2).sum()
    spread = np.sqrt(max(variance, 1e-300))
    z = stats.norm.ppf(GRID) * spread
    value = np.concatenate([z + b, z + b + full @ shift])
    truth = np.repeat([0, 1], len(GRID))
    probability = None
    if getattr(selector, "_sigmoid", None) is not None:
        a, c = selector._sigmoid[0]
        probability = special.expit(a * value + c)
    share = setting.positives / setting.rows
    weight = np.where(truth == 1, share, 1 - share) / len(GRID)
    return _weighted(value, truth, probability, weight)


def _weighted(value: np.ndarray, truth: np.ndarray, probability: Any, weight: np.ndarray) -> dict[str, float]:
    """The metrics of weighted rows."""
    positive = truth == 1
    right = (value > 0) == positive
    recall = [float(np.average(right[truth == k], weights=weight[truth == k])) for k in (0, 1)]
    out = {
        "balanced_accuracy": float(np.mean(recall)),
        "auc": float(ranking_aucs(value[None], positive, weight)[0]),
        "pr_auc": float(average_precision_score(positive, value, sample_weight=weight)),
        "accuracy": float(weight @ right),
        "brier": float("nan"),
        "ppv": float(np.average(positive[value > 0], weights=weight[value > 0])) if (value > 0).any() else np.nan,
        "npv": float(np.average(~positive[value <= 0], weights=weight[value <= 0])) if (value <= 0).any() else np.nan,
        "calibration_slope": float("nan"),
    }
    if probability is not None:
        out["brier"] = float(weight @ (probability - positive) ** 2)
        out["calibration_slope"] = _slope(log_odds(probability), positive, weight)
    return out


def _slope(z: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> float:
    """The slope of a logistic regression of weighted rows on log odds, by Newton's method."""
    x, theta = np.column_stack([np.ones(len(z)), z]), np.zeros(2)
    for _ in range(50):
        p = special.expit(x @ theta)
        step = np.linalg.solve((x * (weight * p * (1 - p))[:, None]).T @ x, x.T @ (weight * (positive - p)))
        theta = theta + step
        if np.abs(step).max() < 1e-10:
            break
    return float(theta[1])


def study(setting: Setting, seed: int, recipe: str, size: int | str, repeats: int, intervals: str) -> np.ndarray:
    """(3, metrics, 3): of the method, of all features and of their difference the value, the variance of a pass and the
    truth of the model on all rows; with nested intervals (2, metrics, 5), without the difference and with both ends."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, setting.rows, setting.columns, setting.positives, int(1000 * setting.shift)])
    X, y, shift = cohort(setting, rng)
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    options = {"class_weight": "balanced", "probability": True, "positive": 1, "random_state": 0, "similar": None}
    fits = []
    outcome = Classes(positive=1)
    target = outcome.read(X, y).settle(outcome)
    pairs = pair_splits(nested_splits(target, 5, repeats, 0), 0) if intervals == "nested" else []
    for count in (min(size, setting.columns // 2) if isinstance(size, int) else size, 1.0):
        selector = recipes.get(recipe if count != 1.0 else "fisher")(n_features_to_select=count, **options)
        nested = nested_cv(selector, X, y, positive=1, cv=5, n_repeats=repeats, random_state=0)
        scores = nested.scores()
        if pairs:
            twice = score_on_splits(PlainTable("table", X, y, None, target), selector, pairs, 0, None).folds
            scores = nested.scores(errors=nested_errors(nested, twice))
        fits.append((nested, scores, truth_of(selector.fit(X, y), setting, shift)))
    (ours, known_ours, a), (theirs, known_theirs, b) = fits
    gap = scoring.score_difference(target, ours.passes, theirs.passes)
    known = [(known_ours, a), (known_theirs, b), (gap, {name: a[name] - b[name] for name in a})]
    counts = np.array([setting.rows - setting.positives, setting.positives], dtype=float)
    found = []
    for scores, truth in known[: 2 if pairs else 3]:
        nowhere = (np.nan, np.nan)  # a predictive value of a pass that calls no row so
        rows = [
            (scores.value.get(name, np.nan), float(np.sum(scores.by_stratum.get(name, nowhere) / counts)), truth[name])
            for name in SCORED
        ]
        ends = [(scores.low.get(name, np.nan), scores.high.get(name, np.nan)) if pairs else () for name in SCORED]
        found.append([(*row, *end) for row, end in zip(rows, ends, strict=True)])
    return np.array(found)


def _one(task: tuple[Setting, int, str, int | str, int, str]) -> np.ndarray:
    with one_thread():  # a core for each cohort
        return study(*task)


def run(file: str, cohorts: int, jobs: int, names: list[str], *how: Any) -> None:
    """Study cohorts of each setting and keep what `study` gives; `how`: its recipe, size, repeats and intervals."""
    every = CHECKS if names == ["checks"] else SETTINGS
    chosen = [setting for setting in every if not names or names == ["checks"] or setting.name in names]
    kept = {}
    with ProcessPoolExecutor(jobs) as pool:
        for setting in chosen:
            tasks = [(setting, seed, *how) for seed in range(cohorts)]
            kept[setting.name] = np.array(list(pool.map(_one, tasks, chunksize=4)))
            print(setting.name, kept[setting.name].shape, flush=True)
            np.savez_compressed(file, **kept)


def table(file: str) -> None:
    """Coverage, misses below and above, and widths, by the formulas that the package has now."""
    kept = np.load(file)
    known = {setting.name: setting for setting in (*SETTINGS, *CHECKS)}
    places = min(kept[key].shape[1] for key in kept)
    for place, what in enumerate(("the method", "all features", "the method less all features")[:places]):
        print(f"\n### {what}\n")
        print("| metric | family | cohorts | covered | truth below | truth above | width | lowest covered | widest |")
        print("|---|---|---|---|---|---|---|---|---|")
        for k, name in enumerate(SCORED):
            rows = [(known[key].family, *_covered(known[key], kept[key], place, k, name)) for key in kept]
            rows = [row for row in rows if row[1]]
            for family in dict.fromkeys(row[0] for row in rows):
                some = np.array([row[1:] for row in rows if row[0] == family])
                count, low, high, width = some[:, 0].sum(), some[:, 1].mean(), some[:, 2].mean(), some[:, 3].mean()
                least, widest = (1 - some[:, 1] - some[:, 2]).min(), some[:, 3].max()
                cells = f"{1 - low - high:.3f} | {low:.3f} | {high:.3f} | {width:.2f} | {least:.3f} | {widest:.2f}"
                print(f"| {CLASS_METRICS[name].title} | {family} | {count:.0f} | {cells} |")


def _covered(setting: Setting, kept: np.ndarray, place: int, k: int, name: str) -> tuple[int, float, float, float]:
    """Cohorts, shares of them with the truth below and above the interval, its width over 2 * 1.96 * RMSE."""
    counts = (setting.rows - setting.positives, setting.positives)
    target, metric = ClassTarget.from_codes(np.repeat([0, 1], counts)), CLASS_METRICS[name]
    ends, level = [], 0.95
    kept = kept[np.isfinite(kept[:, place, k, :3]).all(axis=1)]
    if place < 2 and metric.fewest_errors:  # the others have no interval
        kept = kept[kept[:, place, k, 0] >= metric.fewest_errors * np.sqrt(kept[:, place, k, 1])]
    if not len(kept):
        return 0, 0.0, 0.0, 0.0
    for one in kept:
        value, variance = one[place, k, :2]
        rooms = [target.rooms(dict(zip(SCORED, one[each, :, 0], strict=True)))[name] for each in (0, 1)]
        distance = scoring.distance_of_methods(variance, one[0, k, 1], one[1, k, 1])
        room = rooms[place] if place < 2 else max(rooms) * distance
        factors = metric.difference if place == 2 else metric.factors
        errors = scoring.standard_errors(variance, room, counts, factors, float(metric.share))
        if place == 2:
            t = stats.t.ppf(0.5 + level / 2, min(counts) - 1)
            ends.append((value - t * errors[0], value + t * errors[1]))
        else:
            low, high = scoring.interval_ends(metric.scale, value, errors, min(counts), level)
            nested = one[place, k, 3:] if len(one) == 2 else (low, high)
            ends.append((min(low, nested[0]), max(high, nested[1])))
    low, high = np.array(ends).T
    true, value = kept[:, place, k, 2], kept[:, place, k, 0]
    rmse = float(np.sqrt(np.mean((value - true) ** 2)))
    width = float(np.mean(high - low)) / (2 * 1.96 * rmse)
    return len(kept), float(np.mean(true < low)), float(np.mean(true > high)), width


FIXED = (  # AUC, slope of the log odds on new rows, rows, share of positives, cut of the probability
    *((0.75, slope, rows, 0.3, 0.3) for slope in (0.6, 1.0, 1.4) for rows in (100, 400)),
    *((0.9, slope, rows, 0.15, 0.3) for slope in (0.6, 1.0) for rows in (150, 600)),
    *((0.65, 1.0, rows, 0.5, 0.5) for rows in (80, 300)),
)


def fixed(cohorts: int) -> None:
    """Coverage for one model on new cohorts: normal values in each class, of the mix that the truth is for."""
    names = ("ppv", "npv", "calibration_slope", "calibration_intercept", "net_benefit")
    print(f"| AUC | slope | rows | share | {' | '.join(names)} |\n|{'---|' * (4 + len(names))}")
    every = []
    for setting in FIXED:
        area, slope, rows, share, cut = setting
        away = np.sqrt(2) * stats.norm.ppf(area)
        count = round(rows * share)
        share, hits = count / rows, []

        def values(z: np.ndarray, positive: np.ndarray) -> np.ndarray:
            """Probabilities whose log odds are those of the class over the slope."""
            odds = away * (z + away * positive - away / 2) + special.logit(share)  # noqa: B023
            return special.expit(odds / slope)  # noqa: B023

        grid, both = np.tile(stats.norm.ppf(GRID), 2), np.repeat([False, True], len(GRID))
        weight = np.where(both, share, 1 - share) / len(GRID)
        truth = _truth_of_fixed(values(grid, both), both, weight, cut)
        rng, positive = np.random.default_rng([rows, round(100 * area), round(10 * slope)]), np.arange(rows) < count
        target = ClassTarget.from_codes(positive.astype(int))
        for _ in range(cohorts):
            p = values(rng.normal(size=rows), positive)
            one = scoring.Pass((p > cut).astype(int), log_odds(p) - special.logit(cut), p)
            known = scoring.score_predictions(target, [one], fixed=True)
            hits.append([known.low[name] <= truth[name] <= known.high[name] for name in names if name in known.low])
        shares = np.mean(hits, axis=0)
        every.append(shares)
        print(
            f"| {area} | {slope} | {rows} | {share:.2f} | {' | '.join(f'{each:.3f}' for each in shares)} |", flush=True
        )
    print(f"| all | | | | {' | '.join(f'{each:.3f}' for each in np.mean(every, axis=0))} |")


def _truth_of_fixed(p: np.ndarray, positive: np.ndarray, weight: np.ndarray, cut: float) -> dict[str, float]:
    """What a model with these probabilities scores on weighted rows."""
    out, called, z = _weighted(p - cut, positive.astype(int), p, weight), p > cut, log_odds(p)
    odds = cut / (1 - cut)
    out["net_benefit"] = float(weight @ (called * np.where(positive, 1.0, -odds)))
    excess = lambda a: float(weight @ special.expit(a + z)) - float(weight @ positive)  # noqa: E731
    out["calibration_intercept"] = float(optimize.brentq(excess, -20.0, 20.0))
    return out


def _claimed(task: tuple[Setting, int]) -> tuple[float, float]:
    """(p by shuffled labels, true AUC of the fisher model with 20 columns on all rows)."""
    from marginsieve.studies.analyses.shuffled_study import above_chance
    from marginsieve.studies.analysis import Shape, StudyRun
    from marginsieve.studies.options import StudyOptions
    from marginsieve.studies.planning import choose
    from marginsieve.studies.selection import prepare_method
    from marginsieve.studies.study_data import from_arrays

    warnings.simplefilter("ignore")
    setting, seed = task
    rng = np.random.default_rng([seed, 77, setting.rows, setting.columns])
    X, y, shift = cohort(setting, rng)
    options = StudyOptions(methods="fisher", positive=1)
    data = from_arrays(X, y, ids=())
    table = data.table(Classes(positive=1))
    choice = choose(Shape(*X.shape, False, setting.positives / setting.rows), options)
    methods = [prepare_method(method, table, choice.options) for method in choice.methods]
    run = StudyRun(data, table, choice, options, methods)
    selector = recipes.fisher(n_features_to_select=20, positive=1, similar=None, random_state=0).fit(X, y)
    return above_chance(run, 99).p, truth_of(selector, setting, shift)["auc"]


def evidence(cohorts: int, jobs: int) -> None:
    """Shares of tables in which a signal is claimed."""
    from marginsieve.studies.analyses.shuffled_study import LEVEL

    print("| setting | tables | true AUC | claimed |\n|---|---|---|---|")
    with ProcessPoolExecutor(jobs) as pool:
        for k, setting in enumerate(EVIDENCE):
            count = cohorts if k == 0 else cohorts // 4
            found = np.array(list(pool.map(_claimed, [(setting, seed) for seed in range(count)], chunksize=2)))
            share = np.mean(found[:, 0] <= LEVEL)
            print(f"| {setting.name} | {count} | {found[:, 1].mean():.2f} | {share:.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["run", "table", "fixed", "evidence"])
    parser.add_argument("file", nargs="?", default="")
    parser.add_argument("--cohorts", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--recipe", default="fisher")
    parser.add_argument("--size", default="20", help="a number, or short or auto: the rules of inner folds")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--settings", default="")
    parser.add_argument("--intervals", choices=["simple", "nested"], default="simple")
    given = parser.parse_args()
    if given.what == "table":
        table(given.file)
        return
    if given.what == "fixed":
        fixed(given.cohorts)
        return
    if given.what == "evidence":
        evidence(given.cohorts, given.jobs)
        return
    size = int(given.size) if given.size.isdigit() else given.size
    names = [name for name in given.settings.split(",") if name]
    run(given.file, given.cohorts, given.jobs, names, given.recipe, size, given.repeats, given.intervals)


if __name__ == "__main__":
    main()
