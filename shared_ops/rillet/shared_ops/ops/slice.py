"""Slice: a block of a tensor. DynamicSlice and DynamicUpdateSlice: a block whose start is known only at run time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import SameScale
from rillet.shared_ops.op import Case, Emit, NoAttrs, Op, Reject
from rillet.shared_ops.reduction import shape_vector
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import require_integers, require_rank, require_same_dtype, target_shape
from rillet.shared_ops.types import Dim, TensorType


@dataclass(frozen=True)
class SliceAttrs:
    begin: tuple[int, ...]
    size: tuple[int, ...]


def infer_slice(attrs: SliceAttrs, x: TensorType) -> tuple[TensorType, ...]:
    if len(attrs.begin) != x.rank or len(attrs.size) != x.rank:
        raise OpError("Slice", "begin and size", got=f"{attrs.begin} and {attrs.size}", expected=f"{x.rank} numbers")
    shape = tuple(_length(a, *bs, d) for a, (bs, d) in enumerate(zip(zip(attrs.begin, attrs.size), x.shape)))
    value = None
    if x.value is not None and x.rank == 1 and isinstance(shape[0], int):
        value = x.value[attrs.begin[0] : attrs.begin[0] + shape[0]]
    return (TensorType(x.dtype, shape, value),)


def _length(axis: int, begin: int, size: int, dim: Dim) -> Dim:
    if begin < 0 or size < -1:
        raise OpError("Slice", f"begin and size of axis {axis}", got=f"{begin} and {size}", expected="0 or more",
                      hint="A size of -1 means up to the end; StridedSlice counts from the end.")  # fmt: skip
    if isinstance(dim, int) and begin + max(size, 0) > dim:
        raise OpError("Slice", f"axis {axis} is too short", got=dim, expected=f"at least {begin + max(size, 0)}")
    if size >= 0:
        return size
    return dim - begin if isinstance(dim, int) else dim if begin == 0 else None


def slice_(xp: Any, attrs: SliceAttrs, x: Any) -> Any:
    return x[tuple(slice(b, None if s < 0 else b + s) for b, s in zip(attrs.begin, attrs.size))]


def slice_gradient(emit: Emit, attrs: SliceAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    x = inputs[0]
    if not x.shape:
        return (dy,)
    end = tuple(b + max(s, 0) for b, s in zip(attrs.begin, attrs.size))
    open_ends = sum(1 << a for a, s in enumerate(attrs.size) if s < 0)
    given = {"begin": attrs.begin, "end": end, "strides": (1,) * len(end), "end_mask": open_ends}
    return (emit("StridedSliceGrad", shape_vector(emit, x), dy, **given),)


SLICE = define_op(
    Op(
        "Slice",
        inputs=("x",),
        outputs=("y",),
        attrs=SliceAttrs,
        infer=infer_slice,
        reference=slice_,
        gradient=slice_gradient,
        quantize=SameScale(),
        native="slice",
        cases=lambda rng: (
            Case((rng.normal(size=(4, 5)),), {"begin": (1, 2), "size": (2, -1)}, label="to the end"),
            Case((rng.normal(size=(4, 5, 3)),), {"begin": (0, 2, 0), "size": (4, 2, 3)}, label="one axis"),
            Case((rng.normal(size=(4, 5)),), {"begin": (4, 0), "size": (0, 5)}, label="empty"),
            Case((np.array(2.0),), {"begin": (), "size": ()}, label="scalar"),
        ),
        rejects=(
            Reject(((4,),), {"begin": (3,), "size": (2,)}, match="got 4, expected at least 5"),
            Reject(((4,),), {"begin": (-1,), "size": (1,)}, match="0 or more"),
            Reject(((4, 2),), {"begin": (0,), "size": (1,)}, match="2 numbers"),
        ),
        doc="""The block of `x` that starts at `begin` and has `size`.

    Args: x: any dtype. begin, size: one number a dimension; size -1 means up to the end.
    Returns: an array of that size.

    Example:
        >>> slice(np.array([1, 2, 3, 4]), begin=(1,), size=(2,))
        array([2, 3])
    """,
    )
)


def _require_start(op: str, x: TensorType, start: TensorType) -> None:
    require_integers(op, "start", start)
    require_rank(op, "start", start, 1)
    if isinstance(start.shape[0], int) and start.shape[0] != x.rank:
        raise OpError(op, "length of start", got=start.shape[0], expected=f"{x.rank}, one index a dimension")


def _require_fits(op: str, x: TensorType, block: tuple[Dim, ...]) -> None:
    if len(block) != x.rank:
        raise OpError(op, "rank of the block", got=len(block), expected=x.rank)
    for axis, (b, d) in enumerate(zip(block, x.shape)):
        if isinstance(b, int) and isinstance(d, int) and b > d:
            raise OpError(op, f"the block is longer than axis {axis}", got=b, expected=f"at most {d}")


def _window(x: Any, start: Any, block: tuple[int, ...]) -> tuple[slice, ...]:
    """The block's place in x: the start is moved so that the block fits."""
    first = [min(max(int(s), 0), d - b) for s, d, b in zip(start, x.shape, block)]
    return tuple(slice(f, f + b) for f, b in zip(first, block))


def infer_dynamic_slice(attrs: NoAttrs, x: TensorType, start: TensorType, shape: TensorType) -> tuple[TensorType, ...]:
    _require_start("DynamicSlice", x, start)
    block = target_shape("DynamicSlice", shape)
    _require_fits("DynamicSlice", x, block)
    return (x.with_shape(block),)


def dynamic_slice(xp: Any, attrs: NoAttrs, x: Any, start: Any, shape: Any) -> Any:
    return x[_window(x, start, tuple(int(d) for d in shape))]


def dynamic_slice_gradient(emit: Emit, attrs: NoAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    x, start, _ = inputs
    return emit("DynamicUpdateSlice", emit("ZerosLike", x), dy, start), None, None


def dynamic_slice_cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, shape: tuple[int, ...], start: tuple[int, ...], block: tuple[int, ...]) -> Case:
        return Case((rng.normal(size=shape), np.array(start, np.int32), np.array(block, np.int32)), label=label)

    yield case("inside", (4, 5), (1, 2), (2, 3))
    yield case("clamped", (4, 5), (-3, 4), (2, 3))
    yield case("empty", (4, 5), (1, 2), (0, 3))
    yield case("scalar", (), (), ())


DYNAMIC_SLICE = define_op(
    Op(
        "DynamicSlice",
        inputs=("x", "start", "shape"),
        outputs=("y",),
        infer=infer_dynamic_slice,
        reference=dynamic_slice,
        gradient=dynamic_slice_gradient,
        quantize=SameScale(),
        native="dynamic_slice",
        cases=dynamic_slice_cases,
        rejects=(
            Reject(((4,), (1,), (1,)), match="at most 4", dtypes=("f32", "i32", "i32"), values=(None, None, (5,))),
            Reject(((4,), (2,), (1,)), match="length of start", dtypes=("f32", "i32", "i32")),
            Reject(((4,), (1,), (1,)), match="i32 or i64", dtypes=("f32", "f32", "i32")),
        ),
        doc="""The block of `x` of `shape` that starts at `start`, moved inwards where it would stick out.

    Args: x: any dtype. start: i32 or i64, one index a dimension. shape: i32 or i64 vector, no longer than x's.
    Returns: an array of shape.

    Example:
        >>> dynamic_slice(np.array([1, 2, 3, 4]), np.array([3]), np.array([2]))
        array([3, 4])
    """,
    )
)


def infer_update(attrs: NoAttrs, x: TensorType, update: TensorType, start: TensorType) -> tuple[TensorType, ...]:
    require_same_dtype("DynamicUpdateSlice", x, update)
    _require_start("DynamicUpdateSlice", x, start)
    _require_fits("DynamicUpdateSlice", x, update.shape)
    return (x.plain(),)


def dynamic_update_slice(xp: Any, attrs: NoAttrs, x: Any, update: Any, start: Any) -> Any:
    y = x.copy()
    y[_window(x, start, update.shape)] = update
    return y


def update_gradient(emit: Emit, attrs: NoAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    _, update, start = inputs
    return (
        emit("DynamicUpdateSlice", dy, emit("ZerosLike", update), start),
        emit("DynamicSlice", dy, start, shape_vector(emit, update)),
        None,
    )


def update_cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, shape: tuple[int, ...], block: tuple[int, ...], start: tuple[int, ...]) -> Case:
        return Case((rng.normal(size=shape), rng.normal(size=block), np.array(start, np.int64)), label=label)

    yield case("inside", (4, 5), (2, 3), (1, 2))
    yield case("clamped", (2, 8, 3), (2, 1, 3), (0, 99, 0))
    yield case("whole", (3,), (3,), (-5,))
    yield case("empty update", (4, 5), (0, 3), (1, 2))


DYNAMIC_UPDATE_SLICE = define_op(
    Op(
        "DynamicUpdateSlice",
        inputs=("x", "update", "start"),
        outputs=("y",),
        infer=infer_update,
        reference=dynamic_update_slice,
        gradient=update_gradient,
        quantize=SameScale(),
        native="dynamic_update_slice",
        cases=update_cases,
        rejects=(
            Reject(((4,), (5,), (1,)), match="at most 4", dtypes=("f32", "f32", "i32")),
            Reject(((4,), (2,), (2,)), match="length of start", dtypes=("f32", "f32", "i32")),
            Reject(((4,), (2,), (1,)), match="dtype", dtypes=("f32", "i32", "i32")),
        ),
        doc="""`x` with the block at `start` replaced by `update`; the start is moved inwards where it would stick out.

    Args: x, update: one dtype and rank; update no longer than x. start: i32 or i64, one index a dimension.
    Returns: an array like x.

    Example:
        >>> dynamic_update_slice(np.array([1, 2, 3, 4]), np.array([8, 9]), np.array([1]))
        array([1, 8, 9, 4])
    """,
    )
)
