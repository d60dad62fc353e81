"""Losses: scalars to be minimized. They take logits, not probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rillet.shared_ops.types import Dim
from rillet.train.graph import GraphError
from rillet.train.tensor import Tensor
from rillet.train.variables import Variable


def _mean(x: Tensor) -> Tensor:
    result: Tensor = x.graph.emit("Mean", x, axes=tuple(range(x.ndim))) if x.ndim else x
    return result


def _differ(a: Dim, b: Dim) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


def sparse_softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean of -log softmax(logits)[label]. logits: [..., classes]; labels: integers [...]."""
    loss, _ = logits.graph.emit("SparseSoftmaxCrossEntropyWithLogits", logits, labels)
    return _mean(loss)


def softmax_cross_entropy(logits: Tensor, labels: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Mean of -sum(labels * log softmax(logits)). labels: a distribution a row, of the shape of `logits`."""
    if label_smoothing:
        classes = logits.shape[-1]
        if not isinstance(classes, int):
            raise GraphError(f"label smoothing needs to know the number of classes, the last dimension of {logits!r}.")
        labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
    loss, _ = logits.graph.emit("SoftmaxCrossEntropyWithLogits", logits, labels)
    return _mean(loss)


def sigmoid_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean over all elements of the two-class cross entropy; labels from 0 to 1, of the shape of `logits`."""
    return _mean(logits.graph.emit("SigmoidCrossEntropyWithLogits", logits, labels))


def mean_squared_error(predictions: Tensor, targets: Any) -> Tensor:
    """Mean of (prediction - target)^2. targets: of the shape of `predictions`, or one number for all.

    Raises GraphError where the shapes differ: [n, 1] against [n] would compare every row with every other.
    """
    targets = predictions.graph.as_tensor(targets) if isinstance(targets, (list, np.ndarray)) else targets
    shapes = predictions.shape, tuple(getattr(targets, "shape", ()))
    if shapes[1] and (len(shapes[0]) != len(shapes[1]) or any(_differ(a, b) for a, b in zip(*shapes))):
        raise GraphError(
            f"mean_squared_error: predictions have shape {shapes[0]}, targets {shapes[1]}; make them equal."
        )
    return _mean(predictions.graph.emit("SquaredDifference", predictions, targets))


def l2(variables: Iterable[Variable], scale: float) -> Tensor:
    """scale * sum of all squares / 2: add it to the loss. For decay apart from the gradient use AdamW."""
    chosen = list(variables)
    graph = chosen[0].graph
    squares = [graph.emit("Sum", graph.emit("Square", v), axes=tuple(range(v.ndim))) for v in chosen]
    total = graph.emit("AddN", *squares) if len(squares) > 1 else squares[0]
    result: Tensor = graph.emit("Mul", total, 0.5 * scale)
    return result
