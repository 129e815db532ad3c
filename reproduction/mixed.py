"""The clinical kernel for mixed types (Paul and Dupont): four tables, 200 splits, performance and stability."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import spearmanr

from marginsieve.bench.statistics import Comparison, compare

from .claims import LEVEL, WORSE, Claim, Evidence, NotRun, ahead_of, if_holds, listed
from .families import FamilyComparison
from .final_classifiers import AGREE, CLASSIFIERS, FinalClassifiers
from .named_problems import load
from .paper import Job, Paper

MIXED_SETS = ("ARRHYTHMIA430", "HEART", "HEPATITIS", "VANTVEER4348")  # Rheumagene is not public
ELIMINATION, HYBRID = ("clinical_rfe", "mkl_rfe"), ("hfs_nb", "hfs_5nn")


def _mixed_job(name: str, C: float) -> Job:
    """The paper does not say which C it used."""
    return Job(
        name,
        ("figures",),
        {"name": "mixed", "sizes": [1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 500, 1000, 2000]},
        MIXED_SETS,
        ("HEART",),
        {recipe: (recipe, {"C": C, "class_weight": "balanced"}) for recipe in (*ELIMINATION, *HYBRID)},
        {"balanced_accuracy": ("balanced_accuracy", "mean")},
        nested=False,
        quick_protocol={"repeats": 10},
    )


# -- claims --------------------------------------------------------------------------------------------------------


def _compared(evidence: Evidence, job: str, side: str, blocks: tuple[str, ...] = ("data", "size")) -> Comparison:
    """Ranks of the four methods over data sets and sizes, as in the paper."""
    table = evidence.table(f"{job}-comparison").pivot_table(index=list(blocks), columns="method", values=side).dropna()
    if min(table.shape) < 2:
        raise NotRun("there are too few data sets or methods to compare")
    return compare(table[[*ELIMINATION, *HYBRID]])


def _ranks(compared: Comparison) -> dict[str, float]:
    return dict(sorted(zip(compared.methods, compared.ranks, strict=True), key=lambda pair: pair[1]))


def _highly_significant(evidence: Evidence, job: str) -> str:
    both = _compared(evidence, job, "balanced_accuracy"), _compared(evidence, job, "balanced_accuracy", ("data",))
    figures = f"Friedman p = {both[0].p_value:.2g} over data sets and sizes, {both[1].p_value:.2g} over data sets"
    return if_holds(both[0].p_value < 1e-30, f"{figures} (printed below 1e-30, over data sets and sizes)")


def _mkl_first(evidence: Evidence, job: str) -> str:
    compared = _compared(evidence, job, "balanced_accuracy")
    ranks = _ranks(compared)
    least = min(ranks[name] for name in HYBRID) - max(ranks[name] for name in ELIMINATION)
    figures = f"average ranks {listed(ranks, 2)}; critical difference {compared.critical_difference:.2f}"
    order = list(ranks)[:2] == ["mkl_rfe", "clinical_rfe"]
    return if_holds(order and least > compared.critical_difference, figures, LEVEL if order else WORSE)


def _less_stable(evidence: Evidence, job: str) -> str:
    compared = _compared(evidence, job, "stability")
    ranks = _ranks(compared)
    least = min(ranks[name] for name in ELIMINATION) - max(ranks[name] for name in HYBRID)
    figures = f"average ranks by stability {listed(ranks, 2)}; critical difference {compared.critical_difference:.2f}"
    return if_holds(least > compared.critical_difference, figures, LEVEL if least > 0 else WORSE)


def _leads(evidence: Evidence, job: str) -> dict[str, float]:
    """By data set: the weaker of the RFE methods less the stronger of the HFS methods, in points."""
    frame = evidence.table(f"{job}-comparison")
    table = 100 * frame.pivot_table(index="data", columns="method", values="balanced_accuracy", sort=False)
    ahead = table[list(ELIMINATION)].min(axis=1) - table[list(HYBRID)].max(axis=1)
    return {str(name): float(value) for name, value in ahead.items()}


def _larger_where_wide(evidence: Evidence, job: str) -> str:
    leads = _leads(evidence, job)
    columns = {name: load(name).X.shape[1] for name in leads}
    order = sorted(leads, key=lambda name: columns[name])
    if len(order) < 3:
        raise NotRun("there are too few data sets")
    figures = ", ".join(f"{name} ({columns[name]} columns) {leads[name]:+.1f}" for name in order)
    correlation = float(spearmanr([columns[name] for name in order], [leads[name] for name in order]).statistic)
    figures = f"{figures}; rank correlation of columns and gain {correlation:+.2f}"
    return if_holds(correlation > 0 and leads[order[-1]] > 0, figures)


def _by_data_and_cost(evidence: Evidence) -> str:
    """Where the claim holds: the lead on each data set at both C, since the paper does not say which it used."""
    leads = [_leads(evidence, job) for job, _ in SETTINGS]
    texts = [f"at {setting} {listed(lead)}" for lead, (_, setting) in zip(leads, SETTINGS, strict=True)]
    between = max(leads[0].values()) - min(leads[0].values())
    change = float(np.mean([abs(leads[1][name] - leads[0][name]) for name in leads[0] if name in leads[1]]))
    return (
        f"the weaker RFE method less the stronger HFS method, in points: {'; '.join(texts)}. It differs by "
        f"{between:.1f} between the tables and by {change:.1f} on average between the two C, of which the paper names "
        "none; its fifth table is not public"
    )


def _similar(evidence: Evidence) -> str:
    means = evidence.table("classifiers").groupby(["classifier", "method"])["bcr"].mean().unstack("method")
    ranks = dict(zip(means.index, means.rank(axis=1).to_numpy(), strict=True))
    agree = [name for name in CLASSIFIERS[1:] if np.corrcoef(ranks[name], ranks["SVM"])[0, 1] >= AGREE]
    rates = means.mean(axis=1).to_dict()
    orders = f"the methods are in the SVM's order (rank correlation {AGREE:g} or more) with {len(agree)} of 3"
    figures = f"{orders}; mean rates {listed({name: 100 * rates[name] for name in CLASSIFIERS})}"
    return if_holds(len(agree) == len(CLASSIFIERS) - 1, figures)


def _rates_by_classifier(evidence: Evidence) -> str:
    means = 100 * evidence.table("classifiers").groupby(["classifier", "method"])["bcr"].mean().unstack("method")
    texts = [f"{name}: {listed({str(k): float(v) for k, v in means.loc[name].items()})}" for name in CLASSIFIERS]
    return "; ".join(texts)


SETTINGS = (("curves", "C = 1"), ("curves-c10", "C = 10"))


def _claims(job: str, setting: str) -> tuple[Claim, ...]:
    return (
        ahead_of(
            f"both RFE methods beat both HFS methods in balanced classification rate ({setting})",
            "section 5, figures 1 and 2",
            ELIMINATION,
            HYBRID,
            "balanced_accuracy",
            job,
            _by_data_and_cost,
        ),
        Claim(
            f"their gain is larger on tables with many columns ({setting})",
            "section 5",
            partial(_larger_where_wide, job=job),
            _by_data_and_cost,
        ),
        Claim(
            f"the differences in BCR are highly significant ({setting})",
            "section 5, figure 2",
            partial(_highly_significant, job=job),
            _by_data_and_cost,
        ),
        Claim(
            f"RFE-MKL is best, then RFE-SVM, both significantly ahead of HFS ({setting})",
            "section 5, figure 2",
            partial(_mkl_first, job=job),
            _by_data_and_cost,
        ),
        Claim(
            f"both RFE methods are significantly less stable than HFS ({setting})",
            "section 5, figure 2",
            partial(_less_stable, job=job),
            _by_data_and_cost,
        ),
    )


CLAIMS = (
    *(claim for job, setting in SETTINGS for claim in _claims(job, setting)),
    Claim(
        "similar results with random forests, naive Bayes and 5-NN as final classifier",
        "section 5",
        _similar,
        _rates_by_classifier,
    ),
)


MIXED = Paper(
    "mixed",
    "Paul and Dupont, Kernel methods for mixed feature selection",
    (
        _mixed_job("curves", 1.0),
        _mixed_job("curves-c10", 10.0),
        replace(
            _mixed_job("all-genes", 1.0),
            protocol={"name": "mixed", "repeats": 50, "sizes": [1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200]},
            data=("VANTVEER",),
            quick=(),
        ),
    ),
    CLAIMS,
    (
        *(FamilyComparison(job, MIXED_SETS, ELIMINATION, HYBRID) for job in ("curves", "curves-c10")),
        FamilyComparison("all-genes", ("VANTVEER",), ELIMINATION, HYBRID),
        FinalClassifiers("classifiers", MIXED_SETS, (*ELIMINATION, *HYBRID)),
    ),
    full={
        "all-genes": {
            "protocol": {"name": "mixed", "sizes": [1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 1000, 5000]}
        },
        "classifiers": {"repeats": 200},
    },
)
