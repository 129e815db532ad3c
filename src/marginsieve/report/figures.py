"""Figures of matplotlib (the extra `marginsieve[plot]`), made without global state."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ..data.atomic import write_atomic
from ..errors import InputError

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933")  # colour-blind safe


def check_drawing() -> None:
    """Refuse to go on without matplotlib: what draws at its end asks at its beginning."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise InputError("drawing needs matplotlib: pip install 'marginsieve[plot]'") from error


def new_figure(width: float, height: float) -> tuple[Any, Any]:
    """A matplotlib figure of its own (no global state) and its axes."""
    check_drawing()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def finish(figure: Any, axes: Any, x: str, y: str, path: str | Path | None, legend: bool = True) -> Any:
    """Label the axes, draw the grid and the legend; write the figure if there is a path; return it."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    if legend:
        axes.legend(fontsize=8)
    return save(figure, path)


def save(figure: Any, path: str | Path | None) -> Any:
    """Write the figure if there is a path; return it."""
    if path is not None:
        import matplotlib

        kind, content = Path(path).suffix.lstrip(".") or "png", io.BytesIO()
        try:
            with matplotlib.rc_context({"svg.hashsalt": "marginsieve"}):
                figure.savefig(content, dpi=160, format=kind, metadata={"Date": None} if kind == "svg" else None)
            if not Path(path).absolute().parent.is_dir():
                raise InputError(f"the figure cannot be written to {str(path)!r}: there is no such folder")
            write_atomic(Path(path), content.getvalue())
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise InputError(f"the figure cannot be written to {str(path)!r}: {error}") from error
    return figure
