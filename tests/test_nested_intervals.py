"""Intervals by nested cross-validation: which rows are where, and what the formula gives in limit cases."""

import numpy as np
import pytest

from marginsieve import recipes, study
from marginsieve.engine.nested import Fold, collect_folds, nested_errors, nested_splits, pair_splits
from marginsieve.outcomes import Classes


@pytest.fixture
def splits():
    y = np.arange(40) % 2
    target = Classes().read(np.zeros((40, 1)), y)
    return target, nested_splits(target, 4, 2, 0)


def test_pairs_of_folds_test_both_and_train_on_the_rest(splits):
    _, outer = splits
    pairs = pair_splits(outer, 0)
    assert len(pairs) == 2 * 6
    for pair in pairs:
        folds = [one for one in outer if one.repeat == pair.repeat and np.isin(one.test, pair.test).all()]
        assert sorted(np.concatenate([one.test for one in folds])) == pair.test.tolist()
        assert sorted([*pair.train, *pair.test]) == list(range(40))
    assert len({pair.random_state for pair in pairs}) == 12


def folds_of(outer, predict):
    """What models would leave that predict each row by a rule of the split and the row."""
    out = []
    for split in outer:
        value = np.array([predict(split, row) for row in split.test])
        out.append(Fold(split.name, split.test, (value > 0).astype(int), value, None, 0.0, ()))
    return out


def test_the_error_is_between_that_of_a_pass_and_its_bound(splits):
    """Rows that every model predicts alike: inner and outer scores differ by sampling alone."""
    target, outer = splits
    sign = np.where(target.codes == 1, 1.0, -1.0)
    wrong = np.arange(40) % 5 == 0
    value = np.where(wrong, -sign, sign)
    nested = collect_folds(target, folds_of(outer, lambda _, row: value[row]), 1, 0)
    errors = nested_errors(nested, folds_of(pair_splits(outer, 0), lambda _, row: value[row]))
    variance = {k: sum(one / 20 for one in v) for k, v in nested.scores().by_stratum.items()}
    for name in ("balanced_accuracy", "auc", "accuracy"):
        assert np.sqrt(variance[name]) - 1e-12 <= errors[name] <= np.sqrt(4 * variance[name]) + 1e-12
    noisy = folds_of(pair_splits(outer, 0), lambda split, row: sign[row] * (1 if split.random_state % 2 else -1))
    wide = nested_errors(nested, noisy)  # inner scores jump between 0 and 1
    assert wide["balanced_accuracy"] == pytest.approx(np.sqrt(4 * variance["balanced_accuracy"]))


def test_a_study_has_them_as_an_option():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 6)), np.arange(40) % 2
    X[:, 0] += 1.5 * y
    settings = {"methods": "fisher", "n_features_to_select": 2, "cv": 3, "n_repeats": 1, "n_jobs": 1}
    settings |= {"without": ("suspects", "references"), "n_permutations": 24}
    simple, nested = (study(X, y, intervals=kind, **settings).result for kind in ("simple", "nested"))
    assert simple["scores"]["auc"]["value"] == nested["scores"]["auc"]["value"]
    for one, other in ((simple["scores"][name], nested["scores"][name]) for name in ("auc", "balanced_accuracy")):
        assert other["low"] <= one["low"]
        assert one["high"] <= other["high"]
    assert simple["scores"]["balanced_accuracy"] != nested["scores"]["balanced_accuracy"]
    assert "nested cross-validation" in nested["protocol"]["interval"]
    with pytest.raises(ValueError, match="intervals is 'x'; it must be one of 'simple', 'nested'"):
        study(X, y, intervals="x", **settings)
    assert recipes.fisher().fit(X, y).n_features_ > 0
