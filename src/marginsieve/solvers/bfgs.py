"""Powell's damped BFGS update, kept as vectors: B is the identity plus a low-rank part, never an n x n array."""

from __future__ import annotations

import numpy as np

from ..contracts import Array

ETA = 0.2  # Powell's damping


class DampedBFGS:
    """B_0 = I;  B' = B - Bpp'B / p'Bp + rr' / p'r,  r = theta q + (1 - theta) Bp.

    theta = 1 where p'q >= eta p'Bp, else (1 - eta) p'Bp / (p'Bp - p'q): then p'r = eta p'Bp > 0 and B stays positive
    definite. With a_k = B_k p_k / sqrt(p'Bp) and b_k = r_k / sqrt(p'r), Bv = v - sum a_k (a_k'v) + sum b_k (b_k'v);
    its inverse is the two-loop recursion over the pairs (p_k, r_k). k updates take 4 k n numbers.
    """

    def __init__(self) -> None:
        self._pairs: list[tuple[Array, Array, float]] = []  # p, r, 1 / p'r
        self._parts: list[tuple[Array, Array]] = []  # a, b

    def __len__(self) -> int:
        return len(self._pairs)

    def times(self, v: Array) -> Array:
        """Bv."""
        out = v.copy()
        for a, b in self._parts:
            out += b * (b @ v) - a * (a @ v)
        return out

    def solve(self, v: Array) -> Array:
        """B^-1 v."""
        out, along = v.copy(), []
        for p, r, rho in reversed(self._pairs):
            along.append(rho * (p @ out))
            out -= along[-1] * r
        for (p, r, rho), a in zip(self._pairs, reversed(along), strict=True):
            out += (a - rho * (r @ out)) * p
        return out

    def update(self, p: Array, q: Array) -> None:
        """After a step p that changed the gradient by q; a step of length zero changes nothing."""
        Bp = self.times(p)
        curve, seen = float(p @ Bp), float(p @ q)
        if curve <= 0.0:
            return
        # Little or negative curvature p'q would make B singular or indefinite: q is mixed with Bp there.
        theta = 1.0 if seen >= ETA * curve else (1.0 - ETA) * curve / (curve - seen)
        r = theta * q + (1.0 - theta) * Bp
        slope = float(p @ r)
        self._pairs.append((p, r, 1.0 / slope))
        self._parts.append((Bp / np.sqrt(curve), r / np.sqrt(slope)))
