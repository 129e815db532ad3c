"""A filter that looks at no label: how much a column takes part in the main directions of the table."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..algebra.block_products import parts
from ..contracts import NUMBERS, Array, TableView
from ..errors import positive_number
from ._clusters import centre_columns, products
from ._columns import as_counts


class Principal(BaseEstimator):
    """``sum_k lambda_k |v_kj|`` over the first principal components of the columns, lambda their variances, v unit.

    Labels do not enter; rows that oversampling adds to the rare class do. Standardize first. Missing cells count as the
    column's mean.

    Parameters
    ----------
    explained : float, default=0.95
        Share of the variance, in (0, 1], that the components used explain.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import Principal
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> criterion = Principal(explained=0.9)
    >>> selector = SVMSelector(criterion=criterion, search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    kinds: ClassVar[frozenset[str]] = NUMBERS

    def __init__(self, explained: float = 0.95) -> None:
        self.explained = explained

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        positive_number("criterion", "explained", self.explained, 1.0)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:  # noqa: ARG002
        """(n,)."""
        Z, weight = table.Z, as_counts(weight)
        root, total = np.sqrt(weight), weight.sum()
        if Z.shape[1] <= Z.shape[0]:
            # With fewer columns than rows: the eigenvectors of the covariances, n x n. Else those of the rows'
            # products, m x m, from which the columns' loadings are U'z block by block.
            z = centre_columns(Z, slice(None), weight)
            value, vector = _largest((z * weight) @ z.T / total, self.explained)
            return np.asarray(np.abs(vector) @ value)
        value, vector = _largest(products(Z, weight) * np.outer(root, root) / total, self.explained)
        U = (root[:, None] * vector) * np.sqrt(value / total)
        return np.concatenate([np.abs(centre_columns(Z, part, weight) @ U).sum(axis=1) for part in parts(Z.shape[1])])


def _largest(G: Array, explained: float) -> tuple[Array, Array]:
    """The largest eigenvalues of a matrix that make up this share of their sum, and their vectors."""
    value, vector = np.linalg.eigh(G)
    value, vector = np.maximum(value[::-1], 0.0), vector[:, ::-1]
    most = int(np.searchsorted(np.cumsum(value), explained * value.sum() * (1.0 - 1e-12))) + 1
    return value[:most], vector[:, :most]
