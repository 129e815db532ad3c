"""Reading a study: tables of scores, comparisons of methods, stability of what was selected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.scoring import Pass, jaccard, nogueira, point_scores
from ..engine.store import FILE, Store
from ..errors import InputError, many
from ..fitting.settings import find_outcome
from ..outcomes import Classes, ClassTarget, Target
from ..outcomes.scores import METRICS
from ..report.figures import COLOURS, finish_figure, new_figure
from ..report.suite_page import render_suite
from ..validation.validated import plain_values
from .statistics import Comparison, compare

if TYPE_CHECKING:
    import pandas as pd

UNIT_COLUMNS = ("data", "method", "split", "repeat", "status", "error", "seconds", "peak_mb", "finished")
MARKS = "osD^vP*X"
PAGE = "suite.html"  # beside the store
OWN = 0  # stands for the number of features chosen by the method in tables of sizes


class SuiteResult:
    """The results of one folder, of the suite that was run there last.

    Parameters
    ----------
    folder : str or path
        Folder of `run_suite`.

    Attributes
    ----------
    folder : Path
        The folder.

    Examples
    --------
    >>> from marginsieve.bench import example_result
    >>> example_result().scores("auc").columns.tolist()
    ['data', 'method', 'size', 'auc', 'passes']
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not (self.folder / FILE).exists():
            raise InputError(f"there is no study in {self.folder}")

    def _rows(self) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]], dict[str, Any]]:
        with closing(Store(self.folder, write=False)) as store:
            current = set(store.meta("current") or [])
            rows = [row for row in store.units() if row["key"] in current]
            return rows, store.data(), store.meta("suite") or {}

    def to_pandas(self) -> pd.DataFrame:
        """One row for each unit and size: what was run, its metrics and its time; the errors of failed units.

        Returns
        -------
        DataFrame
            Among the columns, `limited`: whether a limit of seconds or nodes ended the search for the model (`status_`
            was "limit"); None where that is not known, for units that failed or were stored before it was recorded.

        Examples
        --------
        >>> from marginsieve.bench import example_result
        >>> example_result().to_pandas()[["data", "method", "split", "status", "size"]].head(2)
           data  method split status  size
        0  toy0  fisher   0.0   done     2
        1  toy0  fisher   0.1   done     2
        """
        import pandas as pd

        out, metrics_of = [], self._titles()
        for row in self._rows()[0]:
            result = row["result"] or {}
            base = {key: row[key] for key in UNIT_COLUMNS}
            base |= {"params": str(row["params"]), "limited": result.get("limited")}
            for entry in result.get("by_size", [{}]):
                metrics = row["metrics"].get(str(entry.get("size")), {})
                out.append({**base, "size": entry.get("size"), **{name: metrics.get(name) for name in metrics_of}})
        return pd.DataFrame(out)

    def to_parquet(self, path: str | Path) -> None:
        """Write the table of `to_pandas` to a Parquet file.

        Parameters
        ----------
        path : str or path
            File to write.

        Examples
        --------
        >>> import tempfile
        >>> from marginsieve.bench import example_result
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     example_result().to_parquet(f"{folder}/units.parquet")
        """
        self.to_pandas().to_parquet(path, index=False)

    def failures(self) -> pd.DataFrame:
        """Units that failed, with their message.

        Returns
        -------
        DataFrame
            Columns data, method, split and error.

        Examples
        --------
        >>> from marginsieve.bench import example_result
        >>> len(example_result().failures())
        0
        """
        import pandas as pd

        columns = ["data", "method", "split", "error"]
        rows = [row for row in self._rows()[0] if row["status"] == "failed"]
        return pd.DataFrame([{name: row[name] for name in columns} for row in rows], columns=columns)

    def timings(self) -> pd.DataFrame:
        """Seconds of every unit that was run in the folder, those of earlier suites among them.

        Returns
        -------
        DataFrame
            Columns data, method, split ("tuning" for parameters that are tuned on the reported splits), seconds and
            finished.

        Examples
        --------
        >>> from marginsieve.bench import example_result
        >>> sorted(example_result().timings()["split"].unique())
        ['0.0', '0.1']
        """
        import pandas as pd

        with closing(Store(self.folder, write=False)) as store:
            return pd.DataFrame(store.timings(), columns=["data", "method", "split", "seconds", "finished"])

    def _titles(self) -> dict[str, str]:
        """The metrics of the suite's outcome, with their titles, the main one first."""
        _, data, about = self._rows()
        if not data or about.get("outcome", Classes.name) == Classes.name:
            return METRICS
        return {name: metric.title for name, metric in _stored_target(next(iter(data.values())), about).metrics.items()}

    def main_metric(self) -> str:
        """The metric that is shown where none is named: balanced accuracy, R2 or Harrell's C.

        Returns
        -------
        str
            Its name.

        Examples
        --------
        >>> from marginsieve.bench import example_result
        >>> example_result().main_metric()
        'balanced_accuracy'
        """
        return next(iter(self._titles()))

    def scores(self, metric: str | None = None) -> pd.DataFrame:
        """Scores by data set, method and size: pooled over each pass through the table and averaged over passes.

        Splits that do not cover the table (hold-out protocols) are averaged one by one.

        Parameters
        ----------
        metric : str or None, default=None
            A metric of the suite's outcome, for classes one of `marginsieve.engine.METRICS`; None is `main_metric`.

        Returns
        -------
        DataFrame
            Columns data, method, size (0 where only one size was reported), the metric, and passes.

        Examples
        --------
        >>> from marginsieve.bench import example_result
        >>> example_result().scores("auc")[["data", "method", "size", "passes"]].head(2)
           data   method  size  passes
        0  toy0   fisher     0       1
        1  toy0  relieff     0       1
        """
        import pandas as pd

        titles = self._titles()
        metric = next(iter(titles)) if metric is None else metric
        if metric not in titles:
            raise InputError(f"metric is {metric!r}; it must be one of {', '.join(titles)}")
        rows, data, about = self._rows()
        pooled = about.get("scheme") in ("folds", "loo")
        passes: dict[tuple[str, str, int, Any], list[tuple[Any, Any]]] = defaultdict(list)
        for row, size, entry in _by_size(rows):
            group = row["repeat"] if pooled else row["split"]
            passes[row["data"], row["method"], size, group].append((row["result"]["test"], entry))
        values: dict[tuple[str, str, int], list[float]] = defaultdict(list)
        for (name, method, size, _), parts in passes.items():
            values[name, method, size].append(_pool(parts, _stored_target(data[name], about), metric))
        records = [(*where, float(np.nanmean(each)), len(each)) for where, each in values.items()]
        return pd.DataFrame(records, columns=["data", "method", "size", metric, "passes"])

    def compare(
        self,
        metric: str | None = None,
        size: int | None = None,
        alpha: float = 0.05,
        control: str | None = None,
    ) -> Comparison:
        """Compare methods over data sets: ranks, Friedman, Nemenyi, Holm, Wilcoxon.

        Parameters
        ----------
        metric : str or None, default=None
            A metric of the suite's outcome, for classes one of `marginsieve.engine.METRICS`; None is `main_metric`.
        size : int or None, default=None
            Number of features; None averages over the sizes.
        alpha : float, default=0.05
            Significance level.
        control : str or None, default=None
            Method that the others are tested against, named before looking; None is the `control` of the suite. Where
            that names none, all pairs are tested.

        Returns
        -------
        Comparison
            The methods, best average rank first.

        Examples
        --------
        >>> from marginsieve.bench import example_result
        >>> sorted(example_result().compare("auc").methods)
        ['fisher', 'relieff']
        """
        metric = self.main_metric() if metric is None else metric
        scores = self.scores(metric)
        if size is not None:
            scores = scores[scores["size"] == size]
        table = scores.pivot_table(index="data", columns="method", values=metric, aggfunc="mean")
        return compare(table, alpha, self._rows()[2].get("control") if control is None else control)

    def plot_stability(self, path: str | Path | None = None, metric: str | None = None) -> Any:
        """Plot the score against the stability, a point for each method and size, both averaged over the data sets.

        It needs matplotlib (the extra `marginsieve[plot]`).

        Parameters
        ----------
        path : str, path or None, default=None
            File to write (.svg, .png or .pdf); None writes none.
        metric : str or None, default=None
            A metric of the suite's outcome, for classes one of `marginsieve.engine.METRICS`; None is `main_metric`.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Examples
        --------
        >>> from marginsieve.bench import example_result
        >>> example_result().plot_stability(metric="auc").axes[0].get_ylabel()
        'ranking AUC'
        """
        keys, titles = ["data", "method", "size"], self._titles()
        metric = next(iter(titles)) if metric is None else metric
        both = self.scores(metric).merge(self.stability()[[*keys, "stability"]], on=keys)
        means = both.groupby(["method", "size"], sort=False, as_index=False)[[metric, "stability"]].mean()
        figure, axes = new_figure(6.5, 4.5)
        for j, (method, part) in enumerate(means.groupby("method", sort=False)):
            part = part.sort_values("size")
            style = {"color": COLOURS[j % len(COLOURS)], "marker": MARKS[j % len(MARKS)]}
            axes.plot(part["stability"], part[metric], lw=1, label=str(method), **style)
            for size, x, y in zip(part["size"], part["stability"], part[metric], strict=True):
                axes.annotate(f"{size:g}", (x, y), fontsize=7, xytext=(3, 3), textcoords="offset points")
        return finish_figure(figure, axes, "stability of the selected sets (Nogueira)", titles[metric], path)

    def stability(self) -> pd.DataFrame:
        """Stability of the selected features by data set, method and size, over the splits.

        Returns
        -------
        DataFrame
            Columns data, method, size (0 where only one size was reported), stability (Nogueira's measure) with its
            interval low and high, jaccard, and sets.

        Examples
        --------
        >>> from marginsieve.bench import example_result
        >>> example_result().stability()[["data", "method", "size", "sets"]].head(2)
           data   method  size  sets
        0  toy0   fisher     0     2
        1  toy0  relieff     0     2
        """
        import pandas as pd

        rows, data, _ = self._rows()
        sets: dict[tuple[str, str, int], list[list[int]]] = defaultdict(list)
        for row, size, entry in _by_size(rows):
            sets[row["data"], row["method"], size].append(entry["support"])
        out = []
        for where, chosen in sets.items():
            if len(chosen) > 1:
                n = data[where[0]]["features"]
                measure = nogueira(chosen, n)
                out.append((*where, measure.value, measure.low, measure.high, jaccard(chosen, n), measure.sets))
        return pd.DataFrame(out, columns=["data", "method", "size", "stability", "low", "high", "jaccard", "sets"])

    def summary(self, metric: str | None = None) -> dict[str, Any]:
        """The suite as plain values: what its page shows.

        Parameters
        ----------
        metric : str or None, default=None
            A metric of the suite's outcome, for classes one of `marginsieve.engine.METRICS`; None is `main_metric`.

        Returns
        -------
        dict
            Scores by table, the comparison of the methods where every method has a score on each of several tables,
            stability and failures.

        Examples
        --------
        >>> from marginsieve.bench import example_result
        >>> example_result().summary("auc")["methods"]
        ['fisher', 'relieff']
        """
        metric = self.main_metric() if metric is None else metric
        about, scores = self._rows()[2], self.scores(metric)
        table = scores.pivot_table(index=["data", "size"], columns="method", values=metric, sort=False)
        rows = [
            {"data": str(name), "size": int(size), "values": row.tolist(), "best": float(np.nanmax(row))}
            for (name, size), row in zip(table.index.tolist(), table.to_numpy(dtype=float), strict=True)
        ]
        tables, methods = scores["data"].unique().tolist(), [str(name) for name in table.columns]
        compared = None
        if len(methods) > 1 and len(tables) > 1 and not table.isna().to_numpy().any():
            compared = self.compare(metric)
        title = self._titles()[metric]
        winner = "" if compared is None else f": {compared.methods[0]} has the best average rank"
        headline = f"{title[0].upper()}{title[1:]} of {many(len(methods), 'method')} on {many(len(tables), 'table')}"
        out = {
            "version": version("marginsieve"),
            "name": str(about.get("name", self.folder.name)),
            "protocol": str(about.get("scheme") or ""),
            "title": title,
            "headline": headline + winner,
            "tables": tables,
            "methods": methods,
            "scores": rows,
            "comparison": None if compared is None else compared.summary(),
            "stability": self.stability().to_dict("records"),
            "failures": self.failures().to_dict("records"),
        }
        return dict(plain_values(out))

    def html(self, metric: str | None = None) -> str:
        """The page of the suite.

        Parameters
        ----------
        metric : str or None, default=None
            A metric of the suite's outcome, for classes one of `marginsieve.engine.METRICS`; None is `main_metric`.

        Returns
        -------
        str
            One HTML page without external resources.

        Examples
        --------
        >>> from marginsieve.bench import example_result
        >>> example_result().html("auc")[:15]
        '<!doctype html>'
        """
        return render_suite(self.summary(metric))


def _by_size(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], int, dict[str, Any]]]:
    """(row, size, what it left at that size) of the units that ended well."""
    for row in rows:
        if row["status"] == "done":
            by_size = row["result"]["by_size"]
            for entry in by_size:
                yield row, entry["size"] if len(by_size) > 1 else OWN, entry


def _stored_target(data: dict[str, Any], about: dict[str, Any]) -> Target:
    """The outcomes of a table's rows as a store has them."""
    if (outcome := about.get("outcome", Classes.name)) == Classes.name:
        return ClassTarget.from_store(data)
    truth = np.asarray(data["truth"], dtype=np.float64).T
    target: Target = find_outcome(outcome, {}).read(np.zeros((len(truth), 1)), truth)
    return target


def _pool(parts: list[tuple[Any, Any]], target: Target, metric: str) -> float:
    test = np.concatenate([np.asarray(rows, dtype=np.intp) for rows, _ in parts])
    scores = point_scores(target.take(test), Pass.from_entries([entry for _, entry in parts]))
    return scores.get(metric, float("nan"))
