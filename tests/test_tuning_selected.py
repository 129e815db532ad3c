"""tune works on what the search selects, at the selector's threshold."""

import numpy as np
import pytest

from marginsieve import recipes, tune


def test_a_width_is_tuned_on_the_selected_columns():
    """The sign of x0 x1 among 40 columns: tuned on all of them, no width of a Gaussian kernel tells anything."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(520, 40))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    selector = recipes.fisher(kernel="gaussian", keep=["x0", "x1"], n_features_to_select=2, random_state=0)
    grid = {"kernel__width": [0.01, 2.0], "machine__C": [1.0]}
    tuned = tune(selector, X[:120], y[:120], grid, cv=3)
    assert tuned.params["kernel__width"] == 2.0
    assert tuned.scores["machine"] > 0.85
    assert tuned.selector.fit(X[:120], y[:120]).score(X[120:], y[120:]) > 0.9


def test_the_threshold_is_the_selectors():
    """With 1 positive in 8, cutting at the margin calls hardly anything positive; the balanced threshold does."""
    rng = np.random.default_rng(1)
    y = (np.arange(160) % 8 == 0).astype(int)
    X = rng.normal(size=(160, 5))
    X[:, 0] += 1.5 * y
    scores = {
        rule: tune(recipes.fisher(n_features_to_select=1, threshold=rule), X, y, {"machine__C": [0.1]}, cv=4).scores
        for rule in ("margin", "balanced")
    }
    assert scores["margin"]["machine"] == pytest.approx(0.5, abs=0.1)
    assert scores["balanced"]["machine"] > 0.65
