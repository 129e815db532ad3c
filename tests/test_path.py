"""The history of a path, and its picture."""

import numpy as np
import pytest

from marginsieve import plot_path, recipes
from marginsieve.errors import InputError


def test_every_step_has_its_history(blobs):
    X, y = blobs
    path = recipes.svm_rfe(n_features_to_select="auto", random_state=0).fit(X, y).path_
    assert [step.size for step in path.steps] == [12, 10, 8, 7, 6, 5, 4, 3, 2, 1]
    for step in path.steps:
        assert step.objective > 0
        assert 0 <= step.residual <= 1e-4
        assert step.seconds >= 0
        assert 0 <= step.score <= 1
        assert step.score_error >= 0
    assert path.n_selected in {step.size for step in path.steps}
    best = max(path.steps, key=lambda step: step.score)
    chosen = next(step for step in path.steps if step.size == path.n_selected)
    assert chosen.score >= best.score - best.score_error


def test_the_plot_shows_scores_their_interval_and_the_cut(blobs, tmp_path):
    X, y = blobs
    made = recipes.svm_rfe(n_features_to_select="best", random_state=0).fit(X, y)
    figure = plot_path(made.path_, tmp_path / "path.svg")
    (axes,) = figure.axes
    curve = axes.lines[0]
    steps = sorted(made.path_.steps, key=lambda step: step.size)
    np.testing.assert_array_equal(curve.get_xdata(), [step.size for step in steps])
    np.testing.assert_array_equal(curve.get_ydata(), [step.score for step in steps])
    low, high = axes.collections[0].get_paths()[0].get_extents().get_points()[:, 1]
    assert low == pytest.approx(min(step.score - step.score_error for step in steps))
    assert high == pytest.approx(max(step.score + step.score_error for step in steps))
    assert axes.lines[1].get_xdata()[0] == made.n_features_ == made.path_.n_selected
    assert axes.get_ylabel() == "AUC"
    assert (tmp_path / "path.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize("name", ["path.foo", "no/such/path.png"])
def test_a_picture_that_cannot_be_written_is_said_so(name, blobs, tmp_path):
    path = recipes.svm_rfe(n_features_to_select="best", random_state=0).fit(*blobs).path_
    with pytest.raises(InputError, match="the figure cannot be written to"):
        plot_path(path, tmp_path / name)


def test_three_classes_are_scored_by_balanced_accuracy(rng):
    y = np.arange(30) % 3
    X = rng.normal(size=(30, 5)) + y[:, None]
    path = recipes.fisher(n_features_to_select="best", cv=3, random_state=0).fit(X, y).path_
    assert plot_path(path).axes[0].get_ylabel() == "balanced accuracy"


def test_a_path_without_scores_says_how_to_get_them(blobs):
    X, y = blobs
    path = recipes.svm_rfe(n_features_to_select=3).fit(X, y).path_
    assert path.n_selected == 3
    with pytest.raises(InputError, match="scores at 1 of its sizes and a curve needs two: use n_features_to_select="):
        plot_path(path)


def test_copies_at_other_sizes_have_their_own_cut(blobs):
    X, y = blobs
    made = recipes.svm_rfe(n_features_to_select=3, threshold="margin").fit(X, y)
    assert [copy.path_.n_selected for copy in made.at_sizes(X, y, [2, 5])] == [2, 5]
