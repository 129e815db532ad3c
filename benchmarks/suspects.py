"""Whether suspicions are probabilities: labels are flipped in generated and in public tables, and found again.

    python -m benchmarks.suspects run generated.npz --tables 10 --first-seed 1000 --jobs 16    # of each shape
    python -m benchmarks.suspects run public.npz --public --tables 4 --jobs 16
    python -m benchmarks.suspects table generated.npz public.npz             # the tables of docs/suspects.md
    python -m benchmarks.suspects real real.npz               # flips in REAL, with nested probabilities beside
    python -m benchmarks.suspects real-table real.npz         # and what that says

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

from marginsieve import find_suspects, nested_cv, recipes  # noqa: E402
from marginsieve.outcomes.label_noise import wrong_label  # noqa: E402

FLIPS = ("none", "2 %", "5 %", "10 %", "20 %", "20 % of the rarer class")
BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)
FEWEST_ROWS = 200  # of a bin that is compared
STRONG = 0.9  # AUC before flipping from which on the bins are to be twice as close
PUBLIC = (
    *("COLON", "LEUKEMIA", "DLBCL", "GLIOMA", "SRBCT", "WDBC", "SONAR", "IONOSPHERE", "HEART", "DIABETES", "CAR2"),
    *("LYMPHOMA", "ARRHYTHMIA", "GORDON"),
)
#: chosen before any result was seen: five wide, four with categories, five of numbers with more rows than columns
REAL = (
    *("COLON", "LEUKEMIA", "LYMPHOMA", "GORDON", "CNS"),
    *("HEART", "HEPATITIS", "ARRHYTHMIA", "LEPIOTA"),
    *("SONAR", "IONOSPHERE", "WDBC", "DIABETES", "MFEAT"),
)
SEEN = ("COLON", "LEUKEMIA", "WDBC", "SONAR", "IONOSPHERE", "HEART", "DIABETES")  # had a part in the machines' choice
MOST_ROWS, MOST_COLUMNS = 600, 3000  # of a table of REAL; else so many at random
SHARES = (0.0, 0.05, 0.1)  # of each class that is flipped
REAL_BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
HIGH, EDGE = 0.9, 0.95  # "probably wrong" from here on; barely so up to here
CLOSE = 0.15  # what stated and true share may differ by
BY_TABLE = ("suspicion, agreed", "smaller of suspicion and 1 - own")  # ways that are shown table by table
RESAMPLES = 2000  # of the tables, for an interval


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


def real_table(name: str) -> tuple[pd.DataFrame, Any]:
    """A public table, rows of each class and columns drawn at random where it has more than the most."""
    X, y = public(name)
    rng, rows = np.random.default_rng(0), np.arange(len(y))
    if len(y) > MOST_ROWS:
        sizes = {1: round(MOST_ROWS * y.mean()), 0: MOST_ROWS - round(MOST_ROWS * y.mean())}
        rows = np.concatenate([rng.choice(np.flatnonzero(y == k), size, replace=False) for k, size in sizes.items()])
    columns = rng.choice(X.shape[1], min(MOST_COLUMNS, X.shape[1]), replace=False)
    return X.iloc[np.sort(rows), np.sort(columns)].reset_index(drop=True), y[np.sort(rows)]


def judged_real(job: tuple[str, float, int]) -> pd.DataFrame:
    """What the suspicions and, out of fold, a study's default method say of each row; some labels are flipped."""
    name, share, draw = job
    X, y = real_table(name)
    rng, wrong = np.random.default_rng([draw, round(100 * share), 11]), np.zeros(len(y), dtype=bool)
    for k in (0, 1) if share else ():
        own = np.flatnonzero(y == k)
        wrong[rng.choice(own, max(1, round(share * len(own))), replace=False)] = True
    given = np.where(wrong, 1 - y, y)
    frame = find_suspects(X, given, random_state=draw)
    recipe = recipes.two_views if len(X.select_dtypes("number").columns) == X.shape[1] else recipes.clinical_rfe
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = recipe(cv=5, probability=True, random_state=draw)
        nested = nested_cv(method, X, given, cv=5, n_repeats=1, positive=1, random_state=draw)
    p = np.asarray(nested.probability).mean(axis=0)
    return pd.DataFrame(
        {
            "name": name,
            "share": share,
            "draw": draw,
            "row": np.arange(len(y)),
            "label": given,
            "wrong": wrong,
            "suspicion": frame["suspicion"].to_numpy(),
            "suspect": frame["suspect"].to_numpy(),
            "own": np.where(given == 1, p, 1 - p),  # out-of-fold probability of the label as given
            "second": wrong_label(special.logit(np.clip(p, 1e-6, 1 - 1e-6)), given == 1, np.ones(len(y))),
        }
    )


def run_real(out: str, draws: int, names: list[str]) -> None:
    """Judge the tables without flips once and with flips in so many draws, and keep what was said of their rows."""
    work = [
        (name, share, draw) for name in names or REAL for share in SHARES for draw in range(draws if share > 0 else 1)
    ]
    done = []
    for k, job in enumerate(work):
        done.append(judged_real(job))
        if (k + 1) % 10 == 0:
            print(f"{k + 1} of {len(work)}", flush=True)
    frame = pd.concat(done, ignore_index=True)
    np.savez_compressed(out, **{name: frame[name].to_numpy(str if name == "name" else None) for name in frame})


def read_real(file: str) -> tuple[pd.DataFrame, list[str]]:
    """What `run_real` kept, with what was said of each row before the flips; several ways to state less, as columns."""
    with np.load(file) as kept:
        frame = pd.DataFrame({name: kept[name] for name in kept.files})
    before = frame[frame["share"] == 0].set_index(["name", "row"])[["suspect", "own"]].add_prefix("before_")
    frame = frame.join(before, on=["name", "row"])
    number = frame.groupby(["name", "share", "draw", "label"])["suspicion"].transform("sum")
    agree = frame["own"] < 0.5
    ways = {
        "suspicion": frame["suspicion"],
        BY_TABLE[0]: frame["suspicion"].where(agree),
        "suspicion, agreed, a suspect": frame["suspicion"].where(agree & frame["suspect"]),
        BY_TABLE[1]: np.minimum(frame["suspicion"], 1 - frame["own"]),
        "mean of suspicion and 1 - own": (frame["suspicion"] + 1 - frame["own"]) / 2,
        "smaller of both posteriors": np.minimum(frame["suspicion"], frame["second"]),
        "at most W / (W + 1), agreed": np.minimum(frame["suspicion"], number / (number + 1)).where(agree),
    }
    return frame.assign(**ways), list(ways)


def bins(stated: Any, wrong: Any) -> dict[str, str]:
    """Stated and true share (rows) of each bin, marked where they are further apart than CLOSE."""
    row = {}
    for low, high in itertools.pairwise(REAL_BINS):
        inside = (stated >= low) & ((stated < high) | (high == 1.0))
        said, true = stated[inside].mean(), wrong[inside].mean()
        off = " !" if abs(said - true) > CLOSE else ""
        row[f"{low:g} to {high:g}"] = f"{said:.2f} / {true:.2f} ({inside.sum():,}){off}" if inside.any() else "-"
    return row


def interval(frame: pd.DataFrame) -> str:
    """The true share among these rows with a 95 % interval, tables drawn with replacement; each row counts."""
    counts = frame.groupby("name")["wrong"].agg(["sum", "size"]).to_numpy()
    if len(counts) < 2:
        return f"{frame['wrong'].mean():.2f}"
    some = counts[np.random.default_rng(0).integers(0, len(counts), (RESAMPLES, len(counts)))].sum(axis=1)
    low, high = np.quantile(some[:, 0] / some[:, 1], (0.025, 0.975))
    return f"{frame['wrong'].mean():.2f} ({low:.2f} to {high:.2f})"


def probably(frame: pd.DataFrame, way: str) -> dict[str, str]:
    """The rows of which HIGH or more is stated this way."""
    high = frame[frame[way] >= HIGH]
    if not len(high):
        return {"rows": "0", "recall": "0.00"}
    new, edge = high[~high["before_suspect"]], high[high[way] < EDGE]
    return {
        "rows": f"{len(high)}",
        "tables": f"{high['name'].nunique()}",
        "stated": f"{high[way].mean():.2f}",
        "true (interval)": interval(high),
        "mean of the tables": f"{high.groupby('name')['wrong'].mean().mean():.2f}",
        f"{HIGH} to {EDGE}": f"{edge['wrong'].mean():.2f} ({len(edge)})" if len(edge) else "-",
        "looked wrong already": f"{high['before_suspect'].sum()} ({high['wrong'][high['before_suspect']].sum()} flips)",
        "true of the others": f"{new['wrong'].mean():.2f} ({len(new)})" if len(new) else "-",
        "missed before, not flipped": f"{((high['before_own'] < 0.5) & ~high['wrong']).sum()}",
        "recall": f"{high['wrong'].sum() / frame['wrong'].sum():.2f}" if frame["wrong"].any() else "-",
    }


def flags(frame: pd.DataFrame) -> dict[str, str]:
    """The suspects among these rows: how many are flips, and of those that are not probably wrong; false flags."""
    some = frame[frame["suspect"]]
    rest = some[~(some[BY_TABLE[0]] >= HIGH)]
    return {
        "suspects": f"{len(some)}",
        "true": f"{some['wrong'].mean():.2f}" if len(some) else "-",
        "true of the rest": f"{rest['wrong'].mean():.2f} ({len(rest)})" if len(rest) else "-",
        "false flags": f"{frame['suspect'][~frame['wrong']].mean():.3f}",
    }


def tabulate_real(file: str) -> None:
    """Whether a stated share is true on real tables, by bins and for "probably wrong"."""
    frame, ways = read_real(file)
    for share in SHARES[1:]:
        some = frame[frame["share"] == share]
        new = some[~some["before_suspect"]]
        print(f"\n{share:.0%} of each class flipped, {len(some):,} rows, {some['wrong'].sum()} flips\n")
        show(
            {way: bins(some[way], some["wrong"]) for way in ways}
            | {f"{way}; did not look wrong already": bins(new[way], new["wrong"]) for way in ways[:2]}
        )
        show({way: probably(some, way) for way in ways})
        for title, part in (("had no part in a choice", ~some["name"].isin(SEEN)), ("had", some["name"].isin(SEEN))):
            print(f"tables that {title}\n")
            show({way: probably(some[part], way) for way in ways})
        print("suspects\n")
        show({name: flags(one) for name, one in {"all tables": some, **dict(list(some.groupby("name")))}.items()})
        for way in BY_TABLE:
            print(f"{way}, by table\n")
            show({name: probably(one, way) for name, one in some.groupby("name")})
    clean = frame[frame["share"] == 0]
    print(f"\nno flips, {len(clean):,} rows, {clean['suspect'].sum()} suspects: {HIGH} or more is stated\n")
    rows = {"all tables": clean, **dict(list(clean.groupby("name")))}
    show({name: {way: f"{(one[way] >= HIGH).sum()}" for way in ways} | flags(one) for name, one in rows.items()})


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
    frame = pd.DataFrame(rows).T.fillna("-")
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
    real = commands.add_parser("real")
    real.add_argument("out")
    real.add_argument("--draws", type=int, default=5, help="of the flips, at each share")
    real.add_argument("--names", default="", help="of REAL, separated by semicolons")
    commands.add_parser("real-table").add_argument("file")
    given = parser.parse_args()
    if given.command == "real":
        run_real(given.out, given.draws, [name.strip() for name in given.names.split(";") if name.strip()])
    elif given.command == "real-table":
        tabulate_real(given.file)
    elif given.command == "run":
        names = [name.strip() for name in given.names.split(";") if name.strip()]
        seeds = range(given.first_seed, given.first_seed + given.tables)
        run(given.out, seeds, given.jobs, names, given.public)
    else:
        tabulate(given.files, given.by_name)


if __name__ == "__main__":
    main()
