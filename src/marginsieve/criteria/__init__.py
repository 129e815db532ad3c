"""Criteria: what a feature is worth, higher means keep."""

from .filters import Fisher
from .margin import MarginChange

CRITERIA = {"margin": MarginChange, "fisher": Fisher}

__all__ = ["CRITERIA", "Fisher", "MarginChange"]
