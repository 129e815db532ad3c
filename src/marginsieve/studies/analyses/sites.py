"""Sites: what the list is worth at a site that it has not seen, and whether a site passes for signal.

The main method is run anew with each site left out, and beside that with pseudo-sites of the same sizes and mixes left
out: these leave as many rows to train on. The alarms are tests in closed form (`fitting.site_tests`).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...contracts import Array, BoolArray, IntArray, is_sparse
from ...data.moments import ColumnMoments
from ...engine.nested import Fold
from ...engine.scoring import PREDICTED, Pass, score_predictions
from ...engine.units import Split
from ...errors import InputError, listing, many
from ...fitting.rows import Rows
from ...fitting.site_tests import LEVEL, judge_sites
from ...outcomes import Target
from ..analysis import AnalysisResult, Facts, Level, StudyRun, register_analysis
from ..checks import ALARM, Finding
from ..selection import plain_scores, run_splits

PSEUDO = 2  # draws of pseudo-sites that are left out of the main method
MOST_SECONDS = 300.0
NAMED = 10
FEWEST = 2  # sites


@register_analysis
class Sites:
    """Whole sites left out, two alarms, the features that tell sites apart and those that hold across them."""

    name, order, template = "sites", 16.0, "sites"

    def applies(self, facts: Facts) -> str | None:
        """Where sites are named."""
        return "no sites were named (--site)" if facts.options.site is None else None

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """Sites left out in any case, pseudo-sites where they do not take long."""
        return [Level((0,), 0), Level((PSEUDO,), 55, MOST_SECONDS)]

    def cost(self, facts: Facts) -> float:
        """A fold of the main method for each of about five sites, and for those of each draw of pseudo-sites."""
        if facts.measured is None:
            return 0.0
        return 5.0 * (1 + facts.effort[0]) * facts.measured.fold.get(facts.main.label, 0.0)

    def run(self, run: StudyRun) -> AnalysisResult:
        """The scores, the p-values, the features."""
        names, site = np.unique(run.data.site.astype(str).to_numpy(), return_inverse=True)
        if len(names) < FEWEST:
            return AnalysisResult({"sites": [], "n_sites": len(names)})
        rng = np.random.default_rng([run.options.random_state, 9])
        rows = run.table.rows
        tests = judge_sites(rows, site, rng)
        folds = leave_out(run, site, "site")
        values = {
            "n_sites": len(names),
            "sites": describe_sites(rows.target, site, names, folds),
            "left_out": score_folds(rows.target, folds),
            "pseudo": average_pseudo(run, site, rng),
            "association_p": tests.association_p,
            "columns_p": tests.columns_p,
            "transfer_p": tests.transfer_p,
            "ridge": {"left_out": tests.left_out, "pseudo": tests.pseudo},
            "permutations": tests.permutations,
            "level": LEVEL,
            "complete": tests.complete,
            "confounded": tests.is_confounded,
            "lost": tests.loses,
            **self._features(run, tests.column_p, folds),
            "correction": None,
        }
        if run.choice.options.site_correction is not None:
            values["correction"] = correct_and_score(run, site)
        columns = {"site_p": tests.column_p}
        return AnalysisResult(values, columns, findings=alarms(values))

    def _features(self, run: StudyRun, p: Array, folds: Sequence[Fold]) -> dict[str, Any]:
        """The listed features that tell sites apart, and those that every fit without a site selects too."""
        names = run.main.selector.columns_.names
        listed = run.selected_features
        telling = [int(j) for j in listed if p[j] <= 0.05]
        supports = [set(fold.support.tolist()) for fold in folds if fold.support is not None]
        held = [int(j) for j in listed if supports and all(int(j) in support for support in supports)]
        return {
            "n_telling": int(np.nansum(p <= 0.05)),
            "telling": [names[j] for j in telling],
            "held": [names[j] for j in held],
            "fits": len(supports),
        }

    def sentence(self, result: dict[str, Any]) -> str | None:
        """What whole sites left out score, and the list that holds across them."""
        known = result["analyses"][self.name]
        if not known["sites"]:
            return f"One site alone ({known['n_sites']}): nothing can be left out."
        names = [name for name in result["listed_scores"] if name in known["left_out"]]
        if not names:
            return "Whole sites left out cannot be scored: none of them has rows of different outcomes."
        shown = ", ".join(f"{result['short_names'][name]} {known['left_out'][name]['value']:.2f}" for name in names)
        beside = ", ".join(f"{result['scores'][name]['value']:.2f}" for name in names)
        text = f"With whole sites left out ({known['n_sites']} sites): {shown}; in random folds {beside}"
        if known["pseudo"]:
            shares = ", ".join(f"{known['pseudo'][name]:.2f}" for name in names if name in known["pseudo"])
            text += f", with pseudo-sites of the same sizes left out {shares}"
        held, count = len(known["held"]), result["n_features"]
        verb = "is" if held == 1 else "are"
        return f"{text}. Of {many(count, 'listed feature')} {held} {verb} selected whichever site is left out."


def alarms(known: dict[str, Any]) -> list[Finding]:
    """The alarms: sites that pass for signal, and the loss at sites that were left out."""
    findings = []
    if known["complete"]:
        text = "each site has rows of one outcome alone: nothing tells what is of the outcome and what of the site"
        findings.append(Finding("confounded", ALARM, text))
    elif known["confounded"]:
        which = f" ({listing(known['telling'], NAMED)} of the list do)" if known["telling"] else ""
        text = (
            f"the sites differ in their outcomes (p = {known['association_p']:.2g}) and the columns tell sites apart "
            f"within an outcome (p = {known['columns_p']:.2g}){which}: part of the score may be the site's"
        )
        findings.append(Finding("confounded", ALARM, text, tuple(known["telling"])))
    if known["lost"]:
        ridge = known["ridge"]
        text = (
            f"a model is worse at a site that it has not seen: {ridge['left_out']:.2f} within left-out sites against "
            f"{ridge['pseudo']:.2f} with pseudo-sites of the same sizes (ridge regression, p = "
            f"{known['transfer_p']:.2g}); the score of random folds does not hold elsewhere"
        )
        findings.append(Finding("transfer", ALARM, text))
    return findings


# -- sites left out ---------------------------------------------------------------------------------------------------


def split_sites(target: Target, site: IntArray, label: str, random_state: int) -> list[Split]:
    """A split for each site that can be left out: what trains must hold all that a fit needs."""
    splits = []
    for code in np.unique(site):
        test, train = np.flatnonzero(site == code), np.flatnonzero(site != code)
        part = target.take(train)
        if part.complete and part.fold_limit().count >= 2:
            splits.append(Split(f"0.{label}{code}", 0, train, test, random_state=random_state))
    return splits


def leave_out(run: StudyRun, site: IntArray, label: str) -> list[Fold]:
    """The main method's predictions of each site by a fit without it."""
    options = replace(run.choice.options, n_jobs=run.options.n_jobs)
    splits = split_sites(run.table.target, site, label, options.random_state)
    return run_splits(*run.methods[0], run.table, options, splits)


def score_folds(target: Target, folds: Sequence[Fold]) -> dict[str, Any]:
    """Scores within left-out sites: of rankings by pairs of rows of one site."""
    if not folds:
        return {}
    rows = np.concatenate([fold.test for fold in folds])
    part = target.take(rows)
    if not part.complete:
        return {}
    entries = [{name: getattr(fold, name) for name in (*PREDICTED, "unit")} for fold in folds]
    scores = plain_scores(score_predictions(part, [Pass.from_entries(entries)]))
    if not any(target.take(fold.test).complete for fold in folds):  # no pair within a site
        scores = {name: score for name, score in scores.items() if name not in ("auc", "pr_auc")}
    return scores


def average_pseudo(run: StudyRun, site: IntArray, rng: np.random.Generator) -> dict[str, float]:
    """Scores with pseudo-sites of the same sizes and mixes left out, the mean over draws; none where none are drawn."""
    known = []
    for draw in range(run.choice.efforts["sites"][0]):
        pseudo = site.copy()
        for code in np.unique(strata := run.table.target.strata):
            rows = np.flatnonzero(strata == code)
            pseudo[rows] = site[rng.permutation(rows)]
        known.append(score_folds(run.table.target, leave_out(run, pseudo, f"pseudo{draw}.")))
    names = [name for name in (known[0] if known else {}) if all(name in each for each in known)]
    return {name: float(np.mean([each[name]["value"] for each in known])) for name in names}


def describe_sites(target: Target, site: IntArray, names: Array, folds: Sequence[Fold]) -> list[dict[str, Any]]:
    """For each site its rows by stratum and, where it has rows of different outcomes, what it scores left out."""
    by_site = {int(site[fold.test[0]]): fold for fold in folds}
    strata = target.stratum_names
    out = []
    for code, name in enumerate(names):
        rows = np.flatnonzero(site == code)
        part, counts = target.take(rows), Counter(target.strata[rows].tolist())
        scores: dict[str, Any] = {}
        if (fold := by_site.get(code)) is not None and part.complete:
            one_pass = Pass(fold.predicted, fold.decision, fold.probability)
            scores = {key: {"value": score.value} for key, score in part.scores(one_pass).items()}
        mix = {each: counts.get(k, 0) for k, each in enumerate(strata)}
        out.append({"name": str(name), "rows": len(rows), "mix": mix, "scores": scores, "left_out": code in by_site})
    return out


# -- correction within sites ------------------------------------------------------------------------------------------


def correct_sites(Z: Array, kinds: Sequence[str], site: IntArray, train: IntArray) -> Array:
    """Each site's numeric columns brought to the mean and deviation of the training rows, without outcomes.

    Moments of a site are those of its training rows, or of its own rows where none of them trains.
    """
    out = np.array(Z, dtype=np.float64)
    names = [str(j) for j in range(Z.shape[1])]

    def moments(rows: IntArray) -> tuple[Array, Array]:
        mean, deviation, _ = ColumnMoments.of_rows(Z[rows], names, kinds, np.zeros(len(rows), dtype=np.intp)).pool()
        return mean, np.where(deviation > 1e-9 * np.maximum(np.abs(mean), 1e-300), deviation, 1.0)

    mean, deviation = moments(train)
    for code in np.unique(site):
        inside = np.flatnonzero(site == code)
        own = np.intersect1d(inside, train)
        middle, unit = moments(own if len(own) > 1 else inside)
        moved = mean + (Z[inside] - middle) / unit * deviation
        out[inside] = np.where(find_numeric(kinds), moved, Z[inside])
    return out


def find_numeric(kinds: Sequence[str]) -> BoolArray:
    """(n,) which columns hold numbers."""
    return np.array([kind == "real" for kind in kinds])


def correct_by_combat(Z: Array, kinds: Sequence[str], site: IntArray, train: IntArray) -> Array:
    """The numeric columns as ComBat by combatlearn corrects them, fitted to the training rows without outcomes.

    Sites that do not train are brought to the corrected training rows, which stay as they are. Columns that do not vary
    are left alone.
    """
    import pandas as pd
    from combatlearn import ComBat

    out = np.array(Z, dtype=np.float64)
    columns = np.flatnonzero(find_numeric(kinds))
    if not np.isfinite(out[:, columns]).all():
        raise InputError("site_correction is combatlearn, which takes no empty cells: take location-scale")
    columns = columns[np.ptp(out[np.ix_(train, columns)], axis=0) > 0]
    trains = np.bincount(site[train], minlength=site.max() + 1) > 1  # one row has no deviation
    own = train[trains[site[train]]]

    def correct(rows: IntArray, batch: IntArray, fitted: IntArray, reference: int | None) -> None:
        table, known = pd.DataFrame(out[:, columns]), pd.Series(batch)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sites of very different sizes: in every fold
            combat = ComBat(known, reference_batch=reference).fit(table.iloc[fitted])
        out[np.ix_(rows, columns)] = combat.transform(table.iloc[rows]).to_numpy()

    inside = np.flatnonzero(trains[site])
    if trains.sum() > 1:
        correct(inside, site, own, None)
    for code in np.setdiff1d(site, np.flatnonzero(trains)):
        rows = np.flatnonzero(site == code)
        if len(rows) > 1:
            correct(rows, np.where(site == code, 1, 0), np.concatenate([own, rows]), 0)
    return out


CORRECT: dict[str, Callable[[Array, Sequence[str], IntArray, IntArray], Array]] = {
    "location-scale": correct_sites,
    "combatlearn": correct_by_combat,
}


def correct_and_score(run: StudyRun, site: IntArray) -> dict[str, Any]:
    """The main method with corrected columns, in the first repeat's folds and with whole sites left out."""
    rows, options = run.table.rows, run.choice.options
    every = [
        (np.setdiff1d(np.arange(len(rows)), fold.test), fold.test) for fold in run.main.nested.folds if fold.repeat == 0
    ]
    sites = [(split.train, split.test) for split in split_sites(rows.target, site, "", options.random_state)]
    known = {}
    for name, splits in (("folds", every), ("left_out", sites)):
        folds = [_corrected_fold(run, rows, site, train, test) for train, test in splits]
        known[name] = score_folds(rows.target, folds)
    plain = score_folds(rows.target, [fold for fold in run.main.nested.folds if fold.repeat == 0])
    return {"how": options.site_correction, "folds_as_is": plain, **known}


def _corrected_fold(run: StudyRun, rows: Rows, site: IntArray, train: IntArray, test: IntArray) -> Fold:
    """The test rows' predictions by the main method, both sides corrected."""
    cells = rows.table.Z.toarray() if is_sparse(rows.table.Z) else np.asarray(rows.table.Z)
    correct = CORRECT[str(run.choice.options.site_correction)]
    Z = np.asfortranarray(correct(cells, rows.schema.kind, site, train))
    corrected = replace(rows, table=replace(rows.table, Z=Z))
    prepared = run.main_method
    fitted = prepared.selector.fit_rows(corrected.take(train), plan=prepared.plan)
    entry = rows.target.entry(fitted.decision, fitted.model.decision(Z[test]))
    arrays = {name: None if entry.get(name) is None else np.asarray(entry[name]) for name in PREDICTED}
    return Fold("0.0", test, support=None, seconds=0.0, notes=(), unit=fitted.unit, **arrays)
