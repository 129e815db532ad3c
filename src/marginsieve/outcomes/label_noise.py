"""How likely each label is wrong, by scores of machines that did not see it."""

from __future__ import annotations

import numpy as np
from scipy import special

from ..contracts import Array, BoolArray

RATES = np.array([0.0, 0.008, 0.02, 0.04, 0.065, 0.1, 0.14, 0.19, 0.25, 0.33, 0.42])
HIGHEST = 0.46  # no more labels of a class are wrong than this share, but for errors that are as frequent in both
NONE_WRONG = 0.4  # prior probability that a class has no wrong label; any other rate is as likely as the next
SAME_RATE = 0.5  # prior probability that labels of both classes were flipped at one rate
SEPARATION = np.concatenate([[0.1, 0.3], np.exp(np.linspace(np.log(0.5), np.log(7.0), 12))])  # in standard deviations
OFFSET = (-1.4, -0.7, 0.0, 0.7, 1.4)  # of the border between the classes, as log odds
STRETCH = (-0.6, 0.0, 0.6)  # of the scores' tails, below 0 drawn in, above 0 drawn out
MARGINAL = 0.3  # what the likelihood of the scores themselves counts beside that of the labels
MOST_POINTS = 200  # neighbouring scores beyond so many are taken together
FAINT = 1e-7  # settings with a smaller posterior probability are left out of the mean


def wrong_label(score: Array, positive: BoolArray, weight: Array) -> Array:
    """Probability that each label is wrong, given scores that do not depend on it.

    Of the labels 1 a share p1 is wrong, of the labels 0 a share p0, which gives the rates r0 (a 0 that is labelled 1)
    and r1; eta is the probability of the true class::

        P(labelled 1 | score) = r0 + (1 - r0 - r1) eta(score)
        P(wrong | score, labelled 1) = r0 (1 - eta(score)) / P(labelled 1 | score)

    eta is that of two normal classes of one variance, up to a shift of the border and a stretch of the scores' tails.
    The result is the mean over the posterior distribution of p1, p0 and eta, not its maximum: where the scores cannot
    tell noise from overlap it says little. The distribution of the scores, in which noise cannot be mistaken for
    overlap, counts too, but less than the labels, since it need not be normal.

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
    counts = ones + zeros
    wrong_one, wrong_zero, log_prior = _prior(float(ones.sum() / counts.sum()))
    labelled = float(ones.sum() / counts.sum())
    share = labelled * (1.0 - wrong_one) + (1.0 - labelled) * wrong_zero  # of the class among the rows
    r0, r1 = labelled * wrong_one / (1.0 - share), (1.0 - labelled) * wrong_zero / share
    settings, likelihoods = [], []
    for stretch in STRETCH:
        stretched, slope = _stretch_scores(points, counts, stretch)
        for separation in SEPARATION:
            log_odds, density = _classes(stretched, float(separation), share)
            marginal = MARGINAL * ((density + slope) @ counts)
            for offset in OFFSET:
                eta = np.clip(special.expit(log_odds + offset), 1e-12, 1.0 - 1e-12)  # (r, b) of the true class
                labelled_one = r0[:, None] + (1.0 - r0 - r1)[:, None] * eta  # and of the label 1
                agreement = np.log(labelled_one) @ ones + np.log1p(-labelled_one) @ zeros
                settings.append((eta, labelled_one))
                likelihoods.append(log_prior + agreement + marginal)
    mass = np.array(likelihoods)
    mass = np.exp(mass - mass.max())
    mass /= mass.sum()
    if_one, if_zero = np.zeros(len(points)), np.zeros(len(points))
    for (eta, labelled_one), weight in zip(settings, mass, strict=True):
        if weight.sum() > FAINT:
            if_one += (weight * r0) @ ((1.0 - eta) / labelled_one)
            if_zero += (weight * r1) @ (eta / (1.0 - labelled_one))
    return if_one, if_zero


def _stretch_scores(points: Array, counts: Array, stretch: float) -> tuple[Array, Array]:
    """(b,), (b,): sinh(k s) / k, or its inverse where k < 0, at mean 0 and variance 1; the logarithm of its slope."""
    if stretch > 0:
        values, slope = np.sinh(stretch * points) / stretch, np.log(np.cosh(stretch * points))
    elif stretch < 0:
        values, slope = np.arcsinh(stretch * points) / stretch, -0.5 * np.log1p((stretch * points) ** 2)
    else:
        values, slope = points, np.zeros(len(points))
    share = counts / counts.sum()
    values = values - share @ values
    deviation = np.sqrt(share @ values**2)
    return (values / deviation, slope - np.log(deviation)) if deviation > 0 else (values, slope)


def _classes(points: Array, separation: float, share: Array) -> tuple[Array, Array]:
    """(r, b), (r, b): log odds of the class and log density of scores of mean 0 and variance 1, two normals.

    `share` (r,) of the rows belong to the class.
    """
    share = share[:, None]
    deviation = 1.0 / np.sqrt(1.0 + share * (1.0 - share) * separation**2)
    above = -0.5 * (points / deviation - (1.0 - share) * separation) ** 2 + np.log(share)
    below = -0.5 * (points / deviation + share * separation) ** 2 + np.log1p(-share)
    return above - below, np.logaddexp(above, below) - np.log(deviation)


def _prior(labelled: float) -> tuple[Array, Array, Array]:
    """(r,), (r,), (r,): shares of wrong labels among the ones and the zeros, the logarithm of their prior probability.

    `labelled` is the share of rows labelled 1. Half of the mass is on errors at one rate e for all rows, half on shares
    that know nothing of each other.
    """
    edges = np.concatenate([[0.0], (RATES[1:] + RATES[:-1]) / 2, [HIGHEST]])
    single = (1.0 - NONE_WRONG) * np.diff(edges) / HIGHEST
    single[0] += NONE_WRONG
    possible = min(labelled, 1.0 - labelled) > RATES
    share = (labelled - RATES[possible]) / (1.0 - 2.0 * RATES[possible])
    same = [RATES[possible] * (1.0 - share) / labelled, RATES[possible] * share / (1.0 - labelled)]
    apart = [rate.ravel() for rate in np.meshgrid(RATES, RATES, indexing="ij")]
    mass = np.concatenate([SAME_RATE * single[possible], (1.0 - SAME_RATE) * np.outer(single, single).ravel()])
    wrong_ones, wrong_zeros = (np.concatenate(pair) for pair in zip(same, apart, strict=True))
    return wrong_ones, wrong_zeros, np.log(mass)
