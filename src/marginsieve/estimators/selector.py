"""SVMSelector: a kernel, a machine, a criterion and a search as one estimator; Blend: several of them averaged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..contracts import Machine, ProblemView, Search
from ..criteria import Fisher, MarginChange
from ..errors import InputError, one_of, positive_number
from ..fitting.parts import criterion_of, kernel_of, resolve, search_of
from ..fitting.procedure import Fitted, ListRequest, fit_encoded, plan_of, refit_at_sizes
from ..fitting.rows import Rows
from ..fitting.settings import Plan, Settings, check_seed, check_settings, outcome_of
from ..fitting.training import prepare
from ..fitting.view_averaging import COMBINE, BlendPlan, blend_plan, fit_blend
from ..kernels import Clinical
from ..machines import CSVC, CoxRidge, KernelRidge, MartingaleRidge
from ..outcomes import Classes, Survival
from ..searches import Backward, TopK
from .fitted_selector import FittedSelector, describe_like, optimality
from .inputs import encode


class SVMSelector(Settings, FittedSelector):
    """Selects features with a support vector machine and classifies with the selected features.

    Parameters
    ----------
    kernel : str or Kernel, default="linear"
        The kernel. A string names a kernel with its default parameters, as for the other three parts of a method;
        `marginsieve.recipes` has the named methods.
    machine : str or Machine, default="c_svc"
        The machine that is solved on the kernel or on the columns.
    criterion : str, Criterion, filter or None, default="margin"
        Score of a feature: of a fitted machine, or of the labels alone. None where the search ranks by what it learns.
    search : str or Search, default="backward"
        How subsets of features are searched.
    n_features_to_select : None, int, float, "auto" or "best", default=None
        A count, a share of the columns, or a rule on inner cross-validation, which is drawn 4 times where there are at
        most 500 rows: "best" is the best score, smoothed over neighbouring sizes; "auto" is that less a price for sizes
        far from the usual (see docs/size.md). None is the number of features chosen by the method where it chooses one,
        else "auto".
    kinds : dict of column name to kind, or None, default=None
        Kinds of columns ("real", "ordinal", "nominal" or "boolean") where they differ from what the dtypes imply.
    positive : label or None, default=None
        The class of interest; None is the rarer one. It affects costs and reports, not the order of `classes_`.
    threshold : "auto", "balanced", "margin", a rule, float or (float, float), default="auto"
        Threshold of the decision value. "balanced": halfway between the medians of the classes' decision values on
        inner folds that neither the machine nor the selection saw. "margin": 0. A number: that value, on the machine's
        scale with the positive class above. A pair of costs (of a false positive, of a false negative): the threshold
        with the lowest cost on the inner folds. A rule for the inner folds: "sensitivity:0.9", "specificity:0.9",
        "cost:5" (of a missed positive in false alarms) or "capacity:0.1" (share of rows called positive at most), the
        last two also for another share of positives, as in "capacity:0.1 at 0.02". "auto": "margin" if a class_weight
        dict or negative_weight is given or there are more than two classes, else "balanced".
    probability : bool, default=False
        Fit a sigmoid to the inner folds' decision values, for `predict_proba`.
    max_samples : int or None, default=None
        Train on at most this number of rows: all positives and a weighted sample of negatives. Needed above 10,000
        rows, but not on the linear kernel with fewer columns than rows.
    similar : float or None, default=0.95
        Columns whose correlation with a selected one is at least this in absolute value are listed with it in `groups_`
        (for the 200 best selected ones), since the choice among them is nearly random; None skips this.
    false_share : float or None, default=None
        Select the longest list whose estimated share of false features is at most this, by rankings of halves of the
        rows against those with shuffled labels (420 searches; see docs/false_share.md), in place of a number.
    cv : int, splitter or list of splits, default=5
        The inner folds. A list has (train, test) rows of the table that is fitted, as numbers from 0 or as masks; rows
        without a weight are left out of it, and with `max_samples` rows outside the sample are tested but not trained
        on.
    n_jobs : int or None, default=None
        Number of workers for the inner folds or the members of an ensemble; the result does not depend on it.
    device : str, default="cpu"
        Where many searches at once (inner folds, members, halves) are run: "cpu", "cuda", "cuda:1" and so on, or "auto"
        for a GPU where there is one and the table is large enough to gain; a GPU needs torch. What does not work in
        batches is run on the CPU.
    random_state : int, RandomState or None, default=None
        Seed of the inner folds, subsamples and searches.
    outcome : str or Outcome, default="classes"
        What y is.
    standardize : bool, default=False
        Scale every column to mean 0 and variance 1 over the training rows.
    prefilter : (filter, int) or None, default=None
        Search only among this number of best columns of a filter, for example ("fisher", 2000).
    sampler : imbalanced-learn sampler, "smote" or None, default=None
        Oversamples the training rows; held-out rows are never changed.
    ensemble : int or None, default=None
        Average the ranking over this number of stratified subsamples of 80 % of the rows. The rows that they leave out
        replace the inner folds: they choose the number of features and the threshold.
    keep : list of column names or numbers, or None, default=None
        Features that are always selected; they count towards the size.
    class_weight : None, "balanced" or dict, default=None
        Weight of each class; "balanced" gives both sides of each binary problem the same total weight.
    negative_weight : float, default=1.0
        Factor on the cost of every sample that is not of the positive class.
    resamples : int, default=50
        Number of fits on subsamples that estimate how often a suspect of a machine with the ramp loss is left out; 0
        for none.

    Attributes
    ----------
    support_ : array of bool of shape (n,)
        Which features are selected.
    n_features_ : int
        Number of selected features.
    ranking_ : array of int of shape (n,)
        Rank of each feature, 1 is the best.
    scores_ : array of shape (n,)
        Criterion of each feature at the last step in which it was scored.
    path_ : Path
        The ranking, the sizes that the search went through, and their scores where inner folds were used.
    classes_ : array of shape (n_classes,)
        The classes.
    positive_ : label
        The class of interest.
    threshold_ : float
        Threshold of the decision value, on the machine's scale.
    rows_ : array of int
        Numbers of the rows that the machine was trained on.
    groups_ : list of Group
        The selected features with near-duplicates among the columns.
    constant_, duplicates_ : list
        Columns that do not vary, and groups of equal columns.
    notes_ : list of str
        Remarks about the fit; also given as warnings.
    coef_, intercept_ : array
        Coefficients in the units of the columns, where the machine is linear in the columns.
    objective_, bound_, gap_, status_ : float, float, float, str
        Objective, lower bound, relative gap and status of machines that are linear programs.
    suspects_ : DataFrame
        For machines with the ramp loss: the samples that they left out, with the margin of each and how often resampled
        fits left it out.
    n_features_in_ : int
        Number of columns in `fit`.
    feature_names_in_ : array of shape (n,)
        Names of the columns in `fit`, where they have names.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 30, n_relevant=3, effect=2.0, random_state=0)
    >>> selector = SVMSelector(n_features_to_select=3, standardize=True, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.n_features_, selector.predict(cohort.X).shape
    (3, (60,))
    """

    def check(self) -> None:
        """Refuse parameters that no table could make sense of."""
        check_settings(self)
        for axis in ("kernel", "machine", "search"):
            resolve(axis, getattr(self, axis))
        criterion_of(self.criterion)

    def on_all(self) -> Self:
        """The same selector on every column that it is given."""
        copy: Self = clone(self)
        copy.set_params(false_share=None, n_features_to_select=1.0, keep=None, prefilter=None, ensemble=None)
        return copy

    def plan(self, encoded: Rows) -> Plan:
        """The plan of a fit on these rows; refuses what makes no sense."""
        return plan_of(self, encoded)

    def fit_plan(self, encoded: Rows, seed: np.random.SeedSequence | None, plan: Plan, lists: ListRequest) -> Fitted:
        """The whole fit of a plan, but for a list by its share of false features."""
        return fit_encoded(self, encoded, seed, plan, lists)

    def at_sizes(self, X: Any, y: Any, sizes: Sequence[int], sample_weight: Any = None) -> Iterator[SVMSelector]:
        """For each size, a copy of this fitted selector with that number of features of its path, with threshold 0.

        The machine is fitted again, the search is not run again. Copies have no probabilities, no `groups_` and no
        `suspects_`.

        Parameters
        ----------
        X, y : table and classes
            Those of `fit`.
        sizes : sequence of int
            Numbers of features; features to keep are in every copy.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            That of `fit`.

        Returns
        -------
        iterator of SVMSelector
            A fitted selector for each size.

        Examples
        --------
        >>> from marginsieve import SVMSelector
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> selector = SVMSelector(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
        >>> [copy.n_features_ for copy in selector.at_sizes(cohort.X, cohort.y, [1, 5])]
        [1, 5]
        """
        check_is_fitted(self)
        encoded = encode(clone(self), X, y, self.kinds, sample_weight, outcome=outcome_of(self))
        fitted = Fitted(
            plan_of(self, encoded),
            self.columns_,
            self.model_,
            self.path_,
            self._decision,
            rows=self.rows_,
            constant=tuple(self.constant_),
            duplicates=tuple(self.duplicates_),
            feature_weight=self._weight,
        )
        for refitted in refit_at_sizes(self, encoded, fitted, sizes, self._seed):
            copy = clone(self).set_params(
                n_features_to_select=len(refitted.model.features), threshold="margin", probability=False
            )
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self, name):
                    setattr(copy, name, getattr(self, name))
            copy.adopt(refitted, self._seed)
            copy.describe_training(encoded)
            yield copy

    @property
    def objective_(self) -> float:
        return optimality(self, "objective_")[0]

    @property
    def bound_(self) -> float:
        return optimality(self, "bound_")[1]

    @property
    def gap_(self) -> float:
        objective, bound, _ = optimality(self, "gap_")
        return (objective - bound) / max(objective, 1e-300)

    @property
    def status_(self) -> str:
        return optimality(self, "status_")[2]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernel = kernel_of(self.kernel)
        tags.input_tags.sparse = kernel.sparse
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = search_of(self.search).multiclass
        tags.input_tags.allow_nan = kernel.missing
        return tags


def prepare_search(selector: SVMSelector, X: Any, y: Any) -> tuple[Search, ProblemView]:
    """What a fit hands to its search: the search, and the problem over the columns that vary.

    For those who write a part and want to run or time it by itself.

    Parameters
    ----------
    selector : SVMSelector
        The selector, not fitted.
    X : table of shape (n_samples, n_features)
        The table.
    y : array-like of shape (n_samples,)
        The classes.

    Returns
    -------
    (Search, ProblemView)
        The search, and the problem as kernel, machine and criterion see it: scaled, oversampled, with its costs.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.estimators import prepare_search
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> search, problem = prepare_search(recipes.svm_rfe(), cohort.X, cohort.y)
    >>> [problem.table.names[j] for j in search.run(problem, np.random.default_rng(0)).order[:2]]
    ['g03', 'g07']
    """
    encoded = encode(selector, X, y, selector.kinds)
    plan = plan_of(selector, encoded)
    return plan.search, prepare(plan, encoded.active, np.random.default_rng(0)).problem


# -- blends -----------------------------------------------------------------------------------------------------------


#: parameters of a blend that hold for all of its views, which check them
OF_ALL_VIEWS = (
    *("outcome", "positive", "threshold", "probability", "max_samples", "similar", "cv", "n_jobs", "device"),
)


@describe_like(SVMSelector)
@dataclass(eq=False, repr=False)  # scikit-learn has its own
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
    positive : label or None, default=None
    threshold : "auto", "balanced", "margin", a rule, float or (float, float), default="auto"
        Threshold of the mean decision value, as in `SVMSelector`.
    probability : bool, default=False
    max_samples : int or None, default=None
    similar : float or None, default=0.95
    false_share : float or None, default=None
    cv : int, splitter or list of splits, default=5
        The inner folds.
    n_jobs : int or None, default=None
        Number of workers for the inner folds of all views; the result does not depend on it.
    device : str, default="cpu"
    random_state : int, RandomState or None, default=None
    outcome : str or Outcome, default="classes"

    Attributes
    ----------
    support_ : array of bool of shape (n,)
        Which features are selected by any view.
    n_features_ : int
    ranking_ : array of int of shape (n,)
        Rank of each feature, 1 is the best: selected ones first, by the mean of their places in the views.
    scores_ : array of shape (n,)
        Minus the mean of the feature's places in the views.
    path_ : Path
        The ranking, and the scores on the inner folds by the number of features.
    classes_ : array of shape (n_classes,)
    positive_ : label
    threshold_ : float
        Threshold of the mean decision value.
    rows_ : array of int
        Numbers of the rows that the machines were trained on.
    groups_ : list of Group
    constant_, duplicates_ : list
    notes_ : list of str
    coef_, intercept_ : array
        Coefficients in the units of the columns, where all views are linear in the columns.
    n_features_in_ : int
    feature_names_in_ : array of shape (n,)

    Examples
    --------
    >>> from marginsieve import Blend, recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 30, n_relevant=3, effect=2.0, random_state=0)
    >>> blend = Blend([recipes.fisher(), recipes.clinical_rfe()], n_features_to_select=3, random_state=0)
    >>> blend.fit(cohort.X, cohort.y).n_features_
    3
    """

    views: Sequence[SVMSelector] | None = None
    combine: str = "mean"

    def view_settings(self) -> list[SVMSelector]:
        """Copies of the views, with what the blend decides for all of them."""
        views = views_of(outcome_of(self).name) if self.views is None else self.views
        if isinstance(views, (str, bytes)) or not hasattr(views, "__iter__") or not list(views):
            raise InputError(f"views is {views!r}; it must be a list of SVMSelector")
        shared = {name: getattr(self, name) for name in OF_ALL_VIEWS} | {
            "random_state": None,
            "kinds": None,
            "resamples": 0,
        }
        if self.n_features_to_select is not None:
            shared["n_features_to_select"] = self.n_features_to_select
        out: list[SVMSelector] = []
        for view in views:
            if not isinstance(view, SVMSelector):
                raise InputError(f"views holds {view!r}; it must be a list of SVMSelector")
            out.append(clone(view).set_params(**shared))
        return out

    def on_all(self) -> Self:
        """The same blend on every column that it is given."""
        views = [view.set_params(keep=None, prefilter=None, ensemble=None) for view in self.view_settings()]
        copy: Self = clone(self)
        copy.set_params(views=views, false_share=None, n_features_to_select=1.0)
        return copy

    def plan(self, encoded: Rows) -> BlendPlan:
        """The plan of a fit on these rows; refuses what makes no sense."""
        self.check()
        return blend_plan(self.view_settings(), outcome_of(self), encoded)

    def check(self) -> None:
        """Refuse parameters that no table could make sense of."""
        one_of("Blend", "combine", self.combine, COMBINE)
        for view in self.view_settings():
            view.check()
        if self.false_share is not None:
            positive_number("Blend", "false_share", self.false_share, 1.0)
        check_seed(self.random_state)

    def fit_plan(
        self, encoded: Rows, seed: np.random.SeedSequence | None, plan: BlendPlan, lists: ListRequest
    ) -> Fitted:
        """The whole fit of a plan, but for a list by its share of false features."""
        return fit_blend(self, self.view_settings(), self.combine, encoded, seed, plan, lists)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        views = self.view_settings()
        tags.input_tags.sparse = all(kernel_of(view.kernel).sparse for view in views)
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = all(search_of(view.search).multiclass for view in views)
        tags.input_tags.allow_nan = True  # missing cells are filled for views that do not take them
        return tags


def views_of(outcome: str, **settings: Any) -> list[SVMSelector]:
    """A linear view and a view on the clinical kernel, for an outcome by its name."""
    return linear_and_clinical(**settings) if outcome == Classes.name else ridge_views(outcome, **settings)


def linear_and_clinical(
    C: float = 1.0, step: float | int = 0.2, standardize: bool = True, **settings: Any
) -> list[SVMSelector]:
    """A linear view and a view on the clinical kernel, which on numbers is bounded and robust."""
    linear = SVMSelector("linear", CSVC(C=C), Fisher(), TopK(), standardize=standardize, **settings)
    return [linear, SVMSelector(Clinical(), CSVC(C=C), MarginChange(), Backward(step=step), **settings)]


PENALTY = 0.1  # of the ridge regression that eliminates
SURVIVAL_PENALTY = 1.0  # of that on martingale residuals, which say less of a row: benchmarks/outcomes.md


def ridge_machines(outcome: str) -> tuple[Machine, Machine]:
    """The ridge regression that eliminates and the machine that predicts, for an outcome by its name."""
    if outcome == Survival.name:
        return MartingaleRidge(SURVIVAL_PENALTY), CoxRidge()
    return KernelRidge(PENALTY), KernelRidge()


def ridge_views(outcome: str, step: float | int = 0.2, standardize: bool = True, **settings: Any) -> list[SVMSelector]:
    """Eliminations by ridge regression on the linear and on the clinical kernel; each view predicts by the penalty that
    leave-one-out chooses."""
    eliminates, predicts = ridge_machines(outcome)
    search = Backward(step=step, final=predicts)
    linear = SVMSelector("linear", eliminates, MarginChange(), search, standardize=standardize, **settings)
    return [linear, SVMSelector(Clinical(), eliminates, MarginChange(), search, **settings)]
