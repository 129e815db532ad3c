"""How likely each label is wrong, by scores of machines that did not see it."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy import special

from ..contracts import Array, BoolArray

RATES = np.array([0.0, 0.006, 0.015, 0.03, 0.05, 0.075, 0.1, 0.13, 0.165, 0.2, 0.24, 0.29, 0.35, 0.42])
HIGHEST = 0.46  # no more labels of a class are wrong than this share
NONE_WRONG = 0.65  # prior probability that a class has no wrong label; any other rate is as likely as the next
SAME_RATE = 0.5  # prior probability that the rate is that of the other class
SEPARATION = np.exp(np.linspace(np.log(0.4), np.log(8.0), 16))  # between the classes' means, in standard deviations
SHARE = special.expit(np.linspace(-4.5, 4.5, 19))  # of the class among the rows
MARGINAL = 0.3  # what the likelihood of the scores themselves counts beside that of the labels
MOST_POINTS = 400  # neighbouring scores beyond so many are taken together
FAINT = 1e-7  # settings with a smaller posterior probability are left out of the mean


def wrong_label(score: Array, positive: BoolArray, weight: Array) -> Array:
    """Probability that each label is wrong, given scores that do not depend on it.

    The labels are true with unknown rates of error r0 (a 0 labelled 1) and r1::

        P(labelled 1 | score) = r0 + (1 - r0 - r1) eta(score),   eta = 1 / (1 + exp(-(a score + b)))
        P(wrong | score, labelled 1) = r0 (1 - eta) / P(labelled 1 | score)

    a and b are those of two normal classes of one variance. The result is the mean over the posterior distribution of
    (a, b, r0, r1), not its maximum: where the scores cannot tell noise from overlap it says little. The scores' own
    distribution, in which noise cannot be mistaken for overlap, counts too, but less, since it need not be normal.

    Parameters
    ----------
    score : array of shape (m,)
        What a machine that did not see the row says, higher for the positive class.
    positive : array of bool of shape (m,)
        Whether the row is labelled positive.
    weight : array of shape (m,)
        How many rows each one counts for.

    Returns
    -------
    array of shape (m,)
        The probabilities; they fall with the score where the label is positive and rise where it is not.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes.label_noise import wrong_label
    >>> score = np.random.default_rng(0).normal(np.repeat([-3.0, 3.0], 50))
    >>> positive = np.repeat([False, True], 50)
    >>> positive[[10, 70]] = [True, False]
    >>> (wrong_label(score, positive, np.ones(100)) > 0.5).nonzero()[0].tolist()
    [10, 70]
    """
    mean = weight @ score / weight.sum()
    spread = np.sqrt(weight @ (score - mean) ** 2 / weight.sum())
    score = (score - mean) / (spread if spread > 0 else 1.0)
    parts = np.array_split(np.argsort(score, kind="stable"), min(MOST_POINTS, len(score)))
    ones = np.array([weight[part] @ positive[part] for part in parts])
    counts = np.array([weight[part].sum() for part in parts])
    points = np.array([weight[part] @ score[part] for part in parts]) / counts
    if_one, if_zero = _posterior(points, ones, counts - ones)
    return np.where(positive, np.interp(score, points, if_one), np.interp(score, points, if_zero))


def _posterior(points: Array, ones: Array, zeros: Array) -> tuple[Array, Array]:
    """(b,), (b,): the probability that a label 1, and a label 0, is wrong at each point; labels of each by point."""
    r0, r1, log_prior = _rate_prior()
    etas, likelihoods = [], []
    for separation in SEPARATION:
        for share in SHARE:
            eta, density = _classes(points, float(separation), float(share))
            labelled_one = r0[:, None] + np.outer(1.0 - r0 - r1, eta)
            agreement = np.log(labelled_one) @ ones + np.log1p(-labelled_one) @ zeros
            etas.append(eta)
            likelihoods.append(log_prior + agreement + MARGINAL * float((ones + zeros) @ density))
    mass = np.array(likelihoods)
    mass = np.exp(mass - mass.max())
    mass /= mass.sum()
    if_one, if_zero = np.zeros(len(points)), np.zeros(len(points))
    for eta, share_of in zip(etas, mass, strict=True):
        if share_of.sum() > FAINT:
            labelled_one = r0[:, None] + np.outer(1.0 - r0 - r1, eta)
            if_one += (1.0 - eta) * ((share_of * r0) @ (1.0 / labelled_one))
            if_zero += eta * ((share_of * r1) @ (1.0 / (1.0 - labelled_one)))
    return if_one, if_zero


def _classes(points: Array, separation: float, share: float) -> tuple[Array, Array]:
    """(b,) the probability of the class and (b,) the log density of scores of mean 0 and variance 1: two normals."""
    deviation = 1.0 / np.sqrt(1.0 + share * (1.0 - share) * separation**2)
    above = -0.5 * ((points / deviation) - (1.0 - share) * separation) ** 2 + np.log(share)
    below = -0.5 * ((points / deviation) + share * separation) ** 2 + np.log1p(-share)
    eta = np.clip(special.expit(above - below), 1e-12, 1.0 - 1e-12)
    return eta, np.logaddexp(above, below) - np.log(deviation)


@cache
def _rate_prior() -> tuple[Array, Array, Array]:
    """(r,), (r,), (r,): pairs of rates and the logarithm of their prior probability."""
    edges = np.concatenate([[0.0], (RATES[1:] + RATES[:-1]) / 2, [HIGHEST]])
    single = (1.0 - NONE_WRONG) * np.diff(edges) / HIGHEST
    single[0] += NONE_WRONG
    pairs = (1.0 - SAME_RATE) * np.outer(single, single) + SAME_RATE * np.diag(single)
    r0, r1 = (rate.ravel() for rate in np.meshgrid(RATES, RATES, indexing="ij"))
    return r0, r1, np.log(pairs.ravel())
