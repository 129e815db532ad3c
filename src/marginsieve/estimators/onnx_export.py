"""A fitted selector as an ONNX model: linear, polynomial, Gaussian and clinical kernels on columns of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..contracts import Array, Gram, IntArray
from ..data.file_access import write_atomic
from ..errors import InputError, listing
from ..fitting.training import Model
from ..kernels import Clinical, Gaussian, Linear, Polynomial
from ..outcomes import Classes
from .fitted_selector import FittedSelector

if TYPE_CHECKING:
    from onnx import ModelProto

KERNELS = (Linear, Polynomial, Gaussian, Clinical)
OPSET, IR = 18, 9  # that onnxruntime has read since 1.15


def to_onnx(model: FittedSelector, path: str | Path | None = None) -> ModelProto:
    """Make an ONNX model of a fitted selector, for programs without Python; it needs the extra `marginsieve[onnx]`.

    It takes an array of doubles, a column for each selected feature in the order of `get_feature_names_out()` (which
    the model's metadata has too), and returns `decision`: what `decision_function` returns, with a column for each
    class where there are more than two. Cells must be filled. Alignment to a cohort is not a part of it.

    Parameters
    ----------
    model : SVMSelector or Blend
        A fitted selector for classes on linear, polynomial, Gaussian or clinical kernels, whose selected columns are
        numbers or truth values (as 0 and 1).
    path : str, path or None, default=None
        File to write (.onnx); None writes none.

    Returns
    -------
    onnx.ModelProto
        The model.

    Examples
    --------
    >>> import pytest
    >>> onnx = pytest.importorskip("onnx")
    >>> from marginsieve import recipes, to_onnx
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.fisher(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> [output.name for output in to_onnx(selector).graph.output]
    ['decision']
    """
    try:
        import onnx
    except ImportError as error:
        raise InputError("an ONNX model needs onnx: pip install 'marginsieve[onnx]'") from error
    _check_exportable(model)
    names = [str(name) for name in model.get_feature_names_out()]
    graph, helper = _Nodes(), onnx.helper
    selected = np.flatnonzero(model.support_)
    blend = model.model_
    views = []
    for part, middle, unit in zip(blend.models, blend.middle, blend.unit, strict=True):
        value = _write_model(graph, part, np.searchsorted(selected, part.features))
        views.append(graph.add("Div", graph.add("Sub", value, graph.constant(middle)), graph.constant(unit)))
    total = graph.add("Mul", graph.add("Sum", *views), graph.constant(1.0 / len(views)))
    if len(model.classes_) == 2:
        cut = graph.add("Sub", total, graph.constant(model.threshold_))
        total = graph.add("Mul", cut, graph.constant(model._sign))
    graph.nodes.append(helper.make_node("Identity", [total], ["decision"]))
    tables = [
        helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, [None, width])
        for name, width in (("X", len(names)), ("decision", blend.middle.shape[1]))
    ]
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in graph.constants.items()]
    drawn = helper.make_graph(graph.nodes, "marginsieve", tables[:1], tables[1:], tensors)
    out: ModelProto = helper.make_model(drawn, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
    labels = "\n".join(str(label) for label in model.classes_)
    helper.set_model_props(out, {"features": "\n".join(names), "classes": labels})
    onnx.checker.check_model(out)
    if path is not None:
        write_atomic(Path(path), out.SerializeToString())
    return out


def _check_exportable(model: FittedSelector) -> None:
    """Refuse a model that the operators of ONNX do not express here, by what of it they do not."""
    check_is_fitted(model)
    outcome = getattr(model, "outcome", Classes.name)
    if outcome != Classes.name and not isinstance(outcome, Classes):
        raise InputError(f"outcome is {outcome!r}; an ONNX model is made of classes")
    known = getattr(model, "adaptation_", None)
    if known is not None and known.alignment is not None:
        raise InputError("the model is aligned to a cohort, which an ONNX model is not: use the model before")
    columns = model.columns_
    levels = [columns.names[j] for j in np.flatnonzero(model.support_).tolist() if columns.levels.get(j)]
    if levels:
        raise InputError(f"the columns {listing(levels)} have levels; an ONNX model takes numbers")
    for part in model.model_.models:
        kernel = part.view.kernel
        if not isinstance(kernel, KERNELS) or any(each.diagonal for each in part.solutions):
            machine, name = type(part.machine).__name__, type(kernel).__name__.lower()
            raise InputError(f"{machine} on the {name} kernel has no ONNX model")


class _Nodes:
    """The operations of a graph and its constants, each with a name of its own."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """The name of an array."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype=dtype)
        return name

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """The name of what an operation makes of its inputs."""
        from onnx import helper

        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, list(inputs), [name], **attributes))
        return name


def _write_model(graph: _Nodes, model: Model, columns: IntArray) -> str:
    """(rows, k) values of one machine from X, of which it reads some columns."""
    Z = graph.add("Gather", "X", graph.constant(columns, np.int64), axis=1)
    if model.scaling is not None:
        shifted = graph.add("Sub", Z, graph.constant(model.scaling.shift))
        Z = graph.add("Mul", shifted, graph.constant(model.scaling.factor))
    view, p = model.view, len(model.features)
    if view.kernel.linear:  # weights and intercept, whatever the machine
        constant = model.values(np.zeros((1, p)))[0]
        weight = model.values(np.eye(p)) - constant
        return graph.add("Add", graph.add("MatMul", Z, graph.constant(weight)), graph.constant(constant))
    values = []
    for solution in model.solutions:
        gram = view if isinstance(view, Gram) else view.kernel.bind(view.table, view.feature_weight, view.features)
        if solution.scale is not None:
            raise InputError(f"{type(model.machine).__name__} weighs kernels, and has no ONNX model")
        used = np.flatnonzero(solution.coef)
        write = _write_tents if isinstance(gram.kernel, Clinical) else _write_products
        K = write(graph, gram, used, graph.add("Gather", Z, graph.constant(gram.features, np.int64), axis=1))
        products = graph.add("MatMul", K, graph.constant(solution.coef[used, None]))
        values.append(graph.add("Add", products, graph.constant(solution.intercept)))
    return graph.add("Concat", *values, axis=1)


def _write_products(graph: _Nodes, gram: Gram, used: IntArray, Z: str) -> str:
    """(rows, used) kernel values: columns times the roots of their weights, then products of rows."""
    root = np.sqrt(np.asarray(gram.weight, dtype=float))
    rows = _training_rows(gram, used) * root
    Z = graph.add("Mul", Z, graph.constant(root))
    products = graph.add("MatMul", Z, graph.constant(rows.T))
    if isinstance(gram.kernel, Polynomial):
        return graph.add("Pow", graph.add("Add", products, graph.constant(1.0)), graph.constant(gram.kernel.degree))
    # -|x - z|^2 / 2 = x.z - x.x / 2 - z.z / 2
    squares = graph.add("ReduceSum", graph.add("Mul", Z, Z), graph.constant([1], np.int64), keepdims=1)
    inner = graph.add("Sub", products, graph.constant(0.5 * (rows**2).sum(axis=1)))
    return graph.add("Exp", graph.add("Sub", inner, graph.add("Mul", squares, graph.constant(0.5))))


def _write_tents(graph: _Nodes, gram: Gram, used: IntArray, Z: str) -> str:
    """(rows, used) of sum_j w_j (1 - |u_j - v_j|), columns clipped to the training range and brought to [0, 1]."""
    low, spread = gram.table.bounds[0][gram.features], gram.table.spread[gram.features]
    truth = np.array([gram.table.kind[j] in ("nominal", "boolean") for j in gram.features], dtype=bool)
    low, unit = np.where(truth, 0.0, low), np.where(truth | (spread <= 0), 1.0, spread)
    high = np.where(truth | (spread > 0), 1.0, 0.0)
    V = np.clip((_training_rows(gram, used) - low) / unit, 0.0, high)
    weight = np.where(np.isnan(V), 0.0, gram.weight)  # an empty cell of training is like nothing
    U = graph.add("Div", graph.add("Sub", Z, graph.constant(low)), graph.constant(unit))
    U = graph.add("Min", graph.add("Max", U, graph.constant(0.0)), graph.constant(high))
    U = graph.add("Unsqueeze", U, graph.constant([1], np.int64))
    away = graph.add("Abs", graph.add("Sub", U, graph.constant(np.nan_to_num(V))))
    tents = graph.add("Mul", graph.add("Sub", graph.constant(1.0), away), graph.constant(weight))
    return graph.add("ReduceSum", tents, graph.constant([2], np.int64), keepdims=0)


def _training_rows(gram: Gram, used: IntArray) -> Array:
    """(used, p) the rows of training that count, in the live columns."""
    return np.asarray(gram.table.Z[used][:, gram.features], dtype=float)
