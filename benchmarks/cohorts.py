"""Whether what a study says of other cohorts holds: intervals, forecasts, alignment, sites.

python -m benchmarks.cohorts coverage coverage.csv --tables 2000          # intervals of a sealed model's scores
python -m benchmarks.cohorts forecast forecast.csv --tables 200           # generated pairs, measured in the same way
python -m benchmarks.cohorts shifted shifted.csv --tables 100             # generated pairs, shifted, of another mix
python -m benchmarks.cohorts elsewhere elsewhere.csv --tables 200         # intervals on those, as is and aligned
python -m benchmarks.cohorts sites sites.csv --tables 500                 # the alarms about sites
python -m benchmarks.cohorts real real.csv --tables-of FOLDER             # pairs of real cohorts, parquet files
python -m benchmarks.cohorts table coverage.csv forecast.csv ...

A file that exists is continued: tables that it has are not made again.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import special, stats

import marginsieve
from marginsieve import nested_cv, recipes, validate
from marginsieve.data import make_cohort
from marginsieve.data.table import Schema
from marginsieve.engine import Pass
from marginsieve.engine.scoring import score_predictions
from marginsieve.errors import InputError
from marginsieve.fitting.rows import Rows
from marginsieve.fitting.site_tests import judge_sites
from marginsieve.outcomes import Classes, ClassTarget
from marginsieve.validation import forecast

METHODS = ("two_views", "svm_rfe", "fisher")
WRONG = (-0.15, -0.05, 0.0, 0.05, 0.15)  # by which a given prevalence is wrong

# -- intervals of a sealed model's scores -----------------------------------------------------------------------------

SIZES = {"30 + 50": (30, 50), "15 + 85": (15, 85), "60 + 140": (60, 140)}
STRENGTHS = {"AUC .76": 1.0, "AUC .92": 2.0}
CALIBRATIONS = {"right": (1.0, 0.0), "too extreme": (2.0, 0.5)}  # slope and offset of what the model says


def sealed(
    rng: np.random.Generator, y: np.ndarray, strength: float, calibration: tuple[float, float], prior: float
) -> Pass:
    """Predictions of a model whose values are normal in each class, calibrated at this prior up to a slope."""
    value = rng.normal(size=len(y)) + strength * (y - 0.5)
    z = strength * value + special.logit(prior)
    slope, offset = calibration
    said = slope * z + offset
    cut = 0.0  # of the values: where the classes' densities are equal
    return Pass((value > cut).astype(int), value - cut, special.expit(said))


def coverage(seed: int) -> Iterator[dict[str, Any]]:
    """Of each setting: whether the interval of each score covers the truth, which is that of some 100,000 rows."""
    for name, (ours, others) in SIZES.items():
        for strength_name, strength in STRENGTHS.items():
            for how, calibration in CALIBRATIONS.items():
                y, prior = np.repeat([1, 0], [ours, others]), ours / (ours + others)
                truth = truth_of(name, strength_name, how)
                one_pass = sealed(np.random.default_rng([seed, ours, others]), y, strength, calibration, prior)
                scores = score_predictions(ClassTarget.from_codes(y), [one_pass], fixed=True)
                for score, value in scores.value.items():
                    yield {
                        "setting": f"{name}, {strength_name}, {how}",
                        "score": score,
                        "covered": scores.low[score] <= truth[score] <= scores.high[score],
                        "below": scores.high[score] < truth[score],
                        "width": scores.high[score] - scores.low[score],
                        "error": value - truth[score],
                    }


TRUTHS: dict[tuple[str, str, str], dict[str, float]] = {}


def truth_of(size: str, strength: str, how: str) -> dict[str, float]:
    """The scores on very many rows of this mix."""
    if (key := (size, strength, how)) not in TRUTHS:
        ours, others = SIZES[size]
        y = np.repeat([1, 0], np.array([ours, others]) * 20)
        known = [
            score_predictions(
                ClassTarget.from_codes(y),
                [
                    sealed(
                        np.random.default_rng([9, k]), y, STRENGTHS[strength], CALIBRATIONS[how], ours / (ours + others)
                    )
                ],
                fixed=True,
            ).value
            for k in range(60)
        ]
        TRUTHS[key] = {name: float(np.mean([each[name] for each in known])) for name in known[0]}
        ends = {"auc": stats.norm.cdf(STRENGTHS[strength] / np.sqrt(2)), "calibration_slope": 1 / CALIBRATIONS[how][0]}
        TRUTHS[key] |= ends  # in closed form
    return TRUTHS[key]


# -- generated pairs --------------------------------------------------------------------------------------------------


def promised(model: Any, X: Any, y: Any) -> tuple[Any, dict[str, float], dict[str, float]]:
    """The nested scores of a model on its own table, their values and standard errors."""
    nested = nested_cv(model, X, y, cv=5, n_repeats=1)
    scores = nested.scores()
    return nested.target, scores.value, scores.error


PAIRS = {"weak": (0.5, 0.3), "moderate": (0.8, 0.3), "strong": (1.2, 0.4), "rare": (1.0, 0.15)}  # effect, prevalence


def forecasts(seed: int) -> Iterator[dict[str, Any]]:
    """Whether the forecast of the same way holds on a second cohort of the same kind."""
    for name, (effect, share) in PAIRS.items():
        rng = np.random.default_rng([seed, 1])
        sizes = int(rng.integers(70, 160)), int(rng.integers(40, 250))
        state = int(rng.integers(2**31))
        old, new = make_cohort(max(sizes), 300, effect=effect, prevalence=share, cohorts=2, random_state=state)
        A, B = old.frame().iloc[: sizes[0]], new.frame().iloc[: sizes[1]]
        counts = [int((frame["outcome"] == label).sum()) for frame in (A, B) for label in ("case", "control")]
        if min(counts) < 10:
            continue
        model = recipes.fisher(standardize=True, class_weight="balanced", random_state=0)
        target, value, error = promised(model, A[old.X.columns], A["outcome"])
        fitted = model.fit(A[old.X.columns], A["outcome"])
        score = validate(fitted, B[old.X.columns], B["outcome"], align="none").scores["auc"]["value"]
        known = forecast(target, value["auc"], error["auc"], min(counts[:2]), counts[2:])
        k = min(counts[2:])
        middle = (score * k + 0.5) / (k + 1)  # as the forecast is made
        yield {
            "setting": name,
            "promised": value["auc"],
            "found": score,
            "hit": known.same[0] <= middle <= known.same[1],
            "below": middle < known.same[0],
            "hit_elsewhere": known.elsewhere[0] <= middle <= known.elsewhere[1],
        }


SHIFTS = {"same": (0.0, 0.3), "shift": (1.0, 0.3), "mix": (0.0, 0.6), "shift and mix": (1.0, 0.6)}


def shifted(seed: int) -> Iterator[dict[str, Any]]:
    """Balanced accuracy as is and aligned, without and with a prevalence, on shifted pairs of another mix."""
    for name, (shift, share) in SHIFTS.items():
        old, new = make_cohort(100, 300, effect=1.0, prevalence=(0.3, share), cohorts=2, shift=shift, random_state=seed)
        model = recipes.fisher(standardize=True, class_weight="balanced", random_state=0).fit(old.X, old.y)
        yield {"setting": name, **lines_of(model, new.X, new.y, float((new.y == model.positive_).mean()))}


def lines_of(model: Any, X: Any, y: Any, share: float) -> dict[str, float]:
    """Balanced accuracy and AUC of a cohort by how its columns are aligned."""
    out: dict[str, float] = {}
    plain = validate(model, X, y, align="none")
    gate = plain.result["cohorts"][0]["drift"]["gate"]
    out |= {"gate": np.nan if gate is None else gate, "auc": plain.scores["auc"]["value"]}
    out["as_is"] = plain.scores["balanced_accuracy"]["value"]
    if len(y) < 10 or gate is None:
        return out
    ways = {"aligned": None} | {f"prevalence {by:+.2f}": share + by for by in WRONG}
    for name, prevalence in ways.items():
        if prevalence is not None and not 0.01 < prevalence < 0.99:
            continue
        known = validate(model, X, y, align="location-scale", prevalence=prevalence)
        scores = known.result["cohorts"][0]["lines"]["aligned"]["scores"]
        out[name] = scores["balanced_accuracy"]["value"]
        out[f"auc {name}"] = scores["auc"]["value"]
    return out


MANY = 20_000  # rows from which the cohorts are drawn: their scores are the truth
DRAWN = {"100 rows": 100, "250 rows": 250}


def elsewhere(seed: int) -> Iterator[dict[str, Any]]:
    """Whether the intervals on a cohort cover what the same model, as is or aligned to it, scores on very many rows."""
    for k, (name, (shift, share)) in enumerate(SHIFTS.items()):
        rng = np.random.default_rng([seed, k, 3])
        state = int(rng.integers(2**31))
        old, new = make_cohort(
            MANY, 60, n_relevant=8, effect=0.7, prevalence=(0.3, share), cohorts=2, shift=shift, random_state=state
        )
        model = recipes.fisher(standardize=True, class_weight="balanced", probability=True, random_state=0)
        model.fit(old.X.iloc[:120], old.y.iloc[:120])
        X, positive = new.X, (new.y == "case").to_numpy()
        for words, size in DRAWN.items():
            ours = round(share * size)
            rows = np.concatenate(
                [
                    rng.permutation(np.flatnonzero(positive))[:ours],
                    rng.permutation(np.flatnonzero(~positive))[ours - size :],
                ]
            )
            known = validate(model, X.iloc[rows], new.y.iloc[rows], align="location-scale")
            for line, fitted in (("as_is", model), ("aligned", known.models["aligned"])):
                truth = score_many(fitted, X, positive)
                for score, entry in known.result["cohorts"][0]["lines"][line]["scores"].items():
                    yield {
                        "setting": f"{name}, {words}, {line.replace('_', ' ')}",
                        "score": score,
                        "covered": entry["low"] <= truth[score] <= entry["high"],
                        "below": entry["high"] < truth[score],
                        "width": entry["high"] - entry["low"],
                        "error": entry["value"] - truth[score],
                    }


def score_many(model: Any, X: pd.DataFrame, positive: np.ndarray) -> dict[str, float]:
    """The scores of a fitted model on these rows."""
    ours = list(model.classes_).index("case")
    sign = 1.0 if ours else -1.0
    predictions = Pass(
        (model.predict(X) == "case").astype(int), sign * model.decision_function(X), model.predict_proba(X)[:, ours]
    )
    target = ClassTarget.from_codes(positive.astype(int))
    return dict(score_predictions(target, [predictions], fixed=True).value)


# -- sites ------------------------------------------------------------------------------------------------------------

SITES: dict[str, dict[str, float]] = {
    "clean": {},
    "batch only": {"batch": 1.0},
    "mix only": {"mix": 0.8},
    "confounded, mix .9": {"batch": 1.0, "mix": 0.9},
    "confounded, mix .8": {"batch": 1.0, "mix": 0.8},
    "confounded, mix .7": {"batch": 1.0, "mix": 0.7},
    "confounded, mix .7, half a batch": {"batch": 0.5, "mix": 0.7},
    "other effects": {"own": 1.0},
}


def site_table(
    rng: np.random.Generator,
    batch: float = 0.0,
    mix: float = 0.5,
    own: float = 0.0,
    rows: int = 160,
    columns: int = 500,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Four sites; half of them have a share `mix` of positives, the others 1 - mix.

    `batch`: deviation of the sites' shifts in 30 % of the columns; `own`: share of the effect that each site has in
    columns of its own.
    """
    site = np.arange(rows) % 4
    y = (rng.random(rows) < np.where(site < 2, mix, 1.0 - mix)).astype(int)
    X = rng.normal(size=(rows, columns))
    X[:, :10] += 0.6 * (1.0 - own) * (y[:, None] - 0.5)
    for code in range(4) if own else ():
        inside = site == code
        X[np.ix_(inside, np.arange(20 + 10 * code, 30 + 10 * code))] += 1.2 * own * (y[inside, None] - 0.5)
    X += (batch * rng.normal(size=(4, columns)) * (rng.random(columns) < 0.3))[site]
    return X, y, site


def sites(seed: int) -> Iterator[dict[str, Any]]:
    """Which alarms are raised."""
    for k, (name, how) in enumerate(SITES.items()):
        rng = np.random.default_rng([seed, k])
        X, y, site = site_table(rng, **how)
        schema = Schema.from_table(X)
        known = judge_sites(Rows(schema, schema.table(X), ClassTarget.from_codes(y).settle(Classes())), site, rng)
        names = ("association_p", "columns_p", "transfer_p", "left_out", "pseudo", "is_confounded", "loses")
        yield {"setting": name, **{each: getattr(known, each) for each in names}}


# -- real cohorts -----------------------------------------------------------------------------------------------------

BLADDER = ("gse1827", "stransky_u95av2", "stransky_u95a", "gse89", "gse37317")
IMPACT = ("PEG", "TCDB", "UK4")  # the largest and the two of the highest mortality
FAMILIES: dict[str, list[tuple[str, str]]] = {  # those that take long come first
    "polish": [("polish_1year", "polish_5year")],
    "bladder": [(f"bladder_{a}", f"bladder_{b}") for a in BLADDER for b in BLADDER if a != b],
    "golub": [("golub_train", "golub_test"), ("golub_test", "golub_train")],
    "breast_tcga": [("breast_tcga_train", "breast_tcga_test")],
    "metastasis": [
        ("metastasis5y_vdxs", "metastasis5y_gse7390"),
        ("metastasis5y_gse7390", "metastasis5y_vdxs"),
    ],
    "heart": [("heart_cleveland", "heart_hungarian")],
    "pima": [("pima_train", "pima_test"), ("pima_test", "pima_train")],
    "rotterdam": [("rotterdam", "gbsg")],
    "ovarian": [("ovarian_gse51088", "ovarian_gse19829"), ("ovarian_gse19829", "ovarian_gse51088")],
    "impact": [(f"impact_sites@{a}", f"impact_sites@{b}") for a in IMPACT for b in IMPACT if a != b],
    "autism": [
        ("autism_sites@batch_1", "autism_sites@batch_2"),
        ("autism_sites@batch_2", "autism_sites@batch_1"),
    ],
}
DAYS = 1095.0  # of times to an event: whether it came within three years


def read_cohort(folder: Path, name: str) -> pd.DataFrame:
    """A table, or its rows of a site; rows that were not followed long enough are left out."""
    file, _, site = name.partition("@")
    frame = pd.read_parquet(folder / f"{file}.parquet")
    if site:
        frame = frame[frame["site"] == site].drop(columns="site").reset_index(drop=True)
    if "time" in frame:
        frame = frame[(frame["time"] > DAYS) | (frame["event"] == 1)].reset_index(drop=True)
        frame["target"] = np.where(frame["time"] > DAYS, "later", "within")
        frame = frame.drop(columns=["time", "event"])
    return frame


def read_pair(folder: Path, old: str, new: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two cohorts with the columns that both have; of three classes one is compared with the others."""
    A, B = (read_cohort(folder, name) for name in (old, new))
    columns = [name for name in A.columns if name in B.columns]
    A, B = A[columns], B[columns]
    if A["target"].nunique() > 2:
        A, B = (frame.assign(target=np.where(frame["target"] == "Her2", "Her2", "other")) for frame in (A, B))
    return A, B


def real(folder: Path, family: str, old: str, new: str, method: str) -> Iterator[dict[str, Any]]:
    """A study on one cohort, and its model on another."""
    start = time.perf_counter()
    A, B = read_pair(folder, old, new)
    if method == "fisher":  # takes numbers alone
        A, B = (frame.drop(columns=frame.drop(columns="target").select_dtypes("category").columns) for frame in (A, B))
    known = {"family": family, "from": old, "to": new, "method": method}
    options: dict[str, Any] = {
        "methods": method,
        "n_repeats": 1,
        "n_jobs": 1,
        "max_samples": 600 if len(A) > 600 else None,
    }
    skipped = ("references", "suspects", "substitutes", "other-lists", "false-share", "effects")
    try:
        study = marginsieve.study(A.drop(columns="target"), A["target"], without=skipped, **options)
        X, y = B.drop(columns="target"), B["target"]
        plain = study.validate(X, y, align="none").result
        entry, promise = plain["cohorts"][0], plain["promise"]["scores"]
        share = float((y == study.model.positive_).mean())
        known |= {"features": study.model.n_features_, "promised_auc": promise["auc"]["value"]}
        known |= {"promised": promise["balanced_accuracy"]["value"], "rows": len(B), "share": share}
        if entry["forecast"] is not None:
            k, score = int(min(y.value_counts())), entry["lines"]["as_is"]["scores"]["auc"]["value"]
            middle = (score * k + 0.5) / (k + 1)
            for way in ("same", "elsewhere"):
                low, high = entry["forecast"][way]
                known[f"hit_{way}"] = bool(low <= middle <= high)
        known |= lines_of(study.model, X, y, share)
    except InputError as error:
        known["error"] = str(error)[:200]
    yield {**known, "seconds": time.perf_counter() - start}


# -- tables of results ------------------------------------------------------------------------------------------------


def say_coverage(frame: pd.DataFrame) -> Iterator[str]:
    yield "| score | covered | lowest setting | highest | truth above | mean width |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, part in frame.groupby("score", sort=False):
        by_setting = part.groupby("setting")["covered"].mean()
        cells = [part["covered"].mean(), by_setting.min(), by_setting.max(), part["below"].mean(), part["width"].mean()]
        yield f"| {name} | {' | '.join(f'{value:.3f}' for value in cells)} |"
    least = frame.groupby(["setting", "score"]).size().min()
    yield f"{least:,} cohorts in each of {frame['setting'].nunique()} settings"


def say_forecast(frame: pd.DataFrame) -> Iterator[str]:
    yield "| setting | pairs | promised | found | same way holds | found below | elsewhere holds |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, part in [*frame.groupby("setting", sort=False), ("all", frame)]:
        cells = [part[key].mean() for key in ("promised", "found", "hit", "below", "hit_elsewhere")]
        yield f"| {name} | {len(part)} | {' | '.join(f'{value:.3f}' for value in cells)} |"


def lines(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame.columns if name == "aligned" or name.startswith("prevalence")]


def say_shifted(frame: pd.DataFrame) -> Iterator[str]:
    names = lines(frame)
    yield f"| setting | pairs | s | AUC | as is | {' | '.join(f'{name}, less as is' for name in names)} |"
    yield "|---|---:|---:|---:|---:|" + "---:|" * len(names)
    for setting, part in frame.groupby("setting", sort=False):
        changes = [part[name] - part["as_is"] for name in names]
        cells = [f"{each.mean():+.3f} ({1.645 * each.sem():.3f})" for each in changes]
        means = [part[name].mean() for name in ("gate", "auc", "as_is")]
        shown = " | ".join(f"{value:.3f}" for value in means)
        yield f"| {setting} | {len(part)} | {shown} | {' | '.join(cells)} |"


def say_sites(frame: pd.DataFrame) -> Iterator[str]:
    yield "| sites | tables | left out | pseudo-sites | alarm 1: confounding | alarm 2: transfer |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, part in frame.groupby("setting", sort=False):
        cells = [part[key].mean() for key in ("left_out", "pseudo", "is_confounded", "loses")]
        yield f"| {name} | {len(part)} | {' | '.join(f'{value:.3f}' for value in cells)} |"


def say_real(frame: pd.DataFrame) -> Iterator[str]:
    """Means by family, and over families, each of which counts alike."""
    known = frame[frame["as_is"].notna()]
    names = lines(known)
    yield f"| family | pairs | promised AUC | found | promised BA | as is | {' | '.join(names)} | same | elsewhere |"
    yield "|---|---:|" + "---:|" * (len(names) + 6)
    columns = ["promised_auc", "auc", "promised", "as_is", *names, "hit_same", "hit_elsewhere"]
    numbers = known.assign(**{name: known[name].astype(float) for name in ("hit_same", "hit_elsewhere")})
    by_family = numbers.groupby("family", sort=False)[columns].mean()
    for family, row in by_family.iterrows():
        count = int((known["family"] == family).sum())
        yield f"| {family} | {count} | {' | '.join(f'{value:.3f}' for value in row)} |"
    mean = by_family.mean()
    yield f"| mean of the families | {len(known)} | {' | '.join(f'{value:.3f}' for value in mean)} |"
    yield ""
    for some, part in (("all", numbers), ("s > .5", numbers[numbers["gate"] > 0.5])):
        for name in names:
            change = (part[name] - part["as_is"]).groupby(part["family"]).mean().dropna()
            fallen = float(((part[name] - part["as_is"]).dropna() < -0.03).mean())
            if len(change) > 1:
                reach = float(stats.t.ppf(0.95, len(change) - 1)) * change.sem()
                span = f"{change.mean():+.3f} ({change.mean() - reach:+.3f} to {change.mean() + reach:+.3f})"
                yield f"- {some}, {name} less as is, {len(change)} families: {span}; below -.03 in {fallen:.0%}"


SAY: dict[str, Callable[[pd.DataFrame], Iterator[str]]] = {
    "coverage": say_coverage,
    "elsewhere": say_coverage,
    "forecast": say_forecast,
    "shifted": say_shifted,
    "sites": say_sites,
    "real": say_real,
}
RUN: dict[str, Callable[[int], Iterator[dict[str, Any]]]] = {
    "coverage": coverage,
    "elsewhere": elsewhere,
    "forecast": forecasts,
    "shifted": shifted,
    "sites": sites,
}


WRITTEN = 20  # times that the file is written


def collect(key: str, run: Callable[..., Any], *words: Any) -> list[dict[str, Any]]:
    """The rows of a task."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [{"task": key, **row} for row in run(*words)]


def run_all(file: Path, what: str, tasks: dict[str, tuple[Any, ...]], jobs: int) -> pd.DataFrame:
    """The rows of all tasks in their order; those that the file has are kept."""
    parts = [pd.read_csv(file, dtype={"task": str})] if file.exists() else []
    known = set(parts[0]["task"]) if parts else set()
    left = {key: words for key, words in tasks.items() if key not in known}
    order, every = {key: k for k, key in enumerate(tasks)}, max(1, len(left) // WRITTEN)
    with Parallel(n_jobs=jobs, return_as="generator_unordered") as pool:
        for k, rows in enumerate(pool(delayed(collect)(key, *words) for key, words in left.items()), 1):
            parts.append(pd.DataFrame([{"what": what, **row} for row in rows]))
            if k % every == 0 or k == len(left):
                frame = pd.concat(parts, ignore_index=True)
                parts = [frame.sort_values("task", key=lambda task: task.map(order).fillna(-1), kind="stable")]
                whole = file.with_name(f"part-{file.name}")
                parts[0].to_csv(whole, index=False)
                whole.replace(file)
                print(f"{k} of {len(left)}", flush=True)
    return parts[0].reset_index(drop=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=[*SAY, "table"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--tables-of", type=Path, default=None)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if options.what == "table":
        for file in options.files:
            frame = pd.read_csv(file)
            print("\n".join(SAY[frame["what"].iloc[0]](frame)), end="\n\n")
        return
    if options.what == "real":
        tasks = {
            f"{method}: {old} to {new}": (real, options.tables_of, family, old, new, method)
            for family in options.families.split(",")
            for method in options.methods.split(",")
            for old, new in FAMILIES[family]
        }
    else:
        tasks = {str(seed): (RUN[options.what], seed) for seed in range(options.tables)}
    frame = run_all(Path(options.files[0]), options.what, tasks, options.jobs)
    print("\n".join(SAY[options.what](frame)))


if __name__ == "__main__":
    main()
