"""The report: a study as plain JSON, and the JSON as one page."""

from ..study.summary import summarize
from .render import render

__all__ = ["render", "summarize"]
