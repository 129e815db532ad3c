"""`reproduce`: the five papers' protocols, printed figures and data. Nothing but the command imports it."""

from . import problems, protocols_printed

__all__ = ["problems", "protocols_printed"]
