"""Settings that a paper chose among: their labels, which did best, and jobs that go on with what did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from marginsieve.bench.results import SuiteResult

from .paper import Job


def variant(label: str, extra: Mapping[str, Any]) -> str:
    """The label of a method with further settings."""
    settings = [
        f"{name}={value if isinstance(value, str) else f'{value:g}'}" for name, value in extra.items() if name != "grid"
    ]
    return f"{label}[{', '.join(settings)}]" if settings else label


def base_of(label: str) -> str:
    """The label of a method without its further settings."""
    return label.split("[", maxsplit=1)[0]


def bases(labels: Any) -> Any:
    """The same for a column of labels."""
    return labels.str.split("[", regex=False).str[0]


def following(job: Job, finished: Mapping[str, SuiteResult]) -> Job:
    """The job at the number of features that a method settled on in an earlier one, where it follows one."""
    if not job.follows:
        return job
    name, method = job.follows.split(":")
    if name not in finished:
        return replace(job, methods={})
    metric, frame = next(iter(job.quantities.values()))[0], finished[name].to_pandas()
    scores = finished[name].scores(metric)
    scores = scores[scores["data"].isin(job.data) & scores["method"].str.startswith(method)]
    if scores.empty:
        return replace(job, methods={})
    best = scores.sort_values(metric).iloc[-1]
    part = frame[frame["data"].eq(best["data"]) & frame["method"].eq(best["method"])]
    size = max(1, round(float(part["size"].mean())))
    return replace(job, protocol={**job.protocol, "sizes": [size, size + 1]})


def best_variants(job: Job, study: SuiteResult) -> dict[tuple[str, str], str]:
    """By data set and method: the variant with the best `chosen_by`, and of equals the best balanced accuracy."""
    scores = study.scores(job.chosen_by).merge(study.scores("balanced_accuracy"), on=["data", "method", "size"])
    first = job.chosen_by if job.chosen_by in scores else f"{job.chosen_by}_x"
    scores = scores.sort_values([first, scores.columns[-2]], kind="stable")
    base = bases(scores["method"])
    return {(str(d), str(m)): str(v) for d, m, v in zip(scores["data"], base, scores["method"], strict=True)}
