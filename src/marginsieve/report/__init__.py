"""The report: the JSON of a study in, one page out. It knows nothing else."""

from .render import render
from .sections import SECTIONS, register_section

__all__ = ["SECTIONS", "register_section", "render"]
