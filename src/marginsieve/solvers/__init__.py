"""Numerics in arrays: arrays in, arrays and a residual out."""
