"""Charts as SVG text: colours are classes of the page's style sheet, every mark has a title to hover over."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup, escape

LETTER = 6.0  # pixels of a letter on a bar
MARKS = ("circle", "square", "diamond", "triangle", "down", "cross")


@dataclass
class Chart:
    """A plane with axes; x and y are (low, high), x may be logarithmic."""

    title: str
    x: tuple[float, float]
    y: tuple[float, float]
    x_label: str
    y_label: str
    log: bool = False
    width: int = 640
    height: int = 340
    parts: list[str] = field(default_factory=list)

    LEFT, RIGHT, TOP, BOTTOM = 52, 14, 10, 42

    def pixels(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point."""
        low, high = (math.log(v) for v in self.x) if self.log else self.x
        place = ((math.log(x) if self.log else x) - low) / ((high - low) or 1.0)
        across = self.width - self.LEFT - self.RIGHT
        up = self.height - self.TOP - self.BOTTOM
        level = (y - self.y[0]) / ((self.y[1] - self.y[0]) or 1.0)
        return self.LEFT + across * place, self.TOP + up * (1 - level)

    def line(self, xs: Sequence[float], ys: Sequence[float], style: str, title: str = "") -> None:
        points = " ".join("{:.1f},{:.1f}".format(*self.pixels(x, y)) for x, y in zip(xs, ys, strict=True))
        self.parts.append(f'<polyline class="line {style}" points="{points}">{_title(title)}</polyline>')

    def band(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float], style: str) -> None:
        low = [max(value, self.y[0]) for value in low]
        high = [min(value, self.y[1]) for value in high]
        edge = [*zip(xs, high, strict=True), *reversed(list(zip(xs, low, strict=True)))]
        points = " ".join("{:.1f},{:.1f}".format(*self.pixels(x, y)) for x, y in edge)
        self.parts.append(f'<polygon class="band {style}" points="{points}"/>')

    def interval(self, x: float, low: float, high: float, style: str) -> None:
        (left, top), (_, bottom) = self.pixels(x, high), self.pixels(x, low)
        self.parts.append(f'<path class="line {style}" d="M{left:.1f} {top:.1f}V{bottom:.1f}"/>')

    def mark(self, x: float, y: float, style: str, shape: str = "circle", title: str = "", r: float = 4.5) -> None:
        self.parts.append(_mark(*self.pixels(x, y), style, shape, title, r))

    def vertical(self, x: float, style: str, title: str) -> None:
        (left, top), (_, bottom) = self.pixels(x, self.y[1]), self.pixels(x, self.y[0])
        self.parts.append(f'<path class="rule {style}" d="M{left:.1f} {top:.1f}V{bottom:.1f}">{_title(title)}</path>')

    def svg(self) -> Markup:
        head = f'<svg class="chart" viewBox="0 0 {self.width} {self.height}" role="img">'
        return Markup(f"{head}{_title(self.title)}{self._axes()}{''.join(self.parts)}</svg>")

    def _axes(self) -> str:
        out = []
        for value in _ticks(*self.y):
            left, level = self.pixels(self.x[0], value)
            right = self.pixels(self.x[1], value)[0]
            out.append(f'<path class="grid" d="M{left:.1f} {level:.1f}H{right:.1f}"/>')
            out.append(f'<text class="tick" x="{left - 6:.1f}" y="{level + 4:.1f}" text-anchor="end">{value:g}</text>')
        bottom = self.height - self.BOTTOM
        for value in _decades(*self.x) if self.log else _ticks(*self.x):
            left = self.pixels(value, self.y[0])[0]
            out.append(f'<path class="axis" d="M{left:.1f} {bottom}v4"/>')
            text = f"{value:,.0f}" if self.log else f"{value:g}"
            out.append(f'<text class="tick" x="{left:.1f}" y="{bottom + 17}" text-anchor="middle">{text}</text>')
        middle = (self.LEFT + self.width - self.RIGHT) / 2
        out.append(f'<path class="axis" d="M{self.LEFT} {self.TOP}V{bottom}H{self.width - self.RIGHT}"/>')
        place = f'x="{middle:.1f}" y="{self.height - 6}" text-anchor="middle"'
        out.append(f'<text class="label" {place}>{escape(self.x_label)}</text>')
        up = (self.TOP + bottom) / 2
        out.append(
            f'<text class="label" transform="translate(13 {up:.1f}) rotate(-90)" text-anchor="middle">'
            f"{escape(self.y_label)}</text>"
        )
        return "".join(out)


def legend_mark(style: str, shape: str) -> Markup:
    """A mark for the legend, which is text of the page."""
    return Markup(f'<svg class="key" viewBox="0 0 16 16" aria-hidden="true">{_mark(8, 8, style, shape, "", 5)}</svg>')


def values_by_class(plot: dict[str, Any], describe: str) -> Markup:
    """A row per class: a box and the values of numbers, or the shares of levels."""
    rows = plot["classes"]
    height = 8 + 18 * len(rows)
    draw = _box_rows if plot["type"] == "numbers" else _bar_rows
    head = f'<svg class="small" viewBox="0 0 180 {height}" width="180" height="{height}" role="img">'
    return Markup(f"{head}{_title(describe)}{draw(plot)}</svg>")


def _box_rows(plot: dict[str, Any]) -> str:
    rows = [row for row in plot["classes"] if row["quartiles"]]
    if not rows:
        return ""
    low, high = min(row["quartiles"][0] for row in rows), max(row["quartiles"][4] for row in rows)
    reach = (high - low) or 1.0
    place: Callable[[float], float] = lambda v: 4 + 172 * (v - low) / reach  # noqa: E731
    out = []
    for k, row in enumerate(plot["classes"]):
        if not row["quartiles"]:
            continue
        y = 13 + 18 * k
        _, q1, middle, q3, _ = (place(v) for v in row["quartiles"])
        dots = "".join(f"M{place(v):.1f} {y + (3 if j % 2 else -3)}h0" for j, v in enumerate(row["points"]))
        out.append(f'<rect class="box s{k % 6}" x="{q1:.1f}" y="{y - 7}" width="{max(q3 - q1, 0.5):.1f}" height="14"/>')
        out.append(f'<path class="dots s{k % 6}" d="{dots}"/><path class="middle" d="M{middle:.1f} {y - 7}v14"/>')
    return "".join(out)


def _bar_rows(plot: dict[str, Any]) -> str:
    out = []
    for k, row in enumerate(plot["classes"]):
        left = 4.0
        for j, (level, share) in enumerate(zip(plot["levels"], row["shares"], strict=True)):
            wide = 172 * share
            title = _title(f"{row['class']}: {level} {share:.0%}")
            shape = f'<rect class="level s{k % 6}" style="opacity:{1 - 0.13 * j:.2f}" x="{left:.1f}" y="{6 + 18 * k}" '
            out.append(f'{shape}width="{max(wide - 1, 0):.1f}" height="14">{title}</rect>')
            if wide >= LETTER * min(len(str(level)), 3) + 4:
                name = escape(str(level)[: int((wide - 4) / LETTER)])
                out.append(f'<text class="level-name" x="{left + 3:.1f}" y="{17 + 18 * k}">{name}</text>')
            left += wide
    return "".join(out)


def interval_bar(
    value: float, low: float | None, high: float | None, scale: tuple[float, float], zero: float | None
) -> Markup:
    """A value with its interval, where there is one, on a line of its own, for a table's cell."""
    low, high = value if low is None else low, value if high is None else high
    place: Callable[[float], float] = lambda v: (  # noqa: E731
        3 + 74 * (min(max(v, scale[0]), scale[1]) - scale[0]) / (scale[1] - scale[0])
    )
    mark = "" if zero is None else f'<path class="rule" d="M{place(zero):.1f} 1V15"/>'
    return Markup(
        f'<svg class="bar" viewBox="0 0 80 16" width="80" height="16" aria-hidden="true">{mark}'
        f'<path class="line s0" d="M{place(low):.1f} 8H{place(high):.1f}"/>'
        f'<circle class="dot s0" cx="{place(value):.1f}" cy="8" r="4"/></svg>'
    )


def _mark(x: float, y: float, style: str, shape: str, title: str, r: float) -> str:
    paths = {
        "square": f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z",
        "diamond": f"M{x:.1f} {y - 1.3 * r:.1f}l{1.3 * r} {1.3 * r}l{-1.3 * r} {1.3 * r}l{-1.3 * r} {-1.3 * r}z",
        "triangle": f"M{x:.1f} {y - 1.2 * r:.1f}l{1.2 * r} {2.1 * r}h{-2.4 * r}z",
        "down": f"M{x:.1f} {y + 1.2 * r:.1f}l{-1.2 * r} {-2.1 * r}h{2.4 * r}z",
        "cross": f"M{x - r:.1f} {y - r:.1f}l{2 * r} {2 * r}m0 {-2 * r}l{-2 * r} {2 * r}",
    }
    if shape not in paths:
        return f'<circle class="dot {style}" cx="{x:.1f}" cy="{y:.1f}" r="{r}">{_title(title)}</circle>'
    return f'<path class="dot {style}" d="{paths[shape]}">{_title(title)}</path>'


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def _ticks(low: float, high: float) -> list[float]:
    """About five round values."""
    raw = (high - low) / 5 or 1.0
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * unit for unit in (1, 2, 2.5, 5, 10) if power * unit >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 10) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, ... or powers of ten where these are many."""
    units = (1, 2, 5) if high / low < 200 else (1,)
    values = [unit * 10**power for power in range(9) for unit in units]
    inside = [float(value) for value in values if low <= value <= high]
    return inside or [low, high]


@dataclass(frozen=True)
class IntervalRow:
    """A row of a chart of intervals: a label, a value with its ends, a style."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    style: str
    shape: str = "circle"


def interval_rows(title: str, rows: Sequence[IntervalRow], x_label: str, reference: float | None = None) -> Markup:
    """Intervals below each other on one axis of shares, with what they are to the left; a promise or a forest plot."""
    known = [end for row in rows for end in (row.low, row.value, row.high) if end is not None]
    floor = max(0.0, min([0.5, *(math.floor(end * 10) / 10 for end in known)]))
    left, width, top, step = 210, 640, 12, 26
    height = top + step * len(rows) + 44
    place: Callable[[float], float] = lambda v: (  # noqa: E731
        left + (width - left - 20) * (min(max(v, floor), 1.0) - floor) / (1.0 - floor)
    )
    bottom = top + step * len(rows)
    out = []
    for value in _ticks(floor, 1.0):
        out.append(f'<path class="grid" d="M{place(value):.1f} {top}V{bottom}"/>')
        out.append(f'<text class="tick" x="{place(value):.1f}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>')
    if reference is not None:
        out.append(f'<path class="rule" d="M{place(reference):.1f} {top}V{bottom}"/>')
    for k, row in enumerate(rows):
        y = top + step * (k + 0.5)
        out.append(f'<text class="label" x="{left - 12}" y="{y + 4:.1f}" text-anchor="end">{escape(row.label)}</text>')
        if row.low is not None and row.high is not None:
            ends = _title(f"{row.label}: {row.low:.3f} to {row.high:.3f}")
            line = (
                f'<path class="line {row.style}" d="M{place(row.low):.1f} {y:.1f}H{place(row.high):.1f}">{ends}</path>'
            )
            out.append(line)
        if row.value is not None:
            text = f"{row.label}: {row.value:.3f}"
            out.append(_mark(place(row.value), y, row.style, row.shape, text, 4.5))
    middle = (left + width - 20) / 2
    out.append(f'<text class="label" x="{middle:.1f}" y="{height - 8}" text-anchor="middle">{escape(x_label)}</text>')
    head = f'<svg class="chart" viewBox="0 0 {width} {height}" role="img">'
    return Markup(f"{head}{_title(title)}{''.join(out)}</svg>")
