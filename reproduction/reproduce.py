"""A paper's figures by one command: ours beside the printed ones, with a verdict for each and for each claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from marginsieve.bench import Comparison, Suite, SuiteResult, compare, describe
from marginsieve.engine import claim, publish
from marginsieve.errors import InputError
from marginsieve.report import check_drawing

from . import named_problems
from .catalogue import paper_of
from .drawings import curves
from .evidence import AS_PRINTED, COLUMNS, HONEST, REPAIRED, Evidence
from .markdown import grid, table_lines
from .paper import KEPT, HasAnswers, Job, Paper, base_of, bases, variant_label
from .pins import pin
from .record import RUNS, begin_run, commit, describe_hours, hours_by_commit, result_in
from .workplace import JoinedResults, Progress, Workplace

TIMES = ("total_seconds",)  # of steps: steps.py
REPORT, CLAIMS = "report.md", "claims.csv"
CLOSE = 1.0  # percentage points within which a figure counts as reproduced


def reproduce(
    name: str,
    out: str | Path,
    *,
    scope: str = KEPT,
    n_jobs: int = 1,
    cluster: str | None = None,
    resume: bool = False,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Run what exists of a paper's study, resuming what the folder holds; write report.md, tables and plots there."""
    paper, out = paper_of(name).with_scope(scope), Path(out)
    if resume and not any(result_in(folder) for folder in out.glob("*")):
        raise InputError(f"there is nothing to resume in {out}")
    if not named_problems.present(paper.data):
        raise InputError(
            f"none of the data sets of {name} is here: --data or MARGINSIEVE_DATA names their folder, docs/data.md "
            "says where they come from"
        )
    check_drawing()
    claim(out, "reproduction", _file_names(paper), (RUNS,))
    begun_at = commit()
    begin_run(out, begun_at)
    with TemporaryDirectory() as scratch:
        drafts = Path(scratch)  # tables and plots, until all are there
        sections, evidence = _run(paper, Workplace(out, drafts, n_jobs, cluster, fresh, progress))
        report = _report(paper, sections, evidence, scope, describe_hours(hours_by_commit(out), begun_at))
        files = {path.name: path.read_bytes() for path in sorted(drafts.iterdir())}
    claim(out, "reproduction", [*files, REPORT])
    publish(out, "reproduction", {**files, REPORT: report.encode()})
    return out / REPORT


def _file_names(paper: Paper) -> list[str]:
    """Names of files that a paper's run writes, but for plots of single data sets."""
    jobs = [f"{job.name}{ending}" for job in paper.jobs for ending in (".csv", ".tex", "-ranks.svg")]
    parts = [f"{part.name}{ending}" for part in paper.studies for ending in (".csv", ".svg")]
    return [REPORT, CLAIMS, "table-1.csv", *jobs, *parts]


def _run(paper: Paper, place: Workplace) -> tuple[list[str], Evidence]:
    """Studies in folders of `place.out`, tables and plots in its drafts; the report's sections, what claims read."""
    printed = paper.figures()
    finished: dict[tuple[str, str], SuiteResult] = {}
    sections, ours = [], []
    for job in paper.jobs:
        names = named_problems.present(job.data)
        answers, studies = [], dict[str, SuiteResult]()
        for column in job.columns:
            suite = suite_of(job, names, column)
            if suite is None:
                continue
            study: SuiteResult = place.suite(suite, f"{job.name}-{column.replace('_', '-')}")
            if column == REPAIRED:  # what the handicap does not touch is as printed
                study = JoinedResults(study, studies[AS_PRINTED], {method.label for method in suite.methods})
            answers.append(_answers(job, study, column))
            studies[column] = finished[job.name, column] = study
        table = _compare_with_print(job, printed, answers)
        ours.append(table.assign(job=job.group or job.name))
        if studies:
            sections.append(_section(job, table, studies, printed, place.drafts))
    for group in dict.fromkeys(job.group for job in paper.jobs if job.group):
        sections.append(_group_section(paper, group, pd.concat(ours, ignore_index=True), place.drafts))
    for part in paper.studies:
        if not named_problems.present(part.data):
            continue
        sections.append("\n".join(part.run(place)))
        if isinstance(part, HasAnswers):
            table = _compare_with_print(part.job, printed, part.answers(place))
            shown = _markdown(table[table["printed"].notna()])
            sections.append("\n".join(["Printed figures beside ours:", "", *shown]))
            ours.append(table.assign(job=part.job.name))
    return sections, Evidence(pd.concat(ours, ignore_index=True), place.drafts, finished)


def suite_of(job: Job, names: Sequence[str], column: str) -> Suite | None:
    """The suite of a job on some data sets, for a column."""
    methods = _methods(job, column)
    if column == REPAIRED:
        printed = _methods(job, AS_PRINTED)
        methods = [entry for entry in methods if entry not in printed]
    if not methods or not names:
        return None
    protocol = dict(job.protocol)
    if column == HONEST:
        protocol |= {"tuned": "nested", **job.nested_protocol}
    data = [{"name": name} for name in names]
    return Suite.read({"name": job.name, "protocol": protocol, "data": data, "method": methods})


def _methods(job: Job, column: str) -> list[dict[str, Any]]:
    return [
        entry
        for label, (recipe, settings) in job.methods.items()
        for entry in _entries(job, label, recipe, settings, column)
    ]


def _entries(job: Job, label: str, recipe: str, settings: Mapping[str, Any], column: str) -> list[dict[str, Any]]:
    """A method of the suite with all its settings, or its variants: 'label[C2=0.125]'."""
    grid = {"grid": job.grids[label]} if label in job.grids else {}
    variants = job.variants.get(label, ())[: 1 if column == HONEST else None] or ({},)
    if column == HONEST and label in job.untuned:
        settings, grid, variants = job.untuned[label], {"grid": {}}, ({},)
    out = []
    for extra in variants:
        whole = {**grid, **extra}
        fitted = {**settings, **{name: value for name, value in extra.items() if name != "grid"}}
        pinned = pin(recipe, fitted)
        if column == AS_PRINTED:
            pinned |= {k: value for k, value in job.handicap.items() if k in pinned and k not in fitted}
        tuned = {"grid": whole["grid"]} if "grid" in whole else {}
        out.append({"name": recipe, "label": variant_label(label, extra), **pinned, **tuned})
    return out


def _answers(job: Job, study: SuiteResult, column: str) -> pd.DataFrame:
    """Our value of each printed quantity, by data set and method, in the paper's units; of variants the best one's."""
    rows = []
    for quantity, (metric, reduce) in job.quantities.items():
        scores = _counts(study) if metric == "n_features" else study.scores(metric)
        scores = scores.assign(base=bases(scores["method"]))
        factor = 1.0 if metric in ("g_mean", "auc", "n_features") else 100.0
        for (data, method), part in scores.groupby(["data", "base"], sort=False):
            score = part.groupby("method", sort=False)[metric].agg("max" if reduce == "max" else "mean")
            best = str(score.idxmax())
            values = factor * part.loc[part["method"] == best, metric].to_numpy(dtype=float)
            value = {"mean": values.mean(), "max": values.max(), "value": values[0]}[reduce]
            rows.append({"dataset": data, "method": method, "quantity": quantity, column: float(value)})
    return pd.DataFrame(rows, columns=["dataset", "method", "quantity", column])


def _counts(study: SuiteResult) -> pd.DataFrame:
    """The mean number of selected features, by data set and method."""
    sizes = study.to_pandas().groupby(["data", "method"], sort=False)["size"].mean()
    return sizes.rename("n_features").reset_index()


def _variants(job: Job, study: SuiteResult) -> list[str]:
    """Mean and maximum over the sizes of each variant: the paper's figures are the best of these."""
    if not job.variants:
        return []
    metric = next(iter(job.quantities.values()))[0]
    scores = study.scores(metric)
    scores = scores[bases(scores["method"]).isin(list(job.variants))]
    if scores.empty:
        return []
    value = scores.groupby(["data", "method"], sort=False)[metric].agg(["mean", "max"]).mul(100).round(1)
    sizes = study.to_pandas().groupby(["data", "method"], sort=False)["size"].mean().round(1)
    no_sizes = (scores["size"] == 0).all()
    table = (value["mean"].astype(str) + " / " + (sizes if no_sizes else value["max"]).astype(str)).unstack("method")
    what = "value / mean number of features" if no_sizes else "mean / maximum over the sizes"
    if len(table) == 1:
        table = table.T
    return grid(f"Variants, {what}:", table, corner="method" if table.shape[1] == 1 else "data set", digits=2)


def _compare_with_print(job: Job, printed: pd.DataFrame, answers: list[pd.DataFrame]) -> pd.DataFrame:
    """One row per data set, method and quantity: printed, ours in each column, verdict."""
    theirs = printed[printed["table"].isin(job.tables) & printed["quantity"].isin(list(job.quantities))]
    theirs = theirs[theirs["method"].isin(list(job.methods)) & theirs["note"].str.contains(job.note, regex=False)]
    theirs = theirs[theirs["size"] == job.size] if job.size else theirs
    of_job = theirs["dataset"].isin(job.data) | ~theirs["dataset"].isin(named_problems.names())
    theirs, keys = theirs[of_job], ["dataset", "method", "quantity"]
    means = theirs[theirs["dataset"] != ""].groupby(keys, sort=False)["value"].mean()
    table = means.reset_index().rename(columns={"value": "printed"})
    for frame in answers:
        table = table.merge(frame, on=keys, how="outer", sort=False)
    for column in COLUMNS:
        if column not in table:
            table[column] = float("nan")
    table["verdict"] = [_verdict(job, row) for row in table.to_dict("records")]
    return table[[*keys, "printed", *COLUMNS, "verdict"]]


def _verdict(job: Job, row: Mapping[Any, Any]) -> str:
    if row[AS_PRINTED] != row[AS_PRINTED]:
        return "not run" if row["dataset"] in job.data else "not comparable: the data are not public"
    if row["printed"] != row["printed"]:
        return "not comparable: no printed figure"
    close = CLOSE if row["printed"] > 1 else CLOSE / 100
    difference = row[AS_PRINTED] - row["printed"]
    if abs(difference) <= close:
        return "reproduced"
    if job.quantities[row["quantity"]][0] == "n_features":  # neither is better by itself
        return "more" if difference > 0 else "fewer"
    return "better" if difference > 0 else "worse"


def _section(job: Job, table: pd.DataFrame, studies: dict[str, SuiteResult], printed: pd.DataFrame, out: Path) -> str:
    """Tables of one job as Markdown (and CSV, LaTeX beside it), its plots, and the failures of its units."""
    table.to_csv(out / f"{job.name}.csv", index=False)
    table.to_latex(out / f"{job.name}.tex", index=False, float_format="%.1f", na_rep="-")
    lines = [f"## {job.name} (table {', '.join(job.tables)})", ""]
    rest = int((table["verdict"] == "not run").sum())
    shown = table[table["verdict"] != "not run"]
    lines += _markdown(shown[shown["printed"].notna()])
    lines += _without_print(job, shown[shown["printed"].isna()])
    lines += [f"{rest} printed figures are of data sets that were not run here.", ""] if rest else []
    for column, study in studies.items():
        failures, name = study.failures(), COLUMNS[column]
        lines += [f"{len(failures)} units failed ({name}): {failures['error'].iloc[0]}", ""] if len(failures) else []
    if AS_PRINTED in studies:
        lines += _variants(job, studies[AS_PRINTED])
        lines += _ranks(job, table, out)
        lines += _times(job, studies[AS_PRINTED], printed)
        lines += _plots(job, studies[AS_PRINTED], out)
    return "\n".join(lines)


def _ranks(job: Job, table: pd.DataFrame, out: Path, name: str = "") -> list[str]:
    """Average ranks of our values over the data sets, the tests that belong to them, and the diagram."""
    quantity = [name for name, (metric, _) in job.quantities.items() if metric != "n_features"][-1]
    part = table[(table["quantity"] == quantity) & table[AS_PRINTED].notna()]
    scores = part.pivot_table(index="dataset", columns="method", values=AS_PRINTED).dropna()
    if min(scores.shape) < 2:
        return []
    compared = compare(scores, control=job.control if job.control in scores else None)
    file = f"{name or job.name}-ranks.svg"
    compared.plot(out / file)
    lines = [f"Ours over {len(scores)} data sets, {quantity}: Friedman p = {compared.p_value:.3g}.", ""]
    return [*lines, *rank_table(compared), "", f"![ranks]({file})", ""]


def _group_section(paper: Paper, group: str, tables: pd.DataFrame, out: Path) -> str:
    """The jobs of a group as one table: values by data set and method, and the ranks over the data sets."""
    job = next(job for job in paper.jobs if job.group == group)
    part = tables[tables["job"] == group]
    lines = [f"## {group}: all data sets", ""]
    for quantity in job.quantities:
        values = part[part["quantity"] == quantity].pivot_table(index="dataset", columns="method", values=AS_PRINTED)
        if values.empty:
            continue
        values = values[[name for name in job.methods if name in values]]
        values.loc["mean"] = values.mean()
        lines += grid(f"{quantity}, ours by the paper's protocol:", values.map("{:.1f}".format))
    return "\n".join([*lines, *_ranks(job, part, out, group)])


def rank_table(compared: Comparison) -> list[str]:
    """Means and average ranks with the p-values against the paper's own method, or with what differs of all pairs."""
    headings = ["method", "mean", "average rank"]
    if compared.control is None:
        rows = ((row.method, f"{row.mean:.2f}", f"{row.rank:.2f}") for row in compared.table().itertuples())
        pairs = compared.pairs()
        differing = pairs[pairs["p_nemenyi"] <= compared.alpha].to_dict("records")
        names = [f"{row['first']} and {row['second']} (p = {row['p_nemenyi']:.2g})" for row in differing]
        text = f"Pairs that differ at {compared.alpha:.0%} by Nemenyi's test of all pairs: "
        return [*table_lines(headings, rows), "", f"{text}{', '.join(names) if names else 'none'}."]
    headings += [f"p against {compared.control}", "Holm's threshold", "Holm's p", "differs"]
    frame = compared.table().sort_values("p_alone", kind="stable", na_position="first")
    left, cells = len(frame) - 1, []
    for row in frame.to_dict("records"):
        tests = [""] * 4
        if row["method"] != compared.control:
            differs = "yes" if row["p_against_control"] <= compared.alpha else "no"
            p = row["p_alone"], compared.alpha / left, row["p_against_control"]
            tests, left = [*(f"{value:.3g}" for value in p), differs], left - 1
        cells.append([row["method"], f"{row['mean']:.2f}", f"{row['rank']:.2f}", *tests])
    return table_lines(headings, cells)


def _times(job: Job, study: SuiteResult, printed: pd.DataFrame) -> list[str]:
    """Seconds of a unit (a path, and the machine at every size, on one split), and what the paper prints of times."""
    frame = study.to_pandas()
    if frame.empty:
        return []
    by_unit = frame.drop_duplicates(["data", "method", "split"])
    means = by_unit.pivot_table(index="data", columns="method", values="seconds")
    lines = grid("Our seconds for one split, on this machine:", means, digits=2)
    if count := int(by_unit["limited"].eq(True).sum()):
        text = f"A limit ended {count} of the {len(by_unit)} fits (`status_` is 'limit')"
        lines += [f"{text}: where it was the clock's, another run may differ.", ""]
    theirs = printed[printed["quantity"].isin(TIMES) & printed["method"].isin(list(job.methods))]
    theirs = theirs[theirs["dataset"].isin(job.data)]
    if len(theirs):
        where = ", ".join(sorted(set(theirs["table"])))
        title = (
            f"Printed seconds (table {where}; another machine, and for one step or for all of it as the paper says):"
        )
        lines += grid(title, theirs.pivot_table(index="dataset", columns="method", values="value"), digits=2)
    return lines


def _plots(job: Job, study: SuiteResult, out: Path) -> list[str]:
    """A picture for each data set; of several settings of a method the one with the best mean over the sizes."""
    metric = next(iter(job.quantities.values()))[0]
    scores = study.scores(metric)
    scores = scores[scores["size"] != 0]
    lines = []
    for data, part in scores.groupby("data", sort=False):
        if part["size"].nunique() > 2:
            name = f"{job.name}-{str(data).lower()}.svg"
            means = part.groupby("method", sort=False)[metric].mean()
            part = part[part["method"].isin(means.groupby(base_of, sort=False).idxmax())]
            curves(part.rename(columns={metric: "value"}), out / name, metric.replace("_", " "))
            lines += [f"![{data}]({name})", ""]
    return lines


def _markdown(table: pd.DataFrame) -> list[str]:
    if table.empty:
        return []
    columns = [name for name in COLUMNS if table[name].notna().any()]
    shown = (f"ours, {COLUMNS[name]}" for name in columns)
    headings = ("data set", "method", "quantity", "printed", *shown, "verdict")
    rows = (
        (
            *(row["dataset"], row["method"], row["quantity"]),
            *(_number(row[key], row["printed"]) for key in ("printed", *columns)),
            row["verdict"],
        )
        for row in table.to_dict("records")
    )
    return [*table_lines(headings, rows), ""]


def _without_print(job: Job, table: pd.DataFrame) -> list[str]:
    """Our values of which the paper prints none, a grid for each quantity and protocol."""
    lines = []
    for quantity in job.quantities:
        for column, protocol in COLUMNS.items():
            part = table[(table["quantity"] == quantity) & table[column].notna()]
            values = part.pivot_table(index="dataset", columns="method", values=column, sort=False)
            if len(values):
                values = values[[name for name in job.methods if name in values]]
                shown = values.map(lambda value: _number(value, value))
                lines += grid(f"No printed figure: {quantity}, {protocol}:", shown)
    return lines


def _number(value: float, like: float) -> str:
    return "-" if value != value else f"{value:.1f}" if max(value, like if like == like else 0) > 1 else f"{value:.3f}"


def _report(paper: Paper, sections: list[str], evidence: Evidence, scope: str, run: str) -> str:
    claims = [claim.row(evidence) for claim in paper.claims]
    pd.DataFrame(claims).assign(paper=paper.name).to_csv(evidence.drafts / CLAIMS, index=False)
    counts = evidence.ours["verdict"].str.split(":").str[0].value_counts()
    lines = [
        f"# {paper.name}: {paper.title}",
        "",
        f"Made on {datetime.now(UTC):%Y-%m-%d} by `python -m reproduction {paper.name}{option_of(scope)}` ({run}).",
        "'As printed' is the paper's own protocol, which may choose parameters on the very estimate that it reports;",
        "'rivals repaired' the same with every method at its own best; 'honest' chooses all inside each training part.",
        "'Reproduced' means within one percentage point (0.01 for G-mean and AUC, one feature for a number of",
        "features, which is else 'fewer' or 'more').",
        "",
        "Verdicts on single figures: " + ", ".join(f"{count} {name}" for name, count in counts.items()) + ".",
        "",
        "## Claims",
        "",
        *claim_table(claims),
        "",
        *_properties(paper, evidence.drafts),
        *sections,
    ]
    return "\n".join(lines) + "\n"


def option_of(scope: str) -> str:
    """How a command asks for the scope."""
    return "" if scope == KEPT else f" --{scope}"


def claim_table(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each claim: its place, the verdict, what each column says; why it does not hold as notes below."""
    reasons = list(dict.fromkeys((row["why"], row["figure"]) for row in claims if row["why"]))
    columns = [name for name in COLUMNS if any(row[name] for row in claims)]
    rows = (
        (
            *(row["claim"], row["where"], f"**{row['verdict']}**", *(row[name] or "-" for name in columns)),
            f"note {1 + reasons.index((row['why'], row['figure']))}" if row["why"] else "",
        )
        for row in claims
    )
    lines = table_lines(("claim", "where", "verdict", *(COLUMNS[name] for name in columns), "why"), rows)
    texts = [
        f"{count}. {text[:1].upper()}{text[1:].rstrip('.')}." + (f" [The figure]({figure})." if figure else "")
        for count, (text, figure) in enumerate(reasons, start=1)
    ]
    return [*lines, "", "Notes:", "", *texts] if texts else lines


def _properties(paper: Paper, out: Path) -> list[str]:
    """Table 1 of KP-imbalanced: the data sets as they are here beside what is printed."""
    printed = paper.figures()
    theirs = printed[(printed["table"] == "1") & (printed["quantity"] == "gfr")].set_index("dataset")["value"]
    rows = []
    for name in named_problems.present([name for name in theirs.index if name in named_problems.names()]):
        data = named_problems.load(name)
        rows.append({"dataset": name, **describe(data.X, data.y).to_dict(), "gfr_printed": theirs[name]})
    if not rows:
        return []
    frame = pd.DataFrame(rows)
    frame.to_csv(out / "table-1.csv", index=False)
    headings = ("data set", "features", "samples", "minority %", "imbalance ratio", "GFR", "GFR printed")
    cells = (
        (
            *(row["dataset"], f"{row['features']:.0f}", f"{row['samples']:.0f}", f"{row['minority_percent']:.1f}"),
            *(f"{row['imbalance_ratio']:.2f}", f"{row['gfr']:.3f}", f"{row['gfr_printed']:.3f}"),
        )
        for row in rows
    )
    return ["## Table 1", "", *table_lines(headings, cells), ""]
