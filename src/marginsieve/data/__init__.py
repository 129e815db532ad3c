"""Tables: reading files, kinds of columns, numbers written as text, generated cohorts."""

from .cohort import Cohort, Truth, make_cohort
from .reading import NamedTable, load_table, register_tables
from .table import Schema, filled_with_means, one_hot

__all__ = ["Cohort", "NamedTable", "Schema", "Truth", "filled_with_means", "load_table", "make_cohort", "one_hot"]
__all__ += ["register_tables"]
