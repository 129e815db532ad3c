"""Classes as an outcome: labels become codes, two classes one problem, several one problem each against the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.special import gammaln
from sklearn.base import clone

from ..contracts import (
    SIGNS,
    Array,
    HasParameters,
    IntArray,
    MachineTarget,
    Matrix,
    Predictions,
    Sampler,
    Score,
    ScoreInfo,
    Search,
    Words,
    is_sparse,
)
from ..data.cells import is_numeral
from ..errors import InputError, cost_number, listing, many, shown_value, truth_value
from .class_effects import confusion, describe_feature, draw_curves
from .operating import OPERATING_METRICS, CutRule, benefit_of_all, move_mix, net_benefits, scores_at_mix
from .recalibration import move_cut, recalibrate
from .scores import (
    CLASS_METRICS,
    areas_by_class,
    areas_by_pair,
    auc_variance,
    balanced_accuracy,
    balanced_threshold,
    cost_threshold,
    fit_sigmoid,
    labelled_aucs,
    linearise_scores,
    ranking_aucs,
    rooms_of,
)
from .target import (
    FoldLimit,
    Splits,
    Target,
    plain_labels,
    read_groups,
    read_labels,
    read_weight,
    unit_name,
    units_per_stratum,
)

if TYPE_CHECKING:
    import pandas as pd

Threshold = float | str | tuple[float, float]


@dataclass(frozen=True)
class Classes:
    """Classes as an outcome, and what a selector is set to about them.

    Parameters
    ----------
    positive : label or None, default=None
        The class of interest of two; None is the rarer one.
    class_weight : None, "balanced" or dict of label to weight, default=None
        Weight of each class; "balanced" gives both sides of each binary problem the same total weight.
    negative_weight : float, default=1.0
        Factor on the cost of every sample on the negative side.
    threshold : "auto", "balanced", "margin", a rule, float or (float, float), default="auto"
        Threshold of the decision value, as in `SVMSelector`.
    probability : bool, default=False
        Fit a sigmoid to the decision values of held-out rows.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import Classes
    >>> outcome = Classes(class_weight="balanced")
    >>> target = outcome.read(np.zeros((4, 1)), ["a", "a", "a", "b"]).settle(outcome)
    >>> target.machine_target.y
    array([[-1., -1., -1.,  1.]])
    >>> target.machine_target.cost.round(2)
    array([[0.67, 0.67, 0.67, 2.  ]])
    """

    positive: Any = None
    class_weight: Mapping[Any, float] | str | None = None
    negative_weight: float = 1.0
    threshold: Threshold = "auto"
    probability: bool = False

    name: ClassVar[str] = "classes"

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Classes:
        """What parameters, of a selector or a study, say of classes; other parameters are passed over."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in settings.items() if name in names})

    def read(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> ClassTarget:
        """Encode the labels of the rows of X; missing, infinite and continuous labels are refused.

        Parameters
        ----------
        X : table of shape (m, n)
            The rows; only their number is used.
        y : array-like of shape (m,)
            The classes.
        sample_weight : array-like of shape (m,) or None, default=None
            Weight of each row; None is 1.
        groups : array-like of shape (m,) or None, default=None
            Group of each row.

        Returns
        -------
        ClassTarget
            Classes, codes, weights and groups.

        Examples
        --------
        >>> import numpy as np
        >>> from marginsieve.outcomes import Classes
        >>> target = Classes().read(np.zeros((3, 2)), ["case", "control", "case"])
        >>> target.classes.tolist(), target.codes.tolist()
        (['case', 'control'], [0, 1, 0])
        """
        classes, codes = read_labels(X, y)
        return ClassTarget(read_weight(sample_weight, len(codes)), read_groups(groups, codes), classes, codes, self)

    def check(self) -> None:
        """Refuse settings that make no sense whatever the rows."""
        weight = self.class_weight
        if not (weight is None or (isinstance(weight, str) and weight == "balanced") or isinstance(weight, Mapping)):
            raise InputError(
                f'class_weight is {shown_value(weight)}; it must be None, "balanced" or a dict of class to weight'
            )
        for label, value in weight.items() if isinstance(weight, Mapping) else ():
            cost_number("selector", f"class_weight of {shown_value(label)}", value)
        cost_number("selector", "negative_weight", self.negative_weight)
        truth_value("selector", "probability", self.probability)
        self.cut_rule(2)

    def cut_rule(self, classes: int) -> Threshold | CutRule:
        """Where the decision value is cut: a word, a rule, a number, or a pair of costs; "auto" is resolved."""
        rule = self.threshold
        if isinstance(rule, str) and (known := CutRule.read(rule)) is not None:
            return known
        if isinstance(rule, str) and rule == "auto":
            costs = isinstance(self.class_weight, Mapping) or self.negative_weight != 1.0
            return "margin" if costs or classes > 2 else "balanced"
        if isinstance(rule, (tuple, list)) and len(rule) == 2:
            for cost in rule:
                cost_number("selector", "a cost of threshold", cost)
            return rule[0], rule[1]
        number = isinstance(rule, (int, float)) and not isinstance(rule, bool) and abs(rule) < 1e12
        if not (number or (isinstance(rule, str) and rule in ("balanced", "margin"))):
            raise InputError(
                f'threshold is {shown_value(rule)}; it must be "auto", "balanced", "margin", a rule such as '
                '"sensitivity:0.9", "specificity:0.9", "cost:5" or "capacity:0.1", a number below 1e12 in size, or two '
                "positive costs (of a false positive, of a false negative)"
            )
        return rule

    def tag(self, tags: Any) -> None:
        """Classifiers are what scikit-learn's mixin makes of a selector already."""


@dataclass(frozen=True)
class ClassTarget(Target):
    """Rows of classes: labels as codes, with weights and groups.

    Parameters
    ----------
    weight : array of shape (m,)
        Weight of each row.
    groups : array of int of shape (m,) or None
        Group of each row, as a code.
    classes : array of shape (k,)
        The class labels, sorted.
    codes : array of int of shape (m,)
        Code of each row's class: its position in `classes`.
    outcome : Classes, default=Classes()
        What is set about classes.
    positive : int or None, default=None
        Code of the class of interest; `settle` decides it by the rows where the settings leave it open.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import ClassTarget
    >>> target = ClassTarget(np.ones(3), None, np.array(["case", "control"]), np.array([0, 1, 1]))
    >>> target.take(np.array([0, 2])).codes
    array([0, 1])
    """

    classes: Any
    codes: IntArray
    outcome: Classes = field(default_factory=Classes)
    positive: int | None = None

    outcome_name: ClassVar[str] = Classes.name

    @classmethod
    def from_codes(
        cls, codes: IntArray, positive: int | None = 1, groups: IntArray | None = None, classes: Any = None
    ) -> ClassTarget:
        """Rows with these codes, which are the labels where there are no others; each weighs 1."""
        codes = np.asarray(codes, dtype=np.intp)
        labels = np.arange(max(int(codes.max(initial=0)) + 1, 2)) if classes is None else np.asarray(classes)
        return cls(np.ones(len(codes)), groups, labels, codes, Classes(), positive)

    # -- rows -----------------------------------------------------------------------------------------------------

    def take(self, rows: IntArray) -> Self:
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, weight=self.weight[rows], groups=groups, codes=self.codes[rows])

    def settle(self, outcome: Classes) -> Self:
        """With these settings and the class of interest: the one that is named, else the rarer one of these rows.

        That is the second where both are equally frequent, and the second of more than two.
        """
        return replace(self, outcome=outcome, positive=self._code_of_interest(outcome.positive))

    def with_settings(self, outcome: Classes) -> Self:
        """The same rows with other settings and the same class of interest."""
        return self.settle(outcome) if self.positive is None else replace(self, outcome=outcome)

    def _code_of_interest(self, label: Any) -> int:
        if label is None:
            counts = np.bincount(self.codes, weights=self.weight, minlength=len(self.classes))
            return 0 if len(counts) == 2 and counts[0] < counts[1] else 1
        try:
            where = np.flatnonzero(self.classes == label)
        except OverflowError:  # a number beyond those of numpy is none of the classes
            where = np.empty(0, dtype=np.intp)
        if not len(where):
            raise InputError(f"positive is {label!r}; the classes are {listing(self.classes.tolist())}")
        return int(where[0])

    def refuse(self, search: Search | None = None) -> None:
        """Refuse one class alone, a class without weight, and settings that cannot serve so many classes."""
        outcome, count = self.outcome, len(self.classes)
        if search is None:
            return self._refuse_lost()
        weights = outcome.class_weight if isinstance(outcome.class_weight, Mapping) else {}
        if unknown := [label for label in weights if label not in self.classes]:
            raise InputError(f"class_weight names {listing(unknown)}; the classes are {listing(self.classes.tolist())}")
        if count <= 2:
            return None
        if not search.multiclass:
            raise InputError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"{type(search).__name__} takes two classes and y has {count} classes; use two, or svm_l1"
            )
        if outcome.negative_weight != 1.0:
            raise InputError(
                f"negative_weight is {outcome.negative_weight!r} and y has {count} classes: use class_weight instead"
            )
        if not isinstance(outcome.threshold, str) or outcome.threshold not in ("auto", "margin"):
            raise InputError(
                f"threshold is {outcome.threshold!r} and y has {count} classes: a cut exists only between two; use "
                "'margin'"
            )
        return None

    def _refuse_lost(self) -> None:
        counts = np.bincount(self.codes[self.weight > 0], minlength=len(self.classes))
        if (counts > 0).sum() < 2:
            known = listing(self.classes[counts > 0].tolist())
            raise InputError(f"y holds one class only ({known}): a classifier needs at least two classes")
        if (counts == 0).any():
            raise InputError(f"every sample of class {listing(self.classes[counts == 0].tolist())} has sample_weight 0")

    @property
    def binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.classes) == 2

    @property
    def strata(self) -> IntArray:
        """(m,) the classes."""
        return self.codes

    @property
    def complete(self) -> bool:
        """Whether every class is among the rows."""
        return len(np.unique(self.codes)) == len(self.classes)

    @property
    def identity(self) -> tuple[list[Any], Any]:
        """The classes' names, the class of interest, and the codes."""
        return [[str(label) for label in self.classes], self._code], self.codes

    @property
    def store_row(self) -> dict[str, Any]:
        """What a store keeps: names and codes."""
        classes = [str(label) for label in self.classes]
        return {"classes": classes, "positive": self._code, "truth": self.codes.tolist()}

    @classmethod
    def from_store(cls, row: Mapping[str, Any]) -> ClassTarget:
        """The target of a table that a store describes."""
        return cls.from_codes(row["truth"], row["positive"], classes=row["classes"])

    # -- splits ---------------------------------------------------------------------------------------------------

    def fold_limit(self) -> FoldLimit:
        """One fold for each sample, or group, of the rarest class."""
        counts = units_per_stratum(self.codes, self.groups, len(self.classes))
        code = int(np.argmin(counts))
        name = self.classes.tolist()[code]
        return FoldLimit(counts[code], f"class {name!r} has {counts[code]} {unit_name(self.groups)}")

    def check_folds(self, folds: Splits) -> None:
        """Each training side must hold every class, and so must the test sides together."""
        names, every = self.classes.tolist(), np.arange(len(self.classes))
        for k, (train, _) in enumerate(folds):
            if len(lost := np.setdiff1d(every, self.codes[train])):
                raise InputError(
                    f"fold {k} of cv trains without class {names[int(lost[0])]!r}: use a stratified splitter"
                )
        tested = np.concatenate([np.empty(0, dtype=np.intp), *(test for _, test in folds)])
        if len(lost := np.setdiff1d(every, self.codes[tested])):
            raise InputError(f"no fold of cv tests class {names[int(lost[0])]!r}: use a stratified splitter")

    # -- machines -------------------------------------------------------------------------------------------------

    @property
    def labels(self) -> Array:
        """(k, m) in {-1, +1}: one row for two classes (+1 is the positive one), else one row per class."""
        sides = [1 if self.positive is None else self.positive] if self.binary else range(len(self.classes))
        return np.array([np.where(self.codes == code, 1.0, -1.0) for code in sides])

    @property
    def machine_target(self) -> MachineTarget:
        """Labels, and costs: weight times class weight; "balanced" gives both sides of a problem the same total."""
        labels, weight, known = self.labels, self.weight, self.outcome.class_weight
        if isinstance(known, str):
            total = weight.sum()
            share = np.array([[weight[row > 0].sum(), weight[row < 0].sum()] for row in labels])
            factor = np.where(labels > 0, total / (2 * share[:, :1]), total / (2 * share[:, 1:]))
        elif known is not None:
            by_class = np.array([float(known.get(label, 1.0)) for label in self.classes.tolist()])
            factor = np.broadcast_to(by_class[self.codes], labels.shape)
        else:
            factor = np.ones(labels.shape)
        cost = np.asarray(weight * factor * np.where(labels < 0, self.outcome.negative_weight, 1.0))
        return MachineTarget(SIGNS, labels, cost)

    def agreement(self, values: Array, labels: Array) -> Array:
        """(B,) the AUC of values (B, k, m) of held-out rows, of more than two classes the mean of each against the
        rest."""
        rows = (len(values) * values.shape[1], values.shape[2])
        areas = labelled_aucs(np.ascontiguousarray(values).reshape(rows), labels.reshape(rows) > 0)
        return np.asarray(areas.reshape(values.shape[:2]).mean(axis=1))

    @property
    def log_permutations(self) -> float:
        """The logarithm of the number of different outcomes that `permutations` can give, whatever the classes' names.

        Outcomes that differ in the names alone, as between two classes of 10 rows each, have the same statistics.
        """
        stratum, values = self._group_values()
        counts = np.zeros((int(values.max()) + 1, int(stratum.max()) + 1), dtype=np.intp)
        np.add.at(counts, (values, stratum), 1)
        alike = np.unique(counts, axis=0, return_counts=True)[1]
        return super().log_permutations - float(gammaln(alike + 1.0).sum())

    @property
    def has_costs(self) -> bool:
        """Whether each class has a cost of its own."""
        return isinstance(self.outcome.class_weight, Mapping)

    @property
    def own_problem(self) -> IntArray:
        """(m,) the binary problem that is about each row's class: that of its class, or the only one."""
        return np.zeros(len(self), dtype=np.intp) if self.binary else self.codes

    def resample(self, sampler: Sampler, rows: Matrix, rng: np.random.Generator) -> tuple[Matrix, Self]:
        """The rows that a sampler makes; a synthetic one weighs what the rows of its class weigh on average."""
        resampling: Any = clone(sampler)
        if getattr(resampling, "random_state", 0) is None:
            resampling.set_params(random_state=int(rng.integers(2**31)))
        cells = sparse.csr_array(rows) if is_sparse(rows) else np.ascontiguousarray(rows)
        y, weight = self.codes, self.weight
        try:
            Z, codes = resampling.fit_resample(cells, y)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(
                f"{type(sampler).__name__} failed on a training part whose rarest class has {min(np.bincount(y))} "
                f"rows: {error}"
            ) from error
        codes = np.asarray(codes, dtype=np.intp)
        weights = (np.bincount(y, weight) / np.maximum(np.bincount(y), 1))[codes]
        if hasattr(resampling, "sample_indices_"):
            weights = weight[resampling.sample_indices_]
        elif len(codes) >= len(y) and np.array_equal(codes[: len(y)], y):
            weights[: len(y)] = weight
        Z = sparse.csc_array(Z) if is_sparse(Z) else np.asfortranarray(Z)
        return Z, replace(self, codes=codes, weight=weights, groups=None)

    def average_by_class(self, values: Array) -> dict[str, float]:
        """The weighted mean of values (m,) in each class, by its name."""
        rows = {str(label): self.codes == code for code, label in enumerate(self.classes)}
        return {name: float(np.average(values[some], weights=self.weight[some])) for name, some in rows.items()}

    # -- inner scores and decisions ---------------------------------------------------------------------------------

    @property
    def scored_by(self) -> str:
        """Name of the score by which inner folds choose."""
        return "AUC" if self.binary else "balanced accuracy"

    def score_values(self, values: Array) -> Array:
        """(S,): AUC of values (S, m, k), nan where a class is missing; of more classes balanced accuracy."""
        if self.binary:
            return ranking_aucs(values[:, :, 0], self.codes == self.positive, self.weight)
        return np.array([self.accuracy_of(value) for value in values])

    def accuracy_of(self, values: Array, cut: Array | float = 0.0) -> float:
        """Balanced accuracy of values (m, k), of two classes with this cut."""
        return balanced_accuracy(self.call(values - cut) == self.codes, self.codes, self.weight)

    def call(self, values: Array) -> IntArray:
        """(m,) codes by machine values (m, k): the largest, or the positive class above 0."""
        if not self.binary:
            return np.asarray(values.argmax(axis=1))
        assert self.positive is not None
        return np.where(values[:, 0] > 0, self.positive, 1 - self.positive)

    def machine_scores(self, values: Array) -> tuple[float, float]:
        """Balanced accuracy of values (m, k) cut at 0; of equally good machines the one with the larger AUC wins."""
        second = 0.0
        if self.binary:
            second = float(ranking_aucs(values[None, :, 0], self.codes == self.positive, self.weight)[0])
        return self.accuracy_of(values), second

    def tuning_scores(self, values: Array, fold: IntArray) -> tuple[float, float]:
        """Balanced accuracy with a fold's threshold set on the other folds, and AUC over the pairs within folds."""
        if not self.binary:
            return self.accuracy_of(values), 0.0
        cut, places = np.zeros(len(self)), [np.flatnonzero(fold == k) for k in np.unique(fold)]
        for rows in places:
            rest = np.setdiff1d(np.arange(len(self)), rows)
            cut[rows] = self.threshold_of(values[rest, 0], rest, self.weight[rest])
        parts = [self.take(rows) for rows in places]
        mass = np.array([part.fold_mass for part in parts])
        areas = np.concatenate(
            [part.score_values(values[None, rows]) for part, rows in zip(parts, places, strict=True)]
        )
        known = mass > 0
        area = float(np.average(areas[known], weights=mass[known])) if known.any() else 0.5
        return self.accuracy_of(values, cut[:, None]), area

    @property
    def fold_mass(self) -> float:
        """A fold counts by its pairs of a positive and a negative row, or by its rows."""
        positive = self.codes == self.positive
        weight = self.weight
        return float(weight[positive].sum() * weight[~positive].sum() if self.binary else weight.sum())

    @property
    def needs_held_out(self) -> bool:
        """Whether a threshold or a probability is made from values of held-out rows."""
        rule = self.outcome.cut_rule(len(self.classes))
        return self.outcome.probability or rule == "balanced" or isinstance(rule, (tuple, CutRule))

    def threshold_of(self, value: Array, rows: IntArray, weight: Array) -> float:
        """Where values (rows,) of held-out rows are cut by the rule that is set."""
        rule, label = self.outcome.cut_rule(len(self.classes)), self.labels[0, rows]
        if rule == "balanced":
            return balanced_threshold(value, label, weight)
        if isinstance(rule, tuple):
            return cost_threshold(value, label, weight, *rule)
        if isinstance(rule, CutRule):
            return rule.cut(value, label, weight)
        return 0.0 if isinstance(rule, str) else float(rule)

    def decide(self, held: Array | None, rows: IntArray, weight: Array) -> ClassDecision:
        """The threshold and, where that is asked for, a sigmoid, by values (rows, k) of held-out rows."""
        rule = self.outcome.cut_rule(len(self.classes))
        fixed = 0.0 if isinstance(rule, (str, tuple, CutRule)) else float(rule)
        plain = ClassDecision(self.classes, self._code, fixed)
        if held is None:
            return plain
        cut, labels = self.threshold_of(held[:, 0], rows, weight), self.labels[:, rows]
        decision = replace(plain, threshold=cut)
        if not self.outcome.probability:
            return decision
        sign = decision.sign if self.binary else 1.0
        shifted = sign * (held - cut)
        sigmoid = [fit_sigmoid(shifted[:, k], sign * labels[k], weight) for k in range(held.shape[1])]
        return replace(decision, sigmoid=np.array(sigmoid))

    @property
    def _code(self) -> int:
        return 1 if self.positive is None else self.positive

    def scale(self, values: Array, rows: IntArray, weight: Array) -> tuple[Array, Array]:
        """Two classes are cut halfway between their medians before views are averaged."""
        middle, unit = super().scale(values, rows, weight)
        if self.binary:
            middle[0] = balanced_threshold(values[:, 0], self.labels[0, rows], weight)
        return middle, unit

    @property
    def has_auc(self) -> bool:
        """Whether there are two classes."""
        return self.binary

    def fold_advice(self, folds: int) -> str | None:
        """Every class must be there in every training part, twice, so that inner folds can be made of it."""
        counts = units_per_stratum(self.codes, self.groups)
        for label, count in sorted(zip(self.classes, counts, strict=True), key=lambda pair: pair[1]):
            enough = [some for some in range(2, count + 1) if count - -(-count // some) >= 2]
            if folds in enough or len(counts) < 2:
                continue
            units = f"has {many(count, unit_name(self.groups).removesuffix('s'))} of class {label!s}"
            if not enough:
                advice = "a study needs at least 3 of each class; leave this class out, or join it with another"
                return f"{units}: {advice}"
            few = min(enough, key=lambda some: abs(some - folds))
            return f"{units}: it takes {few} outer folds, not {folds} (cv={few}, --cv {few})"
        return None

    # -- predictions and their scores -------------------------------------------------------------------------------

    def entry(self, decision: ClassDecision, raw: Array) -> dict[str, Any]:  # type: ignore[override]
        """Codes, and with two classes decision values and probabilities of the class of interest of these rows."""
        value = decision.values(raw)
        out: dict[str, Any] = {"predicted": decision.codes_of(value).tolist(), "decision": None}
        if self.binary:
            out["decision"] = (self._sign * value).tolist()
            if not np.isfinite(out["decision"]).all():
                raise ValueError("the decision values are not all finite")
            if decision.sigmoid is not None:
                out["probability"] = decision.probability(value)[:, self._code].tolist()
        else:
            out["values"] = value.tolist()
        return out

    def entry_of(self, estimator: Any, rows: Any) -> dict[str, Any]:
        """The same of a classifier of any kind."""
        out: dict[str, Any] = {"predicted": np.searchsorted(self.classes, estimator.predict(rows))}
        if self.binary:
            out["decision"] = self._sign * _decision_of(estimator, rows)
            if hasattr(estimator, "predict_proba"):
                out["probability"] = np.asarray(estimator.predict_proba(rows), dtype=float)[:, self._code]
        elif len(known := getattr(estimator, "classes_", ())) == len(self.classes):
            how = "decision_function" if hasattr(estimator, "decision_function") else "predict_proba"
            value = np.asarray(getattr(estimator, how)(rows), dtype=float) if hasattr(estimator, how) else None
            if value is not None and value.shape == (len(out["predicted"]), len(known)):  # not a value for each pair
                out["values"] = value
        return out

    @property
    def _sign(self) -> float:
        return 1.0 if self._code == 1 else -1.0

    @property
    def fixed_settings(self) -> dict[str, Any]:
        """The class of interest of these rows."""
        return {"positive": self.classes[self._code] if self.binary else None}

    @property
    def metrics(self) -> Mapping[str, ScoreInfo]:
        """Balanced accuracy first; what needs decision values or probabilities is there with two classes."""
        chance = 1.0 / len(self.classes)
        first = replace(CLASS_METRICS["balanced_accuracy"], chance=chance)
        return {**CLASS_METRICS, "balanced_accuracy": first}

    def scores(self, predictions: Predictions) -> dict[str, Score]:
        """Each score of a pass over these rows; none where a class is not among them."""
        return linearise_scores(self.codes, predictions, self._code) if self.complete else {}

    def rooms(self, values: Mapping[str, float]) -> dict[str, float]:
        """For each score 4 u (1 - u), u from 0 at chance to 1 at no error."""
        return rooms_of(values, self.codes, self._code)

    # -- several classes ----------------------------------------------------------------------------------------------

    def against_rest(self) -> dict[str, Target]:
        """For each of more than two classes the same rows, of it or of the others."""
        out: dict[str, Target] = {}
        for code, label in enumerate([] if self.binary else self.classes):
            names = np.array([f"not {label}", str(label)], dtype=object)
            binary = replace(self, classes=names, codes=(self.codes == code).astype(np.intp))
            out[str(label)] = binary.settle(replace(self.outcome, positive=names[1]))
        return out

    def scores_by_class(self, predictions: Predictions) -> dict[str, dict[str, Score]]:
        """For each class what share of its rows is found, of those called so is right, and its AUC against the rest."""
        fold = np.zeros(len(self), dtype=np.intp) if predictions.fold is None else predictions.fold
        areas = {} if predictions.values is None else areas_by_class(predictions.values, self.codes, fold)
        out = {}
        for code, label in enumerate(self.classes):
            side = self.codes == code
            known = scores_at_mix(predictions.predicted == code, side, float(side.mean()))
            known = {name: known[name] for name in ("sensitivity", "specificity", "ppv") if name in known}
            out[str(label)] = known | ({"auc": Score(*areas[code])} if code in areas else {})
        return out

    def areas_by_pair(self, predictions: Predictions) -> dict[tuple[str, str], Score]:
        """For each pair of classes the AUC of their rows."""
        fold = np.zeros(len(self), dtype=np.intp) if predictions.fold is None else predictions.fold
        known = {} if predictions.values is None else areas_by_pair(predictions.values, self.codes, fold)
        return {(str(self.classes[a]), str(self.classes[b])): Score(*area) for (a, b), area in known.items()}

    # -- decisions ----------------------------------------------------------------------------------------------------

    @property
    def interest_share(self) -> float | None:
        """The share of the class of interest, of two."""
        return float(np.mean(self.codes == self._code)) if self.binary else None

    @property
    def operating_metrics(self) -> Mapping[str, ScoreInfo]:
        """Of two classes sensitivity, specificity, what is called positive and the predictive values."""
        return OPERATING_METRICS if self.binary else {}

    def operating_scores(self, predictions: Predictions, share: float) -> dict[str, Score]:
        """What the cut gives where the class of interest has this share."""
        return scores_at_mix(predictions.predicted == self._code, self.codes == self._code, share)

    def benefit_scores(self, predictions: Predictions, grid: Sequence[float], share: float) -> list[Score]:
        """Net benefit by threshold probability where the class of interest has this share."""
        assert predictions.probability is not None
        positive = self.codes == self._code
        moved = move_mix(predictions.probability, float(positive.mean()), share)
        return net_benefits(moved, positive, grid, share)

    def benefit_of_all(self, grid: Array, share: float) -> Array:
        """The same of calling every row positive."""
        return benefit_of_all(grid, share)

    # -- other cohorts ------------------------------------------------------------------------------------------------

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """The classes."""
        return tuple(str(label) for label in self.classes)

    @property
    def forecast_by(self) -> str | None:
        """The AUC of two classes."""
        return "auc" if self.binary else None

    def forecast_variance(self, value: float, counts: Sequence[int]) -> float:
        """That of an AUC (Hanley and McNeil, 1982)."""
        return auc_variance(value, counts[self._code], counts[1 - self._code])

    def read_counts(self, parts: Sequence[int]) -> tuple[int, ...]:
        """Of two classes that of interest comes first, as in 30+50."""
        counts = super().read_counts(parts)
        return counts[::-1] if self.binary and self._code == 1 else counts

    def describe_counts(self, counts: Sequence[int]) -> str:
        """Rows of each class, that of interest first."""
        order = [self._code, *(code for code in range(len(self.classes)) if code != self._code)]
        return " and ".join(f"{counts[code]:,} {self.classes[code]}" for code in order)

    # -- words --------------------------------------------------------------------------------------------------------

    @property
    def words(self) -> Words:
        """Classes with their counts, and the one of interest where there are two."""
        known = self.describe()
        rows, weighting = ", ".join(f"{label}: {count}" for label, count in known["classes"].items()), "all classes"
        weighting += " were given the same weight"
        if not self.binary:
            apart = "the classes of {target}"
            return Words(rows, f"separate {apart}", f"separates {apart}", weighting=weighting)
        other = str(self.classes[1 - self._code])
        named = [f"{{target}} {label}" if is_numeral(label) else label for label in (known["positive"], other)]
        apart = " from ".join(label.replace("{", "{{").replace("}", "}}") for label in named)
        apart = apart.replace("{{target}}", "{target}")
        return Words(
            rows,
            f"separate {apart}",
            f"separates {apart}",
            interest=f"positive class: {known['positive']}",
            above=known["positive"],
            ranking=f"A random sample of class {known['positive']} ranks above a random other one in {{share}} % of "
            "pairs ({score}).",
            weighting=weighting,
            decision="the decision threshold was set on inner folds in which the selection was run anew",
        )

    def describe(self) -> dict[str, Any]:
        """Rows of each class, and the class of interest."""
        counts = np.bincount(self.codes, minlength=len(self.classes))
        labels = [str(label) for label in self.classes]
        return {"classes": dict(zip(labels, map(int, counts), strict=True)), "positive": labels[self._code]}

    @property
    def observed(self) -> Any:
        """(m,) the labels."""
        return self.classes[self.codes]

    def in_terms_of_user(self, predicted: Any) -> Any:
        """The labels of these codes."""
        return self.classes[predicted]

    def effect(self, column: pd.Series, kind: str) -> dict[str, Any]:
        """Effect size between the classes, the class in which the column is higher, and values by class."""
        return describe_feature(column, kind, self.codes, [str(label) for label in self.classes], self._code)

    def pictures(self, predicted: Any, decision: Array | None, probability: Array | None) -> dict[str, Any]:
        """ROC, precision-recall and calibration of two classes; the confusion matrix of any number."""
        lines = None if decision is None else draw_curves(decision, probability, self.codes == self._code)
        labels = [str(label) for label in self.classes]
        return {"curves": lines, "confusion": confusion(predicted, self.codes, labels)}

    def model_notes(self, values: Array, machines: Sequence[Any]) -> list[str]:
        """A machine that calls every training row the same has learned nothing to cut."""
        costs = self.outcome.class_weight is not None or self.outcome.negative_weight != 1.0
        machine = machines[0]  # a larger C may make errors dearer
        has_price = isinstance(machine, HasParameters) and "C" in machine.get_params(deep=False)
        if not self.binary or costs or not has_price:
            return []
        side = np.sign(values[:, 0])
        if (side != side[0]).any():
            return []
        label = self.classes[self._code if side[0] > 0 else 1 - self._code]
        return [f"the machine puts every training row into class {label!s}: try class_weight='balanced' or a larger C"]


def _decision_of(estimator: Any, rows: Any) -> Array:
    """Higher for the second class, 0 at the cut."""
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(rows), dtype=float)
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(rows), dtype=float)[:, 1] - 0.5
    raise InputError(f"{type(estimator).__name__} has neither decision_function nor predict_proba")


@dataclass(frozen=True)
class ClassDecision:
    """Where the machines' value is cut, which class lies above, and what probability a value means.

    Parameters
    ----------
    classes : array of shape (n_classes,)
        The class labels, sorted.
    positive : int
        Code of the class of interest: its position in `classes`.
    threshold : float, default=0.0
        Where values of two classes are cut, on the machine's own scale, the positive class above.
    sigmoid : array of shape (k, 2) or None, default=None
        Slope and offset of the probability in the decision value.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import ClassDecision
    >>> decision = ClassDecision(np.array(["case", "control"]), positive=0, threshold=0.5)
    >>> decision.predict(decision.values(np.array([[0.2], [2.0]]))).tolist()
    ['control', 'case']
    """

    classes: Any
    positive: int
    threshold: float = 0.0
    sigmoid: Array | None = None

    @property
    def sign(self) -> float:
        """+1 where the positive class is the second one, else -1."""
        return 1.0 if self.positive == 1 else -1.0

    def values(self, raw: Array) -> Array:
        """(rows,), above 0 for the second of two classes; (rows, classes) where there are more."""
        with np.errstate(over="ignore"):
            return raw if raw.shape[1] > 1 else np.asarray(self.sign * (raw[:, 0] - self.threshold))

    def codes_of(self, values: Array) -> IntArray:
        """(rows,) codes of the classes by such values."""
        return np.asarray(values.argmax(axis=1) if values.ndim == 2 else values > 0, dtype=np.intp)

    def predict(self, values: Array) -> Any:
        """(rows,) the classes by such values."""
        return self.classes[self.codes_of(values)]

    def probability(self, values: Array) -> Array:
        """(rows, classes): a sigmoid of each column of the decision values, summing to 1."""
        assert self.sigmoid is not None
        with np.errstate(over="ignore"):
            t = values.reshape(len(values), -1) * self.sigmoid[:, 0] + self.sigmoid[:, 1]
        p = 1.0 / (1.0 + np.exp(-np.clip(t, -500, 500)))
        return np.hstack([1.0 - p, p]) if p.shape[1] == 1 else np.asarray(p / p.sum(axis=1, keepdims=True))

    def columns(self, values: Array) -> dict[str, Any]:
        """The class, the score, and the probability of the class of interest of two, else of the predicted one.

        The score is the decision value: of two classes positive for the second, else that of the predicted class.
        """
        several = values.ndim == 2
        out = {"predicted": self.predict(values), "score": values.max(axis=1) if several else values}
        if self.sigmoid is not None:
            chance = self.probability(values)
            out["probability"] = chance.max(axis=1) if several else chance[:, self.positive]
        return out

    def at_margin(self) -> ClassDecision:
        """The same without a threshold or probabilities."""
        return replace(self, threshold=0.0, sigmoid=None)

    def stratum_shares(self, share: float) -> Array | None:
        """(2,) the shares of two classes of which that of interest has this one."""
        if len(self.classes) != 2:
            return None
        return np.where(np.arange(2) == self.positive, share, 1.0 - share)

    def read_new(self, y: Any, outcome: Classes) -> ClassTarget:
        """Labels of a new cohort, in which classes may be missing; a label that the model does not know is refused.

        A label is known by its value, or as text: files may give the number 1 for the text "1".
        """
        labels = list(plain_labels(y))
        known = {label: code for code, label in reversed(list(enumerate(self.classes.tolist())))}
        by_text = {str(label): code for label, code in known.items()}
        codes = [known.get(label, by_text.get(str(label).strip(), -1)) for label in labels]
        if new := sorted({str(label) for label, code in zip(labels, codes, strict=True) if code < 0}):
            raise InputError(f"the cohort has {listing(new)}; the model knows {listing(self.classes.tolist())}")
        return ClassTarget(
            np.ones(len(codes)), None, self.classes, np.array(codes, dtype=np.intp), outcome, self.positive
        )

    def recalibrate(
        self, raw: Array, target: ClassTarget, aligned: bool, m: int | None = None
    ) -> tuple[ClassDecision, str]:
        """With probabilities that are fitted to these rows, whose values (rows, 1) the machine gave; m decides how."""
        if self.sigmoid is None or len(self.classes) != 2:
            raise InputError("recalibrate is for models of two classes with probabilities (probability=True)")
        if not target.complete:
            raise InputError("recalibrate needs rows of both classes")
        intercept, slope, how = recalibrate(self._log_odds(raw), target.codes == self.positive, aligned, m)
        return replace(self, sigmoid=slope * self.sigmoid + [0.0, self.sign * intercept]), how

    def _log_odds(self, raw: Array) -> Array:
        """(rows,) log odds of the class of interest."""
        assert self.sigmoid is not None
        slope, offset = self.sigmoid[0]
        return np.asarray(self.sign * (slope * self.values(raw) + offset))

    def move_cut(self, raw: Array, target: ClassTarget, rule: str, share: float | None) -> tuple[ClassDecision, str]:
        """With the cut moved, and the probabilities as they were."""
        if len(self.classes) != 2:
            raise InputError(f"cut is {rule!r}, and the model does not predict two classes: leave it out")
        value = self.sign * self.values(raw)
        z = None if self.sigmoid is None else self._log_odds(raw)
        by, how = move_cut(value, z, target.codes == self.positive, rule, share)
        moved = replace(self, threshold=self.threshold + by)
        if self.sigmoid is not None:
            offset = self.sigmoid[:, 1] + self.sigmoid[:, 0] * self.sign * by
            moved = replace(moved, sigmoid=np.column_stack([self.sigmoid[:, 0], offset]))
        return moved, how

    def attributes(self) -> dict[str, Any]:
        """Attributes of the fitted selector."""
        known = {"classes_": self.classes, "positive_": self.classes[self.positive], "threshold_": self.threshold}
        return {**known, "_sign": self.sign, "_sigmoid": self.sigmoid}

    @classmethod
    def from_attributes(cls, selector: Any) -> ClassDecision:
        """The decision of a selector that has these attributes."""
        positive = int(np.flatnonzero(selector.classes_ == selector.positive_)[0])
        return cls(selector.classes_, positive, selector.threshold_, getattr(selector, "_sigmoid", None))
