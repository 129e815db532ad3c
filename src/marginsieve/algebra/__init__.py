"""The kernel algebra: K = outer(A), A = sum_j w_j base_j. One Gram for each geometry.

"Without feature j" and "the gradient in w_j" are written once for each: products (linear, polynomial), distances
(Gaussian), tents (clinical), and plainly for any other kernel.
"""

from .column_view import ColumnView, as_columns
from .distance import DistanceGram
from .generic import GenericGram
from .product_gram import LinearGram, ProductGram
from .tent_gram import TallTentGram, TentGram
from .thin_gram import ThinGram

__all__ = ["ColumnView", "DistanceGram", "GenericGram", "LinearGram", "ProductGram", "TallTentGram"]
__all__ += ["TentGram", "ThinGram", "as_columns"]
