"""Leave-one-out decision values of a C-SVC at fixed features."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contracts import Array, KernelLike
from ..data.table import Schema, refuse_bad_cells
from ..errors import InputError
from ..fitting.parts import kernel_of
from ..fitting.settings import weight_by_code
from ..machines import CSVC
from ..outcomes import Classes, check_classes, read_target


def loo_decision(
    X: Any,
    y: Any,
    kernel: KernelLike = "linear",
    C: float = 1.0,
    class_weight: Any = None,
    sample_weight: Any = None,
    tol: float = 1e-6,
) -> Array:
    """(m,) each sample's decision value under the machine trained on all others; positive for the second class.

    Each fold starts at the full solution with the sample removed, which is 10 to 30 times faster than fitting from
    scratch. The features are fixed: if they were selected on these samples, the values are not an estimate of
    performance.

    Parameters
    ----------
    X : table of shape (m, n)
        The rows, or the kernel matrix of shape (m, m) with kernel="precomputed".
    y : array-like of shape (m,)
        Two classes.
    kernel : str or Kernel, default="linear"
        The kernel, by name or as an object, or "precomputed".
    C : float, default=1.0
        Cost of a margin error.
    class_weight : None, "balanced" or dict, default=None
        Weight of each class; "balanced" weights are those of each fold.
    sample_weight : array-like of shape (m,) or None, default=None
        Weight of each sample.
    tol : float, default=1e-6
        KKT violation at which the solver stops.

    Returns
    -------
    array of shape (m,)
        The decision values.

    Examples
    --------
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.bench import loo_decision
    >>> cohort = make_cohort(60, 5, n_relevant=2, effect=2.0, random_state=0)
    >>> decision = loo_decision(cohort.X, cohort.y)
    >>> bool(((decision > 0) == (cohort.y == "control")).mean() > 0.8)
    True
    """
    target = read_target(X, y, sample_weight)
    check_classes(target)
    if len(target.classes) != 2:
        raise InputError(f"y has {len(target.classes)} classes; loo_decision takes two")
    outcome = Classes(2, class_weight=weight_by_code(class_weight, target.classes))
    if isinstance(kernel, str) and kernel == "precomputed":
        K = np.ascontiguousarray(X, dtype=np.float64)
    else:
        table, bound = Schema.from_table(X).table(X).with_row_weights(target.weight), kernel_of(kernel)
        refuse_bad_cells(table.Z, table.names)
        K = bound.bind(table, bound.start(table), np.arange(table.shape[1])).matrix()
    codes, weight = target.codes, target.weight
    label, cost = outcome.labels(codes)[0], outcome.costs(codes, weight)[0]
    machine = CSVC(C=C, tol=tol)

    def cost_without(i: int) -> Array:
        left = weight.copy()
        left[i] = 0.0
        return np.asarray(outcome.costs(codes, left)[0])

    solution = machine.solve_matrix(K, label, cost, np.zeros(len(label)))
    return machine.loo_on(K, solution, label, cost, cost_without if class_weight == "balanced" else None)
