"""Tensors made from little: Fill from a scalar, Range from its bounds, OneHot from indices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case, Emit, NoAttrs, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import MAX_RANK, normalize_axis, require_integers, require_rank, target_shape
from rillet.shared_ops.types import DTYPES, TensorType


def infer_fill(attrs: NoAttrs, shape: TensorType, value: TensorType) -> tuple[TensorType, ...]:
    require_rank("Fill", "value", value, 0)
    return (value.with_shape(target_shape("Fill", shape)),)


def fill_gradient(emit: Emit, attrs: NoAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return None, emit("Sum", dy)


FILL = define_op(
    Op(
        "Fill",
        inputs=("shape", "value"),
        outputs=("y",),
        infer=infer_fill,
        reference=lambda xp, attrs, shape, value: xp.full(tuple(int(d) for d in shape), value, value.dtype),
        gradient=fill_gradient,
        native="fill",
        cases=lambda rng: (
            Case((np.array([2, 3], np.int32), np.array(1.5)), label="matrix"),
            Case((np.array([], np.int64), np.array(1.5)), label="scalar"),
            Case((np.array([2, 0], np.int64), np.array(1.5)), label="empty"),
            Case((np.array([5], np.int32), np.array(True)), label="booleans"),
        ),
        rejects=(
            Reject(((1,), ()), match="negative", dtypes=("i32", "f32"), values=((-1,), None)),
            Reject(((1,), (1,)), match="rank of value", dtypes=("i32", "f32")),
            Reject(((1,), ()), match="i32 or i64", dtypes=("f32", "f32")),
        ),
        doc="""An array of `shape` that holds `value` everywhere.

    Args: shape: i32 or i64 vector. value: scalar of any dtype.
    Returns: an array of value's dtype.

    Example:
        >>> fill(np.array([2]), np.float32(7.0))
        array([7., 7.], dtype=float32)
    """,
    )
)


@dataclass(frozen=True)
class RangeAttrs:
    start: float = 0.0
    limit: float = 0.0
    delta: float = 1.0
    dtype: Literal["i32", "i64", "f32", "f64"] = "i32"


def count(attrs: RangeAttrs) -> int:
    """How many numbers: worked out in float64."""
    return max(0, math.ceil((attrs.limit - attrs.start) / attrs.delta))


def infer_range(attrs: RangeAttrs) -> tuple[TensorType, ...]:
    numbers = (attrs.start, attrs.limit, attrs.delta)
    if attrs.delta == 0 or not all(math.isfinite(v) for v in numbers):
        raise OpError("Range", "start, limit and delta", got=numbers, expected="finite numbers, delta other than 0")
    if attrs.dtype.startswith("i") and not all(float(v).is_integer() for v in numbers):
        raise OpError("Range", "start, limit and delta", got=numbers, expected=f"whole numbers for {attrs.dtype}")
    n, value = count(attrs), None
    if attrs.dtype.startswith("i") and n <= 16:
        value = tuple(int(attrs.start) + i * int(attrs.delta) for i in range(n))
    return (TensorType(DTYPES[attrs.dtype], (n,), value),)


def range_(xp: Any, attrs: RangeAttrs) -> Any:
    return (attrs.start + xp.arange(count(attrs)) * attrs.delta).astype(DTYPES[attrs.dtype])


RANGE = define_op(
    Op(
        "Range",
        inputs=(),
        outputs=("y",),
        attrs=RangeAttrs,
        infer=infer_range,
        reference=range_,
        native="range",
        cases=lambda rng: (
            Case((), {"limit": 5}, label="count"),
            Case((), {"start": 10, "limit": 3, "delta": -3, "dtype": "i64"}, label="down"),
            Case((), {"start": 0.5, "limit": 2.1, "delta": 0.4, "dtype": "f32"}, label="floats"),
            Case((), {"start": 3, "limit": 3}, label="empty"),
        ),
        rejects=(
            Reject((), {"limit": 3, "delta": 0}, match="other than 0"),
            Reject((), {"limit": 3, "delta": 0.5}, match="whole numbers"),
            Reject((), {"limit": 3, "dtype": "bool"}, match="one of"),
        ),
        doc="""The numbers from `start` up to but not with `limit`, `delta` apart.

    Args: start, limit, delta: numbers (float64 decides how many there are). dtype: i32, i64, f32 or f64.
    Returns: a vector.

    Example:
        >>> range(start=1, limit=7, delta=2)
        array([1, 3, 5], dtype=int32)
    """,
    )
)


@dataclass(frozen=True)
class OneHotAttrs:
    depth: int
    on_value: float = 1.0
    off_value: float = 0.0
    axis: int = -1
    dtype: Literal["f32", "f64", "i8", "u8", "i32", "i64", "bool"] = "f32"


def infer_one_hot(attrs: OneHotAttrs, indices: TensorType) -> tuple[TensorType, ...]:
    require_integers("OneHot", "indices", indices)
    if attrs.depth < 0:
        raise OpError("OneHot", "depth", got=attrs.depth, expected="0 or more")
    if indices.rank == MAX_RANK:
        raise OpError("OneHot", "too many dimensions", got=MAX_RANK + 1, expected=f"at most {MAX_RANK}")
    axis = normalize_axis("OneHot", attrs.axis, indices.rank + 1)
    return (TensorType(DTYPES[attrs.dtype], (*indices.shape[:axis], attrs.depth, *indices.shape[axis:])),)


def one_hot(xp: Any, attrs: OneHotAttrs, indices: Any) -> Any:
    axis = normalize_axis("OneHot", attrs.axis, indices.ndim + 1)
    classes = xp.arange(attrs.depth).reshape((-1,) + (1,) * (indices.ndim - axis))
    hot = xp.expand_dims(indices, axis) == classes
    dtype = DTYPES[attrs.dtype]
    return xp.where(hot, xp.asarray(attrs.on_value, dtype), xp.asarray(attrs.off_value, dtype))


def one_hot_gradient(emit: Emit, attrs: OneHotAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (None,)


ONE_HOT = define_op(
    Op(
        "OneHot",
        inputs=("indices",),
        outputs=("y",),
        attrs=OneHotAttrs,
        infer=infer_one_hot,
        reference=one_hot,
        gradient=one_hot_gradient,
        native="one_hot",
        cases=lambda rng: (
            Case((rng.integers(0, 5, size=(3, 2)),), {"depth": 5, "dtype": "f64"}, label="last axis"),
            Case((rng.integers(0, 4, size=(3,)).astype(np.int32),), {"depth": 4, "axis": 0, "dtype": "i32"},
                 label="first axis"),
            Case((np.array([-1, 0, 3], np.int64),), {"depth": 3, "on_value": 0.9, "off_value": 0.05},
                 label="none lit"),
            Case((np.array(1, np.int32),), {"depth": 2, "dtype": "bool"}, label="scalar"),
            Case((np.zeros((2, 0), np.int32),), {"depth": 3, "axis": 1}, label="empty"),
        ),
        rejects=(
            Reject(((2,),), {"depth": -1}, match="0 or more", dtypes=("i32",)),
            Reject(((2,),), {"depth": 2}, match="i32 or i64"),
            Reject(((2,),), {"depth": 2, "axis": 2}, match="out of range", dtypes=("i32",)),
        ),
        doc="""For every index a vector of `depth` numbers, `on_value` at the index and `off_value` elsewhere.

    An index outside [0, depth) lights nothing.

    Args: indices: i32 or i64. depth, on_value, off_value, dtype. axis: where the new dimension stands in the result.
    Returns: an array with one dimension more than indices.

    Example:
        >>> one_hot(np.array([1, 0]), depth=2)
        array([[0., 1.],
               [1., 0.]], dtype=float32)
    """,
    )
)  # fmt: skip
