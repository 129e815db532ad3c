"""What is remarkable about a table before anything is fitted: leaks, gaps, equal rows, rare classes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from scipy.special import gammaln

from ..contracts import IntArray
from ..data.cells import are_numbers, is_text
from ..errors import listing, many, shown_value
from ..outcomes.target import units_per_stratum
from .checks import Finding
from .target_column import named_after_outcome, plain_name

if TYPE_CHECKING:
    import pandas as pd

FEW = 10  # samples of a class below which a bootstrap says little
LEVELS = 50  # different values up to which a column of whole numbers is also looked at as categories
LIKELY = 0.05  # as many columns or more that separate the classes by chance: it is no alarm
DECIDES, AHEAD, MOST_DECIDING = 0.95, 0.1, 3  # AUC of a column, how far it is ahead of all others, how many there are
MIXED = 0.5  # share of a text column's cells that are numbers from which on the others are worth a look


def table_findings(X: pd.DataFrame, y: Any, groups: Any = None) -> list[Finding]:
    """What there is to say of the columns and rows that are used; `y` is None where the target holds no classes."""
    import pandas as pd

    stratum = np.zeros(len(X), dtype=np.intp) if y is None else np.asarray(pd.factorize(y)[0], dtype=np.intp)
    return [*([] if y is None else _few(stratum, groups)), *_equal_rows(X, stratum), *_gaps(X), *_text(X)]


SITE = re.compile(
    r"(^|_)(site|sites|batch|plate|center|centre|hospital|clinic|laborator(y|ies)|lab|scanner|institut(e|ion)|"
    r"processing_date|scan_date|run_date|run|lane|slide|cohort|study|study_name|tissue_source_site|platform)"
    r"(_?(id|no|nr|number|name|code))?$"
)
MOST_SITES = 0.2  # of the rows: a column with more values does not tell sites


def find_sites(X: pd.DataFrame, y: Any) -> list[Finding]:
    """Columns that look like a site or a batch: an alarm where they go with the outcome."""
    findings = []
    for name in [name for name in X.columns if SITE.search(plain_name(name))]:
        cells = X[name].dropna()
        count = cells.nunique()
        if not 2 <= count <= max(MOST_SITES * len(X), 2) or (X[name].dtype.kind == "f" and (cells % 1 != 0).any()):
            continue
        known, shown = "alarm" if _goes_with(X[name], y) else "note", shown_value(str(name))
        text = f"{shown} looks like a site or a batch ({count} values)"
        text += " and goes with the outcome" if known == "alarm" else ""
        findings.append(Finding("site", known, f"{text}: name it (--site), and whole sites are left out", (str(name),)))
    return findings


def _goes_with(column: pd.Series, y: Any) -> bool:
    """Whether the shares of the outcomes differ between the values of a column, p < .01 by chi-squared."""
    import pandas as pd

    if y is None:
        return False
    counts = pd.crosstab(column.reset_index(drop=True), pd.Series(np.asarray(y)))
    return min(counts.shape) > 1 and float(stats.chi2_contingency(counts).pvalue) < 0.01


def find_leaks(X: pd.DataFrame, y: Any) -> list[Finding]:
    """Columns that tell the class without an error, where chance would hardly make one among so many."""
    import pandas as pd

    stratum = np.asarray(pd.factorize(y)[0], dtype=np.intp)
    copies: list[str] = []
    tells: list[str] = []
    for name, levels in _levels(X):
        known = levels >= 0
        if 2 * known.sum() < len(stratum):
            continue
        pairs = np.unique(np.stack([levels[known], stratum[known]]), axis=1)
        counts = np.bincount(stratum[known], minlength=stratum.max() + 1)
        if len(np.unique(pairs[0])) < pairs.shape[1] or (counts == 0).any():
            continue  # a level with two classes, or a class without a level
        ways = pairs.shape[1] * np.log(len(counts))  # each level has one of the classes: so many ways at most
        if np.log(X.shape[1]) + ways + _mixings(counts[:, None])[0] < np.log(LIKELY):
            (copies if pairs.shape[1] == len(counts) else tells).append(name)
    alarmed = {*copies, *tells}
    tells += [name for name in _find_separating(X, stratum) if name not in alarmed]
    findings = []
    if copies:
        text = f"{_each(copies)} says the same as the target, without an exception: drop what was made from the target"
        findings.append(Finding("copy", "alarm", text, tuple(copies)))
    if tells:
        text = f"{_each(tells)} alone tells the classes apart without an error: was it known before the outcome?"
        findings.append(Finding("leak", "alarm", text, tuple(tells)))
    return findings


def find_known_after(X: pd.DataFrame, y: Any, names: Sequence[str], included: Sequence[str] = ()) -> list[Finding]:
    """Columns that may be known only after the outcome: by their names, or since one nearly decides it alone.

    The names of those that are `included` say nothing: the user was asked, and answered.
    """
    import pandas as pd

    findings = []
    if by_name := named_after_outcome([name for name in names if name not in included]):
        text = f"{listing(by_name)}: known before the outcome? By the name perhaps not: leave out what came after it"
        findings.append(Finding("before", "alarm", f"{text} (--drop)", tuple(by_name)))
    stratum = np.asarray(pd.factorize(y)[0], dtype=np.intp)
    numbers = X[list(names)].select_dtypes("number").dropna(axis=1, how="all")
    if stratum.max() != 1 or numbers.shape[1] < 2 or min(np.bincount(stratum)) < FEW:
        return findings
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    place = stats.rankdata(np.where(np.isnan(values), np.nanmean(values, axis=0), values), axis=0)
    count = np.bincount(stratum)
    area = (place[stratum == 1].sum(axis=0) - count[1] * (count[1] + 1) / 2) / (count[0] * count[1])
    area = np.maximum(area, 1.0 - area)
    nearly = np.flatnonzero(area >= DECIDES)
    rest = np.delete(area, nearly).max(initial=0.5)
    if 0 < len(nearly) <= MOST_DECIDING and rest < area[nearly].min() - AHEAD:
        areas = dict(zip(map(str, numbers.columns[nearly]), area[nearly].tolist(), strict=True))
        areas = {name: value for name, value in areas.items() if name not in by_name}
        if areas:
            columns, least = tuple(areas), "" if len(areas) == 1 else "at least "
            text = f"{_each(columns)} alone nearly decides the target (AUC {least}{min(areas.values()):.2f}; the next "
            text += f"column {rest:.2f}): known before the outcome?"
            findings.append(Finding("before", "alarm", text, columns))
    return findings


def _each(names: Sequence[str]) -> str:
    """Columns before what is true of each of them."""
    return listing(names) + (": each" if len(names) > 1 else "")


def _mixings(counts: Any) -> Any:
    """(n,) minus the logarithm of the number of ways to mix classes of these sizes, counts (k, n)."""
    return gammaln(counts + 1.0).sum(axis=0) - gammaln(counts.sum(axis=0) + 1.0)


def _levels(X: pd.DataFrame) -> list[tuple[str, IntArray]]:
    """Columns of few values as codes, -1 where a cell is empty; then which cells of a column are empty."""
    import pandas as pd

    whole = X.select_dtypes("integer")
    wide = set(whole.columns[(whole.max() - whole.min()) >= LEVELS])
    out = []
    for name, dtype in X.dtypes.items():
        if dtype.kind != "f" and name not in wide:
            out.append((str(name), np.asarray(pd.factorize(X[name])[0], dtype=np.intp)))
    empty = X.isna()
    out += [(str(name), empty[name].to_numpy().astype(np.intp)) for name in X.columns[empty.any()]]
    return out


def _find_separating(X: pd.DataFrame, stratum: IntArray) -> list[str]:
    """Columns of numbers on which the classes lie beside each other; none where chance would find some."""
    numbers = X.select_dtypes("number")
    if not numbers.shape[1]:
        return []
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    parts = [values[stratum == code] for code in range(stratum.max() + 1)]
    counts = np.array([(~np.isnan(part)).sum(axis=0) for part in parts])
    usable = (counts > 0).all(axis=0) & (2 * counts.sum(axis=0) >= len(stratum))
    low, high = (np.array([edge.reduce(part, axis=0) for part in parts])[:, usable] for edge in (np.fmin, np.fmax))
    order = np.argsort(low, axis=0)
    low, high = np.take_along_axis(low, order, axis=0), np.take_along_axis(high, order, axis=0)
    # a column without meaning has its classes beside each other in k! of all the ways to mix them
    chance = np.log(numbers.shape[1]) + gammaln(len(parts) + 1) + _mixings(counts[:, usable])
    apart = (high[:-1] < low[1:]).all(axis=0) & (chance < np.log(LIKELY))
    return [str(name) for name in numbers.columns[usable][apart]]


def fewest_units(stratum: IntArray, groups: Any = None) -> int:
    """How many samples or groups the rarest class has."""
    known = None if groups is None else np.asarray(np.unique(groups, return_inverse=True)[1], dtype=np.intp)
    return min(units_per_stratum(stratum, known))


def _few(stratum: IntArray, groups: Any) -> list[Finding]:
    fewest = fewest_units(stratum, groups)
    if fewest >= FEW:
        return []
    count = many(fewest, "sample" if groups is None else "group")
    text = (
        f"the rarest class has {count}, fewer than {FEW}: no interval is given, since so few say next to "
        "nothing of how far the score is from the truth"
    )
    return [Finding("few", "alarm", text)]


def _equal_rows(X: pd.DataFrame, stratum: IntArray) -> list[Finding]:
    """Rows that occur more than once: on both sides of a split they leak, with two labels one is wrong."""
    import pandas as pd

    hashed = pd.util.hash_pandas_object(X, index=False).to_numpy()
    _, place, times = np.unique(hashed, return_inverse=True, return_counts=True)
    extra = int((times - 1).sum())
    if not extra:
        return []
    kinds = np.unique(np.stack([place, stratum]), axis=1)[0]
    torn = int((np.bincount(kinds) > 1).sum())
    some = "1 row repeats" if extra == 1 else f"{extra} rows repeat"
    text = f"{some} another row: where these are the same sample twice, the scores are optimistically biased"
    findings = [Finding("equal rows", "note" if torn == 0 else "alarm", text)]
    if torn:
        some = "1 set of equal rows has" if torn == 1 else f"{torn} sets of equal rows have"
        text = f"{some} different classes: no method can get all of them right"
        findings.append(Finding("torn rows", "alarm", text))
    return findings


def _gaps(X: pd.DataFrame) -> list[Finding]:
    count = X.isna().sum()
    some = count[count > 0].sort_values(ascending=False, kind="stable")
    if not len(some):
        return []
    share = some.sum() / X.size
    cells = f"{'under 0.1%' if share < 0.001 else f'{share:.1%}'} of all cells"
    text = f"{len(some)} of {X.shape[1]} columns {'has' if len(some) == 1 else 'have'} empty cells ({cells}): "
    text += f"{some.index[0]!r} {'in' if len(some) == 1 else 'the most, in'} {some.iloc[0]} of {len(X)} rows"
    return [Finding("gaps", "note", text, tuple(map(str, some.index[:20])))]


def _text(X: pd.DataFrame) -> list[Finding]:
    """Columns of text that are numbers but for some cells."""
    findings = []
    for name in [name for name, dtype in X.dtypes.items() if is_text(dtype)]:
        cells = X[name].dropna().astype(str)
        numbers = are_numbers(cells)
        if MIXED <= numbers.mean() < 1:
            text = f"{name!r} holds numbers but also {show_cell(cells, numbers)}: it is read as categories, in no order"
            findings.append(Finding("text", "alarm", text, (str(name),)))
    return findings


def show_cell(cells: pd.Series, numbers: pd.Series) -> str:
    """The first cell of a column that is no number, with its row."""
    first = int(np.argmin(numbers.to_numpy()))
    return f"{shown_value(cells.iloc[first])} in row {cells.index[first] + 1}"
