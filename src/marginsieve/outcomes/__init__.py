"""What y is: encoding, costs, folds, scores, and what a decision value means. Classes today."""

from .classes import Classes
from .encoding import Target, check_classes, positive_code, read_target, read_weight
from .folds import left_out, rarest, stratified_folds, unit_name, units_per_class

__all__ = ["Classes", "Target", "check_classes", "positive_code", "read_target", "read_weight"]
__all__ += ["left_out", "rarest", "stratified_folds", "unit_name", "units_per_class"]
