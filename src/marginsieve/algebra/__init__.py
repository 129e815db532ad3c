"""The kernel algebra: K = outer(A), A = sum_j w_j base_j. One Gram for each geometry.

"Without feature j" and "the gradient in w_j" are written once for each: products (linear, polynomial), distances
(Gaussian), tents (clinical), and plainly for any other kernel.
"""

from .column_view import ColumnView, as_columns
from .generic import GenericGram
from .product_gram import DistanceGram, LinearGram, ProductGram, ThinGram
from .tents import TallTentGram, TentGram

__all__ = ["ColumnView", "DistanceGram", "GenericGram", "LinearGram", "ProductGram", "TallTentGram"]
__all__ += ["TentGram", "ThinGram", "as_columns"]
