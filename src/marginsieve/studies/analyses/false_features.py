"""How many features of the lists are false, and what a test of each column alone says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from ...contracts import Array, BoolArray
from ...criteria import MixedTest
from ...errors import many
from ...fitting.evidence import numeric_columns, permutation_p
from ...fitting.false_share import (
    FEWEST_COLUMNS,
    RIDGE_PAIRS,
    RIDGE_SHUFFLES,
    FalseShare,
    ridge_false_share,
    rows_of_ridge,
)
from ...fitting.rows import Rows
from ...report.numbers import format_expected, format_share
from ..analysis import AnalysisResult, Facts, Level, StudyRun, Support, register_analysis
from ..checks import ALARM, Finding

COLUMN = 2.7e-8  # seconds of a labelling of a half, for a column
FACTOR = 4e-11  # seconds of factoring a half, for each of its operations
TENTH, HALF = 0.1, 0.5
NAMED = 10
FEW_NOTE = "q: by a test of each column alone, adjusted over all columns after Benjamini and Hochberg (marginal_q)."
FEATURES_NOTE = (
    "q: the estimated share of features without any relation to the target among those that lead as often as this one "
    "when all columns are weighed together (marginal: the same by a test of each column alone; the two differ where "
    "columns are alike or weak)."
)
FEWEST_ROWS = 10  # of a class, for a test by a distribution
MOST_STATISTICS = 100_000  # of permutations of few columns


@register_analysis
class FalseFeatures:
    """The share of false features in the lists, by halves of the rows; q-values of the features."""

    name, order, template = "false-share", 20.0, ""

    def levels(self, facts: Facts) -> list[Level]:
        """Pairs of halves, and shuffles; (0, 0) is the test of each column alone."""
        few = facts.shape.columns < FEWEST_COLUMNS
        return [Level((0, 0), 0), *([] if few else [Level((RIDGE_PAIRS, RIDGE_SHUFFLES), 6)])]

    def cost(self, facts: Facts) -> float:
        """One factoring of each half, and a product and a ranking for each labelling."""
        pairs, shuffles = facts.effort
        n = facts.shape.columns
        half = rows_of_ridge(facts.shape.rows, n) / 2
        return 2 * pairs * (COLUMN * (shuffles + 1) * n + FACTOR * half * n * min(half, n))

    def run(self, run: StudyRun) -> AnalysisResult:
        """The estimated share of false features in each list, and how it was got."""
        pairs, _ = run.choice.efforts[self.name]
        names, listed, longer = run.main.selector.columns_.names, run.main.selector.support_, run.main.longer
        seed = np.random.SeedSequence([run.options.random_state, 2])
        p = marginal_p(run.table.rows.active, np.random.default_rng(seed.spawn(1)[0]))
        q = adjust(p)
        columns = {"halves": np.full(len(p), np.nan), "q_value": np.full(len(p), np.nan), "marginal_q": q}
        values: dict[str, Any] = {
            "share": None,
            "share_long": None,
            "asked": run.options.false_share,
            "marginal": int(np.count_nonzero(q[listed] <= TENTH)),
            "others": [names[j] for j in run.selected_features if not q[j] <= TENTH],
            "features_note": FEW_NOTE,
            "methods_text": "Each column was tested by itself, adjusted over all columns after Benjamini and Hochberg.",
        }
        if pairs:
            known = ridge_false_share(run.table.rows.active, seed, run.options.n_jobs)
            columns |= {"halves": known.score, "q_value": known.q}
            below = known.q <= TENTH
            values |= {
                "share": list_share(known, p, listed),
                "share_long": None if longer is None else list_share(known, p, longer.selector.support_),
                "below_a_tenth": int(np.count_nonzero(below)),
                "listed_below_a_tenth": int(np.count_nonzero(below & listed)),
                "best_supported": [names[j] for j in np.flatnonzero(listed & below & run.main.in_core)],
                "either": [names[j] for j in np.flatnonzero(listed & (below | (q <= TENTH)))],
                "pairs": known.pairs,
                "shuffles": known.shuffles,
                "sizes": list(known.sizes),
            }
            either = ", ".join(values["either"]) or "none"
            values["features_note"] = f"{FEATURES_NOTE} At most 0.1 by either: {either}."
            values["methods_text"] = (
                f"How many features are there by chance was estimated from ridge weights in {2 * known.pairs} random "
                f"halves of the rows against {known.shuffles} permutations of the outcome, and from column-wise tests."
            )
        entries = {names[j]: {key: column[j] for key, column in columns.items()} for j in run.selected_features}
        return AnalysisResult(values, columns, entries)

    def sentence(self, result: dict[str, Any]) -> str | None:
        """What a test of each column alone says; how many features of the lists may be false is in the headline."""
        known = result["analyses"][self.name]
        if not result["answer"]["evidence"]:
            return None
        counted = f"{known['marginal']:,} of {many(result['n_features'], 'listed feature')}"
        among = "are in a set of which about a tenth at most is expected to be false (marginal_q)"
        alone = f"by a test of each column alone {counted} {among}"
        if known["share"] is None:
            few = f"the table has fewer than {FEWEST_COLUMNS} columns"
            few = few if result["table"]["features"] < FEWEST_COLUMNS else "that did not fit into the minutes"
            others = f", all but {', '.join(known['others'])}" if 0 < len(known["others"]) <= NAMED else ""
            return f"How many of the list are false is not estimated, since {few}; {alone}{others}."
        below, inside = known["below_a_tenth"], known["listed_below_a_tenth"]
        longest = "no set keeps the share of false features below a tenth"
        if below:
            longest = f"{many(below, 'feature')}, {inside:,} of them in the list, are in such a set"
        how = f"{2 * known['pairs']} halves of the rows against {known['shuffles']} permutations"
        return (
            f"What is false is estimated in two ways: {alone}; by all columns weighed together, in {how}, {longest} "
            "(q_value). A column that says little by itself, or what others say as well, may be in the one and not in "
            "the other."
        )

    def chance_shares(self, values: Mapping[str, Any]) -> tuple[float | None, float | None]:
        """Those of the short list and of the long one."""
        return values["share"], values["share_long"]

    def support(self, result: dict[str, Any]) -> Support:
        """How many features may be there by chance, and which are best supported."""
        known, count = result["analyses"][self.name], result["n_features"]
        if known["share"] is None:
            return Support()
        if count == 1:
            if known["share"] > HALF:
                return Support("The one feature of this list cannot be expected to be real. ")
            return Support(text=f"; {format_share(known['share'])} of such lists are expected to be there by chance")
        chance = f"{format_expected(known['share'], count)} expected to be there by chance"
        warning, text = "", f"; {chance}"
        if known["share"] > HALF:
            text, its = "", chance.replace("of them", f"of its {count:,} features")
            warning = f"Fewer than half of this list can be expected to be real: {its}. "
        if best := known["best_supported"]:
            how = "in at least 90 % of the outer folds, and with q at most .1"
            text += f"; {len(best):,} {'is' if len(best) == 1 else 'are'} best supported ({how})"
        return Support(warning, text)

    def doubt(self, result: dict[str, Any]) -> Finding | None:
        """That more than half of the list may be there by chance."""
        share = result["analyses"][self.name]["share"]
        if share is None or share <= HALF or not result["answer"]["evidence"]:
            return None
        text = f"about {share:.0%} of the list are expected to be there by chance: that a feature is in it says little"
        return Finding("false", ALARM, text)


def list_share(known: FalseShare, p: Array, chosen: BoolArray) -> float:
    """The estimated share of false features in any list: by halves or by tests of each column, whichever is less."""
    return min(known.of_list(chosen), marginal_share(p, chosen))


def adjust(p: Array) -> Array:
    """(n,) p-values adjusted over all columns that have one, after Benjamini and Hochberg."""
    out, known = np.full(len(p), np.nan), np.isfinite(p)
    out[known] = stats.false_discovery_control(np.clip(p[known], 0.0, 1.0))
    return out


def marginal_p(part: Rows, rng: np.random.Generator) -> Array:
    """(n,) the p-value of each column by itself; nan where it does not vary.

    Welch's t-test and Fisher's exact test for two classes, else the F-test and chi^2. In groups, and with a class of
    fewer than ten rows, these do not hold: there p is the share of statistics in permutations that are as large.
    """
    if part.target.groups is not None or min(part.target.row_counts) < FEWEST_ROWS:
        return permutation_p(part, max(RIDGE_SHUFFLES, MOST_STATISTICS // part.table.shape[1]), rng)
    if not part.target.has_auc:
        return _several_p(part)
    with np.errstate(all="ignore"):
        return 10.0 ** -np.asarray(MixedTest()(part.table, part.target.machine_target.y, np.ones(len(part))))


def marginal_share(p: Array, chosen: BoolArray) -> float:
    """The estimated share of false features in any list, at most 1, by tests of each column alone.

    The least over t of [columns x t + features of the list with a larger p] / its length: of columns without a relation
    so many have a p of at most t, in the list or not.
    """
    listed = np.sort(p[chosen])
    if not len(listed) or not np.isfinite(listed).all():
        return 1.0
    by_chance = np.count_nonzero(np.isfinite(p)) * listed
    above = len(listed) - np.searchsorted(listed, listed, side="right")
    return float(min((by_chance + above).min() / len(listed), 1.0))


def _several_p(part: Rows) -> Array:
    """(n,) p of each column where there are not two classes: the F-test of a number, chi^2 of a category."""
    X, owner, features = numeric_columns(part)
    basis, m = part.target.association(), len(part)
    chi = np.bincount(owner, ((basis @ X) ** 2).sum(axis=0))
    levels, d = np.bincount(owner), len(basis)
    share = np.minimum(chi / m, 1.0)
    F = share / d / np.maximum((1.0 - share) / max(m - 1 - d, 1), 1e-300)
    p = np.full(part.table.shape[1], np.nan)
    p[features] = np.where(levels > 1, stats.chi2.sf(chi, (levels - 1) * d), stats.f.sf(F, d, max(m - 1 - d, 1)))
    return p
