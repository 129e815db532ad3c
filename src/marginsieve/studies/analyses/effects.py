"""What a feature looks like by class: effect size with its interval, direction, and the numbers of a small plot."""

from __future__ import annotations

from ..analysis import AnalysisResult, Facts, StudyRun, part_of_every_study, register_analysis

COLUMN, CELL = 1.5e-4, 1.5e-7  # seconds
DETAILED = 100  # selected features with a small plot


@register_analysis
class Effects:
    """Effect size and direction of every feature."""

    name, order, template = "effects", 6.0, ""

    levels = staticmethod(part_of_every_study)

    def cost(self, facts: Facts) -> float:
        """By columns and cells."""
        return facts.shape.columns * (COLUMN + CELL * facts.shape.rows)

    def run(self, run: StudyRun) -> AnalysisResult:
        """Columns for all features; effect, direction and the numbers of a small plot for the selected ones."""
        target, known = run.table.target, run.main.selector.columns_
        kinds = zip(known.names, known.kind, strict=True)
        each = {name: target.effect(run.data.X[name], kind) for name, kind in kinds}
        sizes = [entry["effect"] for entry in each.values()]
        columns = {
            "effect": [size["value"] for size in sizes],
            "effect_low": [size["low"] for size in sizes],
            "effect_high": [size["high"] for size in sizes],
            "effect_is": [f"{size['name']}, {size['unit']}" for size in sizes],
            "direction": [entry["direction"] for entry in each.values()],
        }
        listed = [known.names[j] for j in run.selected_features]
        without_plot = {name: {key: each[name][key] for key in ("effect", "direction")} for name in listed[DETAILED:]}
        entries = {name: each[name] for name in listed[:DETAILED]} | without_plot
        return AnalysisResult({"features": len(each)}, columns, entries)
