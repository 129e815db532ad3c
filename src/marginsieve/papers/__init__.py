"""The five papers' protocols, printed figures and data."""
