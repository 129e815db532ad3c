"""The history of a path, and its picture."""

import numpy as np
import pytest

from marginsieve import plot_path, recipes
from marginsieve.errors import InputError
from marginsieve.fitting.held_out import choose_size
from marginsieve.problem import size_grid


def test_every_step_has_its_history(blobs):
    X, y = blobs
    path = recipes.svm_rfe(n_features_to_select="auto", random_state=0).fit(X, y).path_
    assert [step.size for step in path.steps] == [12, 10, 8, 7, 6, 5, 4, 3, 2, 1]
    for step in path.steps:
        assert step.objective > 0
        assert 0 <= step.residual <= 1e-6
        assert step.seconds >= 0
    scored = [step for step in path.steps if not np.isnan(step.score)]
    assert [step.size for step in scored] == list(size_grid(12, 1)[::-1])
    assert all(0 <= step.score <= 1 and step.score_error >= 0 for step in scored)
    curve = np.array([step.score for step in scored])
    assert path.n_selected == choose_size([step.size for step in scored], curve, 12, "auto")


def test_the_plot_shows_scores_their_interval_and_the_cut(blobs, tmp_path):
    X, y = blobs
    made = recipes.svm_rfe(n_features_to_select="best", random_state=0).fit(X, y)
    figure = plot_path(made.path_, tmp_path / "path.svg")
    (axes,) = figure.axes
    curve = axes.lines[0]
    steps = sorted((step for step in made.path_.steps if not np.isnan(step.score)), key=lambda step: step.size)
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
