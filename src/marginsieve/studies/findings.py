"""What is remarkable about a table before anything is fitted: leaks, gaps, equal rows, rare classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from .._types import IntArray
from ..errors import listing

if TYPE_CHECKING:
    import pandas as pd

FEW = 10  # samples of a class below which a bootstrap says little
LEVELS = 50  # different values up to which a column of whole numbers is also looked at as categories
LIKELY = 0.05  # as many columns or more that separate the classes by chance: it is no alarm
NUMBERS = 0.9  # share of a text column's cells that are numbers from which on the others are worth a look


@dataclass(frozen=True)
class Finding:
    """Something about the data: what kind, an "alarm" or a "note", a sentence, the columns it is about."""

    kind: str
    level: str
    text: str
    columns: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "level": self.level, "text": self.text, "columns": list(self.columns)}


def findings_of(X: pd.DataFrame, y: Any) -> list[Finding]:
    """All findings, alarms first."""
    import pandas as pd

    codes = np.asarray(pd.factorize(y)[0], dtype=np.intp)
    found = [*_leaks(X, codes), *_few(y), *_equal_rows(X, codes), *_gaps(X), *_text(X)]
    return sorted(found, key=lambda finding: finding.level != "alarm")


def _leaks(X: pd.DataFrame, codes: IntArray) -> list[Finding]:
    """Columns that tell the class without an error."""
    copies, tells = [], []
    for name, levels in _levels(X):
        pairs = np.unique(np.stack([levels, codes]), axis=1)
        if len(np.unique(pairs[0])) == pairs.shape[1] and levels.max() > 0:  # each level has one class
            one_to_one = pairs.shape[1] == len(np.unique(codes))
            if one_to_one:
                copies.append(name)
            elif levels.max() + 1 <= len(codes) / 3:
                tells.append(name)
    told = {*copies, *tells}
    tells += [name for name in _separating(X, codes) if name not in told]
    found = []
    if copies:
        text = f"{listing(copies)} says the same as the target in every row: if it was made from it, drop it"
        found.append(Finding("copy", "alarm", text, tuple(copies)))
    if tells:
        text = f"{listing(tells)} alone tells the classes apart without an error: check that it was known beforehand"
        found.append(Finding("leak", "alarm", text, tuple(tells)))
    return found


def _levels(X: pd.DataFrame) -> list[tuple[str, IntArray]]:
    """Columns of few values as codes, an empty cell being a value of its own."""
    import pandas as pd

    whole = X.select_dtypes("integer")
    wide = set(whole.columns[(whole.max() - whole.min()) >= LEVELS])
    out = []
    for name, dtype in X.dtypes.items():
        if dtype.kind != "f" and name not in wide:
            out.append((str(name), np.asarray(pd.factorize(X[name], use_na_sentinel=False)[0], dtype=np.intp)))
    empty = X.isna()
    out += [(str(name), empty[name].to_numpy().astype(np.intp)) for name in X.columns[empty.any()]]
    return out


def _separating(X: pd.DataFrame, codes: IntArray) -> list[str]:
    """Columns of numbers on which the classes lie beside each other; none where chance would find some."""
    numbers = X.select_dtypes("number")
    counts = np.bincount(codes)
    # the classes of a column without meaning lie beside each other in k! of the m! / (m1! m2! ...) ways to mix them
    chance = gammaln(len(counts) + 1) + gammaln(counts + 1).sum() - gammaln(len(codes) + 1)
    if not numbers.shape[1] or np.log(numbers.shape[1]) + chance > np.log(LIKELY):
        return []
    values = numbers.to_numpy(dtype=np.float64)
    whole = ~np.isnan(values).any(axis=0)
    parts = [values[codes == code][:, whole] for code in range(len(counts))]
    low, high = (np.array([edge(part, axis=0) for part in parts]) for edge in (np.min, np.max))
    order = np.argsort(low, axis=0)
    low, high = np.take_along_axis(low, order, axis=0), np.take_along_axis(high, order, axis=0)
    apart = (high[:-1] < low[1:]).all(axis=0)
    return [str(name) for name in numbers.columns[whole][apart]]


def _few(y: Any) -> list[Finding]:
    counts = y.value_counts()
    fewest = int(counts.min())
    if fewest >= FEW:
        return []
    text = f"the rarest class has {fewest} samples: the intervals are rough, and 1.000 to 1.000 proves little"
    return [Finding("few", "alarm", text)]


def _equal_rows(X: pd.DataFrame, codes: IntArray) -> list[Finding]:
    """Rows that occur more than once: on both sides of a split they leak, with two labels one is wrong."""
    import pandas as pd

    hashed = pd.util.hash_pandas_object(X, index=False).to_numpy()
    _, place, times = np.unique(hashed, return_inverse=True, return_counts=True)
    extra = int((times - 1).sum())
    if not extra:
        return []
    kinds = np.unique(np.stack([place, codes]), axis=1)[0]
    torn = int((np.bincount(kinds) > 1).sum())
    text = f"{extra} rows repeat another row: where these are the same sample twice, the scores are too good"
    found = [Finding("equal rows", "note" if torn == 0 else "alarm", text)]
    if torn:
        text = f"{torn} sets of equal rows have different classes: no method can get all of them right"
        found.append(Finding("torn rows", "alarm", text))
    return found


def _gaps(X: pd.DataFrame) -> list[Finding]:
    share = X.isna().mean()
    some = share[share > 0].sort_values(ascending=False, kind="stable")
    if not len(some):
        return []
    worst = f"{some.index[0]!r} in {some.iloc[0]:.0%} of the rows"
    text = (
        f"{len(some)} of {X.shape[1]} columns have empty cells, {share.mean():.1%} of all cells, most of them {worst}"
    )
    return [Finding("gaps", "note", text, tuple(map(str, some.index[:20])))]


def _text(X: pd.DataFrame) -> list[Finding]:
    """Columns of text that are numbers but for a few cells."""
    import pandas as pd

    found = []
    for name, dtype in X.dtypes.items():
        if dtype.kind in "biuf" or str(dtype) == "category":
            continue
        cells = X[name].dropna().astype(str)
        numbers = pd.to_numeric(cells, errors="coerce").notna()
        if NUMBERS <= numbers.mean() < 1:
            found.append((str(name), cells[~numbers].iloc[0]))
    return [
        Finding("text", "note", f"{name!r} holds numbers but also {cell!r}: it is read as categories", (name,))
        for name, cell in found
    ]
