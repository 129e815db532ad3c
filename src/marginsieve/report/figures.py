"""Figures of matplotlib (the extra `marginsieve[plot]`), made without global state."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ..data.file_access import file_error, write_atomic
from ..errors import InputError

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933")  # colour-blind safe


def check_drawing() -> None:
    """Refuse to go on without matplotlib: what draws at its end asks at its beginning.

    Examples
    --------
    >>> from marginsieve.report import check_drawing
    >>> check_drawing()
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise InputError("drawing needs matplotlib: pip install 'marginsieve[plot]'") from error


def new_figure(width: float, height: float) -> tuple[Any, Any]:
    """Make a matplotlib figure of its own (no global state) and its axes.

    Parameters
    ----------
    width, height : float
        Size in inches.

    Returns
    -------
    (Figure, Axes)
        The figure and its axes.

    Examples
    --------
    >>> from marginsieve.report import new_figure
    >>> figure, axes = new_figure(6.0, 4.0)
    >>> axes.get_xlabel()
    ''
    """
    check_drawing()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def finish_figure(figure: Any, axes: Any, x: str, y: str, path: str | Path | None, legend: bool = True) -> Any:
    """Label the axes, draw the grid and the legend; write the figure if there is a path.

    Parameters
    ----------
    figure, axes : Figure and Axes
        Those of `new_figure`.
    x, y : str
        Labels of the axes.
    path : str, path or None
        File to write (.svg, .png or .pdf).
    legend : bool, default=True
        Whether there is a legend.

    Returns
    -------
    Figure
        The figure.

    Examples
    --------
    >>> from marginsieve.report import finish_figure, new_figure
    >>> figure, axes = new_figure(6.0, 4.0)
    >>> finish_figure(figure, axes, "rows", "score", None, legend=False).axes[0].get_xlabel()
    'rows'
    """
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    if legend:
        axes.legend(fontsize=8)
    return save_figure(figure, path)


def save_figure(figure: Any, path: str | Path | None) -> Any:
    """Write the figure if there is a path; SVG files of equal figures are equal.

    Parameters
    ----------
    figure : Figure
        A figure of matplotlib.
    path : str, path or None
        File to write (.svg, .png or .pdf).

    Returns
    -------
    Figure
        The figure.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginsieve.report import new_figure, save_figure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save_figure(new_figure(6.0, 4.0)[0], f"{folder}/plain.svg")
    ...     [path.name for path in Path(folder).iterdir()]
    ['plain.svg']
    """
    if path is not None:
        try:
            content = figure_bytes(figure, Path(path).suffix.lstrip(".") or "png", 160)
            if not Path(path).absolute().parent.is_dir():
                raise InputError(f"the figure cannot be written to {str(path)!r}: there is no such folder")
            write_atomic(Path(path), content)
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise file_error(error, f"the figure cannot be written to {str(path)!r}") from error
    return figure


def figure_bytes(figure: Any, kind: str, dots: int) -> bytes:
    """The content of a file of a figure, with so many dots per inch; that of equal figures is equal."""
    import matplotlib

    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "marginsieve"}):
        figure.savefig(content, dpi=dots, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()
