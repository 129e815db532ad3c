"""Leave-one-out decision values against refitting SVC on the precomputed kernel, both at tolerance 1e-3, m = 181."""

import numpy as np
from sklearn.svm import SVC

from marginsieve.bench import loo_decision

from .elimination import table
from .timing import Result, side_by_side


def refit(K, y, C):
    values = np.empty(len(y))
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        model = SVC(kernel="precomputed", C=C).fit(K[np.ix_(rest, rest)], y[rest])
        values[i] = model.decision_function(K[i : i + 1, rest])[0]
    return values


def run():
    X, y = table(181, 12533, 31)
    K = X @ X.T / X.shape[1]
    for C in (0.1, 1.0, 10.0, 100.0):
        a, b = side_by_side(
            lambda C=C: loo_decision(K, y, kernel="precomputed", C=C, tol=1e-3), lambda C=C: refit(K, y, C), rounds=2
        )
        yield Result(f"leave-one-out, m = 181, C = {C:g}", "SVC(precomputed), refitted", a, b, 12)
