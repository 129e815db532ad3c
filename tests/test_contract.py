"""scikit-learn's estimator checks over all recipes, and over the outlier detector."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from tiers import rotate

from marginsieve import SVDD, MKLClassifier, SVMSelector, recipes
from marginsieve.fitting.parts import Smote
from marginsieve.machines import Sphere

FAST = {"n_features_to_select": 2, "threshold": "margin", "random_state": 0}
PATH = {"points": 8}  # a check is about the contract, not about how fine a path is
WEIGHED = {"C": 100.0, "class_weight": "balanced"}
BUDGET = {"solver": "fast", "shakes": 1, "n_features_to_select": None, "budget": 2, **WEIGHED}
SETTINGS: dict[str, dict[str, object]] = {  # what a recipe needs beyond FAST
    "kp_svm": {"class_weight": "balanced"},
    "l1_cssvm": PATH,
    "svm_l1": PATH,
    "fsv": {**PATH, **WEIGHED},
    "ramp_svm": {"resamples": 3},
    "fs_svm": BUDGET,
    "ramp_fs": {**BUDGET, "resamples": 3},
    "stable_fisher": {"ensemble": 3},
    "kp_svdd": {"r": 0.2},
    "svdd_rfe": {"r": 0.2},
    "smote_relieff": {"sampler": Smote(percent=None, k_neighbors=1)},
    "smote_pca": {"sampler": Smote(percent=None, k_neighbors=1)},
    "two_views": {"n_features_to_select": 1.0},
    "symon": {"improvisations": 5, "memory": 4},
}
TOLERANCE = {"mkl_rfe": 1e-6}  # a duality gap, of the objective
EXPECTED_FAILURES: dict[str, dict[str, str]] = {  # recipe -> check -> reason
    name: {"check_class_weight_classifiers": "r and r_out are the prices of a sphere's classes, not class_weight"}
    for name in ("kp_svdd", "svdd_rfe")
}
WITH_WEIGHTS = ("s_not_overwritten", "_equivalence_on_dense_data", "_equivalence_on_sparse_data")
for name, reason in {
    "smote_relieff": "synthetic rows have no weight: a sampler refuses weights",
    "smote_pca": "synthetic rows have no weight: a sampler refuses weights",
    "symon": "which rows are set aside is random by place",
}.items():
    EXPECTED_FAILURES[name] = {f"check_sample_weight{check}": reason for check in WITH_WEIGHTS[name == "symon" :]}

# scikit-learn draws tables and weights on which nothing can be told apart; the note is right there
pytestmark = pytest.mark.filterwarnings("ignore:the decision value is the same for every training row")


def checked() -> dict[str, object]:
    made = {name: recipes.get(name)(**{**FAST, **SETTINGS.get(name, {})}) for name in recipes.names("classes")}
    for name, selector in made.items():
        if "machine__tol" in selector.get_params():
            selector.set_params(machine__tol=TOLERANCE.get(name, 1e-9))
        for view in getattr(selector, "views", ()):
            view.set_params(machine__tol=1e-9)
        if "search__final__tol" in selector.get_params():
            selector.set_params(search__final__tol=1e-9)
    return made


CHECKED = checked()  # equal weights must give equal values


def expected(selector: object) -> dict[str, str]:
    """The checks that this recipe may fail, each with its reason."""
    return next((EXPECTED_FAILURES.get(name, {}) for name, made in CHECKED.items() if made is selector), {})


NOISE = "rows on the sphere have a decision value of 0, whose sign is rounding; test_svdd.py has weights as repeats"


GAP = "a gap in the objective leaves more than this check allows in the values; test_mkl.py has weights as repeats"


OTHERS = [SVDD(tol=1e-9), MKLClassifier(tol=1e-6), MKLClassifier(kernel="linear", tol=1e-6)]


@rotate(
    parametrize_with_checks([*CHECKED.values(), *OTHERS], expected_failed_checks=expected),
    every=9,
    whole=[CHECKED["svm_rfe"], *OTHERS],
)
def test_scikit_learn(estimator, check):
    sphere = isinstance(getattr(estimator, "machine", None), Sphere)
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        if sphere:
            pytest.skip(NOISE)
        if isinstance(estimator, MKLClassifier):
            pytest.skip(GAP)
    check(estimator)


DEFAULTS = ("fisher", "svm_rfe", "su", "hellinger")  # with inner folds a check takes long; these are the quick ones


DEFAULT = SVMSelector()


@rotate(
    parametrize_with_checks([DEFAULT, *(recipes.get(name)() for name in DEFAULTS)]),
    every=9,
    whole=[DEFAULT],
)
def test_scikit_learn_with_default_settings(estimator, check):
    """Number of features and threshold from inner folds, which the checks give as lists of splits with weights of 0."""
    check(estimator)
