"""The result of a validation: plain JSON, tables, adapted models, the page; several cohorts joined into one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.cells import csv_of
from ..data.file_access import file_error, format_path
from ..engine.store import claim, publish
from ..errors import InputError, listing
from ..estimators.fitted_selector import FittedSelector
from ..estimators.persistence import to_bytes
from ..report.validation_page import render_validation, render_validation_in_notebook
from .pooling import pool
from .sentences import pooled_sentence

if TYPE_CHECKING:
    import pandas as pd

FILES = ("validation.json", "validation.html", "scores.csv", "columns.csv", "predictions.csv")
VARIANTS = ("aligned", "recalibrated", "aligned-recalibrated", "cut", "aligned-cut")
MODELS = tuple(f"{name}.marginsieve" for name in VARIANTS)


@dataclass(frozen=True)
class Validation:
    """A model on one or several cohorts; in a notebook it is displayed as the page.

    Attributes
    ----------
    result : dict
        All of it as plain JSON: the content of validation.json.
    predictions : dict of str to DataFrame
        For each cohort a row per sample: `row`, `observed`, `predicted`, `score`, `probability`, `far`.
    columns : dict of str to DataFrame
        For each cohort a row per selected column: shift, scale, missing cells, new levels.
    models : dict of str to model
        Adapted models that were asked for, each with a mark of what was done; none of them is used unasked.
    scores : dict
        Scores of the model as it is on the first cohort.

    Examples
    --------
    >>> import marginsieve
    >>> from marginsieve.data import make_cohort
    >>> old, new = make_cohort(60, 10, n_relevant=2, effect=2.0, cohorts=2, random_state=0)
    >>> study = marginsieve.study(old.X, old.y, methods="fisher", cv=3, n_repeats=1, without="suspects")
    >>> validation = study.validate(new.X, new.y)
    >>> validation.result["cohorts"][0]["labelled"]
    60
    """

    result: dict[str, Any]
    predictions: Mapping[str, pd.DataFrame]
    columns: Mapping[str, pd.DataFrame]
    models: Mapping[str, FittedSelector] = field(default_factory=dict)

    @property
    def scores(self) -> dict[str, Any]:
        """Scores of the model as it is on the first cohort."""
        return dict(self.result["cohorts"][0]["lines"]["as_is"]["scores"])

    def html(self) -> str:
        """The page, without external resources."""
        return render_validation(self.result)

    def _repr_html_(self) -> str:
        return render_validation_in_notebook(self.result)

    def __repr__(self) -> str:
        return f"<Validation: {self.result['cohorts'][0]['sentences'][0]}>"

    def frame(self) -> pd.DataFrame:
        """A row for each cohort, line and score: `value`, `low`, `high`, the promised value and the difference."""
        import pandas as pd

        promised = {} if self.result["promise"] is None else self.result["promise"]["scores"]
        rows = []
        for cohort in self.result["cohorts"]:
            lines = {key: (line["scores"], line["differences"]) for key, line in cohort["lines"].items()}
            lines |= {each["name"]: (each["scores"], {}) for each in cohort["adapted"] if not each["why_not"]}
            for key, (scores, differences) in lines.items():
                for name, score in scores.items():
                    change = differences.get(name, {})
                    ends = {f"difference{end}": change.get(each) for end, each in ENDS.items()}
                    known = {"cohort": cohort["name"], "line": key, "score": name, **score}
                    rows.append({**known, "promised": promised.get(name, {}).get("value"), **ends})
        return pd.DataFrame(rows)

    def save(self, folder: str | Path) -> list[Path]:
        """Write the page, validation.json, the tables and the adapted models to a folder."""
        import pandas as pd

        out = Path(folder)
        names = claim_folder(out, len(self.result["cohorts"]))
        tables = {
            "scores.csv": self.frame(),
            "columns.csv": pd.concat([each.assign(cohort=name) for name, each in self.columns.items()]),
            "predictions.csv": pd.concat([each.assign(cohort=name) for name, each in self.predictions.items()]),
        }
        files = {name: csv_of(table).encode("utf-8", errors="backslashreplace") for name, table in tables.items()}
        files["validation.html"] = self.html().encode("utf-8", errors="backslashreplace")
        files["validation.json"] = (json.dumps(self.result, indent=2, allow_nan=False) + "\n").encode()
        files |= {f"{name}.marginsieve": to_bytes(model) for name, model in self.models.items()}
        try:
            publish(out, "validation", files, [name for name in names if name not in files])
        except OSError as error:
            raise file_error(error, f"the folder {format_path(out)} cannot be written to") from error
        return [out / name for name in files]


def claim_folder(folder: Path, cohorts: int) -> list[str]:
    """Make a folder ours before the work is done; the files that a validation of so many cohorts may write there."""
    numbers = range(2, cohorts + 1)
    names = [*FILES, *MODELS, *(f"{start}-{k}.marginsieve" for start in VARIANTS for k in numbers)]
    claim(folder, "validation", names)
    return names


ENDS = {"": "value", "_low": "low", "_high": "high"}


def join_validations(validations: Sequence[Validation]) -> Validation:
    """Several cohorts of one model as one validation, with the scores pooled over them.

    Parameters
    ----------
    validations : sequence of Validation
        Of one model, each of one cohort or of several; the cohorts' names differ.

    Returns
    -------
    Validation
        All cohorts, and for each score that is a share what it is on average and how much it varies between them.

    Examples
    --------
    >>> import marginsieve
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.validation import join_validations
    >>> old, *new = make_cohort(60, 10, n_relevant=2, effect=2.0, cohorts=3, random_state=0)
    >>> model = marginsieve.recipes.fisher(n_features_to_select=2, random_state=0).fit(old.X, old.y)
    >>> parts = [marginsieve.validate(model, each.X, each.y, name=f"cohort {k}") for k, each in enumerate(new)]
    >>> join_validations(parts).result["pooled"]["auc"]["cohorts"]
    2
    """
    if not validations:
        raise InputError("no validation was given: there is nothing to join")
    cohorts = [cohort for each in validations for cohort in each.result["cohorts"]]
    names = [cohort["name"] for cohort in cohorts]
    if again := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"more than one cohort is called {listing(again)}: give each a name of its own")
    first = validations[0]
    if len(validations) == 1:
        return first
    models = {
        name if k == 1 else f"{name}-{k}": model
        for k, each in enumerate(validations, 1)
        for name, model in each.models.items()
    }
    result = {**first.result, "cohorts": cohorts}
    result["pooled"] = pool_scores(result, cohorts)
    predictions = {name: table for each in validations for name, table in each.predictions.items()}
    columns = {name: table for each in validations for name, table in each.columns.items()}
    return replace(first, result=plain_values(result), predictions=predictions, columns=columns, models=models)


def pool_scores(result: Mapping[str, Any], cohorts: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The listed scores over the cohorts that have them, as they are and aligned."""
    out = {}
    for line in ("as_is", "aligned"):
        for name in result["listed_scores"]:
            known = [
                (cohort["lines"][line]["scores"][name], min(each["rows"] for each in cohort["mix"]))
                for cohort in cohorts
                if name in cohort["lines"].get(line, {"scores": {}})["scores"]
            ]
            if len(known) < 2:
                continue
            pooled = pool(
                [each["value"] for each, _ in known], [each["error"] for each, _ in known], [n for _, n in known]
            )
            values = plain_values(asdict(pooled))
            text = pooled_sentence(result, name, line, values)
            out[name if line == "as_is" else f"{name}_aligned"] = {**values, "line": line, "score": name, "text": text}
    return out


def plain_values(value: Any) -> Any:
    """Python's own types alone; what is not finite becomes None."""
    if isinstance(value, Mapping):
        return {str(key): plain_values(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(entry) for entry in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
