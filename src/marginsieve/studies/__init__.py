"""Studies of a user's table: which methods, how often, what to say."""

from .conducting import Study, study

__all__ = ["Study", "study"]
