"""Many kernel ridge regressions at once, for arrays on any device: one factoring each, all in one call.

It is `solvers.ridge.kernel_ridge` with a first axis for the problems. Rows with a cost of 0 take no part.
"""

from __future__ import annotations

from ..solvers.ridge import NEGLIGIBLE, SHARES
from .arrays import Backend, DeviceArray
from .lockstep import BatchedSolutions


def ridge(arrays: Backend, K: DeviceArray, y: DeviceArray, cost: DeviceArray, share: float | None) -> BatchedSolutions:
    """Kernel ridge regression on kernel matrices K (F, m, m), y and cost (F, m); penalty = share * trace.

    Without a share leave-one-out chooses it, for each problem. The violation is the largest cost (y - f) - penalty c
    in units of the largest cost |y - mean|.
    """
    xp = arrays.xp
    mean, root = cost / cost.sum(1)[:, None], xp.sqrt(cost)
    centre = (mean * y).sum(1)
    away = y - centre[:, None]
    z = root * away
    by_row = xp.einsum("fij,fj->fi", K, mean)
    middle = (mean * by_row).sum(1)
    centred = (
        (K - by_row[:, :, None] - by_row[:, None, :] + middle[:, None, None]) * root[:, :, None] * root[:, None, :]
    )
    trace = xp.einsum("fii->f", centred)
    varies = xp.where(trace > 0, 1.0, 0.0)
    trace = xp.where(trace > 0, trace, 1.0)
    if share is None:
        d, penalty = _by_leave_one_out(arrays, centred, z, cost, trace)
    else:
        penalty = share * trace
        factors = arrays.factors(arrays.with_diagonal(centred, penalty[:, None] + 0.0 * z))
        d = arrays.solve(factors, z[:, :, None])[:, :, 0]
    coef = root * d * varies[:, None]
    values = xp.einsum("fij,fj->fi", K, coef)
    intercept = centre - (mean * values).sum(1)
    slack = y - values - intercept[:, None]
    objective = (cost * slack**2).sum(1) + penalty * (coef * values).sum(1)
    unit = xp.amax(xp.abs(cost * away), 1)
    wrong = xp.amax(xp.abs(cost * slack - penalty[:, None] * coef), 1) * varies
    return BatchedSolutions(coef, intercept, objective, wrong / xp.where(unit > 0, unit, 1.0))


def _by_leave_one_out(
    arrays: Backend, centred: DeviceArray, z: DeviceArray, cost: DeviceArray, trace: DeviceArray
) -> tuple[DeviceArray, DeviceArray]:
    """(A + penalty)^-1 z, and the penalties whose leave-one-out values have the smallest squared errors."""
    xp = arrays.xp
    energy, directions = xp.linalg.eigh(centred)
    known = xp.where(energy > NEGLIGIBLE * xp.amax(energy, 1)[:, None], 1.0, 0.0)
    energy, along = energy * known, known * xp.einsum("fij,fi->fj", directions, z)
    squares, share_of_rows = directions**2, cost / cost.sum(1)[:, None]
    used = xp.where(cost > 0, 1.0, 0.0)
    # A row of weight 2 is two rows, of which one is left out; weights that are no counts are those of the mean row.
    whole = xp.amax(xp.abs(cost - xp.round(cost)), 1) == 0
    scaled = cost * (used.sum(1) / cost.sum(1))[:, None]
    counts = xp.where(used > 0, xp.where(whole[:, None], cost, scaled), 1.0)
    least, best = None, None
    for share in SHARES:
        shrink = energy / (energy + share * trace[:, None])
        leverage = 1.0 - (share_of_rows + xp.einsum("fij,fj->fi", squares, shrink)) / counts
        left = z - xp.einsum("fij,fj->fi", directions, shrink * along)
        error = ((left / xp.where(leverage > 1e-6, leverage, 1e-6)) ** 2).sum(1)
        if least is None:
            least, best = error, share + 0.0 * error
        else:
            best = xp.where(error < least, share, best)
            least = xp.where(error < least, error, least)
    penalty = best * trace
    inside = along / (energy + penalty[:, None])
    outside = z - xp.einsum("fij,fj->fi", directions, along)
    return xp.einsum("fij,fj->fi", directions, inside) + outside / penalty[:, None], penalty
