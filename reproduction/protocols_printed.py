"""How each paper splits its tables, what it tunes where, and which sizes it reports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marginsieve.contracts import IntArray
from marginsieve.engine import Protocol, register_protocol
from marginsieve.errors import InputError
from marginsieve.outcomes import ClassTarget
from marginsieve.recipes import svm_l1


@dataclass(frozen=True)
class NoisyProtocol(Protocol):
    """Training labels are spoiled, the same for all methods; test labels never are.

    `noise`: "labels" (random labels are flipped) or "outliers" (those furthest on their side of an SVM are flipped).
    """

    noise: str = "labels"
    noise_share: float = 0.05

    def training_target(self, part: Any, rng: np.random.Generator) -> ClassTarget:
        """The target of a training part with noise."""
        target: ClassTarget = part.target
        noisy = (
            flip_labels(target.codes, self.noise_share, rng)
            if self.noise == "labels"
            else _outliers(part, self.noise_share)
        )
        return replace(target, codes=noisy)


def flip_labels(y: IntArray, share: float, rng: np.random.Generator) -> IntArray:
    """Give a share of the samples another class, at random."""
    out, codes = y.copy(), np.unique(y)
    for i in rng.permutation(len(y))[: round(share * len(y))]:
        out[i] = rng.choice(codes[codes != y[i]])
    return out


def _outliers(part: Any, share: float) -> IntArray:
    """Flip the share of each class that lies furthest on its own side of an l1 machine."""
    y: IntArray = part.target.codes
    if (count := len(np.unique(y))) != 2:
        raise InputError(f"noise 'outliers' needs two classes; the table has {count}")
    machine = svm_l1(stop="own", points=2, threshold="margin", similar=None).fit_rows(part)
    return flip_furthest(y, machine.values(part.table.Z), share)


def flip_furthest(y: IntArray, value: Any, share: float) -> IntArray:
    """Give the other class to the share of each class that lies furthest on its own side, by decision values."""
    out, codes = y.copy(), np.unique(y)
    depth = value * np.where(y == codes[1], 1.0, -1.0)
    for code, other in (codes, codes[::-1]):
        members = np.flatnonzero(y == code)
        out[members[np.argsort(-depth[members], kind="stable")][: round(share * len(members))]] = other
    return out


POWERS = tuple(2.0**k for k in range(-7, 8))
MARGIN: dict[str, Any] = {"threshold": "margin"}
PRINTED = (
    Protocol(
        "kp-imbalanced",
        "loo",
        sizes=(20, 50, 100, 250, 500, 1000),
        grid={"machine__C": POWERS, "negative_weight": (0.01, 0.1, 0.5, 1.0)},
        tuned="reported",
        settings=MARGIN,
    ),
    Protocol(
        "kp-svm",
        "shares",
        repeats=100,
        test_share=0.4,
        outer_share=0.5,
        sizes=(20, 50, 100, 250, 500, 1000, 2000),
        grid={"machine__C": (0.1, 0.5, 1.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)},
        tuned="nested",
        settings=MARGIN,
    ),
    Protocol("mixed", "shares", repeats=200, test_share=0.1, sizes=(), settings=MARGIN),
    Protocol(
        "symon", "shares", repeats=1, test_share=0.3, validation_share=0.2, sizes=(0.2, 0.4, 0.6, 0.8), settings=MARGIN
    ),
    *(
        NoisyProtocol(
            f"ramp-loss-{noise}",
            "folds",
            folds=10,
            grid={"machine__C": (0.01, 0.1, 1.0, 10.0, 100.0)},
            tuned="reported",
            noise=noise,
            settings=MARGIN,
        )
        for noise in ("labels", "outliers")
    ),
)
for _protocol in PRINTED:
    register_protocol(_protocol)
