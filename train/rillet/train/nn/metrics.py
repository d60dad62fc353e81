"""Metrics: scalars that tell how good a batch is. Session.evaluate averages them over batches."""

from __future__ import annotations

import numpy as np

from rillet.train.graph import GraphError
from rillet.train.tensor import Tensor


def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """The share of rows whose largest logit is at the label. logits: [n, classes]; labels: integers [n].

    Raises GraphError for other ranks: labels of shape [n, 1] would meet every row.
    """
    if (logits.ndim, labels.ndim) != (2, 1):
        raise GraphError(f"accuracy takes logits [n, classes] and labels [n]; got {logits!r} and {labels!r}.")
    emit = logits.graph.emit
    best = emit("ArgMax", logits, axis=-1)
    if best.dtype != labels.dtype:
        labels = emit("Cast", labels, dtype="i64" if best.dtype == np.dtype(np.int64) else "i32")
    right: Tensor = emit("Cast", emit("Equal", best, labels), dtype="f32")
    result: Tensor = emit("Mean", right, axes=(0,))
    return result
