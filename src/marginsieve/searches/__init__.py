"""Searches: how subsets are walked over; each returns a path with a full ranking."""

from collections.abc import Callable

from ..contracts import Search
from .budget import Budget, BudgetPoint
from .harmony import Harmony
from .merge import Merge
from .penalized import Objective, PenalizedScaling, QuasiNewton
from .ranking import Backward, InTurns, LearnedPath, TopK

SEARCHES: dict[str, Callable[..., Search]] = {
    "backward": Backward,
    "in_turns": InTurns,
    "budget": Budget,
    "harmony": Harmony,
    "learned": LearnedPath,
    "merge": Merge,
    "scaling": PenalizedScaling,
    "top_k": TopK,
}

__all__ = ["SEARCHES", "Backward", "Budget", "BudgetPoint", "Harmony", "InTurns", "LearnedPath", "Merge", "Objective"]
__all__ += ["PenalizedScaling", "QuasiNewton", "TopK"]
