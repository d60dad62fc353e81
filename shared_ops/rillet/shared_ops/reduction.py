"""What every reduction shares: attributes, types, and the way back from the reduced shape to the full one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case, Emit, Reject
from rillet.shared_ops.shapes import normalize_axes
from rillet.shared_ops.types import DTYPE_NAMES, TensorType


@dataclass(frozen=True)
class ReduceAttrs:
    """axes: which to reduce; negative ones count from the end; None: all. keepdims: leave them with size 1."""

    axes: tuple[int, ...] | None = None
    keepdims: bool = False


def reduced_axes(op: str, attrs: ReduceAttrs, rank: int) -> tuple[int, ...]:
    """The axes to reduce, as sorted non-negative numbers. Raises OpError if one is out of range or named twice."""
    return tuple(range(rank)) if attrs.axes is None else tuple(sorted(normalize_axes(op, attrs.axes, rank)))


def infer_reduction(op: str, kinds: str) -> Callable[..., tuple[TensorType, ...]]:
    """`infer` of a reduction that takes dtypes of these NumPy kinds ("f", "i", "u", "b")."""

    def infer(attrs: ReduceAttrs, x: TensorType) -> tuple[TensorType, ...]:
        if x.dtype.kind not in kinds:
            names = {"f": "f32, f64", "i": "i8, i32, i64", "u": "u8", "b": "bool"}
            raise OpError(
                op, "wrong dtype", got=DTYPE_NAMES.get(x.dtype, x.dtype), expected=", ".join(names[k] for k in kinds)
            )
        axes = reduced_axes(op, attrs, x.rank)
        if attrs.keepdims:
            return (x.with_shape([1 if a in axes else d for a, d in enumerate(x.shape)]),)
        return (x.with_shape([d for a, d in enumerate(x.shape) if a not in axes]),)

    return infer


def shape_vector(emit: Emit, x: Any) -> Any:
    """The shape of `x` as a vector: a constant where it is known, else the op Shape."""
    if all(isinstance(d, (int, np.integer)) for d in x.shape):
        return np.array(x.shape, np.int32)
    return emit("Shape", x)


def with_reduced_axes(emit: Emit, op: str, attrs: ReduceAttrs, y: Any, rank: int) -> Any:
    """`y`, a result of a reduction of a tensor of `rank`, with the reduced axes put back as size 1."""
    if not attrs.keepdims:
        for axis in reduced_axes(op, attrs, rank):
            y = emit("ExpandDims", y, axis=axis)
    return y


def spread_over(emit: Emit, op: str, attrs: ReduceAttrs, dy: Any, x: Any) -> Any:
    """`dy` of a reduction of `x`, repeated over what was reduced: the gradient of Sum."""
    return emit("BroadcastTo", with_reduced_axes(emit, op, attrs, dy, len(x.shape)), shape_vector(emit, x))


def lowest(dtype: Any) -> Any:
    """What never wins a maximum."""
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def highest(dtype: Any) -> Any:
    """What never wins a minimum."""
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def reduction_cases(rng: np.random.Generator, make: Callable[[tuple[int, ...]], Any] | None = None) -> Iterable[Case]:
    """Axes first, last, in the middle, none and all; sizes below, at and above the 16 lanes of the native kernels."""
    draw = make or (lambda shape: rng.normal(size=shape))
    yield Case((draw((5, 7)),), label="all")
    yield Case((draw((4, 33)),), {"axes": (-1,), "keepdims": True}, label="last axis, two blocks and one")
    yield Case((draw((35, 5)),), {"axes": (0,)}, label="rows")
    yield Case((draw((2, 4, 5, 3)),), {"axes": (1, 2)}, label="the image of NHWC")
    yield Case((draw((3, 2, 6, 2)),), {"axes": (0, 2)}, label="axes apart")
    yield Case((draw((3, 4)),), {"axes": ()}, label="no axis")
    yield Case((draw((2, 1, 16)),), {"axes": (0, 1, 2), "keepdims": True}, label="one block of lanes")


def reduction_rejects(dtypes: tuple[str, ...] = ("f32",)) -> tuple[Reject, ...]:
    return (
        Reject(((2, 3),), {"axes": (2,)}, match="axis", dtypes=dtypes),
        Reject(((2, 3),), {"axes": (0, -2)}, match="twice", dtypes=dtypes),
    )
