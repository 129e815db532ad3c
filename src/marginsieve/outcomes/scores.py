"""Scores of decision values and predictions against classes, for weighted samples; where values are cut.

The AUC is here twice: `area_and_gap` is compiled, for searches and filters that come with another order each time; that
of `linearise_scores` has the `influence` (m,) of each row, what it adds to a score, so that the variance of a score is
a sum of squares.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import numpy as np
from scipy import optimize, special

from ..contracts import Array, BoolArray, IntArray, Predictions, Score, ScoreInfo
from ..solvers.execution import jit


@jit
def area_and_gap(value: Array, order: IntArray, positive: Array, negative: Array) -> tuple[float, float]:
    """AUC of values (m,) in ascending `order`, and the largest distance of the classes' distribution functions.

    `positive` and `negative` are the samples' weights in the two classes; ties count half.
    """
    P, N, m = positive.sum(), negative.sum(), value.shape[0]
    below, passed, won, gap, start = 0.0, 0.0, 0.0, 0.0, 0
    while start < m:
        end, plus, minus = start, 0.0, 0.0
        while end < m and value[order[end]] == value[order[start]]:
            plus += positive[order[end]]
            minus += negative[order[end]]
            end += 1
        won += plus * (below + 0.5 * minus)
        below, passed, start = below + minus, passed + plus, end
        gap = max(gap, abs(passed / P - below / N))
    return won / (P * N), gap


def ranking_aucs(values: Array, positive: BoolArray, weight: Array) -> Array:
    """(S,) the AUC of each row of values (S, m); nan where a class is missing."""
    if positive.all() or not positive.any():
        return np.full(len(values), np.nan)
    plus = np.where(positive, weight, 0.0)
    return _aucs(values, np.argsort(values, axis=1, kind="stable"), plus[None, :], (weight - plus)[None, :])


def labelled_aucs(values: Array, positive: BoolArray) -> Array:
    """(B,) the AUC of each row of values (B, m) by labels of its own."""
    plus = positive.astype(np.float64)
    return _aucs(values, np.argsort(values, axis=1), plus, 1.0 - plus)


def _aucs(values: Array, order: IntArray, positive: Array, negative: Array) -> Array:
    """(B,) the AUC of each row of values (B, m), with the classes' weights in the same row, or in the only one."""
    out = np.empty(len(values))
    _fill_aucs(np.ascontiguousarray(values), order, positive, negative, out)
    return out


@jit
def _fill_aucs(values: Array, order: IntArray, positive: Array, negative: Array, out: Array) -> None:
    """The AUC of each row, into out (B,)."""
    for row in range(values.shape[0]):
        labels = row if positive.shape[0] > 1 else 0
        out[row] = area_and_gap(values[row], order[row], positive[labels], negative[labels])[0]


def balanced_accuracy(right: Array | BoolArray, codes: IntArray, weight: Array) -> float:
    """The mean over the classes that have weight of the share of it that is called right; a row may count in part."""
    mass = np.bincount(codes, weight)
    hits = np.bincount(codes, weight * right)
    return float(np.mean(hits[mass > 0] / mass[mass > 0]))


# -- scores of predicted classes, linearised --------------------------------------------------------------------------

# Factors of intervals and of differences were measured on simulated tables: benchmarks/coverage.md. Above is more than
# below, since models on a part of the rows score lower than the one on all.
CLASS_METRICS = {
    "balanced_accuracy": ScoreInfo(
        "balanced accuracy",
        chance=0.5,
        compared=True,
        listed=True,
        factors=(0.93, 1.35, 0.0, 0.0),
        difference=(0.95, 0.95, 0.04, 0.04),
    ),
    "sensitivity": ScoreInfo("sensitivity"),
    "specificity": ScoreInfo("specificity"),
    "g_mean": ScoreInfo("G-mean"),
    "auc": ScoreInfo(
        "ranking AUC",
        chance=0.5,
        short="AUC",
        compared=True,
        listed=True,
        factors=(0.95, 1.55, 0.02, 0.0),
        difference=(0.95, 0.95, 0.06, 0.06),
    ),
    "auc_rest": ScoreInfo("AUC, one class against the rest", chance=0.5, short="AUC against the rest", compared=True),
    "auc_pairs": ScoreInfo("AUC, pairs of classes", chance=0.5, short="AUC of pairs"),
    "pr_auc": ScoreInfo(
        "PR-AUC",
        compared=True,
        factors=(1.0, 1.55, 0.01, 0.04),
        difference=(1.36, 1.36, 0.0, 0.0),
        varies_with_mix=True,
    ),
    "accuracy": ScoreInfo(
        "accuracy",
        compared=True,
        factors=(0.95, 1.55, 0.03, 0.0),
        difference=(1.05, 1.05, 0.03, 0.03),
        varies_with_mix=True,
    ),
    "brier": ScoreInfo(
        "Brier score",
        scale="log",
        factors=(2.0, 1.25, 0.03, 0.0),
        difference=(1.62, 1.62, 0.0, 0.0),
        share=False,
        higher_is_better=False,
        varies_with_mix=True,
    ),
    "ppv": ScoreInfo("positive predictive value", short="PPV", varies_with_mix=True),
    "npv": ScoreInfo("negative predictive value", short="NPV", varies_with_mix=True),
    "net_benefit": ScoreInfo("net benefit at the cut", short="net benefit", scale="plain", varies_with_mix=True),
    "calibration_slope": ScoreInfo(
        "calibration slope", scale="plain", factors=(1.35, 1.7, 0.0, 0.0), share=False, fewest_errors=2.0
    ),
    "calibration_intercept": ScoreInfo("calibration intercept", scale="plain", share=False, varies_with_mix=True),
}
#: what each metric is called, in words
METRICS = {name: metric.title for name, metric in CLASS_METRICS.items()}


def rooms_of(value: Mapping[str, float], truth: IntArray, positive: int) -> dict[str, float]:
    """For each metric 4 u (1 - u), u from 0 at chance to 1 at no error: where training rows matter most."""
    rate, chance = float(np.mean(truth == positive)), 1.0 / len(np.unique(truth))
    level = dict.fromkeys(value, (value["balanced_accuracy"] - chance) / (1.0 - chance))
    if "auc" in value:
        level |= {"auc": 2.0 * value["auc"] - 1.0, "pr_auc": (value["pr_auc"] - rate) / (1.0 - rate)}
    if "brier" in value:
        level["brier"] = 1.0 - value["brier"] / (rate * (1.0 - rate))
    return {name: 4.0 * (u := float(np.clip(share, 0.0, 1.0))) * (1.0 - u) for name, share in level.items()}


def linearise_scores(truth: IntArray, predictions: Predictions, positive: int) -> dict[str, Score]:
    """Each metric of a pass, and what each row adds to it (m,), of mean 0 in each class."""
    codes, right = np.unique(truth), (predictions.predicted == truth).astype(float)
    side = {int(code): truth == code for code in codes}
    recall = {code: float(right[rows].mean()) for code, rows in side.items()}
    added = {code: rows * (right - recall[code]) / rows.sum() for code, rows in side.items()}
    out = {"balanced_accuracy": (float(np.mean(list(recall.values()))), np.mean(list(added.values()), axis=0))}
    if predictions.decision is not None and len(codes) == 2:
        negative = next(code for code in side if code != positive)
        out["sensitivity"] = recall[positive], added[positive]
        out["specificity"] = recall[negative], added[negative]
        out["g_mean"] = _g_mean(recall[positive], recall[negative], added[positive], added[negative])
        hit, unit = side[positive], 1.0 if predictions.unit is None else predictions.unit
        fold = np.zeros(len(truth), dtype=np.intp) if predictions.fold is None else predictions.fold
        out["auc"] = _auc(predictions.decision, hit, fold)
        out["pr_auc"] = _average_precision(predictions.decision / unit, hit)
        if predictions.probability is not None:
            wrong = (predictions.probability - hit) ** 2
            out["brier"] = float(wrong.mean()), _by_class((wrong - wrong.mean()) / len(truth), side.values())
            out |= _calibration(log_odds(predictions.probability), hit)
            odds = _odds_at_cut(predictions.decision, log_odds(predictions.probability), fold)
            gain = (predictions.predicted == positive) * np.where(hit, 1.0, -odds)
            out["net_benefit"] = float(gain.mean()), _by_class((gain - gain.mean()) / len(truth), side.values())
        for name, code in (("ppv", positive), ("npv", negative)):
            called = predictions.predicted == code
            if called.any():  # of none called so there is no share
                value = float(side[code][called].mean())
                out[name] = value, _by_class(called * (side[code] - value) / called.sum(), side.values())
    if predictions.values is not None and len(codes) > 2:
        fold = np.zeros(len(truth), dtype=np.intp) if predictions.fold is None else predictions.fold
        rest, pairs = areas_by_class(predictions.values, truth, fold), areas_by_pair(predictions.values, truth, fold)
        for name, areas in (("auc_rest", rest), ("auc_pairs", pairs)):
            values, influences = zip(*areas.values(), strict=True)
            out[name] = float(np.mean(values)), _by_class(np.mean(influences, axis=0), side.values())
    share = {code: float(rows.mean()) for code, rows in side.items()}
    out["accuracy"] = float(right.mean()), np.sum([share[code] * added[code] for code in side], axis=0)
    return {name: Score(*pair) for name, pair in out.items()}


def areas_by_class(values: Array, truth: IntArray, fold: IntArray) -> dict[int, tuple[float, Array]]:
    """For each class the AUC of its values (m,) against all other rows, and what each row adds to it."""
    return {int(code): _auc(values[:, code], truth == code, fold) for code in np.unique(truth)}


def areas_by_pair(values: Array, truth: IntArray, fold: IntArray) -> dict[tuple[int, int], tuple[float, Array]]:
    """For each pair of classes the mean AUC of their rows by the values of either (Hand and Till, 2001)."""
    out = {}
    for a, b in itertools.combinations(np.unique(truth).tolist(), 2):
        rows = np.flatnonzero((truth == a) | (truth == b))
        known = [_auc(values[rows, code], truth[rows] == code, fold[rows]) for code in (a, b)]
        influence = np.zeros(len(truth))
        influence[rows] = np.mean([added for _, added in known], axis=0)
        out[a, b] = float(np.mean([value for value, _ in known])), influence
    return out


def _by_class(influence: Array, sides: Iterable[BoolArray]) -> Array:
    """The same, less its mean in each class: classes have as many samples in every table of this mix."""
    out = influence.copy()
    for rows in sides:
        out[rows] -= out[rows].mean()
    return out


def _g_mean(ours: float, others: float, added: Array, added_by_others: Array) -> tuple[float, Array]:
    value = float(np.sqrt(ours * others))
    slope = 0.5 / max(value, 1e-12)
    return value, np.asarray(slope * (others * added + ours * added_by_others))


def _auc(decision: Array, positive: BoolArray, fold: IntArray) -> tuple[float, Array]:
    """Over pairs within a fold: values of two models have no common scale. Of all pairs where no fold has one."""
    folds = [rows for k in np.unique(fold) if 0 < positive[rows := np.flatnonzero(fold == k)].sum() < len(rows)]
    folds = folds or [np.arange(len(decision))]
    won, pairs, against = np.zeros(len(decision)), 0.0, np.zeros(len(decision))
    for rows in folds:
        hit = positive[rows]
        ours, others = decision[rows][hit], decision[rows][~hit]
        won[rows[hit]], won[rows[~hit]] = _count_below(ours, others), _count_below(-others, -ours)
        against[rows[hit]], against[rows[~hit]] = (~hit).sum(), hit.sum()
        pairs += float(len(ours)) * len(others)
    value = float(won[positive].sum() / pairs)
    return value, _by_class((won - value * against) / pairs, (positive, ~positive))


def _count_below(values: Array, others: Array) -> Array:
    """(len(values),) how many of the others are below each value; equal ones count half."""
    ordered = np.sort(others)
    return np.asarray(0.5 * sum(np.searchsorted(ordered, values, side=side) for side in ("left", "right")))


def auc_variance(area: float, positives: int, others: int) -> float:
    """The variance of an AUC of this size on so many rows of each class (Hanley and McNeil, 1982)."""
    by_one, by_two = area / (2.0 - area), 2.0 * area * area / (1.0 + area)
    spread = area * (1.0 - area) + (positives - 1) * (by_one - area * area)
    spread += (others - 1) * (by_two - area * area)
    return float(spread / max(positives * others, 1))


def _average_precision(decision: Array, positive: BoolArray) -> tuple[float, Array]:
    """Area under the precision-recall steps."""
    order = np.argsort(-decision, kind="stable")
    value, hit = decision[order], positive[order]
    last = np.searchsorted(-value, -value, side="right") - 1  # of equal values all count
    hits, all_ = np.cumsum(hit)[last].astype(float), (last + 1).astype(float)
    count = float(hit.sum())
    area = float((hits / all_)[hit].sum() / count)
    first = np.searchsorted(-value, -value, side="left")

    def sum_below(part: Array) -> Array:
        """Sum over the positives at or below each value."""
        total = np.cumsum((part * hit)[::-1])[::-1]
        return total[first]

    grown = np.where(
        hit, (hits / all_ - area + sum_below((all_ - hits) / all_**2)) / count, -sum_below(hits / all_**2) / count
    )
    influence = np.empty(len(value))
    influence[order] = grown
    return area, _by_class(influence, (positive, ~positive))


MOST_LEVERAGE = 0.5  # of a row on its own value
MOST_STEPS = 200  # of Fisher's scoring, halved ones too
MOST_ODDS = 30.0  # of log odds: a probability of 0 or 1 has none


def log_odds(probability: Array) -> Array:
    """log(p / (1 - p)), within +-30."""
    low = special.expit(-MOST_ODDS)
    return np.asarray(special.logit(np.clip(probability, low, 1.0 - low)))


def fit_calibration(z: Array, positive: BoolArray, prior: tuple[float, float] | None = None) -> tuple[float, float]:
    """(a, b) of P(positive) = 1 / (1 + exp(-(a + b z))) by likelihood.

    `prior` is the mean and the variance of a normal prior of b, of variance 0 where b is given; without one the
    likelihood has Jeffreys' prior (Firth), so that it has a maximum where z tells the classes apart. The maximum is
    looked for on standardised z, where no step is long.
    """
    mean, unit = float(z.mean()), float(z.std())
    if prior is not None and prior[1] == 0.0:
        return _fit_intercept(z * prior[0], positive), prior[0]
    if unit < 1e-9:
        return _fit_intercept(z, positive), 1.0
    x = np.column_stack([np.ones(len(z)), (z - mean) / unit])

    share = (positive.sum() + 0.5) / (len(z) + 1.0)
    theta = np.array([special.logit(share), 0.0])
    loss, step = _penalise(x, positive, theta, unit, prior)
    for _ in range(MOST_STEPS):
        if float(np.abs(step).max()) < 1e-9:
            break
        new_loss, new_step = _penalise(x, positive, theta + step, unit, prior)
        if new_loss <= loss + 1e-12 * abs(loss):
            theta, loss, step = theta + step, new_loss, new_step
        else:
            step = 0.5 * step
    intercept, slope = theta
    return float(intercept - slope * mean / unit), float(slope / unit)


def _penalise(
    x: Array, positive: BoolArray, theta: Array, unit: float, prior: tuple[float, float] | None
) -> tuple[float, Array]:
    """Minus the penalised log likelihood of standardised rows x (m, 2), and the step of Fisher's scoring."""
    t = x @ theta
    p = special.expit(t)
    mass = p * (1.0 - p)
    information = (x * mass[:, None]).T @ x + 1e-12 * np.eye(2)
    loss, residual = float(np.logaddexp(0.0, t).sum() - t[positive].sum()), positive - p
    if prior is None:
        inverse = np.linalg.inv(information)
        residual = residual + mass * np.einsum("ij,jk,ik->i", x, inverse, x) * (0.5 - p)
        return loss - 0.5 * float(np.linalg.slogdet(information)[1]), inverse @ (x.T @ residual)
    away, gradient = theta[1] / unit - prior[0], x.T @ residual
    gradient[1] -= away / prior[1] / unit
    information[1, 1] += 1.0 / prior[1] / unit**2
    return loss + 0.5 * float(away) ** 2 / prior[1], np.asarray(
        np.linalg.solve(information, gradient), dtype=np.float64
    )


def _fit_intercept(z: Array, positive: BoolArray) -> float:
    """a of P(positive) = 1 / (1 + exp(-(a + z))), half a row of each class added; the likelihood is concave in it."""
    count, m = float(positive.sum()), len(z)

    def excess(a: float) -> float:
        return float(special.expit(a + z).sum()) - count + special.expit(a + float(z.mean())) - 0.5

    reach = float(np.abs(z).max()) + np.log(4.0 * m + 4.0)
    return float(optimize.brentq(excess, -reach - 5.0, reach + 5.0))


def _calibration(z: Array, positive: BoolArray) -> dict[str, tuple[float, Array]]:
    """The slope of the outcomes in the log odds z, and their intercept where the slope is 1; no slope of one value."""
    sides, out = (positive, ~positive), dict[str, tuple[float, Array]]()
    intercept, _ = fit_calibration(z, positive, prior=(1.0, 0.0))
    p = special.expit(intercept + z)
    if np.ptp(z) > 1e-9:
        theta = fit_calibration(z, positive)
        x = np.column_stack([np.ones(len(z)), z])
        fit = special.expit(x @ theta)
        mass = fit * (1.0 - fit)
        information = (x * mass[:, None]).T @ x
        inverse = np.linalg.inv(information + 1e-12 * np.trace(information) * np.eye(2))
        leverage = np.minimum(mass * np.einsum("ij,jk,ik->i", x, inverse, x), MOST_LEVERAGE)
        added = inverse @ (x * ((positive - fit) / (1.0 - leverage))[:, None]).T  # as the fit without the row
        out["calibration_slope"] = theta[1], _by_class(added[1], sides)
    out["calibration_intercept"] = intercept, _by_class((positive - p) / max(float(p @ (1.0 - p)), 1e-12), sides)
    return out


def _odds_at_cut(decision: Array, z: Array, fold: IntArray) -> Array:
    """(m,) the odds that the probability has where a row's decision value is cut; z are the log odds, linear in it."""
    out = np.empty(len(z))
    for k in np.unique(fold):
        rows = fold == k
        value, inside = decision[rows], np.abs(z[rows]) < MOST_ODDS - 1.0
        at = 0.0
        if inside.sum() > 1 and np.ptp(value[inside]) > 0:
            f, odds = value[inside], z[rows][inside]
            slope = float((f - f.mean()) @ (odds - odds.mean()) / ((f - f.mean()) ** 2).sum())
            at = float(odds.mean() - slope * f.mean())
        out[rows] = np.exp(np.clip(at, -MOST_ODDS, MOST_ODDS))
    return out


# -- thresholds and probabilities -------------------------------------------------------------------------------------


def balanced_threshold(value: Array, label: Array, weight: Array) -> float:
    """Halfway between the medians of the two classes' decision values; label (rows,) in {-1, +1}."""
    return 0.5 * sum(_median(value[label == side], weight[label == side]) for side in (1.0, -1.0))


def cost_threshold(value: Array, label: Array, weight: Array, false_positive: float, false_negative: float) -> float:
    """The cut that makes fp * (false positives) + fn * (false negatives) smallest, midway between two values."""
    order = np.argsort(value, kind="stable")
    v, positive, w = value[order], label[order] > 0, weight[order]
    below = np.concatenate([[0.0], np.cumsum(np.where(positive, w * false_negative, 0.0))])
    above = np.concatenate([np.cumsum(np.where(positive, 0.0, w * false_positive)[::-1])[::-1], [0.0]])
    total = below + above
    total[1:-1][v[1:] == v[:-1]] = np.inf  # no cut between equal values
    edge = np.concatenate([[v[0] - 1.0], 0.5 * (v[1:] + v[:-1]), [v[-1] + 1.0]])
    lowest = np.flatnonzero(total <= total.min() + 1e-12 * max(total[0], total[-1]))
    return float(edge[lowest[len(lowest) // 2]])


def fit_sigmoid(value: Array, label: Array, weight: Array) -> tuple[float, float]:
    """(a, b) of P(+1 | f) = 1 / (1 + exp(-(a f + b))) by likelihood with Platt's smoothed targets."""
    positive = label > 0
    n_pos, n_neg = float(weight[positive].sum()), float(weight[~positive].sum())
    target = np.where(positive, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))
    unit = float(np.abs(value).max()) or 1.0
    f = value / unit

    def loss(theta: Array) -> tuple[float, Array]:
        t = theta[0] * f + theta[1]
        residual = weight * (1.0 / (1.0 + np.exp(-np.clip(t, -500, 500))) - target)
        return float(weight @ (np.logaddexp(0.0, t) - target * t)), np.array([residual @ f, residual.sum()])

    start = np.array([0.0, np.log((n_pos + 1) / (n_neg + 1))])
    a, b = optimize.minimize(loss, start, jac=True, method="BFGS").x
    return float(a) / unit, float(b)


def _median(value: Array, weight: Array) -> float:
    """The weighted median: a weight of 2 counts as two samples."""
    order = np.argsort(value, kind="stable")
    v, mass = value[order], np.cumsum(weight[order])
    half = 0.5 * mass[-1]
    left, right = np.searchsorted(mass, half, side="left"), np.searchsorted(mass, half, side="right")
    return float(0.5 * (v[left] + v[min(right, len(v) - 1)]))
