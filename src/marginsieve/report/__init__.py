"""The report: the JSON of a study in, one page out."""

from .render import render

__all__ = ["render"]
