"""A table as a study needs it: features, target, groups, what the rows are called, and what to know beforehand."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batches.arrays import on_host
from ..contracts import Array, IntArray, Outcome, is_sparse
from ..data.cells import are_numbers, find_separated, is_numeral, is_text, read_numerals, tidy_frame
from ..data.dates import ORDERS, days_since, find_order, parse_dates
from ..data.ledger import TOO_LARGE, Ledger
from ..data.stored import anndata_frame, is_anndata
from ..data.table import Schema, as_frame, sound_sparse
from ..engine.units import UnitTable, fingerprint
from ..errors import InputError, listing, many, refuse_surrogates, shown_value
from ..estimators import find_suspects
from ..fitting.rows import Rows
from ..fitting.settings import refuse_dense
from ..outcomes import Classes, Numbers, Survival
from ..outcomes.survival import holds_times, read_times
from ..outcomes.target import NUMBERS, plain_labels
from .checks import CHECKS, Finding
from .findings import MIXED, find_known_after, find_leaks, find_sites, show_cell, table_findings
from .target_column import merge_labels, read_survival, refuse_amounts, refuse_times, resolve_outcome

if TYPE_CHECKING:
    import pandas as pd

CLASSES = Classes.name
FEWEST = 10  # rows from which on a column of text can be an id
NAMED = re.compile(
    r"(?<!per)(?<!in)(?<!of)(^|[^a-z])(id|ids|uuid|guid|barcode|accession|mrn|ssn|patient|subject|sample|participant|"
    r"account|zip|zipcode|zip_?code|postcode|postal_?code|phone|telephone)(_?(number|nr|no))?$"
)
MOST_DISTINCT = 0.9  # a column that is called an id and has more different values than this share of rows is one
GROUP = 2.0  # and one whose values come this many times on average tells groups
OTHERS = 0.1  # share of cells that are no numbers, up to which a column that would be left out is read as numbers
EXACT = 2**53  # up to which all whole numbers are floats
MANY, FEW = 10, 5  # more levels than this, most rows in levels of fewer rows than that: nothing to learn from
WORDS = 4  # from which on cells are free text


@dataclass(frozen=True)
class StudyData:
    """Features X, classes y, groups of rows that belong together, names of the rows; columns left out; findings."""

    X: pd.DataFrame
    y: Any
    groups: Any
    labels: Any  # what the rows are called, or None
    target: str
    group_column: str | None
    ids: tuple[str, ...]
    left_out: tuple[str, ...]
    findings: tuple[Finding, ...]
    has_ids: bool = False  # whether `labels` are ids, which no two rows share
    named: bool = True  # whether the columns' names are the user's
    numbers: IntArray | None = None  # the rows' numbers in the user's table, None: they are in its order
    columns: IntArray | None = None  # the columns' places among the features of the user's table, likewise
    ledger: Ledger = field(default_factory=Ledger)  # what reading changed, by the rows of the user's table
    site: Any = None  # of each row, None where no sites were named
    site_column: str | None = None
    outcome: str | Outcome = "classes"  # what the target is
    days: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # of dates: the first day, how they are written

    @property
    def has_categories(self) -> bool:
        """Whether there are categories."""
        return any(dtype.kind not in "biuf" for dtype in set(self.X.dtypes))

    @property
    def has_gaps(self) -> bool:
        return bool(self.X.isna().to_numpy().any())

    def table(self, outcome: Outcome) -> UnitTable:
        """The table as units see it: encoded once, the target read once."""
        import pandas as pd

        groups = None if self.groups is None else pd.factorize(self.groups)[0]  # numbered as they come
        target = outcome.read(self.X, self.y, None, groups).settle(outcome)
        schema = Schema.from_table(self.X)
        days = {j: self.days[name] for j, name in enumerate(self.X.columns) if name in self.days}
        schema = replace(schema, days=days)
        rows = Rows(schema, schema.table(self.X), target, numbers=self.numbers, total=len(self.X))
        return UnitTable("table", rows, fingerprint(self.X, target))

    def find_rows(self, rows: Sequence[int]) -> IntArray:
        """The places of rows by their numbers in the user's table, from 1."""
        numbers = np.arange(len(self.X)) if self.numbers is None else self.numbers
        place = {int(number) + 1: k for k, number in enumerate(numbers)}
        if absent := [row for row in rows if row not in place]:
            raise InputError(f"explain_rows names row {absent[0]}, which is not among the {len(place)} that are used")
        return np.array([place[row] for row in rows], dtype=np.intp)

    def in_canonical_order(self, random_state: int) -> StudyData:
        """The same rows and columns in an order that does not depend on the table's: what is drawn is drawn from it.

        Columns come by name, where they have names of their own. Rows come by id; without one by a hash of their cells,
        keyed by the seed, and equal rows by their outcome.
        """
        import pandas as pd

        names = [str(name) for name in self.X.columns]
        columns = np.array(sorted(range(len(names)), key=names.__getitem__) if self.named else range(len(names)))
        X, outcome = self.X.iloc[:, columns], pd.DataFrame(self.y).astype(str).agg(" ".join, axis=1).to_numpy()
        if self.has_ids:
            numbers = np.argsort(np.asarray(self.labels), kind="stable")
        else:
            keys = list(zip(_hash_rows(X, random_state), outcome, strict=True))
            numbers = np.array(sorted(range(len(X)), key=keys.__getitem__))
        y, groups, labels, site = (
            None if some is None else some.iloc[numbers].reset_index(drop=True)
            for some in (self.y, self.groups, self.labels, self.site)
        )
        X = X.iloc[numbers].reset_index(drop=True)
        return replace(self, X=X, y=y, groups=groups, labels=labels, site=site, numbers=numbers, columns=columns)


def _hash_rows(X: pd.DataFrame, random_state: int) -> list[bytes]:
    """A keyed hash of each row of features, as the machines see it."""
    Z = np.asarray(Schema.from_table(X).table(X).Z) + 0.0  # there is one zero
    Z[np.isnan(Z)] = np.nan  # and one gap
    key = str(random_state).encode()[:64]
    return [hashlib.blake2b(row.tobytes(), key=key, digest_size=16).digest() for row in np.ascontiguousarray(Z)]


def from_frame(
    frame: Any,
    target: str,
    *,
    groups: str | None = None,
    site: str | None = None,
    drop: Sequence[str] = (),
    ids: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    include: Sequence[str] = (),
    outcome: str | Outcome = "classes",
    time: str | None = None,
    ledger: Ledger | None = None,
) -> StudyData:
    """A table with its target; `ids` names the columns that tell rows apart, None finds them.

    Columns of `keep` and `include` are features whatever they look like. `outcome`: what the target is; "auto" guesses
    between classes, of which there is more to say, numbers, and survival, whose times are in the column `time`.
    `ledger`: what was changed when the table was read; what is changed here is added.
    """
    in_python, ledger = ledger is None, Ledger() if ledger is None else ledger
    labels, is_id = _row_names(frame)
    frame = frame.reset_index(drop=True)
    roles = {"groups": groups, "site": site, "time": time}
    _check_names(frame, target, roles, drop, ids or (), (keep, include))
    outcome, y, spelt = _read_outcome(frame, target, time, outcome, ledger, in_python)
    by_label, keep = outcome == CLASSES or isinstance(outcome, Classes), (*keep, *include)
    named, times = [name for name in dict.fromkeys((groups, site)) if name is not None], [] if time is None else [time]
    frame = tidy_frame(frame.drop(columns=[target, *drop, *times]), ledger)
    X, empty = _drop_empty(frame.drop(columns=named), keep)
    known = find_ids(X) if ids is None else ids
    names = [name for name in known if name in X.columns and (ids is not None or name not in keep)]
    labels = frame[names[0]] if names else labels
    has_ids = (is_id or bool(names)) and labels is not None and bool(labels.notna().all() and labels.is_unique)
    repeats = _find_repeated_ids(X, names) + _find_groups(X.drop(columns=names)) if groups is None else []
    X, days, dated = _read_dates(X.drop(columns=names), ledger)
    X, converted = _read_numbers(X, ledger)
    if by_label:
        refuse_amounts(y, target)
        refuse_times(X, y, target, keep)
    unusable = [finding for finding in _find_unusable(X) if finding.columns[0] not in keep]
    useless = [finding.columns[0] for finding in unusable]
    alarms, X = find_leaks(X, y) if by_label else [], X.drop(columns=useless)
    after = find_known_after(X, y, _not_in(alarms, X), include) if by_label else []
    of_rows = {role: None if (name := roles[role]) is None else frame[name] for role in ("groups", "site")}
    noted = _note_ids(names, ids is None)
    _record_dropped((*empty, *unusable, *(noted if ids is None else [])), ledger)
    _refuse_none(X, (*noted, *empty, *unusable))
    findings = [
        *(Finding(*remark) for remark in ledger.remarks),
        *spelt,
        *alarms,
        *after,
        *table_findings(X, y if by_label else None, of_rows["groups"]),
        *repeats,
        *empty,
        *unusable,
        *(dated + converted),
        *([] if site is not None else find_sites(X, y if by_label else None)),
        *_note_counts(X, keep),
        *noted,
    ]
    findings.sort(key=lambda finding: finding.level != "alarm")
    left_out = (*named, *drop, *names, *(name for finding in empty for name in finding.columns), *useless)
    data = StudyData(X, y, of_rows["groups"], labels, target, groups, tuple(names), left_out, tuple(findings), has_ids)
    return replace(data, ledger=ledger, site=of_rows["site"], site_column=site, outcome=outcome, days=days)


def _record_dropped(findings: Sequence[Finding], ledger: Ledger) -> None:
    """Note the columns of findings as dropped."""
    for finding in findings:
        for name in finding.columns:
            ledger.add("column", "dropped", name, CHECKS[finding.kind].title)


def _refuse_none(X: pd.DataFrame, findings: Sequence[Finding]) -> None:
    """Refuse a table of which no column is left, with what became of them."""
    if X.shape[1] == 0:
        why = "; ".join(finding.text for finding in findings)
        raise InputError(f"no column is left to select from{': ' if why else ''}{why}")


def _read_outcome(
    frame: pd.DataFrame, target: str, time: str | None, outcome: str | Outcome, ledger: Ledger, in_python: bool
) -> tuple[str | Outcome, Any, list[Finding]]:
    """What the target is, its values, and what to say of it."""
    outcome, findings = resolve_outcome(frame[target], outcome, time is not None)
    if getattr(outcome, "name", outcome) == Survival.name:
        y, notes = read_survival(frame, target, time)
        return outcome, y, findings + notes
    if time is not None:
        raise InputError(
            f"time is {time!r}, and the outcome is {getattr(outcome, 'name', outcome)}: times are of survival"
        )
    by_label = outcome == CLASSES or isinstance(outcome, Classes)
    values = _read_target(frame[target], by_label, ledger)
    if not by_label:
        return outcome, values, findings
    labels, spelt = merge_labels(values, ledger, in_python)
    return outcome, labels, findings + spelt


def _row_names(frame: pd.DataFrame) -> tuple[pd.Series | None, bool]:
    """What an index calls the rows, None where it numbers them; whether that may be an id."""
    import pandas as pd

    if isinstance(frame.index, pd.RangeIndex):
        return None, False
    names = frame.index.to_flat_index().to_series(index=pd.RangeIndex(len(frame)))
    return names, not pd.api.types.is_numeric_dtype(frame.index)  # numbers may count rows of a larger table


def _read_target(column: pd.Series, by_label: bool, ledger: Ledger) -> pd.Series:
    """The target as plain values of the type in which it was given; what is neither number nor boolean as text."""
    import pandas as pd

    tidied = tidy_frame(column.to_frame(), None if by_label else ledger)[column.name]  # refuses lists
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufcmM":
        return tidied
    values = (column if by_label else tidied).to_list()
    kinds = {type(value) for value in values}
    if kinds == {Decimal} or all(issubclass(kind, NUMBERS) for kind in kinds):
        return pd.Series(values, index=column.index, name=column.name)
    if not all(issubclass(kind, str) for kind in kinds):
        ledger.add("label", "converted", column.name, "other values, to text", rows=np.arange(len(values)))
    return pd.Series([str(value) for value in values], index=column.index, name=column.name, dtype=object)


def _drop_empty(X: pd.DataFrame, keep: Sequence[str]) -> tuple[pd.DataFrame, list[Finding]]:
    """The columns that have a filled cell, and a finding about the others; complex numbers are refused."""
    if complex_columns := [str(name) for name, dtype in X.dtypes.items() if dtype.kind == "c"]:
        parts = "give their parts, or their size, as columns"
        raise InputError(f"{listing(complex_columns)} holds complex numbers: {parts}")
    names = [str(name) for name in X.columns[X.isna().all()] if name not in keep]
    if not names or not len(X):
        return X, []
    text = f"{listing(names)} {'is' if len(names) == 1 else 'are'} empty in every row and not used"
    return X.drop(columns=names), [Finding("empty", "note", text, tuple(names))]


def _not_in(findings: Sequence[Finding], X: pd.DataFrame) -> list[str]:
    """Columns that no finding names."""
    known = {name for finding in findings for name in finding.columns}
    return [name for name in X.columns if name not in known]


def _read_dates(X: pd.DataFrame, ledger: Ledger) -> tuple[pd.DataFrame, dict[str, tuple[str, str]], list[Finding]]:
    """Columns of dates as days since the first, the first day and how they are written of each, what to say of them."""
    days: dict[str, tuple[str, str]] = {}
    findings: list[Finding] = []
    changed: dict[Any, Any] = {}
    for name, dtype in [(name, dtype) for name, dtype in X.dtypes.items() if dtype.kind == "M" or is_text(dtype)]:
        order = "year first" if dtype.kind == "M" else find_order(X[name])
        if order is None or order not in ORDERS:
            continue
        times = parse_dates(X[name], order)
        if times.isna().all():
            continue
        first = times.min().normalize()
        days[str(name)], changed[name] = (first.date().isoformat(), order), days_since(times, first)
        ledger.add("column", "converted", name, "dates, to days since the first")
        rows = np.flatnonzero(times.isna() & X[name].notna())
        ledger.add("cell", "converted", name, "no date, to an empty cell", rows=rows, cells=X[name].iloc[rows].tolist())
        text = f"{name!r} holds dates and was read as days since the first, {first.date()}"
        text += f" ({order} in text)" if dtype.kind != "M" and order != "year first" else ""
        findings.append(
            Finding("dates", "note", f"{text}; where time says nothing, leave it out (--drop)", (str(name),))
        )
    return (X.assign(**changed) if changed else X), days, findings


def _read_numbers(X: pd.DataFrame, ledger: Ledger) -> tuple[pd.DataFrame, list[Finding]]:
    """Columns of text that are numbers with something around them, as numbers."""
    changed: dict[Any, Any] = {}
    converted: list[Finding] = []
    for column, rows, cells in ledger.find(TOO_LARGE, X.columns):
        changed[column] = X[column].where(~X.index.isin(rows))
        converted.append(_note_others(column, cells[0], rows))
    for name in [name for name, dtype in X.dtypes.items() if is_text(dtype) and not is_named_id(name)]:
        read = read_numerals(X[name], OTHERS)
        if read is None or (len(read.others) and not _has_rare_levels(X[name].dropna())):
            continue
        changed[name] = read.values
        for how, rows in read.changed.items():
            ledger.add("cell", "converted", name, how, rows=rows, cells=X[name].to_numpy()[rows])
        if not read.changed:
            ledger.add("column", "converted", name, "plain numbers as text, to numbers")
        if len(read.others):
            converted.append(_note_others(str(name), X[name].iloc[read.others[0]], read.others))
        if not len(read.others) or len(read.changed) > 1:
            text = f"{name!r} was read as numbers: {', '.join(read.read_as)}"
            converted.append(Finding("numbers", "alarm" if read.limits else "note", text, (str(name),)))
    whole = X.select_dtypes("integer")
    for name in whole.columns[(whole.max() > EXACT) | (whole.min() < -EXACT)]:
        rows = np.flatnonzero(whole[name].gt(EXACT).fillna(False) | whole[name].lt(-EXACT).fillna(False))
        ledger.add("cell", "converted", name, "a whole number above 2^53, to the nearest float", rows=rows)
    return (X.assign(**changed) if changed else X), converted


def _note_others(name: str, cell: Any, rows: IntArray) -> Finding:
    """What is said of a column of numbers, some cells of which are none and were read as empty."""
    text = f"{name!r} holds numbers but also {shown_value(cell)} in row {rows[0] + 1}: it was read as numbers, "
    return Finding("text", "alarm", f"{text}{many(len(rows), 'such cell')} as empty", (name,))


def _has_rare_levels(cells: pd.Series) -> bool:
    """Whether there are many levels, most of the cells in rare ones."""
    counts = cells.astype(str).value_counts()
    return bool(len(counts) > MANY and counts[counts < FEW].sum() > 0.5 * len(cells))


def _find_unusable(X: pd.DataFrame) -> list[Finding]:
    """Columns of dates that cannot be read, free text, levels of a few rows each, which would be learned by heart."""
    import pandas as pd

    findings = []
    for name, dtype in [(name, dtype) for name, dtype in X.dtypes.items() if dtype.kind not in "biufcmM"]:
        declared, cells = isinstance(dtype, pd.CategoricalDtype), X[name].dropna()
        if not declared and find_order(cells) is not None:
            text = (
                f"{name!r} holds dates whose days and months cannot be told apart, such as {cells.iloc[0]!r}, and is "
            )
            text += "not used: write them as 2026-11-19"
            findings.append(Finding("dates", "note", text, (str(name),)))
            continue
        if declared and dtype.ordered:
            continue
        if is_text(dtype) and (cell := find_separated(X[name])) is not None:
            text = (
                f"{name!r} holds numbers with thousands separators or another decimal mark, such as {cell!r}, and is "
                "not used: write them plainly, or name the file's mark (--decimal)"
            )
            findings.append(Finding("separated", "alarm", text, (str(name),)))
            continue
        if not declared and _is_prose(cells):
            text = (
                f"{name!r} holds free text in {cells.nunique():,} versions and is not used: where it matters, make "
                "columns of what it says, such as whether a word occurs"
            )
            findings.append(Finding("prose", "alarm", text, (str(name),)))
            continue
        if _has_rare_levels(cells):
            text = (
                f"{name!r} has {cells.nunique():,} levels in {len(cells):,} rows, most of them with fewer than {FEW} "
                f"rows: nothing can be learned from these, and it is not used{_name_text(cells)}; join levels, or keep "
                "it by name"
            )
            findings.append(Finding("levels", "alarm", text, (str(name),)))
    return findings


def _name_text(cells: pd.Series) -> str:
    """What to add where most cells are numbers: the first that is none."""
    numbers = are_numbers(cells.astype(str))
    if not MIXED <= numbers.mean() < 1:
        return ""
    return f" (it holds numbers but also {show_cell(cells, numbers)}: where they are numbers, correct the others)"


def _is_prose(cells: pd.Series) -> bool:
    """Whether the levels of a column of text are sentences rather than categories."""
    if not _has_rare_levels(cells):
        return False
    return bool(np.median([len(str(cell).split()) for cell in cells.unique()]) >= WORDS)


def _find_repeated_ids(frame: pd.DataFrame, names: Sequence[str]) -> list[Finding]:
    """Ids that come more than once."""
    findings = []
    for name in names:
        if (twice := int(frame[name].duplicated().sum())) and is_named_id(name):
            text = (
                f"{name!r} repeats in {twice} of {len(frame)} rows: where these are the same case twice, name it as "
                "groups, or the scores are optimistically biased"
            )
            findings.append(Finding("groups", "alarm", text, (name,)))
    return findings


def _check_names(
    frame: pd.DataFrame,
    target: str,
    rows: Mapping[str, str | None],
    drop: Sequence[str],
    ids: Sequence[str],
    kept: tuple[Sequence[str], Sequence[str]],
) -> None:
    """Every column that is named is there and has one role; target, groups and sites, of `rows`, are whole."""
    features = dict(zip(("keep", "include"), kept, strict=True))
    for role, name in [
        *(("target", target), *rows.items(), *(("ids", name) for name in ids)),
        *(("drop", name) for name in drop),
        *((role, name) for role, names in features.items() for name in names),
    ]:
        if name is not None and name not in frame.columns:
            close = difflib.get_close_matches(str(name), [str(c) for c in frame.columns], n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"its columns are {listing(list(frame.columns))}"
            if not close and all(is_numeral(column) for column in frame.columns):
                hint += "; has the file a line with names at its top?"
            raise InputError(f"{role} names {name!r}, which the table does not have; {hint}")
    if target in (*rows.values(), *drop, *ids):
        raise InputError(f"{target!r} is the target: it cannot be dropped, be an id, a time, nor tell groups or sites")
    if (time := rows["time"]) is not None and time in (rows["groups"], rows["site"], *drop, *ids):
        raise InputError(f"{time!r} is the time: it cannot be dropped, be an id, nor tell groups or sites")
    for role, names in features.items():
        if both := [name for name in names if name in (target, *rows.values(), *drop, *ids)]:
            raise InputError(
                f"{role} names {both[0]!r}, which is the target, the group column, a time, an id or dropped"
            )
    for role, name in (("target", target), ("group column", rows["groups"]), ("site column", rows["site"])):
        if name is not None and (missing := int(frame[name].isna().sum())):
            raise InputError(
                f"the {role} {name!r} is empty in {missing} of {len(frame)} rows, the first of them row "
                f"{int(np.argmax(frame[name].isna().to_numpy())) + 1}; fill or remove these rows (a cell with NA, NaN, "
                "null or nothing counts as empty)"
            )


def from_arrays(
    X: Any,
    y: Any,
    groups: Any = None,
    ids: Any = None,
    keep: Sequence[Any] = (),
    drop: Sequence[Any] = (),
    include: Sequence[Any] = (),
    outcome: str | Outcome = "classes",
    time: str | None = None,
    site: Any = None,
    layer: str | None = None,
) -> StudyData:
    """A table and its classes as Python objects: pandas, polars, arrow, arrays; `ids` names columns, as above.

    Of AnnData y, groups and site may be names of columns of `obs`, and its `layer` is read in place of X.
    """
    import pandas as pd

    if is_anndata(X) or layer is not None:
        X, y, groups, site = _read_anndata(X, layer, y, groups, site)
    X, y, groups, site = map(on_host, (X, y, groups, site))
    for name, array in (("X", X), ("y", y), ("groups", groups), ("site", site)):
        if isinstance(array, np.ma.MaskedArray):
            raise InputError(f"{name} is a masked array and its mask would be ignored: drop the masked rows")
    table = as_frame(X)
    if table is None:
        if is_sparse(X):
            X = sound_sparse(X)
            refuse_dense(*X.shape)
        values = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        if values.ndim != 2:
            raise InputError(f"X has {values.ndim} dimensions; it must be a table of rows and columns")
        frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])]).infer_objects()
    else:
        frame = table.to_pandas()
        refuse_surrogates("a column's name", frame.columns)
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if holds_times(y, outcome):
        seconds, event = read_times(frame, y)
        target, time = _free_name("event", frame), _free_name("time", frame)
        frame = frame.assign(**{target: event, time: seconds})
    else:
        target = str(getattr(y, "name", None) or next(iter(getattr(y, "columns", ())), "target"))
        target = _free_name(target, frame)
        frame = frame.assign(**{target: _as_column("y", y, len(frame))})
    roles = {"groups": groups, "site": site}
    named: dict[str, Any] = {role: None if each is None else _free_name(role, frame) for role, each in roles.items()}
    for role, column in named.items():
        if column is not None:
            frame[column] = _as_column(role, roles[role], len(frame))
    chosen = {"drop": drop, "ids": ids, "keep": keep, "include": include}
    data = from_frame(frame, target, **named, **chosen, outcome=outcome, time=time)
    return replace(data, named=table is not None)


def _read_anndata(data: Any, layer: str | None, y: Any, groups: Any, site: Any) -> tuple[Any, Any, Any, Any]:
    """The table of AnnData, and what columns of `obs` hold whose names were given."""
    if not is_anndata(data):
        raise InputError(f"layer is {layer!r}, and X is {type(data).__name__}: AnnData has layers")
    refuse_dense(*data.shape)
    roles = {"y": y, "groups": groups, "site": site}
    y, groups, site = (_of_obs(data, role, each) for role, each in roles.items())
    return anndata_frame(data, layer), y, groups, site


def _of_obs(data: Any, role: str, values: Any) -> Any:
    """The column of `obs` that a name means; anything but a name as it is."""
    if not isinstance(values, str):
        return values
    if values not in data.obs.columns:
        known = listing([str(name) for name in data.obs.columns], 10)
        raise InputError(f"{role} is {values!r}; the obs of the AnnData object has {known or 'no columns'}")
    return data.obs[values]


def _free_name(name: str, frame: pd.DataFrame) -> str:
    while name in frame.columns:
        name += "_"
    return name


def _as_column(name: str, column: Any, m: int) -> Any:
    """One value per row, of the type given."""
    values = np.asarray(plain_labels(column))
    if values.dtype.kind in "UO":
        refuse_surrogates(name, values.ravel().tolist())
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if column is None or values.ndim != 1:
        what = repr(column) if isinstance(column, str) else f"{type(column).__name__} of {values.ndim} dimensions"
        raise InputError(f"{name} is {what}; it must hold one value per row, not the name of a column")
    if len(values) != m:
        raise InputError(f"X has {m} rows and {name} {len(values)}; they must be as many")
    return values


def is_named_id(name: Any) -> bool:
    """Whether a column is named like an id; PatientID is patient_id."""
    return bool(NAMED.search(re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", str(name)).lower()))


def find_ids(X: pd.DataFrame) -> list[str]:
    """Columns that tell rows apart: text that never repeats, numbers that count the rows, ids by name."""
    m = len(X)
    if m < FEWEST:
        return []
    counts = X.select_dtypes("integer")
    values = counts.to_numpy(dtype=float, na_value=np.nan)
    steps = np.diff(values, axis=0)
    even = ((steps == steps[:1]) & (steps != 0)).all(axis=0)
    counting = set(counts.columns[even])
    return [str(name) for name, dtype in X.dtypes.items() if _tells_rows(X, name, dtype, name in counting)]


def _tells_rows(X: pd.DataFrame, name: Any, dtype: Any, counts_rows: bool) -> bool:
    if dtype.kind in "fbcmM":
        return False
    called = is_named_id(name)
    if counts_rows or (dtype.kind in "iu" and not called):
        return counts_rows
    column = X[name].dropna()
    distinct = column.nunique() if dtype.kind in "iu" else column.astype(str).nunique()
    if len(column) < FEWEST or not (distinct == len(column) or (called and distinct > MOST_DISTINCT * len(X))):
        return False
    return dtype.kind in "iu" or called or not (_numeric(column) or find_order(column) or _is_prose(column))


def _numeric(column: pd.Series) -> bool:
    """Whether text is mostly numbers."""
    return bool(are_numbers(column.astype(str)).mean() >= MIXED) or find_separated(column) is not None


def _note_ids(names: Sequence[str], guessed: bool) -> list[Finding]:
    if not names:
        return []
    single = len(names) == 1
    if not guessed:
        text = f"{listing(names)}: {'an id, not a feature' if single else 'ids, not features'}"
    else:
        text = f"{listing(names)} {'tells the rows apart as an id does' if single else 'tell the rows apart as ids do'}"
        text += (
            f" and {'is not used as a feature' if single else 'are not used as features'} (--ids none, ids=() would)"
        )
    return [Finding("id", "note", text, tuple(names))]


def _note_counts(X: pd.DataFrame, keep: Sequence[str]) -> list[Finding]:
    """Whole numbers that nearly never repeat, where most columns are not like that: amounts, or codes of rows."""
    names = [
        str(name)
        for name, dtype in X.dtypes.items()
        if dtype.kind in "iu" and len(X) >= FEWEST and X[name].nunique() > MOST_DISTINCT * len(X)
    ]
    if 2 * len(names) > X.shape[1] or not (names := [name for name in names if name not in keep]):
        return []
    text = f"{listing(names)}: whole numbers that nearly never repeat; where they are codes of rows, leave them out"
    return [Finding("counts", "note", f"{text} (--drop)", tuple(names))]


def _find_groups(X: pd.DataFrame) -> list[Finding]:
    """Columns that are called an id and repeat: rows of one patient on both sides of a split would leak."""
    text = "{} looks like an id whose rows belong together: name it as groups, or the scores are optimistically biased"
    return [
        Finding("groups", "alarm", text.format(repr(str(name))), (str(name),))
        for name, dtype in X.dtypes.items()
        if dtype.kind != "f" and is_named_id(name) and GROUP <= len(X) / max(X[name].nunique(), 1) < len(X) / 2
    ]


def column_costs(costs: Mapping[str, Any], names: Sequence[str]) -> Array:
    """(n,) the cost of each column; those without one cost 1."""
    known = set(names)
    if unknown := [str(name) for name in costs if str(name) not in known]:
        raise InputError(f"feature_costs names {listing(unknown)}, which the table does not have as a feature")
    for name, cost in costs.items():
        number = isinstance(cost, (int, float, np.integer, np.floating)) and not isinstance(cost, bool)
        if not number or not 0.0 <= float(cost) < np.inf:
            raise InputError(f"feature_costs of {str(name)!r} is {shown_value(cost)}; it must be a number of 0 or more")
    by_name = {str(name): float(cost) for name, cost in costs.items()}
    return np.array([by_name.get(name, 1.0) for name in names])


def find_label(data: StudyData, label_text: str | None) -> Any:
    """The class that the text `positive` names; None where it names none."""
    if label_text is None:
        return None
    if data.outcome in (Numbers.name, Survival.name):
        raise InputError(f"positive is {label_text!r}, and the outcome is {data.outcome}: it is for classes")
    for label in data.y.unique():
        if str(label) == label_text:
            return label
    known = listing([str(label) for label in data.y.unique()])
    raise InputError(f"positive is {label_text!r}; the target {data.target!r} has {known}")


def judge_table(
    frame: Any,
    target: str,
    *,
    groups: str | None = None,
    drop: Sequence[str] = (),
    ledger: Ledger | None = None,
    **settings: Any,
) -> tuple[pd.DataFrame, tuple[Finding, ...]]:
    """`find_suspects` on a table with its target, as `suspect_table` shows it."""
    data = from_frame(frame, target, groups=groups, drop=drop, ledger=ledger)
    if isinstance(seed := settings.get("random_state"), int):
        data = data.in_canonical_order(seed)
    return suspect_table(find_suspects(data.X, data.y, groups=data.groups, **settings), data), data.findings


def suspect_table(judged: pd.DataFrame, data: StudyData) -> pd.DataFrame:
    """What `find_suspects` says of the data, the most suspicious first: `row` from 1, `id` and `group` where the table
    has them, `label` as given, then its columns."""
    frame = judged.reset_index(drop=True)
    rows = 1 + (np.arange(len(frame)) if data.numbers is None else data.numbers)
    names = {"row": rows, "id": data.labels, "group": data.groups, "label": data.y}
    for place, (name, values) in enumerate((name, some) for name, some in names.items() if some is not None):
        frame.insert(place, name, np.asarray(values))
    return frame.sort_values(["suspicion", "row"], ascending=[False, True], ignore_index=True)
