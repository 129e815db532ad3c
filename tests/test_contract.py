"""scikit-learn's estimator checks over all recipes."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from marginsieve import recipes

FAST = {"n_features_to_select": 2, "threshold": "margin", "random_state": 0}
SETTINGS: dict[str, dict[str, object]] = {}  # what a recipe needs beyond FAST
EXPECTED_FAILURES: dict[str, dict[str, str]] = {}  # recipe -> check -> reason


def checked() -> list[object]:
    made = [recipes.get(name)(**{**FAST, **SETTINGS.get(name, {})}) for name in recipes.names()]
    return [selector.set_params(machine__tol=1e-9) for selector in made]  # equal weights must give equal values


@parametrize_with_checks(checked(), expected_failed_checks=lambda _: {})
def test_scikit_learn(estimator, check):
    check(estimator)
