"""The kernel algebra: K = outer(A), A = sum_j w_j base_j. One Gram for each geometry.

"Without feature j" and "the gradient in w_j" are written once for each: products (linear, polynomial), distances
(Gaussian), tents (clinical), and plainly for any other kernel.
"""

from .columns import ColumnView, as_columns
from .distance import DistanceGram
from .generic import GenericGram
from .product import LinearGram, ProductGram
from .tent import TentGram

__all__ = ["ColumnView", "DistanceGram", "GenericGram", "LinearGram", "ProductGram", "TentGram", "as_columns"]
