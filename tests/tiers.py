"""What of a parametrisation is in the fast tier (`make test`), and what is marked `long` (`make test-all`)."""

import pytest

LONG = pytest.mark.long


def long_but(values, *fast):
    """The values, all but the fast ones marked long."""
    values = list(values)
    assert set(map(repr, fast)) <= set(map(repr, values)), "a fast value is not there any more"
    kept = {repr(value) for value in fast}
    return [
        value if repr(value) in kept else pytest.param(*(value if type(value) is tuple else [value]), marks=LONG)
        for value in values
    ]


def rotate(checks, every, whole=()):
    """scikit-learn's parametrisation by (estimator, check), with one check of so many of each estimator fast.

    Which ones differs from estimator to estimator, so that every check is fast for some. Of the estimators in
    `whole` all checks are fast. The text of an estimator, which is part of the name of a test, is made once.
    """
    names, values = checks.args
    turns, params, texts = {}, [], {}
    for value in values:
        estimator, check = getattr(value, "values", value)
        number, count = turns.get(id(estimator), (len(turns), 0))
        turns[id(estimator)] = (number, count + 1)
        fast = (number + count) % every == 0 or any(estimator is one for one in whole)
        marks = (*getattr(value, "marks", ()), *(() if fast else (LONG,)))
        if count == 0:
            texts[id(estimator)] = checks.kwargs["ids"](estimator)
        name = f"{texts[id(estimator)]}-{checks.kwargs['ids'](check)}"
        params.append(pytest.param(estimator, check, marks=marks, id=name))
    return pytest.mark.parametrize(names, params)
