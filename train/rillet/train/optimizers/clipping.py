"""Gradient clipping by the global norm: all gradients are scaled by one factor, so their direction stays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rillet.train.graph import GraphError
from rillet.train.tensor import Tensor


def global_norm(tensors: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """The root of the sum of all squares, and the largest magnitude of each tensor.

    Everything is divided by the largest magnitude before it is squared, so that 1e30 does not overflow float32.
    """
    graph = tensors[0].graph
    emit = graph.emit
    peaks = [emit("Max", emit("Abs", t), axes=tuple(range(t.ndim))) if t.ndim else emit("Abs", t) for t in tensors]
    peak = peaks[0]
    for p in peaks[1:]:
        peak = emit("Maximum", peak, p)
    # All zeros: divide by one instead. NaN stays NaN (the comparison is false).
    divisor = emit("Select", emit("Equal", peak, 0.0), graph.constant(np.ones((), peak.dtype)), peak)
    squares = []
    for t in tensors:
        squares.append(emit("Sum", emit("Square", emit("RealDiv", t, divisor)), axes=tuple(range(t.ndim))))
    total = emit("AddN", *squares) if len(squares) > 1 else squares[0]
    return emit("Mul", emit("Sqrt", total), divisor), peaks


def clip_by_global_norm(
    tensors: Sequence[Tensor], max_norm: float, names: Sequence[str] | None = None, check: bool = True
) -> tuple[list[Tensor], Tensor]:
    """`tensors` scaled by min(1, max_norm / norm), and the norm before. A norm of exactly `max_norm` changes nothing.

    A norm that is not finite raises OpError in the run, before any variable is updated, and says which of `names` it
    came from; with check=False every result is NaN instead (never silently zero), and the step stays one region.
    """
    if not tensors or not max_norm >= 0:
        raise GraphError(f"clip_by_global_norm needs tensors and a max_norm >= 0; got {len(tensors)} and {max_norm}.")
    graph = tensors[0].graph
    with graph.name_scope("clip_by_global_norm"):
        norm, peaks = global_norm(tensors)
        if check:
            labels = tuple(names or (t.name for t in tensors))
            norm = graph.emit("CheckFinite", norm, *peaks, labels=",".join(labels))
        # norm <= max_norm: exactly one. An infinite norm gives x * NaN, since inf / inf is NaN.
        small = graph.emit("LessEqual", norm, float(max_norm))
        ratio = graph.emit("RealDiv", graph.constant(np.asarray(max_norm, norm.dtype)), norm)
        broken = graph.emit("Sub", norm, norm)  # zero, or NaN where the norm is not finite
        scale = graph.emit("Select", small, graph.constant(np.ones((), norm.dtype)), ratio) + broken
        return [t * scale for t in tensors], norm
