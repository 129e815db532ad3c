"""How good the answer of a program is: what a fitted selector says where its machine is a linear or whole program."""

from __future__ import annotations

from typing import Any


def optimality(selector: Any, name: str) -> tuple[float, float, str]:
    """(objective, bound, status) of the machine on the selected features, summed over the classes.

    The objective is recomputed from the weights. No objective is below the bound, which is nan where none is known. The
    status is "optimal", "limit" (the gap was not closed, or the clock cut the work) or "heuristic". An AttributeError
    says why there is no `name`.
    """
    model = selector.__dict__.get("model_")
    if model is None or not all(solution.status for solution in model.solutions):
        why = "it is not fitted" if model is None else f"{type(model.machine).__name__} is not a linear program"
        raise AttributeError(f"{type(selector).__name__} has no {name}: {why}")
    known = {solution.status for solution in model.solutions}
    status = next(status for status in ("limit", "heuristic", "optimal") if status in known)
    bound = sum(solution.bound for solution in model.solutions)
    return sum(solution.objective for solution in model.solutions), bound, status
