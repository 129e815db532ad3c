"""How often the range of the learning curve covers what twice the rows give: small tables cut from larger ones.

    python -m benchmarks.learning --cuts 5

Each source is cut several times into a table of so many rows. The truth is what the method scores on all other rows
when it is trained on as many rows as a training part of twice the table has, 8/5 of its rows; the true gain is that
less what it scores there when it is trained on 4/5 of its rows. Each is the mean of three fits.
"""

from __future__ import annotations

import argparse
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from marginsieve import recipes
from marginsieve.data import make_cohort
from marginsieve.engine.nested import nested_splits, score_on_splits
from marginsieve.engine.units import PlainTable
from marginsieve.outcomes import Classes
from marginsieve.outcomes.scores import ranking_aucs
from marginsieve.studies.analyses.learning_curve import SHARES, draw_splits, extrapolate

SIZE, DRAWS, FITS = 20, 3, 3


@dataclass(frozen=True)
class Source:
    """A large table, its class of interest, and the rows of what is cut from it."""

    name: str
    positive: str
    rows: int


SOURCES = (
    Source("wdbc", "malignant", 60),
    Source("diabetes", "positive", 120),
    Source("ionosphere", "bad", 80),
    Source("sonar", "Rock", 60),
    Source("madelon", "1", 200),
    Source("mfeat", "", 150),  # its first class against the rest
    Source("weak cohort", "case", 80),
    Source("strong cohort", "case", 60),
)


def load(source: Source) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and whether a row is of the class of interest."""
    if "cohort" in source.name:
        effect = 0.5 if source.name.startswith("weak") else 1.0
        cohort = make_cohort(3000, 200, n_relevant=15, effect=effect, prevalence=0.4, random_state=0)
        return cohort.X.to_numpy(), np.asarray(cohort.y) == "case"
    frame = pd.read_parquet(Path(os.environ["MARGINSIEVE_DATA"]) / f"{source.name}.parquet")
    y = frame.pop("target").astype(str).str.lstrip("+")
    return frame.to_numpy(dtype=float), (y == (source.positive or sorted(y)[0])).to_numpy()


def cut(source: Source, seed: int) -> dict[str, float]:
    """The range of a table that is cut from a source, and the truth."""
    X, hit = load(source)
    rng = np.random.default_rng([seed, source.rows])
    order = rng.permutation(len(X))
    mine, rest = order[: source.rows], order[source.rows :]
    selector = recipes.fisher(
        n_features_to_select=min(SIZE, X.shape[1] // 2),
        class_weight="balanced",
        positive=1,
        similar=None,
        random_state=0,
    )
    y = hit.astype(int)
    outcome = Classes(positive=1)
    target = outcome.read(X[mine], y[mine]).settle(outcome)
    plain = PlainTable("table", X[mine], y[mine], None, target)
    nested = score_on_splits(plain, selector, nested_splits(target, 5, 1, seed), 0, None)
    passes = {}
    for share in SHARES:
        splits = draw_splits(target, nested.folds, share, DRAWS, seed)
        if splits is None:
            return {}
        passes[share] = score_on_splits(plain, selector, splits, 0, None).passes
    known = extrapolate(target, passes | {1.0: nested.passes}, 0.8 * source.rows)
    extra, new = rest[: source.rows], rest[source.rows :]

    def score(rows: np.ndarray, count: int) -> float:
        """The mean AUC on the other rows of fits on some of these."""
        areas = []
        for _ in range(FITS):
            train = rng.choice(rows, count, replace=False)
            value = selector.fit(X[train], y[train]).decision_function(X[new])
            areas.append(float(ranking_aucs(value[None], hit[new], np.ones(len(new)))[0]))
        return float(np.mean(areas))

    truth = score(np.concatenate([mine, extra]), round(1.6 * source.rows))
    gain = truth - score(mine, round(0.8 * source.rows))
    value = {"whole": known["sizes"][-1]["value"], "truth": truth, **known["twice"], "gain": gain}
    return value | {f"gain_{name}": end for name, end in known["gain"].items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuts", type=int, default=5)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    columns = (
        "table | rows | cuts | AUC | about, of twice the rows | truth | covered | width | true gain | gain covered"
    )
    print(f"| {columns} | gain shown |\n|{'---|' * 11}")
    every = []
    for source in SOURCES:
        frame = pd.DataFrame([known for seed in range(given.cuts) if (known := cut(source, seed))])
        frame["covered"] = frame["truth"].between(frame["low"], frame["high"])
        frame["gain_covered"] = frame["gain"].between(frame["gain_low"], frame["gain_high"])
        frame["shown"] = frame["gain_low"] > 0
        every.append(frame)
        mean, count = frame.mean(), len(frame)
        cells = f"{mean['whole']:.3f} | {mean['value']:.3f} | {mean['truth']:.3f} | {frame['covered'].sum()}"
        cells += f" | {mean['high'] - mean['low']:.2f} | {mean['gain']:+.3f} | {frame['gain_covered'].sum()}"
        print(f"| {source.name} | {source.rows} | {count} | {cells} | {frame['shown'].sum()} |", flush=True)
    joint = pd.concat(every)
    wrong = (joint["shown"] & (joint["gain"] <= 0)).sum()
    print(f"\ncovered {joint['covered'].sum()} of {len(joint)}, gains {joint['gain_covered'].sum()}")
    print(f"gains shown {joint['shown'].sum()}, of which {wrong} where the true gain is not above 0")


if __name__ == "__main__":
    main()
