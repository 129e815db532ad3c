"""`reproduce`: the five papers' protocols, printed figures and data. Nothing but the command imports it."""

from . import named_problems, protocols_printed

__all__ = ["named_problems", "protocols_printed"]
