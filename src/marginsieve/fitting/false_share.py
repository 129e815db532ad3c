"""How many features of a list are false: strengths in halves of the rows, against the same with shuffled labels.

The rows are split into complementary halves many times. A feature's score is the share of halves in which it is among
the first k, averaged over several k. The same with shuffled labels says how many features reach a score by chance::

    q_j = min over t <= score_j of  [(1 + number of null scores >= t) / shuffles] / number of scores >= t

q_j is the estimated share of false features in the list of all features that score as well as j.

Who is first may be said by a method's own search, run in each half (`false_share`), or in closed form by the weights of
ridge regression (`ridge_false_share`), for which one factoring of a half serves all labellings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from joblib import delayed

from ..contracts import Array, BoolArray, IntArray, Path
from ..outcomes.target import draw_share
from ..solvers.execution import jit, one_thread, parallel
from .batched_searches import TrainingPart, rank_batched
from .evidence import MOST_ROWS, numeric_columns
from .held_out import run_search, run_searches
from .procedure import Fitted, constant_and_equal, groups_of, rows_of_fit, seed_sequence
from .rows import Rows
from .settings import AnyPlan, CommonSettings, Plan
from .training import varying_columns
from .view_averaging import BlendPlan, JointPlaces

FEWEST_PAIRS, FEWEST_SHUFFLES = 10, 20  # where a method's own search is run on the halves
RIDGE_PAIRS, RIDGE_SHUFFLES = 50, 200
PENALTY = 1.0  # of ridge regression on a half, in mean squared lengths of its rows
FEWEST_COLUMNS = 50  # of a study's table whose lists are described by halves
SMALLEST_VARIANCE = 1e-12  # in a half, of a column with variance 1; and of an outcome of length 1
MOST_CELLS, LONGEST = 10_000_000, 20_000  # rows times columns, and rows, that the closed form is made of
PRODUCT = 20_000_000  # weights that are made at a time
SIZES = 8
SMALLEST = 5  # the first of the sizes
LARGEST = 0.1  # the last of them, as a share of the columns


@dataclass(frozen=True)
class FalseShare:
    """Scores and q-values of the features, and how they were got.

    Attributes
    ----------
    score : array of shape (n,)
        Share of the halves in which a feature is among the first k, averaged over `sizes`; in closed form among the
        first k of a labelling by chance.
    q : array of shape (n,)
        Estimated share of false features among those that score as well or better, at most 1.
    null : array of shape (shuffles * n,)
        Scores with shuffled labels, sorted.
    pairs, shuffles : int
        Number of pairs of halves, and of shuffles of the labels.
    sizes : tuple of int
        The values of k.
    """

    score: Array
    q: Array
    null: Array
    pairs: int
    shuffles: int
    sizes: tuple[int, ...]

    def of_list(self, chosen: BoolArray) -> float:
        """The estimated share of false features in any list, at most 1.

        The least over t of [(1 + number of null scores >= t) / shuffles + features of the list below t] / its length:
        what chance brings above t, and everything below.
        """
        listed = np.sort(self.score[chosen])
        if not len(listed):
            return 0.0
        by_chance = (1.0 + len(self.null) - np.searchsorted(self.null, listed - 1e-12)) / self.shuffles
        below = np.searchsorted(listed, listed - 1e-12)
        return float(min((by_chance + below).min() / len(listed), 1.0))


def false_share(
    plan: AnyPlan, part: Rows, pairs: int, shuffles: int, seed: np.random.SeedSequence, n_jobs: int | None
) -> FalseShare:
    """The q-values of all features of a part, for a plan that is run on halves of its rows."""
    part = replace(part, target=part.target.with_settings(plan.outcome))
    sizes = list_sizes(part.table.shape[1])
    children = seed.spawn(shuffles + 1)
    in_step = _batch_scores(plan, part, pairs, sizes, children)
    if in_step is not None:
        flat = np.sort(np.concatenate(in_step[1:]))
        return FalseShare(in_step[0], q_values(in_step[0], flat, shuffles), flat, pairs, shuffles, sizes)
    tasks = (delayed(_scores)(plan, part, k > 0, pairs, sizes, child) for k, child in enumerate(children))
    score, *null = parallel(n_jobs)(tasks)
    flat = np.sort(np.concatenate(null))
    return FalseShare(score, q_values(score, flat, shuffles), flat, pairs, shuffles, sizes)


def fit_list(
    settings: CommonSettings,
    encoded: Rows,
    seed: np.random.SeedSequence | None,
    plan: AnyPlan,
    fit_all: Callable[[Rows, np.random.SeedSequence], Fitted],
) -> Fitted:
    """The longest list whose estimated share of false features is at most `false_share`, and the machine on it.

    Features to keep come first and are in the list whatever their score. Where no list keeps the share, the feature
    with the best score is taken, with a note. `fit_all` fits the same selector on every column that it is given.
    """
    assert settings.false_share is not None
    seeds = seed_sequence(settings.random_state) if seed is None else seed
    rows = rows_of_fit(settings, encoded, np.random.default_rng(seeds), plan)
    known = false_share(plan, rows.sample_part, FEWEST_PAIRS, FEWEST_SHUFFLES, seeds.spawn(1)[0], settings.n_jobs)
    kept = _kept_features(plan, rows.sample_part)
    first = ~np.isin(np.arange(len(known.score)), kept)
    order = np.lexsort((-known.score, first)).astype(np.intp)
    count = int(np.count_nonzero((known.q <= settings.false_share + 1e-12) & first)) + len(kept)
    notes = [] if count else [f"no list keeps a false share of {settings.false_share:g}: the best feature is taken"]
    columns = np.sort(order[: max(count, 1)])
    few = encoded.columns(columns)
    fitted = fit_all(few, seeds)
    path = Path(
        order, known.score, (), "features by how often they lead in halves of the rows", n_selected=len(columns)
    )
    constant, duplicates = constant_and_equal(encoded.schema, rows.sample_part)
    model = fitted.model.in_wider_table(columns)
    whole = replace(fitted, plan=plan, schema=encoded.schema, model=model, path=path, constant=constant)
    groups = groups_of(settings.similar, whole, constant, rows.sample_part)
    texts = (*notes, *fitted.notes)
    return replace(whole, duplicates=duplicates, groups=groups, notes=texts)


def ridge_false_share(part: Rows, seed: np.random.SeedSequence, n_jobs: int | None) -> FalseShare:
    """The q-values of all features of a part, by the weights of ridge regression in halves of its rows.

    ::

        W = Y (X X' + penalty I)^(-1) X,    X (h, d) standardised in the half, Y the outcome and its permutations

    A feature's strength is its weight for residuals of length 1, of a category the norm over its levels. It is among
    the first k in a half where it is as strong as k features of a permutation are on average: not the first k of its
    own labelling, of which no more than k could be found however many there are.

    Halves are drawn without regard to the outcome. If each had its share of a rare class, and a part of a permutation
    had not, the outcome's own scores would be steadier than those of permutations.
    """
    rng = np.random.default_rng(seed)
    n = part.table.shape[1]
    part = part.with_sample(rows_of_ridge(len(part), n), rng, most=None).sample_part
    target, sizes = part.target, list_sizes(n)
    X, owner, features = numeric_columns(part)
    order = np.vstack([np.arange(len(part))[None], target.permutations(RIDGE_SHUFFLES, rng)])
    outcomes = np.moveaxis(target.association()[:, order], 1, 0)  # (1 + shuffles, k, m)
    sides = []
    for _ in range(RIDGE_PAIRS):
        half = draw_share(np.zeros(len(part), dtype=np.intp), target.groups, 0.5, rng, at_least=1, leave=1)
        sides += [np.flatnonzero(half), np.flatnonzero(~half)]
    few = np.array_split(np.arange(len(sides)), 10)
    tasks = (delayed(_ridge_counts)(X, owner, outcomes, [sides[k] for k in some], sizes) for some in few)
    scores = np.zeros((1 + RIDGE_SHUFFLES, n))
    scores[:, features] = sum(parallel(n_jobs)(tasks)) / (len(sides) * len(sizes))
    flat = np.sort(scores[1:].ravel())
    q = q_values(scores[0], flat, RIDGE_SHUFFLES)
    return FalseShare(scores[0], q, flat, RIDGE_PAIRS, RIDGE_SHUFFLES, sizes)


def rows_of_ridge(m: int, n: int) -> int:
    """How many of the rows of a table the halves are made of."""
    return min(m, int(np.clip(MOST_CELLS / n, MOST_ROWS, LONGEST)))


def _ridge_counts(X: Array, owner: IntArray, outcomes: Array, sides: Sequence[IntArray], sizes: Sequence[int]) -> Array:
    """(labellings, features): in how many sides and sizes a feature is among the first; 0 is never."""
    first = np.searchsorted(owner, np.arange(owner[-1] + 1))
    counts = np.zeros((len(outcomes), len(first)))
    last = (len(outcomes) - 1) * np.minimum(np.array(sizes, dtype=np.intp), len(first))  # of the null strengths
    with one_thread():
        for rows in sides:
            half = X[rows] - X[rows].mean(axis=0)
            variance = np.add.reduceat((half**2).mean(axis=0), first)
            half = half / np.sqrt(np.where(variance > SMALLEST_VARIANCE, variance, np.inf))[owner]
            strength = ridge_strengths(half, outcomes[:, :, rows])
            if len(owner) > len(first):
                strength = np.add.reduceat(strength, first, axis=1)
            null = strength[1:].ravel()
            _count_first(strength, np.sort(np.partition(null, len(null) - last)[len(null) - last]), counts)
    return counts


def ridge_strengths(X: Array, Y: Array) -> Array:
    """(B, d) the squared weights of columns, for residuals of length 1; X (h, d), Y (B, k, h).

    Of several problems, w_j' (R R')^(-1) w_j with the weights w_j (k,) of a column and the residuals R (k, h): the same
    for every basis of what the problems span.
    """
    (B, k, h), d = Y.shape, X.shape[1]
    Y = Y - Y.mean(axis=2, keepdims=True)
    Y = np.where((Y**2).sum(axis=2, keepdims=True) > SMALLEST_VARIANCE, Y, 0.0)
    out = np.empty((B, d))
    for some in np.array_split(np.arange(B), min(B, -(-B * k * d // PRODUCT))):
        W, R = ridge_weights(X, Y[some].reshape(-1, h))
        W, R = W.reshape(len(some), k, d), R.reshape(len(some), k, h)
        inverse = np.linalg.pinv(R @ np.swapaxes(R, 1, 2), rcond=1e-9, hermitian=True)
        out[some] = (W * (inverse @ W)).sum(axis=1)
    return out


def ridge_weights(X: Array, Y: Array) -> tuple[Array, Array]:
    """(k, d), (k, h): the weights Y (X X' + penalty I)^(-1) X for X (h, d) and Y (k, h), both centred, and residuals.

    The smaller of X X' and X'X is factored.
    """
    h, d = X.shape
    penalty = max(PENALTY * float((X**2).sum()) / h, 1e-300)
    if d < h:
        weights = np.asarray(np.linalg.solve(X.T @ X + penalty * np.eye(d), (Y @ X).T).T)
        return weights, Y - weights @ X.T
    dual = np.asarray(np.linalg.solve(X @ X.T + penalty * np.eye(h), Y.T).T)
    return dual @ X, penalty * dual


@jit
def _count_first(strength: Array, least: Array, counts: Array) -> None:
    """Add to counts (B, n) how many of the ascending least strengths each strength reaches; one of 0 reaches none."""
    for row in range(strength.shape[0]):
        for j in range(strength.shape[1]):
            if strength[row, j] > 0.0:
                for k in range(len(least)):
                    if strength[row, j] < least[k]:
                        break
                    counts[row, j] += 1.0


def _kept_features(plan: AnyPlan, part: Rows) -> IntArray:
    """The features that are always selected, where they vary."""
    if isinstance(plan, Plan):
        kept = np.array(plan.keep, dtype=np.intp)
    else:
        assert isinstance(plan, BlendPlan)
        kept = np.concatenate([view.columns[list(view.plan.keep)] for view in plan.views]).astype(np.intp)
    return np.intersect1d(kept, np.flatnonzero(varying_columns(part.table)))


def list_sizes(n: int) -> tuple[int, ...]:
    """About eight sizes from 5 to a tenth of the columns, evenly spaced in the logarithm."""
    low = max(1, min(SMALLEST, n // 4))
    high = max(low, round(LARGEST * n))
    return tuple(sorted({round(size) for size in np.geomspace(low, high, SIZES)}))


def q_values(score: Array, null: Array, shuffles: int) -> Array:
    """(n,) from the scores and the sorted scores with shuffled labels."""
    order = np.argsort(-score, kind="stable")
    ranked = score[order]
    as_high = np.searchsorted(-ranked, -ranked + 1e-12, side="right")  # features that score as well
    by_chance = len(null) - np.searchsorted(null, ranked - 1e-12)
    ratio = (1.0 + by_chance) / shuffles / as_high
    q = np.empty(len(score))
    q[order] = np.minimum(np.minimum.accumulate(ratio[::-1])[::-1], 1.0)
    return q


def _scores(
    plan: AnyPlan, part: Rows, shuffled: bool, pairs: int, sizes: Sequence[int], seed: np.random.SeedSequence
) -> Array:
    """(n,) the mean over halves and sizes of being among the first."""
    rng = np.random.default_rng(seed)
    if shuffled:
        part = replace(part, target=part.target.shuffle(rng))
    total = np.zeros(part.table.shape[1])
    with one_thread():
        for _ in range(pairs):
            half = part.target.draw(0.5, rng, at_least=1, leave=1)
            for side in (half, ~half):
                place = places(plan, part.take(np.flatnonzero(side)), rng)
                total += np.mean([place < size for size in sizes], axis=0)
    return np.asarray(total / (2 * pairs))


def _batch_scores(
    plan: AnyPlan, part: Rows, pairs: int, sizes: Sequence[int], seeds: Sequence[np.random.SeedSequence]
) -> list[Array] | None:
    """`_scores` of every seed, the first of them without shuffling, in batches on a device; None: for the CPU."""
    jobs, n = [], part.table.shape[1]
    views = [(plan, np.arange(n))] if isinstance(plan, Plan) else []
    if isinstance(plan, BlendPlan):
        views = [(view.plan, view.columns) for view in plan.views]
    if any(view_plan.device == "cpu" for view_plan, _ in views):
        return None
    for k, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        target = part.target.shuffle(rng) if k else part.target
        for _ in range(pairs):
            half = target.draw(0.5, rng, at_least=1, leave=1)
            jobs += [TrainingPart(np.flatnonzero(side), np.empty(0, dtype=np.intp), target) for side in (half, ~half)]
    if not all(job.target.take(job.train).complete for job in jobs):
        return None
    rankings = []
    for view_plan, columns in views:
        table = part.table if len(columns) == n else part.table.columns(columns)
        in_step = rank_batched(replace(view_plan, ensemble=None, keep=()), table, jobs, ())
        if in_step is None:
            return None
        rankings.append([(columns, of_job.order, np.sort(of_job.order[: of_job.usable])) for of_job in in_step])
    totals = [np.zeros(n) for _ in seeds]
    for k in range(len(jobs)):
        place = np.full(n, np.inf)
        columns, order, usable = rankings[0][k]
        if isinstance(plan, Plan):
            place[order[: len(usable)]] = np.arange(len(usable))
        else:
            place = _joint([some[k] for some in rankings], n)
        totals[k // (2 * pairs)] += np.mean([place < size for size in sizes], axis=0)
    return [np.asarray(total / (2 * pairs)) for total in totals]


def _joint(rankings: Sequence[tuple[IntArray, IntArray, IntArray]], n: int) -> Array:
    """(n,) the place of each feature in the joint ranking of several views; inf where it does not vary."""
    joint, place = JointPlaces.from_rankings(n, rankings), np.empty(n)
    place[np.lexsort((joint.first, joint.mean, joint.best, ~joint.varies))] = np.arange(n)
    place[~joint.varies] = np.inf
    return place


def places(plan: AnyPlan, part: Rows, rng: np.random.Generator) -> Array:
    """(n,) the place of each feature in the ranking of these rows, 0 is the best; inf where a feature does not vary."""
    n = part.table.shape[1]
    place = np.full(n, np.inf)
    if not part.target.complete:
        return place
    if isinstance(plan, Plan):
        searched = run_search(replace(plan, ensemble=None, keep=()), part, rng)
        seen = searched.path.order[: len(searched.ready.usable)]  # those that do not vary come last
        place[seen] = np.arange(len(seen))
        return place
    assert isinstance(plan, BlendPlan)
    searches = run_searches(((replace(view.plan, ensemble=None, keep=()), view.part(part)) for view in plan.views), rng)
    rankings = [
        (v.columns, searched.path.order, searched.ready.usable)
        for v, searched in zip(plan.views, searches, strict=True)
    ]
    return _joint(rankings, n)
