"""Tables: reading files, kinds of columns, numbers written as text, generated cohorts."""

from .cohort import Cohort, Truth, make_cohort
from .loaders import NamedTable, load_table, register_tables

__all__ = ["Cohort", "NamedTable", "Truth", "load_table", "make_cohort", "register_tables"]
