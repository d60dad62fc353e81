"""Cross entropies from logits: one loss a row, and at once the gradient that goes back to the logits.

All are stable for any finite logits: the largest logit of a row is taken off before exp. The gradients (`backprop`) are
outputs like any other, so second-order gradients work.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case, Emit, NoAttrs, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import merge_shapes, require_float, require_same_dtype
from rillet.shared_ops.types import TensorType

DENSE, SPARSE, SIGMOID = (
    "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits",
    "SigmoidCrossEntropyWithLogits",
)


def _rows(op: str, logits: TensorType) -> None:
    require_float(op, "logits", logits)
    if logits.rank < 1:
        raise OpError(op, "rank of logits", got=0, expected="1 or more, classes last")


def infer_dense(attrs: NoAttrs, logits: TensorType, labels: TensorType) -> tuple[TensorType, ...]:
    _rows(DENSE, logits)
    require_same_dtype(DENSE, logits, labels)
    shape = merge_shapes(DENSE, logits.shape, labels.shape, "logits and labels: dimension")
    return logits.with_shape(shape[:-1]), logits.with_shape(shape)


def infer_sparse(attrs: NoAttrs, logits: TensorType, labels: TensorType) -> tuple[TensorType, ...]:
    _rows(SPARSE, logits)
    if labels.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise OpError(SPARSE, "dtype of labels", got=labels.dtype, expected="i32 or i64, one class number a row")
    if labels.rank != logits.rank - 1:
        hint = f"For one-hot labels use {DENSE}." if labels.rank == logits.rank else ""
        raise OpError(SPARSE, "rank of labels", got=labels.rank, expected=logits.rank - 1, hint=hint)
    rows = merge_shapes(SPARSE, logits.shape[:-1], labels.shape, "logits and labels: dimension")
    return logits.with_shape(rows), logits.with_shape((*rows, logits.shape[-1]))


def infer_sigmoid(attrs: NoAttrs, logits: TensorType, labels: TensorType) -> tuple[TensorType, ...]:
    require_float(SIGMOID, "logits", logits)
    require_same_dtype(SIGMOID, logits, labels)
    return (logits.with_shape(merge_shapes(SIGMOID, logits.shape, labels.shape, "logits and labels: dimension")),)


def _log_softmax(xp: Any, logits: Any) -> tuple[Any, Any]:
    """log softmax and softmax over the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True, initial=-np.inf)
    e = xp.exp(shifted)
    total = e.sum(axis=-1, keepdims=True)
    return shifted - xp.log(total), e / total


def dense_reference(xp: Any, attrs: NoAttrs, logits: Any, labels: Any) -> tuple[Any, ...]:
    log_p, p = _log_softmax(xp, logits)
    masked = xp.where(labels == 0, xp.zeros_like(log_p), log_p)  # a class of no weight may have a logit of -inf
    loss = -(labels * masked).sum(axis=-1)
    return xp.asarray(loss, logits.dtype), p * labels.sum(axis=-1, keepdims=True) - labels


def sparse_reference(xp: Any, attrs: NoAttrs, logits: Any, labels: Any) -> tuple[Any, ...]:
    classes = logits.shape[-1]
    bad = np.flatnonzero(np.asarray((labels < 0) | (labels >= classes)))
    if bad.size:
        row = int(bad[0])
        raise OpError(
            SPARSE, f"label of row {row}", got=int(labels.reshape(-1)[row]), expected=f"a class from 0 to {classes - 1}"
        )
    log_p, p = _log_softmax(xp, logits)
    hot = xp.arange(classes) == labels[..., None]
    loss = -xp.where(hot, log_p, xp.zeros_like(log_p)).sum(axis=-1)
    return xp.asarray(loss, logits.dtype), p - hot.astype(p.dtype)


def sigmoid_reference(xp: Any, attrs: NoAttrs, logits: Any, labels: Any) -> Any:
    return xp.maximum(logits, 0) - logits * labels + xp.log1p(xp.exp(-abs(logits)))


def _through_softmax(emit: Emit, logits: Any, dbackprop: Any) -> tuple[Any, Any]:
    """(gradient of softmax(logits) for dbackprop, the sum of dbackprop * softmax in each row)."""
    p = emit("Softmax", logits)
    along = emit("Sum", emit("Mul", dbackprop, p), axes=(-1,), keepdims=True)
    return emit("Mul", emit("Sub", dbackprop, along), p), along


def dense_gradient(
    emit: Emit, attrs: NoAttrs, inputs: Any, outputs: Any, dloss: Any, dbackprop: Any
) -> tuple[Any, ...]:
    logits, labels = inputs
    column = emit("ExpandDims", dloss, axis=-1)
    dlogits = emit("Mul", column, outputs[1])
    dlabels = emit("Neg", emit("Mul", column, emit("LogSoftmax", logits)))
    if dbackprop is not None:
        through, along = _through_softmax(emit, logits, dbackprop)
        dlogits = emit("Add", dlogits, emit("Mul", through, emit("Sum", labels, axes=(-1,), keepdims=True)))
        dlabels = emit("Add", dlabels, emit("Sub", along, dbackprop))
    return dlogits, dlabels


def sparse_gradient(
    emit: Emit, attrs: NoAttrs, inputs: Any, outputs: Any, dloss: Any, dbackprop: Any
) -> tuple[Any, ...]:
    dlogits = emit("Mul", emit("ExpandDims", dloss, axis=-1), outputs[1])
    if dbackprop is not None:
        dlogits = emit("Add", dlogits, _through_softmax(emit, inputs[0], dbackprop)[0])
    return dlogits, None


def sigmoid_gradient(emit: Emit, attrs: NoAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    logits, labels = inputs
    dlogits = emit("Mul", dy, emit("Sub", emit("Sigmoid", logits), labels))
    return dlogits, emit("Neg", emit("Mul", dy, logits))


def _probabilities(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    p = rng.random(shape)
    return p / p.sum(axis=-1, keepdims=True)


def dense_cases(rng: np.random.Generator) -> Iterable[Case]:
    yield Case((rng.normal(size=(5, 10)) * 3, _probabilities(rng, (5, 10))), label="rows")
    yield Case((rng.normal(size=(2, 3, 35)), rng.random((2, 3, 35))), label="weights that do not sum to one")
    yield Case((rng.normal(size=(4,)), np.array([0.0, 1.0, 0.0, 0.0])), label="one row")
    extreme = np.array([[-4885.46, 4878.03], [1e8, 1e8]])
    yield Case((extreme, np.array([[0.2, 0.8], [0.0, 1.0]])), label="large logits", differentiable=())


def sparse_cases(rng: np.random.Generator) -> Iterable[Case]:
    yield Case((rng.normal(size=(6, 10)) * 3, rng.integers(0, 10, 6, np.int64)), label="rows")
    yield Case((rng.normal(size=(2, 3, 35)), rng.integers(0, 35, (2, 3), np.int32)), label="i32, more axes")
    yield Case((rng.normal(size=(4,)), np.array(2, np.int64)), label="one row")
    yield Case((np.array([[1e8, 1e8]]), np.array([1], np.int64)), label="large logits", differentiable=())


def sigmoid_cases(rng: np.random.Generator) -> Iterable[Case]:
    yield Case((rng.normal(size=(5, 7)) * 3, rng.random((5, 7))), label="matrix")
    yield Case((rng.normal(size=(37,)), rng.random(37)), label="vector")
    extreme = np.array([1e4, -1e4, 0.0, 80.0, -80.0])
    yield Case((extreme, np.array([1.0, 0.0, 0.5, 0.0, 1.0])), label="large logits", differentiable=())


SOFTMAX_CROSS_ENTROPY = define_op(
    Op(
        DENSE,
        inputs=("logits", "labels"),
        outputs=("loss", "backprop"),
        infer=infer_dense,
        reference=dense_reference,
        gradient=dense_gradient,
        native="softmax_cross_entropy",
        cases=dense_cases,
        rejects=(
            Reject(((4, 3), (4, 2)), match="labels"),
            Reject(((4, 3), (4, 3)), match="dtypes", dtypes=("f32", "i32")),
        ),
        doc="""loss = -sum(labels * log_softmax(logits)) for each row (classes are the last axis), and its gradient.

    Args: logits, labels: float, of one shape; each row of labels is a distribution (or weights: the gradient is right
        for any sum).
    Returns: loss, one a row; backprop, the gradient of the loss with respect to the logits.

    Example:
        >>> logits, labels = np.zeros((1, 2), np.float32), np.array([[0.0, 1.0]], np.float32)
        >>> loss, _ = softmax_cross_entropy_with_logits(logits, labels)
        >>> loss
        array([0.6931472], dtype=float32)
    """,
    )
)
SPARSE_SOFTMAX_CROSS_ENTROPY = define_op(
    Op(
        SPARSE,
        inputs=("logits", "labels"),
        outputs=("loss", "backprop"),
        infer=infer_sparse,
        reference=sparse_reference,
        gradient=sparse_gradient,
        native="sparse_softmax_cross_entropy",
        cases=sparse_cases,
        rejects=(
            Reject(((4, 3), (4, 3)), match="rank of labels", dtypes=("f32", "i32")),
            Reject(((4, 3), (5,)), match="labels", dtypes=("f32", "i64")),
            Reject(((4, 3), (4,)), match="dtype of labels"),
        ),
        doc="""loss = -log_softmax(logits)[label] for each row (classes are the last axis), and its gradient.

    Args: logits: float. labels: i32 or i64, the class of each row. Returns: loss, one a row; backprop, the gradient of
        the loss with respect to the logits. Raises: an error that names row and label for a label that is no class.

    Example:
        >>> loss, _ = sparse_softmax_cross_entropy_with_logits(np.zeros((1, 2), np.float32), np.array([1]))
        >>> loss
        array([0.6931472], dtype=float32)
    """,
    )
)
SIGMOID_CROSS_ENTROPY = define_op(
    Op(
        SIGMOID,
        inputs=("logits", "labels"),
        outputs=("loss",),
        infer=infer_sigmoid,
        reference=sigmoid_reference,
        gradient=sigmoid_gradient,
        native="sigmoid_cross_entropy",
        cases=sigmoid_cases,
        rejects=(Reject(((4, 3), (4, 2)), match="labels"), Reject(((4,), (4, 1)), match="rank")),
        doc="""max(x, 0) - x * label + log(1 + exp(-|x|)), element by element: independent yes/no labels.

    Args: logits, labels: float, of one shape; labels from 0 to 1.

    Example:
        >>> sigmoid_cross_entropy_with_logits(np.zeros(1, np.float32), np.ones(1, np.float32))
        array([0.6931472], dtype=float32)
    """,
    )
)
