"""What a feature is worth, over all features at once: against matrix products, and against loops over features."""

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

from marginsieve import SVMSelector
from marginsieve.algebra import ColumnView
from marginsieve.criteria import Fast
from marginsieve.data.table import Schema
from marginsieve.kernels import Gaussian, Linear
from marginsieve.machines import CSVC, L1SVC
from marginsieve.problem import Problem
from marginsieve.searches import Backward

from .elimination import table
from .timing import Result, seconds, side_by_side

SOME = 300  # features of a plain loop, which is extrapolated


def run():
    X, y = table(181, 12533, 31)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    codes = Schema.from_table(Z).table(Z)
    gram = bound(Gaussian(), codes)
    c = CSVC().solve(gram, y.astype(float), np.ones(181)).coef
    G, columns = np.random.default_rng(0).normal(size=(181, 181)), np.ascontiguousarray(Z.T)
    a, b = side_by_side(lambda: gram.drop_one_change(c), lambda: columns @ G, rounds=9)
    share = np.count_nonzero(c) / len(c)
    yield Result(
        f"Gaussian drop-one, 181 x 12,533, {share:.0%} support vectors", "eight products m x m by m x n", a, 8 * b, 1
    )
    loop = seconds(lambda: plain_loop(Z, gram, c)) * Z.shape[1] / SOME
    yield Result("the same", f"plain loop over features, {SOME} of them extrapolated", a, loop, 20)

    weight, kernel = np.ones(181), Linear()
    problem = Problem(codes, y[None].astype(float), weight[None], weight, kernel.start(codes), kernel, CSVC(), Fast())
    a = min(seconds(lambda: problem.score(None, ())) for _ in range(5))
    loop = seconds(lambda: [roc_auc_score(y, Z[:, j]) for j in range(SOME)]) * Z.shape[1] / SOME
    yield Result("FAST, 181 x 12,533", f"roc_auc_score, {SOME} columns extrapolated", a, loop, 50)

    plain = ColumnView(kernel, codes, kernel.start(codes), np.arange(codes.shape[1]))
    for C in (1.0, 100.0):
        theirs = LinearSVC(penalty="l1", dual=False, C=C, max_iter=100000, random_state=0)
        ours = L1SVC(C=C)
        a, b = side_by_side(lambda o=ours: o.solve(plain, y.astype(float), weight), lambda t=theirs: t.fit(Z, y))
        yield Result(
            f"l1 machine, 181 x 12,533, C = {C:g}, KKT at 1e-4", "LinearSVC(l1), KKT wherever it stops", a, b, 1
        )

    X, y = table(181, 2000, 60)

    def fit(jobs):
        chosen = {"n_features_to_select": "auto", "cv": 10, "random_state": 0}
        return lambda: SVMSelector(search=Backward(step=1), n_jobs=jobs, **chosen).fit(X, y)

    a, b = side_by_side(fit(2), fit(1), rounds=2)
    yield Result("RFE one by one in ten inner folds, 181 x 2,000, n_jobs=2", "n_jobs=1", a, b, 1.7)


def bound(kernel, codes):
    """The Gram of all columns at the kernel's starting weights."""
    return kernel.bind(codes, kernel.start(codes), np.arange(codes.shape[1]))


def plain_loop(Z, gram, c):
    """c'Kc - c'K(without j)c, a kernel matrix for each feature."""
    w, K = gram.weight, gram.matrix()
    A = np.log(K)
    return [c @ (K - np.exp(A + 0.5 * w[j] * (Z[:, j, None] - Z[None, :, j]) ** 2)) @ c for j in range(SOME)]
