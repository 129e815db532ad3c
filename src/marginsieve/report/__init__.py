"""The report: the JSON of a study in, one page out. It knows nothing else."""

from .figures import COLOURS, check_drawing, finish_figure, new_figure, save_figure
from .render import render
from .sections import SECTIONS, register_section
from .validation_page import render_validation

__all__ = ["COLOURS", "SECTIONS", "check_drawing", "finish_figure", "new_figure", "register_section", "render"]
__all__ += ["render_validation", "save_figure"]
