"""Tables to try things on: generated ones with a known truth, and the papers' own."""

from .cohort import Cohort, Truth, make_cohort
from .papers import Dataset, load, names, present

__all__ = ["Cohort", "Dataset", "Truth", "load", "make_cohort", "names", "present"]
