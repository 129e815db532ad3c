"""Keys by which results are found again: of a table's content, and of whatever else decides a result."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from ..outcomes import Target


def fingerprint(X: Any, target: Target) -> str:
    """A hash of a table's content: other values under the same name are other units."""
    import pandas as pd

    digest = hashlib.blake2b(digest_size=16)
    names = [str(name) for name in X.columns]
    facts, values = target.identity
    digest.update(json.dumps([names, *facts]).encode())
    if all(isinstance(dtype, np.dtype) and dtype.kind == "f" for dtype in X.dtypes.unique()):  # a plain matrix
        digest.update(np.ascontiguousarray(X.to_numpy()).tobytes())
    else:
        digest.update(pd.util.hash_pandas_object(X, index=False).to_numpy().tobytes())
    digest.update(np.ascontiguousarray(values).tobytes())
    digest.update(b"" if target.groups is None else np.ascontiguousarray(target.groups).tobytes())
    return digest.hexdigest()


def key_of(*parts: Any) -> str:
    """A key that changes with any of the parts."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
