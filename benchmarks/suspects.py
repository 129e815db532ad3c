"""Whether suspicions are probabilities: labels are flipped in generated and in public tables, and found again.

    python -m benchmarks.suspects run generated.npz --tables 10 --first-seed 1000 --jobs 16    # of each shape
    python -m benchmarks.suspects run public.npz --public --tables 4 --jobs 16
    python -m benchmarks.suspects table generated.npz public.npz             # the tables of docs/suspects.md

`run` needs numpy, scipy, pandas, scikit-learn, joblib and narwhals alone. Cleanlab's confident learning (its default,
`prune_by_noise_rate`) judges by five-fold probabilities of a logistic regression on standardised columns; `posterior`
is our step from held-out scores to suspicions on the same probabilities; `find_suspects` has machines of its own.
"""

from __future__ import annotations

import argparse
import itertools
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # a core for each table
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from scipy import special, stats  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.metrics import roc_auc_score  # noqa: E402
from sklearn.model_selection import StratifiedKFold, cross_val_predict  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from marginsieve import find_suspects  # noqa: E402
from marginsieve.outcomes.label_noise import wrong_label  # noqa: E402

FLIPS = ("none", "2 %", "5 %", "10 %", "20 %", "20 % of the rarer class")
BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)
FEWEST_ROWS = 200  # of a bin that is compared
STRONG = 0.9  # AUC before flipping from which on the bins are to be twice as close
PUBLIC = (
    *("COLON", "LEUKEMIA", "DLBCL", "GLIOMA", "SRBCT", "WDBC", "SONAR", "IONOSPHERE", "HEART", "DIABETES", "CAR2"),
    *("LYMPHOMA", "ARRHYTHMIA", "GORDON"),
)


@dataclass(frozen=True)
class Shape:
    """Rows, columns, columns with a shift of `effect` standard deviations between the classes, share of positives."""

    name: str
    rows: int
    columns: int
    relevant: int
    effect: float
    positives: float
    kind: str = "normal"  # "skewed": exponentials; "subtypes": two kinds of positives; "mixed": categories and gaps


SHAPES = (
    Shape("wide, many weak columns", 100, 1000, 30, 1.2, 0.5),
    Shape("wide, few strong columns", 100, 1000, 8, 1.5, 0.4),
    Shape("wide and weak", 100, 1000, 10, 0.8, 0.5),
    Shape("small", 60, 300, 15, 1.2, 0.4),
    Shape("tall", 600, 20, 8, 1.0, 0.5),
    Shape("tall and weak", 600, 20, 4, 0.5, 0.4),
    Shape("rare class", 400, 40, 10, 1.0, 0.1),
    Shape("skewed", 300, 30, 10, 0.8, 0.4, "skewed"),
    Shape("subtypes", 200, 100, 20, 1.5, 0.5, "subtypes"),
    Shape("mixed", 300, 12, 5, 0.9, 0.35, "mixed"),
)


def generated(shape: Shape, seed: int) -> tuple[pd.DataFrame, Any]:
    """A table and its true classes (1 is positive)."""
    rng = np.random.default_rng([seed, SHAPES.index(shape)])
    y = rng.permutation((np.arange(shape.rows) < round(shape.positives * shape.rows)).astype(int))
    X = rng.normal(size=(shape.rows, shape.columns))
    shift = shape.effect * rng.uniform(0.75, 1.25, shape.relevant) * rng.choice([-1.0, 1.0], shape.relevant)
    shown = np.tile(y[:, None], shape.relevant)
    if shape.kind == "subtypes":  # a positive differs in one half of the relevant columns, and a latent factor blurs
        half, first = rng.integers(0, 2, shape.rows), np.arange(shape.relevant) < shape.relevant // 2
        shown = shown * (half[:, None] == first[None, :])
        X[:, shape.relevant : 2 * shape.relevant] += 1.5 * rng.normal(size=(shape.rows, 1))
    X[:, : shape.relevant] += shift * shown
    frame = pd.DataFrame(np.exp(X) if shape.kind == "skewed" else X).add_prefix("x")
    if shape.kind == "mixed":
        for k in range(4):
            chances = (
                np.where(y[:, None] == 1, (0.6, 0.3, 0.1), (0.3, 0.4, 0.3)) if k < 2 else np.full((len(y), 3), 1 / 3)
            )
            level = (rng.random(len(y))[:, None] > chances.cumsum(axis=1)).sum(axis=1)
            frame[f"c{k}"] = pd.Categorical.from_codes(np.minimum(level, 2), ["a", "b", "c"])
        frame = frame.mask(rng.random(frame.shape) < 0.05)
    return frame, y


def public(name: str) -> tuple[pd.DataFrame, Any]:
    """One of the papers' binary problems; the rarer class is 1."""
    from reproduction import named_problems as problems

    data = problems.load(name)
    _, codes, counts = np.unique(np.asarray(data.y), return_inverse=True, return_counts=True)
    return data.X, (codes == counts.argmin()).astype(int)


def flipped(y: Any, flips: str, rng: np.random.Generator) -> Any:
    """(m,) which labels are flipped."""
    pool = np.flatnonzero(y == int(y.mean() <= 0.5)) if "class" in flips else np.arange(len(y))
    share = 0.0 if flips == "none" else float(flips.split()[0]) / 100
    return np.isin(np.arange(len(y)), rng.choice(pool, round(share * len(pool)), replace=False))


def plain_columns(X: pd.DataFrame) -> Any:
    """Numbers for the logistic regression: levels as columns, means in gaps."""
    Z = pd.get_dummies(X, dtype=float)
    return Z.fillna(Z.mean()).to_numpy(dtype=float)


def held_out(Z: Any, y: Any, seed: int) -> Any:
    """(m,) five-fold probabilities of class 1 by a logistic regression."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cross_val_predict(model, Z, y, cv=folds, method="predict_proba")[:, 1]


def confident_learning(y: Any, p: Any) -> Any:
    """(m,) what cleanlab's find_label_issues flags (prune_by_noise_rate) of two classes; p is that of class 1."""
    P = np.column_stack([1 - p, p])
    counts = np.bincount(y, minlength=2)
    limits = np.array([P[y == k, k].mean() for k in (0, 1)])
    above = limits - 1e-6 <= P
    sure = above.any(axis=1)
    called = np.where(above.all(axis=1), P.argmax(axis=1), above.argmax(axis=1))
    joint = np.zeros((2, 2))
    np.add.at(joint, (y[sure], called[sure]), 1)
    joint[np.diag_indices(2)] = np.maximum(joint.diagonal(), 1)
    joint *= (counts / joint.sum(axis=1))[:, None]
    joint *= len(y) / joint.sum()
    joint = np.rint(joint)
    out = np.zeros(len(y), dtype=bool)
    for k in (0, 1):
        number = int(joint[k, 1 - k])
        if counts[k] > 5 and number > 0:  # cleanlab prunes no class of five or fewer
            margin = np.where(y == k, P[:, 1 - k] - P[:, k], -np.inf)
            out |= margin >= np.sort(margin)[-number]
    return out & (P[np.arange(len(y)), y] < P[np.arange(len(y)), 1 - y])


def judged(job: tuple[str, str, int, bool]) -> dict[str, Any]:
    """One table with one kind of flips: what each method says of each row."""
    name, flips, seed, is_public = job
    X, y = public(name) if is_public else generated(next(one for one in SHAPES if one.name == name), seed)
    wrong = flipped(y, flips, np.random.default_rng([seed, FLIPS.index(flips), 7]))
    given, Z = np.where(wrong, 1 - y, y), plain_columns(X)
    p = held_out(Z, given, seed)
    logit = special.logit(np.clip(p, 1e-6, 1 - 1e-6))
    frame = find_suspects(X, given, random_state=seed)
    return {
        "name": name,
        "flips": flips,
        "seed": seed,
        "auc": roc_auc_score(y, held_out(Z, y, seed)),
        "wrong": wrong,
        "suspicion": frame["suspicion"].to_numpy(),
        "suspect": frame["suspect"].to_numpy(),
        "posterior": wrong_label(logit, given == 1, np.ones(len(y))),
        "cleanlab": confident_learning(given, p),
    }


def run(out: str, seeds: range, jobs: int, names: list[str], is_public: bool) -> None:
    """Judge all tables and keep what was said of their rows."""
    if is_public:
        from reproduction import named_problems as problems

        known = problems.present(names or PUBLIC)
    else:
        known = [shape.name for shape in SHAPES if not names or shape.name in names]
    work = [(name, flips, seed, is_public) for seed in seeds for name in known for flips in FLIPS]
    done = []
    with ProcessPoolExecutor(jobs) as pool:
        for k, result in enumerate(pool.map(judged, work)):
            done.append(result)
            if (k + 1) % 50 == 0:
                print(f"{k + 1} of {len(work)}", flush=True)
    np.savez_compressed(out, results=np.array(done, dtype=object))


def recall_at(score: Any, wrong: Any, precision: float) -> float:
    """The largest recall of the highest scores at this precision or more."""
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(wrong[order])
    enough = hits / np.arange(1, len(wrong) + 1) >= precision - 1e-12
    return float(hits[enough].max() / wrong.sum()) if enough.any() else 0.0


def calibration(results: list[dict[str, Any]]) -> dict[str, str]:
    """Stated and true share by bin, the sum of the suspicions, and the flags."""
    stated, wrong, flags = (np.concatenate([one[key] for one in results]) for key in ("suspicion", "wrong", "suspect"))
    row = {"tables": f"{len(results)}", "rows": f"{len(wrong):,}"}
    for low, high in itertools.pairwise(BINS):
        inside = (stated >= low) & ((stated < high) | (high == 1.0))
        text = f"{stated[inside].mean():.2f} / {wrong[inside].mean():.2f} ({inside.sum():,})" if inside.any() else "-"
        row[f"{low:g} to {high:g}"] = text
    limit = max(0.25 * wrong.sum(), 0.015 * len(wrong))
    row["sum / flips"] = f"{stated.sum():.0f} / {wrong.sum()}{'' if abs(stated.sum() - wrong.sum()) <= limit else ' !'}"
    row["precision"] = f"{wrong[flags].mean():.2f}" if flags.any() and wrong.any() else "-"
    row["recall"] = f"{flags[wrong].mean():.2f}" if wrong.any() else "-"
    row["false flags"] = f"{np.mean([one['suspect'][~one['wrong']].mean() for one in results]):.3f}"
    return row


def misses(results: list[dict[str, Any]], tolerance: float) -> list[str]:
    """Bins of at least FEWEST_ROWS rows whose stated and true share differ by more."""
    stated, wrong = (np.concatenate([[], *(one[key] for one in results)]) for key in ("suspicion", "wrong"))
    out = []
    for low, high in itertools.pairwise(BINS):
        inside = (stated >= low) & ((stated < high) | (high == 1.0))
        if inside.sum() >= FEWEST_ROWS and abs(stated[inside].mean() - wrong[inside].mean()) > tolerance:
            out.append(f"{low:g} to {high:g}: {stated[inside].mean():.2f} / {wrong[inside].mean():.2f}")
    return out


def against(results: list[dict[str, Any]], key: str, same_number: bool) -> str:
    """The paired difference of recall from cleanlab's, over the tables in which cleanlab flags a row.

    At cleanlab's precision our cut is chosen with the truth in hand, which favours us, and tables in which cleanlab has
    no hit are left out, since any recall has a precision of 0. With the `same_number` of flags nothing is chosen.
    """
    lead = []
    for one in results:
        flags, wrong = one["cleanlab"], one["wrong"]
        if not (flags.any() and wrong.any()):
            continue
        precision, recall = wrong[flags].mean(), flags[wrong].mean()
        if same_number:
            first = np.argsort(-one[key], kind="stable")[: flags.sum()]
            lead.append(wrong[first].sum() / wrong.sum() - recall)
        elif precision > 0:
            lead.append(recall_at(one[key], wrong, precision) - recall)
    if len(lead) < 2:
        return "-"
    half = stats.t.ppf(0.975, len(lead) - 1) * np.std(lead, ddof=1) / np.sqrt(len(lead))
    return f"{np.mean(lead):+.2f} ({np.mean(lead) - half:+.2f} to {np.mean(lead) + half:+.2f}; {len(lead)} tables)"


def show(rows: dict[str, dict[str, str]]) -> None:
    """A table in Markdown."""
    frame = pd.DataFrame(rows).T
    print("|".join(["", "", *frame.columns, ""]), "|".join(["", *["---"] * (len(frame.columns) + 1), ""]), sep="\n")
    for name, row in frame.iterrows():
        print("|".join(["", str(name), *row, ""]))
    print()


def tabulate(files: list[str], by_name: bool) -> None:
    """The promise of docs/suspects.md on kept results."""
    for file in files:
        results = list(np.load(file, allow_pickle=True)["results"])
        groups = {flips: [one for one in results if one["flips"] == flips] for flips in FLIPS}
        print(f"\n{file}\n")
        show({flips: calibration(some) for flips, some in groups.items()})
        for flips, some in groups.items():
            strong = [one for one in some if one["auc"] >= STRONG]
            weak, close = (misses(part, limit) for part, limit in ((some, 0.1), (strong, 0.05)))
            print(f"- {flips}: bins off by more than .1: {'; '.join(weak) or 'none'}", end=". ")
            print(f"AUC of .9 or more ({len(strong)} tables), by more than .05: {'; '.join(close) or 'none'}")
        print()
        show(
            {
                flips: {
                    f"{name}, {cut}": against(some, key, cut == "same number of flags")
                    for name, key in (("same probabilities", "posterior"), ("find_suspects", "suspicion"))
                    for cut in ("at its precision", "same number of flags")
                }
                for flips, some in groups.items()
                if flips != "none"
            }
        )
        if by_name:
            for name in dict.fromkeys(one["name"] for one in results):
                print(name, "\n")
                show({flips: calibration([o for o in some if o["name"] == name]) for flips, some in groups.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("out")
    running.add_argument("--tables", type=int, default=10, help="tables of each shape, or draws of each public table")
    running.add_argument("--first-seed", type=int, default=0, help="0 to 4 and 100 to 103 were looked at")
    running.add_argument("--jobs", type=int, default=1)
    running.add_argument("--names", default="", help="shapes or public tables, separated by semicolons")
    running.add_argument("--public", action="store_true", help="the tables in MARGINSIEVE_DATA")
    showing = commands.add_parser("table")
    showing.add_argument("files", nargs="+")
    showing.add_argument("--by-name", action="store_true", help="each shape or public table too")
    given = parser.parse_args()
    if given.command == "run":
        names = [name.strip() for name in given.names.split(";") if name.strip()]
        seeds = range(given.first_seed, given.first_seed + given.tables)
        run(given.out, seeds, given.jobs, names, given.public)
    else:
        tabulate(given.files, given.by_name)


if __name__ == "__main__":
    main()
