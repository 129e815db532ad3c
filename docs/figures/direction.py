"""Draws docs/figures/direction.svg: where both directions of penalised scaling rank the features that matter.

python docs/figures/direction.py
"""

from pathlib import Path

import numpy as np

from marginsieve import recipes
from marginsieve.data import make_cohort
from marginsieve.report.figures import COLOURS, save_figure
from reproduction import named_problems

SETTINGS = {"n_features_to_select": 10, "threshold": "margin"}


def places(selector, X, y, columns):
    """Places (shares of all features, 0 is the top) of some columns in the ranking, sorted."""
    selector.fit(X, y)
    return np.sort((selector.ranking_[columns] - 1) / X.shape[1])


def panel(axes, X, y, columns, title, rivals=()):
    made = {
        "min-max (default)": recipes.kp_cssvm(C=10.0, **SETTINGS),
        "as printed": recipes.kp_cssvm(C=10.0, direction="as-printed", **SETTINGS),
        **{name: recipes.get(name)(**SETTINGS) for name in rivals},
    }
    share = np.arange(1, len(columns) + 1) / len(columns)
    for colour, (name, selector) in zip(COLOURS, made.items(), strict=False):
        found = places(selector, X, y, columns)
        axes.step(np.r_[0, found, 1], np.r_[0, share, 1], where="post", color=colour, label=name)
    axes.plot([0, 1], [0, 1], color="grey", lw=0.8, ls=":", label="chance")
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("top of the ranking, share of all features")
    axes.set_ylabel("share found there")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)


def main():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    cohort = make_cohort(160, 60, n_relevant=0, n_interactions=3, prevalence=0.5, random_state=0)
    planted = np.flatnonzero(cohort.X.columns.isin(cohort.truth.features))
    title = "generated: 3 pairs that act together alone, of 60"
    panel(left, cohort.X.to_numpy(), (cohort.y == "case").to_numpy(), planted, title, ("fisher",))
    glioma = named_problems.load("GLIOMA")
    X, y = glioma.X.to_numpy(dtype=float), (glioma.y == glioma.positive).to_numpy()
    best = np.argsort(recipes.fisher(**SETTINGS).fit(X, y).ranking_)[:100]
    panel(right, X, y, best, "GLIOMA: the 100 best genes by Fisher score, of 4,434")
    save_figure(figure, Path(__file__).with_suffix(".svg"))


main()
