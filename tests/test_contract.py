"""scikit-learn's estimator checks over all recipes."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from marginsieve import recipes

FAST = {"n_features_to_select": 2, "threshold": "margin", "random_state": 0}
SETTINGS: dict[str, dict[str, object]] = {}  # what a recipe needs beyond FAST
EXPECTED_FAILURES: dict[str, dict[str, str]] = {}  # recipe -> check -> reason


def checked() -> list[object]:
    made = [recipes.get(name)(**{**FAST, **SETTINGS.get(name, {})}) for name in recipes.names()]
    return [selector.set_params(machine__tol=1e-9) for selector in made]  # equal weights must give equal values


def expected(selector: object) -> dict[str, str]:
    """The checks that this recipe may fail, each with its reason."""
    names = [name for name in recipes.names() if type(recipes.get(name)().criterion) is type(selector.criterion)]
    return EXPECTED_FAILURES.get(names[0], {}) if names else {}


@parametrize_with_checks(checked(), expected_failed_checks=expected)
def test_scikit_learn(estimator, check):
    check(estimator)
