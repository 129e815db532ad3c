"""Leave-one-out over samples for machines that have no shortcut."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contracts import Array, Machine, Solution


def one_by_one(machine: Machine, solution: Solution, view: Any, y: Array, cost: Array) -> Array:
    """Each sample's decision value under the machine trained without it, by warm starts.

    The only member of its class leaves a one-class problem behind: its value is -y, the vote of the other class.
    """
    Z, out = view.table.Z, np.empty(len(y))
    for i in range(len(y)):
        rest = cost.copy()
        rest[i] = 0.0
        if rest[y == y[i]].any():
            out[i] = machine.decision(machine.solve(view, y, rest, solution), view, Z[[i]])[0]
        else:
            out[i] = -y[i]
    return out
