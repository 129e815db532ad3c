"""What y is: reading, folds, draws, targets for machines, scores, decisions. Nobody else knows."""

from collections.abc import Callable, Mapping
from typing import Any

from ..contracts import Decision, Outcome
from .classes import ClassDecision, Classes, ClassTarget
from .survival import Survival, SurvivalDecision, SurvivalTarget
from .target import FoldLimit, Target, read_groups, read_weight
from .values import NumberDecision, Numbers, NumberTarget

#: outcomes by name, made from parameters by name
OUTCOMES: dict[str, Callable[[Mapping[str, Any]], Outcome]] = {
    "classes": Classes.from_settings,
    "numbers": Numbers.from_settings,
    "survival": Survival.from_settings,
}
#: decisions by the name of their outcome, made from the attributes of a fitted selector
DECISIONS: dict[str, Callable[[Any], Decision]] = {
    "classes": ClassDecision.from_attributes,
    "numbers": NumberDecision.from_attributes,
    "survival": SurvivalDecision.from_attributes,
}

__all__ = ["DECISIONS", "OUTCOMES", "ClassDecision", "ClassTarget", "Classes", "FoldLimit", "NumberDecision"]
__all__ += ["NumberTarget", "Numbers", "Survival", "SurvivalDecision", "SurvivalTarget", "Target"]
__all__ += ["read_groups", "read_weight"]
