"""One table to an answer: options, the plan, the choice of methods, what is looked at, and the files."""

from .running import Study, study

__all__ = ["Study", "study"]
