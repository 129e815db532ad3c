"""Leave-one-out decision values of a C-SVC at fixed features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algebra.gram import Gram
from ..contracts import Array
from ..data.table import Columns, refuse_bad_cells
from ..errors import InputError
from ..estimators.inputs import check_classes, read_target
from ..fitting.parts import resolve
from ..fitting.training import Plan
from ..machines import CSVC


@dataclass(frozen=True)
class _Given:
    K: Array

    def matrix(self) -> Array:
        return self.K


def loo_decision(
    X: Any,
    y: Any,
    kernel: Any = "linear",
    C: float = 1.0,
    class_weight: Any = None,
    sample_weight: Any = None,
    tol: float = 1e-3,
) -> Array:
    """(m,) each sample's decision value under the machine trained on all others; positive for the second class.

    Each fold starts at the full solution with the sample taken out, which is 10 to 30 times faster than fitting anew.
    `kernel` is a name, a kernel, or "precomputed" with X the kernel matrix. "balanced" weights are those of each fold.

    The features are fixed: if they were selected on these samples, the values are no estimate of performance.
    """
    classes, codes, weight, _ = read_target(X, y, sample_weight, None)
    check_classes(classes, codes)
    if len(classes) != 2:
        raise InputError(f"y has {len(classes)} classes; loo_decision takes two")
    if class_weight is not None and class_weight != "balanced":
        class_weight = {k: float(class_weight.get(label, 1.0)) for k, label in enumerate(classes)}
    gram: Any
    if isinstance(kernel, str) and kernel == "precomputed":
        gram = _Given(np.ascontiguousarray(X, dtype=np.float64))
    else:
        table = Columns.of(X).table(X)
        refuse_bad_cells(table.Z, table.names)
        gram = Gram.build(resolve("kernel", kernel), table)
    plan = Plan(None, None, None, None, n_classes=2, class_weight=class_weight)
    label, cost = plan.labels(codes)[0], plan.costs(codes, weight)[0]
    machine = CSVC(C=C, tol=tol)

    def cost_without(i: int) -> Array:
        left = weight.copy()
        left[i] = 0.0
        return np.asarray(plan.costs(codes, left)[0])

    solution = machine.solve(gram, label, cost)
    by_fold = cost_without if class_weight == "balanced" else None
    return machine.loo(solution, gram, label, cost, by_fold)
