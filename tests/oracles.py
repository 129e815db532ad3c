"""Slow, obviously right versions of what the library computes fast."""

import numpy as np
from scipy.optimize import minimize

from marginsieve.algebra import ColumnView, GenericGram
from marginsieve.data.table import Schema
from marginsieve.kernels import Clinical, Gaussian, Linear


def gram_of(kernel, table, weight=None, features=None):
    """A kernel on a table (or an array), at weights (n,) and on features that are by default its own and all."""
    return kernel.bind(*_bound(kernel, table, weight, features))


def drop_one(gram, c, Z=None):
    """(p, rows): K(without j) @ c for each live feature j."""
    return np.concatenate([values for _, values in gram.drop_one_parts(c, Z)])


def columns_of(table, kernel=None, weight=None, features=None):
    """The same for machines that read columns; the linear kernel by default."""
    kernel = Linear() if kernel is None else kernel
    return ColumnView(kernel, *_bound(kernel, table, weight, features))


def _bound(kernel, table, weight, features):
    table = table if hasattr(table, "kind") else Schema.from_table(table).table(table)
    live = np.arange(table.shape[1]) if features is None else np.asarray(features, dtype=np.intp)
    return table, kernel.start(table) if weight is None else weight, live


class Plain:
    """A kernel by its definition alone, on the algebra without closed forms: K = outer(sum_j w_j base_j)."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getattr__(self, name):
        return getattr(self.kernel, name)

    def bind(self, table, feature_weight, live):
        return GenericGram(self, table, feature_weight, live)

    def base(self, u, v, kind, spread):
        if hasattr(self.kernel, "base"):
            return self.kernel.base(u, v, kind, spread)
        if isinstance(self.kernel, Gaussian):
            return -0.5 * np.subtract(u, v) ** 2
        if not isinstance(self.kernel, Clinical):
            return np.multiply(u, v)
        if kind in ("nominal", "boolean"):
            return np.asarray(np.equal(u, v), dtype=float)
        alike = 1.0 - np.abs(np.subtract(u, v)) / (spread if spread > 0 else np.inf)
        return np.nan_to_num(alike, nan=0.0)  # a missing cell is like nothing

    def outer(self, A):
        return A if self.kernel.additive else self.kernel.outer(A)

    def outer_derivative(self, A, order=1):
        return np.ones_like(A) if self.kernel.additive else self.kernel.outer_derivative(A, order)


def kernel_matrix(kernel, table, scale, features=None, Z=None, divide_by=None):
    """outer(sum_j s_j^2 base_j) feature by feature; an averaging kernel divides by `divisor_of` the features.

    These are the live ones, or `divide_by` where it is given.
    """
    plain = kernel if hasattr(kernel, "base") else Plain(kernel)
    own = np.asarray(table.Z)
    rows = own if Z is None else Z
    live = range(own.shape[1]) if features is None else features
    A = np.zeros((len(rows), len(own)))
    for j in live:
        A += scale[j] ** 2 * plain.base(rows[:, j, None], own[None, :, j], table.kind[j], table.spread[j])
    if kernel.average:
        A /= divisor_of(kernel, table, live if divide_by is None else divide_by)
    return plain.outer(A)


def divisor_of(kernel, table, live):
    """The number of live columns, or the sum of their variances where the kernel has a width.

    A kernel that is given by its `base` alone says it itself: there is no faster form to compare with.
    """
    if hasattr(kernel, "base"):
        return kernel.divisor(table, np.asarray(live, dtype=np.intp))
    return len(live) if kernel.additive else sum(np.var(table.Z[:, j]) for j in live)


def svc_certificate(K, y, top, c, b):
    """How far (c, b) is from optimal: the worst broken constraint, and the gap between primal and dual objective.

    A KKT violation of v allows a gap of v times the sum of the costs.
    """
    alpha = c * y
    broken = max(abs(c.sum()), (-alpha).max(), (alpha - top).max())
    margin = y * (K @ c + b)
    primal = 0.5 * c @ K @ c + top @ np.maximum(0.0, 1.0 - margin)
    dual = alpha.sum() - 0.5 * c @ K @ c
    return broken, primal - dual


def fisher(X, y):
    """|mean difference| / (sum of variances), column by column."""
    out = []
    for x in X.T:
        a, b = x[y > 0], x[y < 0]
        out.append(abs(a.mean() - b.mean()) / (a.var() + b.var()))
    return np.array(out)


def backward_ranking(X, y, fit_weights):
    """Eliminate one by one, refitting from scratch: rank 1 is the last to stay."""
    left, rank = list(range(X.shape[1])), np.zeros(X.shape[1], dtype=int)
    while left:
        worst = int(np.argmin(fit_weights(X[:, left], y) ** 2)) if len(left) > 1 else 0
        rank[left[worst]] = len(left)
        del left[worst]
    return rank


def auc(decision, positive, weights):
    """Pairs won plus half the pairs tied, each pair weighted."""
    won = total = 0.0
    for i in np.flatnonzero(positive):
        for k in np.flatnonzero(~positive):
            w = weights[i] * weights[k]
            won += w * (1.0 if decision[i] > decision[k] else 0.5 if decision[i] == decision[k] else 0.0)
            total += w
    return won / total


def svdd_by_slsqp(K, lo, hi):
    """(objective, c) of max diag(K)'c - c'Kc, sum(c) = 1, lo <= c <= hi, by a general solver."""
    d = np.diag(K)
    found = minimize(
        lambda c: c @ K @ c - d @ c,
        hi / hi.sum(),
        jac=lambda c: 2 * K @ c - d,
        bounds=list(zip(lo, hi, strict=True)),
        constraints={"type": "eq", "fun": lambda c: c.sum() - 1, "jac": lambda c: np.ones(len(c))},
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    return -found.fun, found.x


def svdd_certificate(K, lo, hi, c):
    """(worst broken constraint, duality gap): the Lagrangian's best over the box, at the best multiplier, less ours."""
    broken = max(abs(c.sum() - 1), (lo - c).max(), (c - hi).max())
    slope = np.diag(K) - 2 * K @ c

    def over(v):  # the concave objective lies below its tangent plane
        r = slope - v
        return v + np.where(r > 0, r * hi, r * lo).sum()

    best = min(over(v) for v in slope)  # piecewise linear in v: a vertex is enough
    return broken, best - slope @ c


def dense_damped_bfgs(B, p, q, eta=0.2):
    """One step of Powell's damped update on a dense matrix."""
    Bp = B @ p
    curve = p @ Bp
    theta = 1.0 if p @ q >= eta * curve else (1 - eta) * curve / (curve - p @ q)
    r = theta * q + (1 - theta) * Bp
    return B - np.outer(Bp, Bp) / curve + np.outer(r, r) / (p @ r)


def sphere(K, lo, hi, c):
    """(R2, D) of coefficients c: mean squared distance of the targets strictly inside their box, dual objective."""
    d2 = np.diag(K) - 2 * K @ c + c @ K @ c
    free = (c > lo + 1e-9 * (hi - lo)) & (c < hi - 1e-9 * (hi - lo)) & (hi > 0)
    return d2[free].mean(), np.diag(K) @ c - c @ K @ c


def loss(decision, y, weight, name, costs=(1.0, 1.0)):
    """Counting the rows on the wrong side one by one."""
    misses = sum(w for f, t, w in zip(decision, y, weight, strict=True) if t > 0 and f <= 0)
    alarms = sum(w for f, t, w in zip(decision, y, weight, strict=True) if t < 0 and f >= 0)
    if name == "balanced":
        return (misses / weight[y > 0].sum() + alarms / weight[y < 0].sum()) / 2
    fp, fn = costs if name == "cost" else (1.0, 1.0)
    return (fp * alarms + fn * misses) / weight.sum()


def l1_certificate(X, y, top, w, b):
    """Duality gap of |w|_1 + sum top_i max(0, 1 - y_i f_i)^2, the intercept free.

    Any c with sum(c) = 0, c_i y_i >= 0 and |X'c| <= 1 gives the bound  y'c - sum c_i^2 / (4 top_i)  from below.
    """
    slack = np.maximum(0.0, 1.0 - y * (X @ w + b))
    c = 2 * top * y * slack
    plus, minus = c[y > 0].sum(), -c[y < 0].sum()
    c = np.where(y > 0, c * min(1, minus / max(plus, 1e-300)), c * min(1, plus / max(minus, 1e-300)))
    c = c / max(1.0, np.abs(X.T @ c).max())
    return np.abs(w).sum() + top @ slack**2 - (y @ c - (c**2 / (4 * top)).sum())
