"""A path drawn: score against the number of features."""

from __future__ import annotations

from pathlib import Path as File
from typing import Any

import numpy as np

from ..contracts import Path, Trials
from ..errors import InputError
from .figures import COLOURS, finish_figure, new_figure


def plot_path(path: Path, file: str | File | None = None) -> Any:
    """Plot the score against the number of features, with one standard error to each side and the selected size.

    For a harmony search without such scores it shows the fitness of every subset and the best so far. It needs
    matplotlib (the extra `marginsieve[plot]`).

    Parameters
    ----------
    path : Path
        Path with scores at two sizes or more, as with n_features_to_select="auto" or "best".
    file : str, path or None, default=None
        File to write (.svg, .png or .pdf); None writes none.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from marginsieve import plot_path, recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.fisher(n_features_to_select="best", random_state=0).fit(cohort.X, cohort.y)
    >>> plot_path(selector.path_).axes[0].get_xlabel()
    'number of features'
    """
    steps = sorted((step for step in path.steps if np.isfinite(step.score)), key=lambda step: step.size)
    if len(steps) < 2 and path.trials is not None:
        return _draw_harmonies(path.trials, file)
    if len(steps) < 2:
        raise InputError(
            f"the path has scores at {len(steps)} of its sizes and a curve needs two: use "
            "n_features_to_select='auto' or 'best', so that inner folds score them"
        )
    size, score, error = np.array([(step.size, step.score, step.score_error) for step in steps]).T
    figure, axes = new_figure(7.0, 4.0)
    axes.fill_between(size, score - error, score + error, color=COLOURS[0], alpha=0.2, lw=0, label="one standard error")
    axes.plot(size, score, color=COLOURS[0], marker="o", ms=3, label="mean over the inner folds")
    if path.n_selected is not None:
        axes.axvline(path.n_selected, color=COLOURS[1], lw=1.2, ls="--", label=f"selected: {path.n_selected} features")
        if path.n_selected in size:
            axes.plot([path.n_selected], score[size == path.n_selected], color=COLOURS[1], marker="o", ms=7)
    axes.set_xscale("log")
    ticks = [count for power in range(7) for count in (10**power, 2 * 10**power, 5 * 10**power)]
    inside = [count for count in ticks if size[0] <= count <= size[-1]]
    axes.set_xticks(inside if len(inside) > 1 else [int(size[0]), int(size[-1])])
    axes.set_xticklabels([f"{int(tick):,}" for tick in axes.get_xticks()])
    axes.minorticks_off()
    return finish_figure(figure, axes, "number of features", path.scored_by, file)


def _draw_harmonies(tried: Trials, file: str | File | None) -> Any:
    """The fitness of every harmony in order, and of the best so far."""
    value, place = tried.fitness[:, 0], np.arange(1, len(tried.size) + 1)
    figure, axes = new_figure(7.0, 4.0)
    axes.axvspan(0.5, tried.memory + 0.5, color=COLOURS[1], alpha=0.12, lw=0, label="the first memory")
    axes.plot(place, value, color=COLOURS[0], marker="o", ms=3, ls="", alpha=0.6, label="each harmony")
    axes.step(place, value[tried.best], where="post", color=COLOURS[1], lw=1.5, label="best so far")
    return finish_figure(figure, axes, "harmony", f"{tried.metric} on the validation rows", file)
