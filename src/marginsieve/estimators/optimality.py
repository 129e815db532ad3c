"""How good the answer of a program is: what a fitted selector says where its machine is a linear or whole program."""

from __future__ import annotations

from typing import Any

from ..contracts import Solution


class OptimalityMixin:
    """`objective_`, `bound_`, `gap_` and `status_` of the machine on the selected features, summed over the classes.

    The objective is recomputed from the weights. No objective is below the bound, which is nan where none is known; the
    gap is their difference, of the objective. The status is "optimal", "limit" (the gap was not closed, or the clock
    cut the work) or "heuristic".
    """

    model_: Any

    @property
    def objective_(self) -> float:
        return sum(solution.objective for solution in self._programs("objective_"))

    @property
    def bound_(self) -> float:
        return sum(solution.bound for solution in self._programs("bound_"))

    @property
    def gap_(self) -> float:
        programs = self._programs("gap_")
        objective = sum(solution.objective for solution in programs)
        return (objective - sum(solution.bound for solution in programs)) / max(objective, 1e-300)

    @property
    def status_(self) -> str:
        known = {solution.status for solution in self._programs("status_")}
        return next(status for status in ("limit", "heuristic", "optimal") if status in known)

    def _programs(self, name: str) -> tuple[Solution, ...]:
        model = self.__dict__.get("model_")
        if model is None or not all(solution.status for solution in model.solutions):
            why = "it is not fitted" if model is None else f"{type(model.machine).__name__} is not a linear program"
            raise AttributeError(f"{type(self).__name__} has no {name}: {why}")
        return tuple(model.solutions)
