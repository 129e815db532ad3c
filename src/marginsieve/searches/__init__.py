"""Searches: how subsets are walked over; each returns a path with a full ranking."""

from .backward import Backward
from .budget import Budget
from .learned import LearnedPath
from .merge import Merge
from .scaling import PenalizedScaling
from .top_k import TopK

SEARCHES = {
    "backward": Backward,
    "budget": Budget,
    "learned": LearnedPath,
    "merge": Merge,
    "scaling": PenalizedScaling,
    "top_k": TopK,
}

__all__ = ["SEARCHES", "Backward", "Budget", "LearnedPath", "Merge", "PenalizedScaling", "TopK"]
