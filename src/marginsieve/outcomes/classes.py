"""Classes as an outcome: the binary problems that they make, what samples cost, what a decision value means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..contracts import Array, IntArray
from .scores import balanced_accuracy, ranking_aucs


@dataclass(frozen=True)
class Classes:
    """Classes as an outcome, with codes 0, 1, ...: the binary problems, the costs of samples and the score.

    With two classes there is one problem, in which one class is positive; with more, each class has a problem against
    the rest.

    Parameters
    ----------
    count : int
        Number of classes.
    positive : int, default=1
        Code of the positive class of two.
    class_weight : mapping of code to weight, "balanced" or None, default=None
        Weight of each class; "balanced" gives both sides of each binary problem the same total weight.
    negative_weight : float, default=1.0
        Factor on the cost of every sample on the negative side.

    Attributes
    ----------
    binary : bool
        Whether there are two classes.
    scored_by : str
        Name of the score.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import Classes
    >>> outcome = Classes(2, positive=1, class_weight="balanced")
    >>> codes = np.array([0, 0, 0, 1])
    >>> outcome.labels(codes)
    array([[-1., -1., -1.,  1.]])
    >>> outcome.costs(codes, np.ones(4)).round(2)
    array([[0.67, 0.67, 0.67, 2.  ]])
    """

    count: int
    positive: int = 1
    class_weight: Mapping[int, float] | str | None = None
    negative_weight: float = 1.0

    @property
    def binary(self) -> bool:
        """Whether there are two."""
        return self.count == 2

    @property
    def scored_by(self) -> str:
        """What `score` is called."""
        return "AUC" if self.binary else "balanced accuracy"

    def labels(self, codes: IntArray) -> Array:
        """(k, m) in {-1, +1}: one row for two classes (+1 is the positive one), else one row per class."""
        classes = [self.positive] if self.binary else range(self.count)
        return np.array([np.where(codes == code, 1.0, -1.0) for code in classes])

    def costs(self, codes: IntArray, weight: Array) -> Array:
        """(k, m): weight times class weight; "balanced" gives both sides of each binary problem the same total."""
        labels = self.labels(codes)
        if self.class_weight == "balanced":
            total = weight.sum()
            share = np.array([[weight[row > 0].sum(), weight[row < 0].sum()] for row in labels])
            factor = np.where(labels > 0, total / (2 * share[:, :1]), total / (2 * share[:, 1:]))
        elif isinstance(self.class_weight, Mapping):
            by_class = np.array([self.class_weight.get(code, 1.0) for code in range(self.count)])
            factor = np.broadcast_to(by_class[codes], labels.shape)
        else:
            factor = np.ones(labels.shape)
        return np.asarray(weight * factor * np.where(labels < 0, self.negative_weight, 1.0))

    def own_problem(self, codes: IntArray) -> IntArray:
        """(m,) the binary problem that is about each sample's class: that of its class, or the only one."""
        return np.zeros(len(codes), dtype=np.intp) if self.binary else codes

    def called(self, value: Array) -> IntArray:
        """(rows,) codes by decision value (rows, k): the largest, or the positive class above 0."""
        if not self.binary:
            return np.asarray(value.argmax(axis=1))
        return np.where(value[:, 0] > 0, self.positive, 1 - self.positive)

    def pairs(self, codes: IntArray, weight: Array) -> float:
        """What a fold counts for in a mean of scores: its pairs of a positive and a negative row, or its rows."""
        positive = codes == self.positive
        return float(weight[positive].sum() * weight[~positive].sum() if self.binary else weight.sum())

    def scores(self, values: Array, codes: IntArray, weight: Array) -> Array:
        """(S,): AUC of values (S, rows, k), nan where a class is missing; of more classes balanced accuracy."""
        if self.binary:
            return ranking_aucs(values[:, :, 0], codes == self.positive, weight)
        return np.array([balanced_accuracy(self.called(value) == codes, codes, weight) for value in values])
