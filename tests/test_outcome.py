"""An outcome added from outside the package: counts, scored by rank correlation, on a ridge machine of its own."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator

import marginsieve
from marginsieve import SVMSelector, nested_cv
from marginsieve.contracts import VALUES, MachineTarget, Score, ScoreInfo, Solution, Words, as_gram
from marginsieve.errors import InputError
from marginsieve.outcomes import Target, read_groups, read_weight
from marginsieve.recipes import RECIPES, register


class Ridge(BaseEstimator):
    """min over f = sum_i c_i K(x_i, .) + b of sum_i cost_i (y_i - f_i)^2 + penalty c'Kc."""

    needs = "gram"
    additive_only = False
    kinds = frozenset()
    targets = frozenset({VALUES})

    def __init__(self, penalty=1.0):
        self.penalty = penalty

    def solve(self, view, y, cost, warm=None):
        K, m = as_gram(view).matrix(), len(y)
        system = np.block(
            [[K + self.penalty * np.diag(1.0 / cost), np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]]
        )
        solved = np.linalg.solve(system, np.append(y, 0.0))
        c, b = solved[:m], solved[m]
        residual = float(np.abs(system @ solved - np.append(y, 0.0)).max())
        slack = y - K @ c - b
        objective = float(cost @ slack**2 + self.penalty * c @ K @ c)
        return Solution(c, float(b), objective, residual, slack, converged=residual < 1e-6)

    def decision(self, solution, view, Z):
        return as_gram(view).apply(solution.coef, Z) + solution.intercept

    def squared_norm(self, solution, gram):
        return float(solution.coef @ gram.apply(solution.coef))


@dataclass(frozen=True)
class Expected:
    """The machines' value is the logarithm of the expected count."""

    def values(self, raw):
        return raw[:, 0]

    def predict(self, values):
        return np.expm1(values)

    def columns(self, values):
        return {"predicted": self.predict(values)}

    def at_margin(self):
        return self

    def attributes(self):
        return {}


@dataclass(frozen=True)
class CountTarget(Target):
    counts: np.ndarray

    def take(self, rows):
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, weight=self.weight[rows], groups=groups, counts=self.counts[rows])

    @property
    def identity(self):
        return ["counts"], self.counts

    @property
    def store_row(self):
        return {"classes": None, "positive": None, "truth": self.counts.tolist()}

    @property
    def machine_target(self):
        return MachineTarget(VALUES, np.log1p(self.counts)[None], self.weight[None])

    def score_values(self, values):
        return np.array([stats.spearmanr(value[:, 0], self.counts)[0] for value in values])

    outcome_name = "counts"
    scored_by = "rank correlation"

    def decide(self, held, rows, weight):
        return Expected()

    def entry(self, decision, raw):
        return {"predicted": decision.predict(decision.values(raw)).tolist()}

    def entry_of(self, estimator, rows):
        return {"predicted": np.asarray(estimator.predict(rows), dtype=float)}

    @property
    def metrics(self):
        return {
            "rank_correlation": ScoreInfo(
                "rank correlation", 0.0, listed=True, compared=True, scale="plain", share=False
            )
        }

    def scores(self, predictions):
        """Spearman's correlation: the mean product of standardised ranks, each row adds its share of it."""
        ours, theirs = (stats.zscore(stats.rankdata(part)) for part in (predictions.predicted, self.counts))
        product = ours * theirs
        return {"rank_correlation": Score(float(product.mean()), (product - product.mean()) / len(self))}

    @property
    def observed(self):
        return self.counts

    @property
    def words(self):
        return Words(f"counts from {int(self.counts.min())} to {int(self.counts.max())}")

    def describe(self):
        return {"counts": {"smallest": int(self.counts.min()), "largest": int(self.counts.max())}}


@dataclass(frozen=True)
class Counts:
    name = "counts"

    def read(self, X, y, sample_weight=None, groups=None):
        y = np.asarray(y)
        if (y < 0).any() or (y != np.rint(y)).any():
            raise InputError("y must hold counts: whole numbers of 0 or more")
        return CountTarget(read_weight(sample_weight, len(y)), read_groups(groups, y), y.astype(float))

    def check(self):
        pass

    def tag(self, tags):
        tags.estimator_type = "regressor"


@pytest.fixture(scope="module")
def counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 30))
    return X, rng.poisson(np.exp(1.0 + X[:, :3].sum(axis=1) * 0.7))


def selector(**settings):
    parts = {"machine": Ridge(), "criterion": "margin", "search": "backward", "outcome": Counts()}
    return SVMSelector(**parts, random_state=0, **settings)


def test_a_selector_of_counts_finds_what_they_depend_on(counted):
    X, y = counted
    fitted = selector(n_features_to_select=3).fit(X, y)
    assert set(np.flatnonzero(fitted.support_)) == {0, 1, 2}
    assert stats.spearmanr(fitted.predict(X), y)[0] > 0.7
    chosen = selector().fit(X, y)
    assert chosen.path_.scored_by == "rank correlation"
    assert {0, 1, 2} <= set(np.flatnonzero(chosen.support_))


def test_rows_of_weight_zero_take_no_part(counted):
    X, y = counted
    weight = np.where(np.arange(80) < 60, 1.0, 0.0)
    some = selector(n_features_to_select=3).fit(X, y, sample_weight=weight)
    only = selector(n_features_to_select=3).fit(X[:60], y[:60])
    np.testing.assert_allclose(some.predict(X), only.predict(X), rtol=1e-10)


def test_counts_are_scored_out_of_fold(counted):
    X, y = counted
    nested = nested_cv(selector(n_features_to_select=3), X, y, cv=4, n_repeats=2)
    scores = nested.scores()
    assert nested.predicted.shape == (2, 80)
    assert list(scores.value) == ["rank_correlation"]
    assert scores.value["rank_correlation"] == pytest.approx(
        np.mean([stats.spearmanr(row, y)[0] for row in nested.predicted]), abs=1e-12
    )
    assert scores.low["rank_correlation"] < scores.value["rank_correlation"] < scores.high["rank_correlation"]
    shuffled = nested_cv(
        selector(n_features_to_select=3), X, np.random.default_rng(1).permutation(y), cv=4, n_repeats=2
    )
    assert abs(shuffled.scores().value["rank_correlation"]) < 0.3


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"machine": "c_svc"}, "CSVC works on signs and counts are values"),
        ({"criterion": "fisher", "search": "top_k"}, "works on signs and counts are values"),
    ],
)
def test_parts_for_classes_are_refused_with_a_sentence(counted, part, sentence):
    with pytest.raises(InputError, match=sentence):
        selector().set_params(**part).fit(*counted)


def test_a_machine_for_values_is_refused_for_classes(counted):
    X, y = counted
    with pytest.raises(InputError, match="Ridge works on values and classes are signs: use machine='c_svc'"):
        SVMSelector(machine=Ridge()).fit(X, y > np.median(y))


def test_a_study_of_counts_has_an_answer_and_a_page(counted, tmp_path):
    """All that a study does, on an outcome that src/ has never heard of."""
    X, y = counted
    name = "ridge_rfe"

    @register("guyon2002", family="elimination")
    def ridge_rfe(**settings):
        """Elimination by ridge regression."""
        known = set(SVMSelector().get_params(deep=False))
        kept = {key: value for key, value in settings.items() if key in known}
        return SVMSelector(**{"machine": Ridge(), "criterion": "margin", "search": "backward"} | kept)

    try:
        study = marginsieve.study(X, y, outcome=Counts(), methods=name, cv=3, n_repeats=1, n_permutations=24)
        result, page = study.result, study.html()
        with pytest.warns(UserWarning, match="the model is not written: .*Ridge"):  # a machine from outside
            written = sorted(file.name for file in study.save(tmp_path))
        with pytest.raises(InputError, match="there are no methods for counts by default"):
            marginsieve.study(X, y, outcome=Counts())
    finally:
        del RECIPES[name]
    assert result["main_score"] == "rank_correlation"
    assert result["answer"]["evidence"]
    assert "rank correlation 0." in result["answer"]["headline"]
    assert {"x0", "x1", "x2"} <= {feature["name"] for feature in result["features"]}
    assert result["analyses"]["suspects"] is None
    assert result["protocol"]["left_out"]["suspects"] == "it is for classes, not for counts"
    assert "counts from 0 to" in page
    assert "rank correlation" in page
    words = re.sub(r'class="[^"]*"|classification|<style>.*?</style>|<script>.*?</script>', "", page, flags=re.S)
    assert "class" not in words
    assert "result.json" in written


def test_a_model_of_counts_is_validated_on_a_new_cohort(counted):
    """Scores, drift and a second line come for any outcome; what is about classes has a sentence."""
    X, y = counted
    frame = pd.DataFrame(X).add_prefix("x")
    model = selector(n_features_to_select=3).fit(frame, y)
    shifted = frame + 2.0
    validation = marginsieve.validate(model, shifted, y)
    entry = validation.result["cohorts"][0]
    value = np.log1p(model.predict(shifted))
    assert entry["lines"]["as_is"]["scores"]["rank_correlation"]["value"] == pytest.approx(
        stats.spearmanr(value, y).statistic
    )
    assert entry["drift"]["gate"] > 0.5
    assert set(entry["lines"]) == {"as_is", "aligned"}
    assert entry["forecast"] is None
    assert validation.html().startswith("<!doctype html>")
    with pytest.raises(InputError, match=r"prevalence is 0\.3, and the model does not predict two classes"):
        marginsieve.validate(model, shifted, y, align="location", prevalence=0.3)
    with pytest.raises(InputError, match="recalibrate and cut are for models of two classes"):
        marginsieve.validate(model, shifted, y, recalibrate=True)
