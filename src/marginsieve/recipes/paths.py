"""Machines within a budget of features at several values of C and several budgets, found together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, cost_number, one_of, positive_number
from ..estimators import SVMSelector, prepare_search
from ..searches import Budget, BudgetPoint
from .embedded import fs_svm, ramp_fs

if TYPE_CHECKING:
    import pandas as pd

LOSSES: Mapping[str, Callable[..., SVMSelector]] = {"ramp": ramp_fs, "hinge": fs_svm}


@dataclass(frozen=True)
class RampPath:
    """The best machine known at each C within each budget; see `ramp_path`.

    Attributes
    ----------
    points : tuple of BudgetPoint
        One for each C and budget. The objective does not fall as C grows and does not rise with the budget.
    settings : dict
        What the selectors of `selector` share.
    loss : str
        "ramp" or "hinge".

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> path = recipes.ramp_path(cohort.X, cohort.y, C=[0.1, 1.0], budget=[1, 2], solver="fast", random_state=0)
    >>> path.selector(1.0, 2).fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    points: tuple[BudgetPoint, ...]
    settings: Mapping[str, Any]
    loss: str = "ramp"

    def point(self, C: float, budget: float) -> BudgetPoint:
        """The machine at one of the values of C and one of the budgets."""
        for point in self.points:
            if (point.C, point.budget) == (C, budget):
                return point
        known = ", ".join(f"({point.C:g}, {point.budget:g})" for point in self.points)
        raise InputError(f"the path has no C = {C!r} with budget = {budget!r}; it has {known}")

    def selector(self, C: float, budget: float) -> SVMSelector:
        """A selector, not fitted: on the rows of the path it takes the path's machine, on others it starts from it."""
        self.point(C, budget)
        return LOSSES[self.loss](C=C, budget=budget, start=self.points, **self.settings)

    def to_pandas(self) -> pd.DataFrame:
        """A row for each C and budget: objective, bound, status, number of features, features."""
        import pandas as pd

        names = ("C", "budget", "objective", "bound", "status")
        rows = [{name: getattr(point, name) for name in names} for point in self.points]
        frame = pd.DataFrame(rows)
        frame["n_features"] = [len(point.features) for point in self.points]
        frame["features"] = [list(point.features) for point in self.points]
        return frame


def ramp_path(
    X: Any,
    y: Any,
    C: Sequence[float] = (0.01, 0.1, 1.0, 10.0, 100.0),
    budget: Sequence[float] = (5, 10),
    loss: str = "ramp",
    solver: str = "auto",
    feature_costs: Any = None,
    shakes: int = 100,
    time_limit: float | None = None,
    random_state: int | None = None,
    **settings: Any,
) -> RampPath:
    """The ramp loss within a budget of features at several values of C and budgets, each a start for the others.

    ::

        min_{w, b}  |w|_1 + C sum_i cost_i min(2, max(0, 1 - y_i (w'x_i + b))),   at most `budget` features

    It takes about as long as a fit for each C and budget, and the points are as good or better: all searches add to one
    pool of points and begin from it.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        The table.
    y : array-like of shape (n_samples,)
        Two classes.
    C : sequence of float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        Costs of a margin error.
    budget : sequence of float, default=(5, 10)
        Numbers of features, or totals that their costs may reach.
    loss : "ramp" or "hinge", default="ramp"
        Whether a sample beyond the opposite margin costs 2 however far it lies, as in `ramp_fs`, or not, as in
        `fs_svm`.
    solver : "auto", "fast", "daks" or "exact", default="auto"
        See `marginsieve.searches.Budget`.
    feature_costs : mapping, sequence or None, default=None
        Cost of each feature; 1 by default.
    shakes : int, default=100
        Number of random changes at each C and budget after which the exchanges start again.
    time_limit : float or None, default=None
        Seconds for each C and budget on average; None as in `marginsieve.searches.Budget`.
    random_state : int or None, default=None
        Seed of the random changes.
    **settings
        Further parameters of `ramp_fs`.

    Returns
    -------
    RampPath
        The machines.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> path = recipes.ramp_path(cohort.X, cohort.y, C=[0.1, 1.0], budget=[1, 2], solver="fast", random_state=0)
    >>> path.to_pandas()[["C", "budget", "n_features"]].values.tolist()
    [[0.1, 1.0, 1.0], [1.0, 1.0, 1.0], [0.1, 2.0, 2.0], [1.0, 2.0, 2.0]]
    """
    one_of("ramp_path", "loss", loss, tuple(LOSSES))
    prices, budgets = np.atleast_1d(C).tolist(), np.atleast_1d(budget).tolist()
    if not prices or not budgets:
        raise InputError("ramp_path: C and budget need one value each at least")
    for value in prices:
        cost_number("ramp_path", "C", value)
    for value in budgets:
        positive_number("ramp_path", "budget", value)
    settings = {
        "solver": solver, "feature_costs": feature_costs, "shakes": shakes, "time_limit": time_limit,
        "random_state": random_state, **settings,
    }  # fmt: skip
    selector = LOSSES[loss](C=1.0, budget=max(budgets), **settings)
    search, problem = prepare_search(selector, X, y)
    assert isinstance(search, Budget)
    points = search.solve_path(problem, prices, budgets, np.random.default_rng(random_state))
    return RampPath(tuple(points), settings, loss)
