"""Blend: several selectors as views of one table, their decision values averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from ..contracts import BoolArray, Outcome
from ..criteria import Fisher, MarginChange
from ..errors import InputError, check_n_jobs, listing, positive_number
from ..fitting.false_share import fit_list
from ..fitting.parts import kernel_of, search_of
from ..fitting.procedure import Fitted
from ..fitting.rows import Rows
from ..fitting.settings import AnyPlan, check_seed, outcome_of
from ..fitting.view_averaging import COMBINE, BlendPlan, blend_plan, fit_blend
from ..kernels import Clinical
from ..machines import CSVC
from ..searches import Backward, TopK
from .fitted_selector import FittedSelector
from .selector import SVMSelector


class Blend(FittedSelector):
    """Selects features by several views of a table and classifies by the mean of their decision values.

    A view is an `SVMSelector`: it has its own kernel, machine, ranking and number of features. All views have the same
    inner folds. Their decision values on held-out rows bring each view to one scale (the middle between the classes'
    medians becomes 0, the standard deviation 1) and set the threshold of the mean. A view sees the columns of the kinds
    that its kernel takes; where that takes no missing cells they are filled with the means of the training rows.

    Parameters
    ----------
    views : list of SVMSelector, or None, default=None
        The views. Their kernel, machine, criterion, search, number of features, prefilter, sampler, ensemble, columns
        to keep and weights are used; what the other parameters of the blend say holds for all of them. None is a linear
        machine on the best columns by the Fisher score, and elimination on the clinical kernel.
    combine : "mean" or "best", default="mean"
        "mean": the mean of all views. "best": the view with the best score on the inner folds alone, which is part of
        the fit: what is scored by outer folds is the choice as well.
    n_features_to_select : None, int, float, "auto" or "best", default=None
        Number of features of the whole list, a share of the columns, or the rule by which every view chooses its own
        (see `SVMSelector`). None leaves it to the views.
    kinds : dict of column name to kind, or None, default=None
        Kinds of columns ("real", "ordinal", "nominal" or "boolean") where they differ from what the dtypes imply.
    positive : label or None, default=None
        The class of interest; None is the rarer one.
    threshold : "auto", "balanced", "margin", float or (float, float), default="auto"
        Threshold of the mean decision value, as in `SVMSelector`.
    probability : bool, default=False
        Fit a sigmoid to the inner folds' decision values, for `predict_proba`.
    max_samples : int or None, default=None
        Train on at most this number of rows, as in `SVMSelector`.
    similar : float or None, default=0.95
        Columns whose correlation with a selected one is at least this in absolute value are listed with it.
    false_share : float or None, default=None
        Select the longest list whose estimated share of false features is at most this, by rankings of halves of the
        rows against those with shuffled labels (420 searches; see docs/false_share.md), in place of a number.
    cv : int, splitter or list of splits, default=5
        The inner folds.
    n_jobs : int or None, default=None
        Number of workers for the inner folds of all views; the result does not depend on it.
    device : str, default="cpu"
        Where many searches at once are run, as in `SVMSelector`.
    random_state : int, RandomState or None, default=None
        Seed of the inner folds, subsamples and searches.
    outcome : str or Outcome, default="classes"
        What y is.

    Attributes
    ----------
    support_ : array of bool of shape (n,)
        Which features are selected by any view.
    n_features_ : int
        Number of selected features.
    ranking_ : array of int of shape (n,)
        Rank of each feature, 1 is the best: selected ones first, by the mean of their places in the views.
    scores_ : array of shape (n,)
        Minus the mean of the feature's places in the views.
    path_ : Path
        The ranking, and the scores on the inner folds by the number of features.
    classes_ : array of shape (n_classes,)
        The classes.
    positive_ : label
        The class of interest.
    threshold_ : float
        Threshold of the mean decision value.
    rows_ : array of int
        Numbers of the rows that the machines were trained on.
    groups_ : list of Group
        The selected features with near-duplicates among the columns.
    constant_, duplicates_ : list
        Columns that do not vary, and groups of equal columns.
    notes_ : list of str
        Remarks about the fit; also given as warnings.
    coef_, intercept_ : array
        Coefficients in the units of the columns, where all views are linear in the columns.
    n_features_in_ : int
        Number of columns in `fit`.
    feature_names_in_ : array of shape (n,)
        Names of the columns in `fit`, where they have names.

    Examples
    --------
    >>> from marginsieve import Blend, recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 30, n_relevant=3, effect=2.0, random_state=0)
    >>> blend = Blend([recipes.fisher(), recipes.clinical_rfe()], n_features_to_select=3, random_state=0)
    >>> blend.fit(cohort.X, cohort.y).n_features_
    3
    """

    def __init__(
        self,
        views: Sequence[SVMSelector] | None = None,
        combine: str = "mean",
        n_features_to_select: int | float | str | None = None,
        kinds: Mapping[str, str] | None = None,
        positive: Any = None,
        threshold: float | str | tuple[float, float] = "auto",
        probability: bool = False,
        max_samples: int | None = None,
        similar: float | None = 0.95,
        false_share: float | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        device: str = "cpu",
        random_state: Any = None,
        outcome: str | Outcome = "classes",
    ) -> None:
        self.views = views
        self.combine = combine
        self.n_features_to_select = n_features_to_select
        self.kinds = kinds
        self.positive = positive
        self.threshold = threshold
        self.probability = probability
        self.max_samples = max_samples
        self.similar = similar
        self.false_share = false_share
        self.cv = cv
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.outcome = outcome

    @property
    def takes_gaps(self) -> bool:
        """Cells may be missing: they are filled for views that do not take them."""
        return True

    def view_settings(self) -> list[SVMSelector]:
        """Copies of the views, with what the blend decides for all of them."""
        views = linear_and_clinical() if self.views is None else self.views
        if isinstance(views, (str, bytes)) or not hasattr(views, "__iter__") or not list(views):
            raise InputError(f"views is {views!r}; it must be a list of SVMSelector")
        shared = {
            name: getattr(self, name)
            for name in (
                "outcome",
                "positive",
                "threshold",
                "probability",
                "max_samples",
                "similar",
                "cv",
                "n_jobs",
                "device",
            )
        }
        shared |= {"random_state": None, "kinds": None, "resamples": 0}
        if self.n_features_to_select is not None:
            shared["n_features_to_select"] = self.n_features_to_select
        out: list[SVMSelector] = []
        for view in views:
            if not isinstance(view, SVMSelector):
                raise InputError(f"views holds {view!r}; it must be a list of SVMSelector")
            out.append(clone(view).set_params(**shared))
        return out

    @property
    def class_weight(self) -> Any:
        """The class weights of the first view, by which "auto" decides where to cut."""
        return self.view_settings()[0].class_weight

    @property
    def negative_weight(self) -> float:
        """The cost factor of the first view, by which "auto" decides where to cut."""
        return self.view_settings()[0].negative_weight

    def on_all(self) -> Blend:
        """The same blend on every column that it is given."""
        views = [view.set_params(keep=None, prefilter=None, ensemble=None) for view in self.view_settings()]
        copy: Blend = clone(self)
        copy.set_params(views=views, false_share=None, n_features_to_select=1.0)
        return copy

    def plan(self, encoded: Rows) -> BlendPlan:
        """The plan of a fit on these rows; refuses what makes no sense."""
        self.check()
        return blend_plan(self, encoded)

    def check(self) -> None:
        """Refuse parameters that no table could make sense of."""
        if not isinstance(self.combine, str) or self.combine not in COMBINE:
            raise InputError(f"combine is {self.combine!r}; it must be one of {listing(COMBINE)}")
        for view in self.view_settings():
            view.check()
        outcome_of(self).check()
        if self.false_share is not None:
            positive_number("Blend", "false_share", self.false_share, 1.0)
        if self.similar is not None:
            positive_number("Blend", "similar", self.similar, 1.0)
        check_seed(self.random_state)
        check_n_jobs(self.n_jobs)

    def fit_rows(
        self,
        encoded: Rows,
        seed: np.random.SeedSequence | None = None,
        plan: AnyPlan | None = None,
        allowed: BoolArray | None = None,
    ) -> Fitted:
        """The whole fit on encoded rows, without a change of the blend."""
        plan = self.plan(encoded) if plan is None else plan
        assert isinstance(plan, BlendPlan)
        if self.false_share is not None:
            return fit_list(self, encoded, seed, plan)
        return fit_blend(self, encoded, seed, plan, allowed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        views = self.view_settings()
        tags.input_tags.sparse = all(kernel_of(view.kernel).sparse for view in views)
        tags.classifier_tags.multi_class = all(search_of(view.search).multiclass for view in views)
        tags.input_tags.allow_nan = True
        return tags


def linear_and_clinical(
    C: float = 1.0, step: float | int = 0.2, standardize: bool = True, **settings: Any
) -> list[SVMSelector]:
    """A linear view and a view on the clinical kernel, which on numbers is bounded and robust."""
    linear = SVMSelector("linear", CSVC(C=C), Fisher(), TopK(), standardize=standardize, **settings)
    return [linear, SVMSelector(Clinical(), CSVC(C=C), MarginChange(), Backward(step=step), **settings)]
