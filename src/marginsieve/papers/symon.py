"""SYMON's study: its tables at each size, what one split hides, and the plain top d of its weights beside it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import recipes
from ..study.metrics import Pass, point_metrics
from ..study.protocols import protocol_of
from ..study.results import SuiteResult
from ..study.statistics import wilcoxon_p
from ..study.store import FILE
from ..study.suite import Suite
from ..study.units import UnitTable
from . import named_problems
from .markdown import grid
from .paper import Claim, Job, Paper
from .symon_parts import (
    BOTH,
    DATA,
    HELD,
    PLAIN,
    RIPPLES,
    RIVALS,
    SHARES,
    SPLITS,
    Imbalance,
    SettingsStudy,
    Times,
    methods_at,
)

if TYPE_CHECKING:
    import pandas as pd

SMALLEST = 0.01  # a difference in a metric that matters


def _job(size: str, d: float) -> Job:
    return Job(
        f"d-{d:g}",
        ("4",),
        SPLITS,
        DATA,
        ("COLON", "SRBCT"),
        methods_at(d),
        {"g_mean": ("g_mean", "value")},
        size=size,
        nested=False,
        quick_protocol={"repeats": 3},
        control="symon_r1",
    )


@dataclass(frozen=True)
class Tables:
    """All jobs together: both metrics with intervals, best sizes, Wilcoxon, SYMON against the top d of its weights."""

    name: str = "tables"
    data: tuple[str, ...] = DATA

    def run(
        self,
        out: Path,
        drafts: Path,
        n_jobs: int,  # noqa: ARG002
        fresh: bool,  # noqa: ARG002
        progress: Callable[..., None] | None,  # noqa: ARG002
    ) -> list[str]:
        """Lines of the report, and the table by split as CSV beside it. The jobs were run before."""
        frame = _measured(out)
        if frame.empty:
            return []
        frame.to_csv(drafts / "splits.csv", index=False)
        lines = ["## tables 4 and 5 over all splits", ""]
        lines += [
            "The paper has one split. Here are means over the splits with a 95 % interval of the mean (1.96 standard",
            "errors; splits of one table overlap, so it is too narrow) and the range of the single splits:",
            "",
        ]
        for metric in BOTH:
            lines += grid(f"{metric}, mean over the sizes:", _cells(frame, metric))
        lines += _best_sizes(frame) + _hidden(frame) + _wilcoxon(frame) + _against_plain(frame)
        return lines + _near_the_top(frame, drafts) + _training(drafts, frame)


def _measured(out: Path) -> pd.DataFrame:
    """By data set, method, share and split: both metrics."""
    import pandas as pd

    pieces = []
    for d in SHARES.values():
        folder = out / f"d-{d:g}-paper"
        if (folder / FILE).exists():
            frame = SuiteResult(folder).to_pandas()
            pieces.append(frame[frame["status"] == "done"].assign(d=d))
    if not pieces:
        return pd.DataFrame()
    columns = ["data", "method", "d", "split", *BOTH, "seconds"]
    return pd.concat(pieces, ignore_index=True)[columns].dropna(subset=list(BOTH))


def _cells(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Mean, half its interval and range of the splits, by data set and method; sizes averaged first."""
    one = frame[~frame["method"].str.startswith("symon_k")]
    by_split = (
        one.groupby(["data", "method", "split"], sort=False)[metric].mean().groupby(["data", "method"], sort=False)
    )

    def cell(values: pd.Series[float]) -> str:
        half = 1.96 * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
        return f"{values.mean():.3f} ± {half:.3f} ({values.min():.2f} to {values.max():.2f})"

    return by_split.agg(cell).unstack("method")


def _best_sizes(frame: pd.DataFrame) -> list[str]:
    """Table 5: the best AUC of each method over the sizes, and that size; the printed ones beside ours."""
    means = frame.groupby(["data", "method", "d"], sort=False)["auc"].mean()
    best = means.groupby(["data", "method"], sort=False).idxmax()
    printed = _printed("5", "auc")
    theirs = {(row["dataset"], row["method"]): f"{row['value']:.3f} ({row['size']})" for row in printed}

    def cell(key: tuple[str, str, float]) -> str:
        known = theirs.get((key[0], "symon" if key[1].startswith("symon_r") else key[1]), "-")
        return f"{known} / {means[key]:.3f} ({key[2]:g})"

    text = "Table 5: the best AUC over the sizes (ours: the best mean) and the share of features there, printed / ours"
    return grid(f"{text}. The paper does not say which r it has:", best.map(cell).unstack("method"))


def _printed(table: str, quantity: str) -> list[dict[Any, Any]]:
    """Rows of one of the paper's tables."""
    rows = SYMON.printed()
    return rows[(rows["table"] == table) & (rows["quantity"] == quantity)].to_dict("records")


def _hidden(frame: pd.DataFrame) -> list[str]:
    """In how many single splits SYMON is ahead of, level with or behind each other method."""
    wide = frame.pivot_table(index=["data", "d", "split"], columns="method", values="g_mean")
    lines = ["What one split hides: the share of all splits (data sets and sizes together) in which SYMON (r = 1) is"]
    lines += ["ahead / level / behind by G-mean:", "", "| against | ahead | level | behind |", "|---|---|---|---|"]
    for other in (*RIVALS, PLAIN):
        if {"symon_r1", other} <= set(wide):
            change = (wide["symon_r1"] - wide[other]).dropna()
            shares = [float(np.mean(test)) for test in (change > 1e-9, change.abs() <= 1e-9, change < -1e-9)]
            lines.append(f"| {other} | " + " | ".join(f"{share:.0%}" for share in shares) + " |")
    return [*lines, ""]


def _wilcoxon(frame: pd.DataFrame) -> list[str]:
    """Table 6: over data sets and sizes as in the paper, and over data sets alone."""
    means = frame.groupby(["data", "d", "method"], sort=False)["g_mean"].mean().unstack("method")
    lines = [
        "Table 6, Wilcoxon's signed-rank p by G-mean on test rows: printed / ours over data sets and sizes, as in the"
    ]
    lines += [
        "paper (the same data four times) / over data sets, sizes averaged; in brackets SYMON's mean difference:",
        "",
    ]
    theirs = {(row["method"], row["note"].split(";")[0]): f"{row['value']:.2g}" for row in _printed("6", "p_value")}
    shown = [name for name in (*RIVALS, PLAIN) if name in means]
    lines += ["| | " + " | ".join(shown) + " |", "|---" * (len(shown) + 1) + "|"]
    for r in RIPPLES:
        first, cells = f"symon_r{r}", []
        for other in shown if first in means else ():
            pair = means[[first, other]].dropna()
            alone = pair.groupby("data").mean()
            p = [wilcoxon_p(part[first].to_numpy(), part[other].to_numpy()) for part in (pair, alone)]
            known = theirs.get((first, f"vs {other}"), "-")
            cells.append(f"{known} / {p[0]:.2g} / {p[1]:.2g} ({(pair[first] - pair[other]).mean():+.3f})")
        lines += [f"| {first} | " + " | ".join(cells) + " |"] if cells else []
    return [*lines, ""]


def _near_the_top(frame: pd.DataFrame, drafts: Path) -> list[str]:
    """Figures 4 and 5: SYMON among the best d and 1, 5 or 10 % of the columns more, at a fifth of the features."""
    shown = ["symon_r1", *(name for name in frame["method"].unique() if str(name).startswith("symon_k")), "d_hell"]
    part = frame[(frame["d"] == SHARES["F/5"]) & frame["method"].isin(shown)]
    if "symon_k1" not in set(part["method"]):
        return []
    lines = [
        "Figures 4 and 5. The paper: SYMON_k, which searches among the best d features and dz = 1, 5 or 10 % of the"
    ]
    lines += [
        "columns more, is comparable to SYMON and comparable to D-HELL or better (curves without figures). Ours:",
        "",
    ]
    for metric in BOTH:
        means = part.groupby(["data", "method"], sort=False)[metric].mean().unstack("method")[shown]
        means.to_csv(drafts / f"figures-4-5-{metric.replace('_', '-')}.csv")
        means.loc["mean"] = means.mean()
        lines += grid(f"{metric} at d = F/5:", means.map(lambda value: f"{value:.3f}"))
    return lines


def _against_plain(frame: pd.DataFrame) -> list[str]:
    """Whether the search is worth anything: SYMON less the plain top d of the same weights, by split."""
    lines = [
        "Harmony search against the plain top d of the same weights (`su`), mean difference over the splits with a 95 %"
    ]
    lines += ["interval over the data sets (bootstrap), and on how many data sets it is ahead:", ""]
    lines += ["| | G-mean | ahead | AUC | ahead |", "|---|---|---|---|---|"]
    verdicts = []
    for name in [name for name in frame["method"].unique() if str(name).startswith("symon")]:
        cells = []
        for metric in BOTH:
            wide = frame.pivot_table(index=["data", "d", "split"], columns="method", values=metric)
            change = (wide[name] - wide[PLAIN]).dropna().groupby("data").mean()
            draws = np.random.default_rng(0).choice(change.to_numpy(), (4000, len(change))).mean(axis=1)
            low, high = np.percentile(draws, [2.5, 97.5])
            cells += [
                f"{change.mean():+.4f} ({low:+.4f} to {high:+.4f})",
                f"{int((change > 0).sum())} of {len(change)}",
            ]
            verdicts += [(float(change.mean()), float(low), float(high))] if name == "symon_r1" else []
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, "", f"In these runs harmony search (r = 1) {_plainly(verdicts)}.", ""] if verdicts else [*lines, ""]


def _plainly(changes: Sequence[tuple[float, float, float]]) -> str:
    """Whether SYMON is ahead of the plain top d, from (mean difference, its interval) by metric."""
    parts = []
    for name, (mean, low, high) in zip(("G-mean", "AUC"), changes, strict=True):
        where = "ahead by" if low > 0 else "behind by" if high < 0 else ""
        parts.append(f"{where} {abs(mean):.4f} in {name}" if where else f"level in {name}")
    text = f"against the plain top d of the same weights is {' and '.join(parts)}"
    small = all(abs(mean) < SMALLEST for mean, _, _ in changes)
    return f"{text}: under {SMALLEST:g} either way, the search buys nothing that a user would notice" if small else text


def _training(drafts: Path, frame: pd.DataFrame) -> list[str]:
    """Table 7: G-mean on the training rows, of the first split at a fifth of the features."""
    rows = {}
    for name in named_problems.present(tuple(frame["data"].unique())):
        data = Suite.read({"protocol": SPLITS, "data": [{"name": name}], "method": [{"name": "su"}]}).tables()[0]
        rows[name] = {
            label: _on_training_rows(recipes.get(recipe)(**settings), data)
            for label, (recipe, settings) in methods_at(SHARES["F/5"]).items()
            if not label.startswith("symon_k")
        }
    import pandas as pd

    table = pd.DataFrame(rows).T
    table.to_csv(drafts / "training.csv")
    text = "Table 7, G-mean on the training rows themselves (first split, a fifth of the features): where every method"
    return grid(f"{text} separates them there is nothing to test.", table)


def _on_training_rows(selector: Any, data: UnitTable) -> float:
    """G-mean of a method on the rows of the first split that it was fitted on."""
    split = protocol_of(SPLITS).splits(data.y, None, 0)[0]
    assert split.validation is not None
    rows = np.sort(np.concatenate([split.train, split.validation]))
    X, y = data.encoded.table.Z[rows], data.y[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = selector.set_params(threshold="margin", random_state=0, similar=None, positive=data.positive).fit(X, y)
    return point_metrics(y, Pass(fitted.predict(X), fitted.decision_function(X)), data.positive)["g_mean"]


def _readings() -> dict[str, dict[str, Any]]:
    variants = {
        f"HMCR {hmcr}, PAR {par}": {"hmcr_reading": hmcr, "par_reading": par, "validation": HELD}
        for hmcr in ("usual", "printed")
        for par in ("falling", "usual", "printed")
    }
    variants["a fitter one replaces, as printed"] = {"replace_equal": False, "validation": HELD}
    variants["weights by MDL cuts"] = {"cuts": "mdl", "validation": HELD}
    return variants


SMALL = {"memory": 5, "validation": HELD}  # table 3 of the paper
SYMON = Paper(
    "symon",
    "Moayedikia, Ong, Boo, Yeoh and Jensen, Engineering Applications of Artificial Intelligence 57 (2017) 38-49",
    tuple(_job(size, d) for size, d in SHARES.items()),
    tuple(
        Claim(
            f"SYMON has the best G-mean at d = {size}",
            "section 4.3, table 4",
            best="symon_r1",
            among=("symon_r1", *RIVALS),
            quantity="g_mean",
            job=f"d-{d:g}",
        )
        for size, d in SHARES.items()
    ),
    (
        Tables(),
        SettingsStudy(
            "readings",
            "Readings of the paper's algorithm, and MDL instead of equal frequency.",
            _readings(),
            DATA[:1] + DATA[3:5],
            30,
        ),
        SettingsStudy(
            "figure-1",
            "PAR (smallest, largest), HMS = 5, HMCR = 0.5. The paper: best at the higher ends; it takes 0.45 and 0.9.",
            {
                f"{low:g}, {high:g}": {**SMALL, "hmcr": 0.5, "par": (low, high)}
                for low in (0.05, 0.25, 0.45)
                for high in (0.55, 0.75, 0.9)
            },
        ),
        SettingsStudy(
            "figure-2",
            "HMCR, HMS = 5, PAR from 0.45 to 0.9. The paper: best at 0.75.",
            {f"{rate:g}": {**SMALL, "hmcr": rate} for rate in (0.05, 0.25, 0.5, 0.75, 0.95)},
        ),
        SettingsStudy(
            "figure-3",
            "HMS, PAR from 0.45 to 0.9, HMCR 0.75. The paper: best at 35.",
            {f"{members}": {**SMALL, "memory": members} for members in (5, 15, 25, 35, 50)},
        ),
        Imbalance(),
        Times(),
    ),
)
