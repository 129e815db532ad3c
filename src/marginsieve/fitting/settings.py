"""What a selector is set to, checked, with a sentence for what makes no sense; the plan of a fit and its memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Protocol, cast

import numpy as np
from joblib import effective_n_jobs

from ..contracts import (
    Criterion,
    CriterionLike,
    Filter,
    FixesSize,
    HasCache,
    HasParameters,
    Kernel,
    KernelLike,
    KnowsRows,
    Machine,
    MachineLike,
    Outcome,
    PrefilterLike,
    ReadsColumns,
    Refits,
    Sampler,
    SamplerLike,
    Search,
    SearchLike,
    StopInfo,
    resources_of,
)
from ..criteria import FILTERS
from ..data.stored import SPARE, free_bytes, gigabytes, is_stored, refuse_more
from ..errors import (
    InputError,
    check_device,
    check_n_jobs,
    listing,
    positive_number,
    shown_value,
    truth_value,
    whole_number,
)
from ..kernels.numeric import MANY_SPARSE, THIN
from ..outcomes import OUTCOMES
from ..problem import is_filter
from .parts import (
    criterion_of,
    kernel_of,
    machine_of,
    refuses,
    refuses_mixed,
    refuses_table,
    refuses_target,
    sampler_of,
    search_of,
)
from .rows import Rows

SIZE_RULES = ("short", "auto", "best")
MOST_MEMBERS = 100_000  # of an ensemble, and of fits on subsamples


@dataclass(eq=False, repr=False, kw_only=True)  # scikit-learn has its own
class CommonSettings:
    """The parameters that a selector and a blend have in common, as `marginsieve.SVMSelector` describes them."""

    n_features_to_select: int | float | str | None = None
    kinds: Mapping[str, str] | None = None
    positive: Any = None
    threshold: float | str | tuple[float, float] = "auto"
    probability: bool = False
    max_samples: int | None = None
    similar: float | None = 0.95
    false_share: float | None = None
    cv: Any = 5
    n_jobs: int | None = None
    device: str = "cpu"
    random_state: Any = None
    outcome: str | Outcome = "classes"


@dataclass(eq=False, repr=False)
class Settings(CommonSettings):
    """The parameters of a selector, as `marginsieve.SVMSelector` describes them."""

    kernel: KernelLike = "linear"
    machine: MachineLike = "c_svc"
    criterion: CriterionLike = "margin"
    search: SearchLike = "backward"
    _: KW_ONLY
    standardize: bool = False
    prefilter: PrefilterLike = None
    sampler: SamplerLike = None
    ensemble: int | None = None
    keep: Sequence[Any] | None = None
    class_weight: Mapping[Any, float] | str | None = None
    negative_weight: float = 1.0
    resamples: int = 50


class AnyPlan(Protocol):
    """What the plan of a selector has, whatever its kind."""

    @property
    def outcome(self) -> Outcome: ...
    @property
    def linear_in_rows(self) -> bool: ...  # no matrix of rows by rows, where there are fewer columns than rows


@dataclass(frozen=True)
class Plan:
    """The parts of one fit, resolved once and checked against each other and the table."""

    kernel: Kernel
    machine: Machine
    criterion: Criterion | Filter | None
    search: Search
    outcome: Outcome
    standardize: bool = False
    prefilter: tuple[Filter, int] | None = None
    sampler: Sampler | None = None
    ensemble: int | None = None
    keep: tuple[int, ...] = ()
    device: str = "cpu"  # where many searches at once are run
    fills: bool = False  # whether missing cells are taken for the mean of their column's training rows

    @property
    def final(self) -> Machine:
        """The machine that is fitted on what was selected."""
        final = self.search.final if isinstance(self.search, Refits) else None
        return self.machine if final is None or isinstance(final, str) else final

    @property
    def linear_in_rows(self) -> bool:
        """Whether a fit makes no matrix of rows by rows, where there are fewer columns than rows."""
        return self.kernel.linear and self.sampler is None and self.needs_no_matrix

    @property
    def needs_no_matrix(self) -> bool:
        """Whether no part asks for a matrix of rows by rows where the kernel does without one."""
        filters = () if self.prefilter is None else (self.prefilter[0],)
        criteria = () if self.criterion is None else (self.criterion,)
        parts = [self.machine, self.final, self.search, *filters, *criteria]
        return all(resources_of(part).linear_in_rows for part in parts)

    def differs_in_machine(self, other: Plan) -> bool:
        """Whether the other plan is this one but for the machine."""
        names = [field.name for field in fields(self) if field.name != "machine"]
        return all(_equal(getattr(self, name), getattr(other, name)) for name in names)


def _equal(first: Any, second: Any) -> bool:
    """Whether two parts, or values, are the same: of one class with the same parameters."""
    if isinstance(first, HasParameters) and type(first) is type(second):
        ours, theirs = first.get_params(deep=False), second.get_params(deep=False)
        return all(_equal(value, theirs[name]) for name, value in ours.items())
    return bool(np.array_equal(first, second))


def find_outcome(value: Any, settings: Mapping[str, Any]) -> Outcome:
    """An outcome by name, with what the settings say of it, or one as it is."""
    if not isinstance(value, str):
        if lacking := [name for name in ("name", "read", "check", "tag") if not hasattr(value, name)]:
            raise InputError(f"outcome is {value!r}; it must be a name or an object with read (it lacks {lacking[0]})")
        return cast(Outcome, value)
    if value not in OUTCOMES:
        raise InputError(f"outcome is {value!r}; the names are {listing(list(OUTCOMES), most=10)}")
    return OUTCOMES[value](settings)


def outcome_of(settings: CommonSettings) -> Outcome:
    """What y is by the parameters of a selector."""
    return find_outcome(settings.outcome, {field.name: getattr(settings, field.name) for field in fields(settings)})


def make_plan(settings: Settings, rows: Rows) -> Plan:
    """The plan of a fit on some rows; refuses what makes no sense before anything is computed."""
    check_settings(settings)
    kernel, machine = kernel_of(settings.kernel), machine_of(settings.machine)
    criterion, search = criterion_of(settings.criterion), search_of(settings.search)
    names, outcome = rows.schema.names, outcome_of(settings)
    if isinstance(search, ReadsColumns):
        search = search.for_columns(names)
    if isinstance(search, FixesSize) and (size := feature_count(settings, rows.table.shape[1])) is not None:
        search = search.for_size(size)
    prefilter = None if settings.prefilter is None else read_prefilter(settings.prefilter)
    sampler = sampler_of(settings.sampler)
    target = rows.target.settle(outcome)
    parts = (machine, criterion, search, None if prefilter is None else prefilter[0], sampler)
    for sentence in (
        refuses(kernel, machine, criterion, search),
        refuses_target(parts, target.machine_target.kind, outcome.name),
        refuses_table(kernel, rows.table, machine),
        refuses_mixed(rows.table, criterion, prefilter, sampler),
    ):
        if sentence:
            raise InputError(sentence)
    target.refuse(search)
    if sampler is not None and len(np.unique(target.weight)) > 1:
        raise InputError("sample_weight and sampler were both given: synthetic rows have no weight; leave one out")
    return Plan(
        kernel,
        machine,
        criterion,
        search,
        outcome,
        standardize=bool(settings.standardize),
        prefilter=prefilter,
        sampler=sampler,
        ensemble=settings.ensemble,
        keep=keep_places(settings.keep, names),
        device=settings.device,
    )


def check_settings(settings: Settings) -> None:
    """Refuse values that make no sense."""
    outcome_of(settings).check()
    if settings.ensemble is not None:
        whole_number("selector", "ensemble", settings.ensemble, most=MOST_MEMBERS)
    if settings.similar is not None:
        positive_number("selector", "similar", settings.similar, 1.0)
    whole_number("selector", "resamples", settings.resamples, 0, MOST_MEMBERS)
    if settings.false_share is not None:
        positive_number("selector", "false_share", settings.false_share, 1.0)
    if settings.max_samples is not None:
        whole_number("selector", "max_samples", settings.max_samples, 4)
    truth_value("selector", "standardize", settings.standardize)
    check_seed(settings.random_state)
    check_n_jobs(settings.n_jobs)
    check_device(settings.device)
    _check_cv(settings.cv)
    feature_count(settings, 1)
    if settings.prefilter is not None:
        read_prefilter(settings.prefilter)
    sampler_of(settings.sampler)
    keep = settings.keep
    if isinstance(keep, str) or not (keep is None or hasattr(keep, "__iter__")):
        raise InputError(f"keep is {shown_value(keep)}; it must be a list of column names or numbers")
    for item in keep if keep is not None else ():
        if not isinstance(item, (str, int, np.integer)) or isinstance(item, bool):
            raise InputError(f"keep names the column {shown_value(item)}; it must hold column names or numbers")


def _check_cv(cv: Any) -> None:
    """Refuse what no folds can be made of, as far as that is known without rows."""
    whole = isinstance(cv, (int, np.integer)) and not isinstance(cv, bool)
    if whole and cv >= 2:
        return
    if whole or not (hasattr(cv, "split") or hasattr(cv, "__iter__")) or isinstance(cv, (str, bytes, Mapping)):
        raise InputError(
            f"cv is {shown_value(cv)}; it must be a whole number of 2 or more, or a splitter of scikit-learn"
        )
    if hasattr(cv, "__len__") and len(cv) == 0:
        raise InputError("cv is a list without any fold; it must hold pairs of training and test rows")


def check_seed(random_state: Any) -> None:
    """Refuse what no random numbers are made of."""
    if random_state is None or isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return
    whole = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if not whole or not 0 <= random_state < 2**63:
        raise InputError(
            f"random_state is {shown_value(random_state)}; it must be a whole number of 0 or more, a RandomState, "
            "a Generator or None"
        )


def read_prefilter(prefilter: PrefilterLike) -> tuple[Filter, int]:
    """The filter and how many columns it leaves; refuses what is no filter or no count."""
    name, count = prefilter if isinstance(prefilter, (tuple, list)) and len(prefilter) == 2 else (None, 0)
    whole = isinstance(count, (int, np.integer)) and not isinstance(count, bool) and count >= 1
    known = not isinstance(name, str) or name.replace("-", "_") in FILTERS
    score = criterion_of(name) if whole and known else None
    if not is_filter(score):
        raise InputError(
            f'prefilter is {shown_value(prefilter)}; it must be a pair like ("fast", 2000): a filter '
            f"({listing(list(FILTERS), most=20)}) and a count"
        )
    return score, int(count)


def keep_places(keep: Sequence[Any] | None, names: Sequence[str]) -> tuple[int, ...]:
    """The numbers of the columns that `keep` names."""
    if keep is None:
        return ()
    place = {name: j for j, name in enumerate(names)}
    places = []
    for item in keep:
        whole = isinstance(item, (int, np.integer)) and not isinstance(item, bool)
        j = int(item) if whole else place.get(item, -1) if isinstance(item, str) else -1
        if not 0 <= j < len(place):
            raise InputError(f"keep names the column {item!r}, which the table does not have")
        places.append(j)
    return tuple(dict.fromkeys(places))


def feature_count(settings: CommonSettings, columns: int) -> int | None:
    """n_features_to_select as a count; None where a rule or the method decides."""
    size: Any = settings.n_features_to_select
    if size is None or (isinstance(size, str) and size in SIZE_RULES):
        return None
    if isinstance(size, (int, np.integer)) and not isinstance(size, bool) and 1 <= size < 2**62:
        return int(size)
    if isinstance(size, (float, np.floating)) and 0 < size <= 1:
        return max(1, round(float(size) * columns))
    raise InputError(
        f"n_features_to_select is {shown_value(size)}; it must be a whole number of 1 or more, a share in (0, 1], "
        '"auto", "best" or None'
    )


@dataclass(frozen=True)
class SizeChoice:
    """The number of features, or the rule by which inner folds choose it; `note` says what could not be had."""

    size: int = 0
    rule: str = ""
    note: str = ""


def size_choice(
    settings: Settings, columns: int, usable: int, searched: int, kept: int, stop: StopInfo | None
) -> SizeChoice:
    """What `n_features_to_select` comes to where so many columns vary and so many are searched."""
    wish = settings.n_features_to_select
    if wish is None and stop is not None:
        return SizeChoice(max(stop.size, kept))
    count = feature_count(settings, columns)
    if count is None:
        return SizeChoice(rule=wish if isinstance(wish, str) else "auto")
    note = ""
    if count > searched and not (isinstance(wish, (float, np.floating)) and settings.prefilter is None):
        left = "vary" if searched == usable else "are left by the prefilter"
        note = f"{count} features were asked for and {searched} {left}: all of them are selected"
    return SizeChoice(min(max(count, kept), searched), note=note)


# -- memory -----------------------------------------------------------------------------------------------------------

NUMBER = 8  # bytes
PEAK = (5.2, 1.7)  # of parts that do not say: copies of the table, matrices of rows by rows
ONCE = (5.2, 2.5)  # of a kernel that is not linear, for a model alone
PEAK_KEPT = 2.2  # such matrices where they are so small that the process keeps what was freed
KEPT = 32 * 2**20
ROW, ROW_AT_SIZE, SIZES = 220, 32, 40  # bytes of a row, and of its decision values at each size in three draws of folds
COLUMN = 350  # bytes of a column of a sparse table: its name, its kind, its scores and ranks in every step
BLOCKS = 2**24  # cells of a table in a file that are in memory at a time
NAME = 150  # of these, what is taken before the fit
MODEL = 1.1  # matrices of rows by rows when a model is read
DISTANCES = 3.2  # and when new rows are compared with the training rows
ALWAYS = 3 * 2**20  # what is taken whatever the table


def estimated_bytes(settings: Settings, plan: Plan, encoded: Rows) -> float:
    """The peak of what a fit on these rows allocates, beyond what its caller holds; its workers are counted in.

    Parts say what they take, in copies of the table and in matrices of rows by rows.
    """
    table = encoded.table
    n, grown = table.shape[1], _growth(plan, encoded)
    m = grown * table.shape[0]
    trained = min(m, grown * (settings.max_samples or m))
    by_filter = is_filter(plan.criterion)  # then the kernel is needed once, for the model
    parts = (plan.machine, plan.search) if by_filter else (plan.kernel, plan.machine, plan.search)
    peaks = [PEAK if plan.kernel.linear or not by_filter else ONCE]
    peaks += [resources_of(part).peak for part in parts]
    if not any(map(any, peaks[1:])) and NUMBER * trained**2 < KEPT:
        peaks.append((0.0, PEAK_KEPT))
    tables = max(copies for copies, _ in peaks)
    thin = table.shape[0] > MANY_SPARSE if table.is_sparse else THIN < table.shape[0] > n
    thin = thin and plan.linear_in_rows
    columns = plan.machine.needs == "columns"
    matrices = 0.0 if columns or thin else max(count for _, count in peaks)
    cells = 1.5 * table.Z.nnz if table.is_sparse else m * n  # an index is half a number
    by_column = COLUMN * n if table.is_sparse else 0
    if is_stored(table.Z):
        cells, by_column = min(m * n, BLOCKS), COLUMN * n
    by_row = ROW + ROW_AT_SIZE * (SIZES if columns else min(n, SIZES))
    pairs = trained**2
    if isinstance(plan.kernel, HasCache) and plan.needs_no_matrix:
        pairs = min(pairs, plan.kernel.cache * 2**20 / NUMBER)
    worker_bytes = ALWAYS + NUMBER * (tables * cells + matrices * pairs) + by_row * m + by_column
    return float(worker_bytes * max(1, effective_n_jobs(settings.n_jobs)))


def _growth(plan: Plan, encoded: Rows) -> float:
    """How many times as many rows there are after the sampler; one that does not say evens out the classes."""
    if plan.sampler is None:
        return 1.0
    sampler, counts = plan.sampler, encoded.target.row_counts
    after = sampler.rows_of(counts) if isinstance(sampler, KnowsRows) else len(counts) * max(counts)
    return max(after / sum(counts), 1.0)


def refuse_too_large(settings: Settings, plan: Plan, encoded: Rows) -> None:
    """Refuse a fit that would take more memory than this process may use."""
    needed, free = estimated_bytes(settings, plan, encoded), SPARE * free_bytes()
    if needed <= free:
        return
    m, n = encoded.table.shape
    ways = [f"max_samples={max(4, int(0.7 * m * math.sqrt(free / needed)))}"]
    ways += [f'prefilter=("fast", {max(1, int(0.5 * n * free / needed))})'] if n > m else []
    ways += ["n_jobs=1"] if effective_n_jobs(settings.n_jobs) > 1 else []
    raise InputError(
        f"the fit of {m:,} rows and {n:,} columns would take about {gigabytes(needed)} of memory and "
        f"{gigabytes(free)} are free: use {' or '.join(ways)}"
    )


def refuse_columns(n: int) -> None:
    """Refuse a table with so many columns that their names alone are too much; a sparse one may be small otherwise."""
    refuse_more(NAME * n, f"the names of {n:,} columns", "leave out the columns without cells")


def refuse_model(machine: Machine, kernel: Kernel, shape: tuple[int, int]) -> None:
    """Refuse a model with more training rows than their kernel matrix has room."""
    m, n = shape
    if machine.needs == "gram" and not (kernel.linear and THIN < m > n):
        refuse_more(MODEL * NUMBER * float(m) ** 2, f"a model of {m:,} training rows", "fit it with max_samples")


def refuse_distances(m: int) -> None:
    """Refuse predictions by a model whose training rows are too many for their distances."""
    refuse_more(DISTANCES * NUMBER * float(m) ** 2, f"distances among {m:,} training rows", "use model.predict")


def refuse_dense(m: int, n: int) -> None:
    """Refuse a sparse table that is too large as a dense one."""
    refuse_more(2.0 * NUMBER * m * n, f"a dense table of {m:,} rows and {n:,} columns", "leave out columns first")
