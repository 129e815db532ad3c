"""The five papers by their short names."""

from __future__ import annotations

from marginsieve.errors import InputError, listing

from .kp_imbalanced import KP_IMBALANCED
from .kp_svm import KP_SVM
from .mixed import MIXED
from .paper import Paper
from .ramp_loss import RAMP_LOSS
from .symon import SYMON

PAPERS = {paper.name: paper for paper in (KP_IMBALANCED, KP_SVM, MIXED, SYMON, RAMP_LOSS)}


def paper_of(name: str) -> Paper:
    """A paper by its short name."""
    if name not in PAPERS:
        raise InputError(f"there is no paper {name!r}; the papers are {listing(list(PAPERS), most=10)}")
    return PAPERS[name]
