"""SVMSelector: the one estimator, a scikit-learn classifier and transformer at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..contracts import Array, BoolArray, IntArray, is_sparse
from ..data.table import as_frame, equal_columns
from ..errors import InputError
from ..fitting import inner_folds as cut
from ..fitting import resampling as flags
from ..fitting.compatibility import refuses, refuses_classes, refuses_mixed, refuses_table
from ..fitting.ensemble import agreed, members
from ..fitting.near_duplicates import Group, near_duplicates
from ..fitting.parts import resolve
from ..fitting.settings import (
    asked_count,
    check_settings,
    keep_places,
    read_prefilter,
    threshold_rule,
    wanted_size,
    weight_by_code,
)
from ..fitting.training import Model, Part, Plan, Searched, fit_model, prepare, search_once, varying, with_path
from ..problem import Budgeted, Path
from ..searches import Budget
from . import notes
from .formula import Formula
from .inputs import (
    check_classes,
    choose_rows,
    positive_code,
    read_new,
    read_target,
    read_training,
    seed_sequence,
    with_rest,
)
from .optimality import Proofs


def _wants_probability(selector: SVMSelector) -> bool:
    return bool(selector.probability)


class SVMSelector(Formula, Proofs, ClassifierMixin, SelectorMixin, BaseEstimator):
    """Selects features with a support vector machine and classifies with what it selected.

    Parameters
    ----------
    kernel, machine, criterion, search : str or component
        The four parts of a method; a string names one with its defaults. `marginsieve.recipes` has the named methods.
    n_features_to_select : None, int, float, "one-se" or "best"
        A count, a share of the columns, or a rule on inner cross-validation: the smallest size within one standard
        error of the best, or the best. None is the method's own number where it has one, else "one-se".
    standardize : bool
        Bring every column to mean 0 and variance 1 over the training rows.
    prefilter : (criterion, int) or None
        Search only among this many best columns of a filter, for example ("fisher", 2000).
    sampler : imbalanced-learn sampler, "smote" or None
        Oversamples the training rows; held-out rows are never touched.
    ensemble : int or None
        Average the ranking over this many stratified subsamples of 80 % of the rows. The rows that they leave out take
        the place of the inner folds: they choose the number of features and the threshold.
    keep : list of column names or numbers
        Features that are always selected; they count towards the size.
    kinds : dict of column name to "real", "ordinal", "nominal" or "boolean"
        Overrides what the dtypes say.
    class_weight : None, "balanced" or dict
    negative_weight : float
        Multiplies the cost of every sample that is not of the positive class.
    positive : label or None
        The class of interest; the rarer one by default. It decides costs and reports, not the order of `classes_`.
    threshold : "auto", "balanced", "margin", float or (fp, fn)
        Where the decision value is cut. "balanced": halfway between the medians of the classes' decision values on
        inner folds that neither the machine nor the selection saw. "margin": at 0. A number: there, on the machine's
        own scale with the positive class above. A pair of costs: the cheapest cut on the inner folds. "auto":
        "margin" if a class_weight dict or negative_weight is given or there are more than two classes, else "balanced".
    probability : bool
        Fit a sigmoid to the inner folds' decision values, for `predict_proba`.
    rows : int or None
        Train on at most this many rows: all positives and a weighted sample of negatives. Needed above 10,000 rows.
    similar : float or None
        Columns whose correlation with a selected one is at least this in size are named with it in `groups_` (for the
        200 best selected ones), since the choice among them is nearly random; None looks for none.
    resamples : int
        Fits on subsamples that tell how often a suspect of a machine with the ramp loss is left out; 0 for none.
    cv : int or splitter
        The inner folds.
    n_jobs : int or None
        Workers for the inner folds or the members of an ensemble; the result does not depend on it.
    random_state : int, RandomState or None

    Where the machine is linear in the columns there are `coef_` and `intercept_`, in the units of the columns.
    Machines that are linear programs also have `objective_`, `bound_`, `gap_` and `status_`, those with the ramp loss
    `suspects_`: the samples that they left out, with the margin of each and how often resampled fits left it out.
    """

    def __init__(
        self,
        kernel: Any = "linear",
        machine: Any = "c_svc",
        criterion: Any = "margin",
        search: Any = "backward",
        n_features_to_select: int | float | str | None = None,
        standardize: bool = False,
        prefilter: tuple[Any, int] | None = None,
        sampler: Any = None,
        ensemble: int | None = None,
        keep: Sequence[Any] | None = None,
        kinds: Mapping[str, str] | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        negative_weight: float = 1.0,
        positive: Any = None,
        threshold: float | str | tuple[float, float] = "auto",
        probability: bool = False,
        rows: int | None = None,
        similar: float | None = 0.95,
        resamples: int = flags.RESAMPLES,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.machine = machine
        self.criterion = criterion
        self.search = search
        self.n_features_to_select = n_features_to_select
        self.standardize = standardize
        self.prefilter = prefilter
        self.sampler = sampler
        self.ensemble = ensemble
        self.keep = keep
        self.kinds = kinds
        self.class_weight = class_weight
        self.negative_weight = negative_weight
        self.positive = positive
        self.threshold = threshold
        self.probability = probability
        self.rows = rows
        self.similar = similar
        self.resamples = resamples
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> SVMSelector:
        """Select features and fit the machine on them; rows of one group never sit on both sides of an inner fold."""
        part, used = self._read(X, y, sample_weight, groups)
        plan = self._plan(part)
        self._seed = seed_sequence(self.random_state)
        rng = np.random.default_rng(self._seed)
        sample, boosted = choose_rows(part, self.rows, rng)
        training = Part(part.table, part.y, boosted, part.groups)
        chosen = training if len(sample) == len(part.y) else training.take(sample)
        self.rows_ = used[sample]
        self._describe(chosen)
        searched = search_once(plan, chosen, rng)
        self._scale = searched.problem.scale
        self._decide(plan, part, training, sample, chosen, searched, rng)
        self.groups_ = self._groups(chosen)
        index = flags.sample_index(X, int(self.rows_.max()) + 1)[self.rows_]
        self.__dict__.pop("suspects_", None)
        if (suspects := flags.of_model(plan, chosen, self.model_, rng, index, self.resamples)) is not None:
            self.suspects_ = suspects
        self._warn(searched)
        return self

    def at_sizes(self, X: Any, y: Any, sizes: Sequence[int], sample_weight: Any = None) -> Iterator[SVMSelector]:
        """For each size a copy of this fitted selector with that many features of the same path, cut at the margin.

        X, y and sample_weight must be those of `fit`; the search is not run again, the machine is. Features to keep are
        in every copy; copies have no probabilities, no `groups_` and no `suspects_`.
        """
        check_is_fitted(self)
        copy = clone(self)
        part, _ = copy._read(X, y, sample_weight, None)
        plan = copy._plan(part)
        rng = np.random.default_rng(self._seed)
        sample, boosted = choose_rows(part, self.rows, rng)
        chosen = Part(part.table, part.y, boosted).take(sample)
        searched = with_path(prepare(plan, chosen, rng), self.path_)
        searched.problem.scale = self._scale
        for asked in sizes:
            size = max(int(asked), len(searched.problem.keep))
            made = clone(self).set_params(n_features_to_select=size, threshold="margin", probability=False)
            for name in ("columns_", "classes_", "positive_", "_sign", "n_features_in_", "feature_names_in_"):
                if hasattr(copy, name):
                    setattr(made, name, getattr(copy, name))
            made.notes_, made.rows_ = [], self.rows_
            made.constant_, made.duplicates_ = self.constant_, self.duplicates_
            made._adopt(fit_model(plan, searched, size), self.path_)
            made.threshold_ = 0.0
            yield made

    def decision_function(self, X: Any) -> Array:
        """(rows,), positive for classes_[1] and 0 at the cut; (rows, classes) where there are more than two."""
        check_is_fitted(self)
        return self._decision(read_new(self, X))

    def predict(self, X: Any) -> Any:
        """The class of each row."""
        return self._called(self.decision_function(X))

    def _decision(self, Z: Any) -> Array:
        """Decision values of rows that were read already."""
        value = self.model_.decision(Z)
        return value if len(self.classes_) > 2 else np.asarray(self._sign * (value[:, 0] - self.threshold_))

    def _called(self, value: Array) -> Any:
        """Classes by decision value."""
        return self.classes_[value.argmax(axis=1) if value.ndim == 2 else (value > 0).astype(np.intp)]

    @available_if(_wants_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """(rows, classes): a sigmoid of the decision value, fitted on the inner folds; needs probability=True."""
        value = self.decision_function(X)
        t = value.reshape(len(value), -1) * self._sigmoid[:, 0] + self._sigmoid[:, 1]
        p = 1.0 / (1.0 + np.exp(-np.clip(t, -500, 500)))
        if p.shape[1] == 1:
            return np.hstack([1.0 - p, p])
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def transform(self, X: Any) -> Any:
        """The selected columns, in the user's own type and dtypes."""
        check_is_fitted(self)
        read_new(self, X)
        frame = as_frame(X)
        if frame is not None:
            chosen = frame[:, np.flatnonzero(self.support_).tolist()]
            wrapped = _get_output_config("transform", self)["dense"] != "default"
            return chosen.to_pandas() if wrapped and frame.implementation.is_pyarrow() else chosen.to_native()
        if is_sparse(X) and X.format not in ("csr", "csc"):
            X = X.tocsr()
        return (X if hasattr(X, "dtype") else np.asarray(X))[:, np.flatnonzero(self.support_)]

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return np.asarray(self.support_)

    # -- the pieces of fit ------------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> tuple[Part, IntArray]:
        """The rows that count (weight above 0), and their numbers."""
        self.columns_, table = read_training(self, X, y, self.kinds)
        self.classes_, codes, weight, groups = read_target(X, y, sample_weight, groups)
        used = np.flatnonzero(weight > 0)
        part = Part(table, codes, weight, groups)
        part = part if len(used) == len(weight) else part.take(used)
        check_classes(self.classes_, part.y)
        return part, used

    def _plan(self, part: Part) -> Plan:
        """The components, resolved and checked against each other and against the table."""
        classes = self.classes_
        check_settings(self)
        parts = {axis: resolve(axis, getattr(self, axis)) for axis in ("kernel", "machine", "criterion", "search")}
        for component in parts.values():
            if hasattr(component, "check"):
                component.check()
        if hasattr(parts["search"], "named"):
            parts["search"] = parts["search"].named(self.columns_.names)
        if hasattr(parts["search"], "sized") and (count := asked_count(self)) is not None:
            parts["search"] = parts["search"].sized(count)
        prefilter = None if self.prefilter is None else read_prefilter(self.prefilter)
        for sentence in (
            refuses(**parts),
            refuses_table(parts["kernel"], part.table, parts["machine"]),
            refuses_mixed(part.table, parts["criterion"], prefilter, self.sampler),
            refuses_classes(len(classes), self.negative_weight, self.threshold, parts["search"]),
        ):
            if sentence:
                raise InputError(sentence)
        sampler = resolve("sampler", self.sampler)
        if sampler is not None and len(np.unique(part.weight)) > 1:
            raise InputError("sample_weight and sampler were both given: synthetic rows have no weight; leave one out")
        positive = positive_code(classes, part.y, part.weight, self.positive)
        self.positive_ = classes[positive]
        self._sign = 1.0 if positive == 1 else -1.0
        return Plan(
            **parts,
            n_classes=len(classes),
            positive=positive,
            standardize=bool(self.standardize),
            prefilter=prefilter,
            sampler=sampler,
            ensemble=self.ensemble,
            keep=keep_places(self),
            class_weight=weight_by_code(self),
            negative_weight=self.negative_weight,
        )

    def _describe(self, part: Part) -> None:
        """What the table's columns are like: constant ones, equal ones."""
        names = np.array(self.columns_.names, dtype=object)
        self.constant_ = names[~varying(part.table.Z)].tolist()
        self.duplicates_ = [tuple(names[group]) for group in equal_columns(part.table.Z)]
        self.notes_ = notes.of_table(self, part)

    def _decide(
        self, plan: Plan, part: Part, training: Part, sample: IntArray, chosen: Part, searched: Searched, rng: Any
    ) -> None:
        """Size, model, threshold and sigmoid; inner folds only if one of them needs held-out decision values."""
        path = searched.path
        # one class may be all that counts
        told = isinstance(path.own, Budgeted) and isinstance(self.class_weight, Mapping)
        if path.own is not None and path.own.emptied and self.n_features_to_select is None and not told:
            self.notes_.append(str(path.own))
        own = None if plan.ensemble and not getattr(path.own, "given", False) else path.own
        size, rule = wanted_size(self, searched, own)
        threshold = threshold_rule(self)
        held, sizes = None, tuple[int, ...]()
        if rule or threshold == "balanced" or isinstance(threshold, tuple) or self.probability:
            smallest = max(1, len(searched.problem.keep))
            sizes = cut.size_grid([step.size for step in path.steps], searched.most, smallest) if rule else (size,)
        if plan.ensemble:
            if sizes:
                cut.units_of(chosen, self.classes_.tolist())
            found = members(plan, chosen, sizes, rng, self.n_jobs)
            searched, part = agreed(plan, searched, found), chosen
            path, held = searched.path, cut.HeldOut.out_of_bag(found, sizes) if sizes else None
        elif sizes:
            folds, remark = cut.inner_folds(self.cv, chosen, self.classes_.tolist(), rng)
            self.notes_ += [remark] if remark else []
            folds = with_rest(folds, sample, len(part.y), rng, part.groups)
            seed = np.random.SeedSequence(int(rng.integers(2**63)))
            held = cut.hold_out(plan, training, sizes, folds, seed, self.n_jobs)
            searched.problem.count(held)
        if held is not None:
            score, error = held.scores(part.y, part.weight, plan)
            path = path.scored(sizes, score, error, "AUC" if plan.n_classes == 2 else "balanced accuracy")
            size = cut.choose_size(sizes, score, error, rule) if rule else size
        self._adopt(fit_model(plan, searched, size), path)
        self.notes_ += notes.of_model(self, plan, chosen) + notes.of_budget(self, plan) + notes.of_filter(self, plan)
        self._cut_and_calibrate(plan, part, held, size, threshold)

    def _adopt(self, model: Model, path: Path) -> None:
        n = self.n_features_in_
        self.model_ = model
        self.path_ = replace(path, cut=len(model.features))
        self.scores_ = path.scores
        self.ranking_ = np.empty(n, dtype=np.intp)
        self.ranking_[path.order] = np.arange(1, n + 1)
        self.support_ = np.isin(np.arange(n), model.features)
        self.n_features_ = int(self.support_.sum())

    def _groups(self, part: Part) -> list[Group]:
        """The selected features that stand for others."""
        if self.similar is None:
            return []
        names, real = self.columns_.names, np.array(self.columns_.kind) != "nominal"
        usable = real & ~np.isin(names, self.constant_)
        found = near_duplicates(part.table.Z, part.weight, self.path_.order[: self.n_features_], usable, self.similar)
        return [Group(names[j], tuple(names[k] for k in members), tuple(r.tolist())) for j, members, r in found]

    def _cut_and_calibrate(self, plan: Plan, part: Part, held: cut.HeldOut | None, size: int, threshold: Any) -> None:
        self.threshold_ = float(threshold) if isinstance(threshold, (int, float)) else 0.0
        if held is None:
            return
        value = held.values[held.sizes.index(size)]
        labels, weight = plan.labels(part.y)[:, held.rows], held.weight(part.weight)
        if threshold == "balanced":
            self.threshold_ = cut.balanced_cut(value[:, 0], labels[0], weight)
        elif isinstance(threshold, tuple):
            self.threshold_ = cut.cost_cut(value[:, 0], labels[0], weight, *threshold)
        if self.probability:
            sign = self._sign if plan.n_classes == 2 else 1.0
            shifted = sign * (value - self.threshold_)
            self._sigmoid = np.array(
                [cut.fit_sigmoid(shifted[:, k], sign * labels[k], weight) for k in range(value.shape[1])]
            )

    def _warn(self, searched: Searched) -> None:
        if sentence := notes.unconverged(searched, self.columns_.names):
            warnings.warn(sentence, ConvergenceWarning, stacklevel=3)
        for note in self.notes_:
            warnings.warn(note, UserWarning, stacklevel=3)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernel = self.kernel
        tags.input_tags.sparse = kernel == "linear" if isinstance(kernel, str) else bool(kernel.sparse)
        tags.classifier_tags.multi_class = not isinstance(resolve("search", self.search), Budget)
        tags.input_tags.allow_nan = kernel == "clinical" or bool(getattr(kernel, "missing", False))
        return tags
