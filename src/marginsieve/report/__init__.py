"""The report: a study as plain JSON, and the JSON as one page."""

from .render import render
from .summarize import summarize

__all__ = ["render", "summarize"]
