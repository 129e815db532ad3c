"""Leave-one-out over samples for machines that have no shortcut."""

from __future__ import annotations

from ..contracts import Array, Machine, Solution, View


class OneByOneMixin:
    """Leaves each sample out in its turn."""

    def loo(self: Machine, solution: Solution, view: View, y: Array, cost: Array) -> Array:
        """Each sample's decision value under the machine trained without it, by warm starts.

        The only member of its class leaves a one-class problem behind: its value is -y, the vote of the other class.
        """
        Z, out = view.table.Z, -y
        for i in range(len(y)):
            rest = cost.copy()
            rest[i] = 0.0
            if rest[y == y[i]].any():
                out[i] = self.decision(self.solve(view, y, rest, solution), view, Z[[i]])[0]
        return out
