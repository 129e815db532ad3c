"""How much memory a fit will take, and how much there is: what does not fit is refused before any work."""

from __future__ import annotations

import math

from joblib import effective_n_jobs

from ..contracts import HasCache, Kernel, KnowsRows, Machine, resources_of
from ..data.stored import SPARE, free_bytes, gigabytes, is_stored, refuse_more
from ..errors import InputError
from ..kernels.numeric import MANY_SPARSE, THIN
from ..problem import is_filter
from .rows import Rows
from .settings import Plan, Settings

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
