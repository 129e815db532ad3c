"""Linear recursive elimination against scikit-learn's RFE(SVC), both at tolerance 1e-6."""

import tracemalloc

import numpy as np
from sklearn.feature_selection import RFE
from sklearn.svm import SVC

from marginsieve import SVMSelector, nested_cv, recipes
from marginsieve.machines import CSVC
from marginsieve.searches import Backward

from .timing import Result, seconds, side_by_side

TOL = 1e-6


def table(m, n, positives):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n))
    y = np.where(np.arange(m) < positives, 1, -1)
    X[y > 0, :20] += 1.0
    return X, y


def ours(X, y, step):
    chosen = {"n_features_to_select": 1, "threshold": "margin"}
    return lambda: SVMSelector(machine=CSVC(tol=TOL), search=Backward(step=step), **chosen).fit(X, y)


def theirs(X, y, step, down_to=1):
    return lambda: RFE(SVC(kernel="linear", tol=TOL), n_features_to_select=down_to, step=step).fit(X, y)


def nested(recipe, X, y):
    """Five outer folds around a fit with its inner folds."""
    selector = recipe(class_weight="balanced", random_state=0)
    return lambda: nested_cv(selector, X, y, cv=5, n_repeats=1)


def run():
    X, y = table(62, 2000, 22)
    a, b = side_by_side(ours(X, y, 1), theirs(X, y, 1))
    yield Result("RFE one by one, 62 x 2,000", "RFE(SVC)", a, b, 25)
    a, b = side_by_side(nested(recipes.two_views, X, y), nested(recipes.svm_rfe, X, y), rounds=2)
    yield Result("two-views, nested, 62 x 2,000", "three times svm-rfe", a, 3 * b, 1)

    X, y = table(181, 12533, 31)
    a, b = side_by_side(ours(X, y, 0.2), theirs(X, y, 0.2))
    yield Result("RFE, 20 % of what is left, 181 x 12,533", "RFE(SVC, step=0.2)", a, b, 4)

    yield from one_by_one(X, y)


def one_by_one(X, y):
    """12,532 solves: against scikit-learn, in memory, and how the time of a step falls."""
    steps = 200
    first = seconds(theirs(X, y, 1, down_to=X.shape[1] - steps))
    whole = first * (X.shape[1] - 1) / steps
    yield Result(
        "RFE one by one, 181 x 12,533",
        f"RFE(SVC), its first {steps} steps extrapolated",
        seconds(run_ours := Kept(ours(X, y, 1))),
        whole,
        40,
    )
    times = [step.seconds for step in run_ours.made.path_.steps]
    tenth = len(times) // 10
    first, last = np.median(times[:tenth]), np.median(times[-tenth:])
    yield Result("a step at the end of it, one by one", "a step at its beginning", last, first, 1)
    tracemalloc.start()
    ours(X, y, 1)()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    yield Result("its memory, 181 x 12,533, in tables", "three copies of the table and 5 %", peak / X.nbytes, 3.15, 1)


class Kept:
    """A call that keeps what it made."""

    def __init__(self, call):
        self.call = call

    def __call__(self):
        self.made = self.call()
