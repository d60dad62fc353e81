"""UnsortedSegmentSum: adds up the slices that carry the same number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.ops.gather import check_indices
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import merge_shapes, require_integers
from rillet.shared_ops.types import DTYPE_NAMES, TensorType


@dataclass(frozen=True)
class UnsortedSegmentSumAttrs:
    num_segments: int


def infer(attrs: UnsortedSegmentSumAttrs, data: TensorType, segment_ids: TensorType) -> tuple[TensorType, ...]:
    op = "UnsortedSegmentSum"
    require_integers(op, "segment_ids", segment_ids)
    if attrs.num_segments < 0:
        raise OpError(op, "num_segments", got=attrs.num_segments, expected="0 or more")
    if data.dtype == np.bool_:
        raise OpError(op, "dtype of data", got="bool", expected="numbers")
    merge_shapes(op, data.shape[: segment_ids.rank], segment_ids.shape)
    return (data.with_shape((attrs.num_segments, *data.shape[segment_ids.rank :])),)


def reference(xp: Any, attrs: UnsortedSegmentSumAttrs, data: Any, segment_ids: Any) -> Any:
    check_indices("UnsortedSegmentSum", xp.maximum(segment_ids, 0), max(attrs.num_segments, 1))
    ids = segment_ids.reshape(-1)
    rest = data.shape[segment_ids.ndim :]
    rows = data.reshape(ids.size, math.prod(rest))
    total = xp.zeros((attrs.num_segments, rows.shape[1]), data.dtype)
    if attrs.num_segments:
        xp.add.at(total, ids[ids >= 0], rows[ids >= 0])
    return total.reshape(attrs.num_segments, *rest)


def gradient(emit: Emit, attrs: UnsortedSegmentSumAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    """Every slice gets the gradient of its segment; one with a negative number gets 0."""
    data, ids = inputs
    kept = emit("Cast", emit("GreaterEqual", ids, 0), dtype=DTYPE_NAMES[np.dtype(data.dtype)])
    for _ in range(len(data.shape) - len(ids.shape)):
        kept = emit("ExpandDims", kept, axis=-1)
    return emit("Mul", emit("Gather", dy, emit("Maximum", ids, 0)), kept), None


UNSORTED_SEGMENT_SUM = define_op(
    Op(
        "UnsortedSegmentSum",
        inputs=("data", "segment_ids"),
        outputs=("y",),
        attrs=UnsortedSegmentSumAttrs,
        infer=infer,
        reference=reference,
        gradient=gradient,
        native="unsorted_segment_sum",
        cases=lambda rng: (
            Case((rng.normal(size=(6, 3)), np.array([2, 0, 2, 1, 2, 0], np.int32)), {"num_segments": 4},
                 label="rows"),
            Case((rng.normal(size=(2, 3)), np.array([[0, -1, 1], [1, 1, -7]])), {"num_segments": 2},
                 label="negative ones are left out"),
            Case((rng.normal(size=(0, 3)), np.zeros((0,), np.int32)), {"num_segments": 2}, label="empty"),
        ),
        rejects=(
            Reject(((4, 2), (3,)), {"num_segments": 2}, match="got 3, expected 4", dtypes=("f32", "i32")),
            Reject(((4, 2), (4,)), {"num_segments": -1}, match="0 or more", dtypes=("f32", "i32")),
            Reject(((4, 2), (4,)), {"num_segments": 2}, match="i32 or i64"),
        ),
        doc="""Row s of the result is the sum, in order, of the slices of `data` whose segment id is s.

    Args: data: numbers. segment_ids: i32 or i64, of the shape of the leading dimensions of data, below num_segments;
        negative ones are left out. num_segments: how many rows.
    Returns: an array [num_segments, ...]; 0 where there is no slice.

    Example:
        >>> unsorted_segment_sum(np.array([1.0, 2.0, 3.0], np.float32), np.array([1, 1, 0]), num_segments=2)
        array([3., 3.], dtype=float32)
    """,
    )
)  # fmt: skip
