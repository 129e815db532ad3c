"""What y is: reading, folds, draws, targets for machines, scores, decisions. Nobody else knows."""

from .classes import ClassDecision, Classes, ClassTarget
from .target import FoldLimit, Target, read_groups, read_weight

#: outcomes by name, made from parameters by name
OUTCOMES = {"classes": Classes.from_settings}

__all__ = ["OUTCOMES", "ClassDecision", "ClassTarget", "Classes", "FoldLimit", "Target"]
__all__ += ["read_groups", "read_weight"]
