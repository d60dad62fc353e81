"""GatherNd and ScatterNd: slices of a table by index vectors, each other's gradient."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import SameScale
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.reduction import shape_vector
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import MAX_RANK, merge_shapes, require_integers, target_shape
from rillet.shared_ops.types import Shape, TensorType


@dataclass(frozen=True)
class GatherNdAttrs:
    batch_dims: int = 0


def depth_of(op: str, attrs: GatherNdAttrs, params: Shape, indices: TensorType) -> int:
    """How many dimensions of the table one index vector names, behind the batch dimensions."""
    require_integers(op, "indices", indices)
    batch = attrs.batch_dims
    if indices.rank == 0 or not 0 <= batch < indices.rank or batch > len(params):
        raise OpError(op, "batch_dims and indices", got=f"batch_dims {batch}, indices of rank {indices.rank}",
                      expected="indices with a last dimension behind the batch dimensions")  # fmt: skip
    depth = indices.shape[-1]
    if not isinstance(depth, int):
        raise OpError(op, "the rank of the result is unknown", got=indices, expected="a known last dimension")
    if depth > len(params) - batch:
        raise OpError(op, "length of the index vectors", got=depth, expected=f"at most {len(params) - batch}")
    return depth


def gathered_shape(op: str, attrs: GatherNdAttrs, params: Shape, indices: TensorType) -> Shape:
    depth, batch = depth_of(op, attrs, params, indices), attrs.batch_dims
    lead = merge_shapes(op, params[:batch], indices.shape[:batch], "batch dimension")
    shape = (*lead, *indices.shape[batch:-1], *params[batch + depth :])
    if len(shape) > MAX_RANK:
        raise OpError(op, "too many dimensions", got=len(shape), expected=f"at most {MAX_RANK}")
    return shape


def rows_of(xp: Any, op: str, attrs: GatherNdAttrs, params: tuple[int, ...], indices: Any) -> Any:
    """For every index vector, the number of the slice that it names, the table being [slices, values]."""
    batch, depth = attrs.batch_dims, indices.shape[-1]
    dims = params[batch : batch + depth]
    bad = (indices < 0) | (indices >= np.asarray(dims, indices.dtype))
    if bad.any():
        position = tuple(int(i) for i in np.unravel_index(int(bad.argmax()), bad.shape))
        raise OpError(op, f"index out of range at position {position} of indices",
                      got=int(indices[position]), expected=f"0 to {dims[position[-1]] - 1}")  # fmt: skip
    rows = xp.zeros(indices.shape[:-1], np.int64)
    for i, d in enumerate(dims):
        rows = rows * d + indices[..., i]
    lead = math.prod(params[:batch])
    first = xp.arange(lead).reshape(params[:batch] + (1,) * (indices.ndim - 1 - batch))
    return rows + first * math.prod(dims)


def infer_gather_nd(attrs: GatherNdAttrs, params: TensorType, indices: TensorType) -> tuple[TensorType, ...]:
    return (params.with_shape(gathered_shape("GatherNd", attrs, params.shape, indices)),)


def gather_nd(xp: Any, attrs: GatherNdAttrs, params: Any, indices: Any) -> Any:
    rows = rows_of(xp, "GatherNd", attrs, params.shape, indices)
    inner = params.shape[attrs.batch_dims + indices.shape[-1] :]
    slices = math.prod(params.shape[: attrs.batch_dims + indices.shape[-1]])
    table = params.reshape((slices, *inner))
    return table[rows.reshape(-1)].reshape((*rows.shape, *inner))


def gather_nd_gradient(emit: Emit, attrs: GatherNdAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    params, indices = inputs
    return emit("ScatterNd", indices, dy, shape_vector(emit, params), batch_dims=attrs.batch_dims), None


def gather_nd_cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, params: tuple[int, ...], count: tuple[int, ...], depth: int, batch: int = 0) -> Case:
        ids = [rng.integers(0, max(d, 1), size=count) for d in params[batch : batch + depth]]
        indices = np.stack(ids, -1).astype(np.int32) if depth else np.zeros((*count, 0), np.int32)
        return Case((rng.normal(size=params), indices), {"batch_dims": batch}, label=label)

    yield case("elements", (3, 4), (5,), 2)
    yield case("rows", (3, 4, 2), (2, 3), 1)
    yield case("one element", (3, 4), (), 2)
    yield case("batch", (2, 3, 4), (2, 5), 1, 1)
    yield case("all of it", (2, 3), (2,), 0)
    yield case("no index", (3, 4), (0,), 2)


GATHER_ND = define_op(
    Op(
        "GatherNd",
        inputs=("params", "indices"),
        outputs=("y",),
        attrs=GatherNdAttrs,
        infer=infer_gather_nd,
        reference=gather_nd,
        gradient=gather_nd_gradient,
        quantize=SameScale(),
        native="gather_nd",
        cases=gather_nd_cases,
        rejects=(
            Reject(((3, 4), (2, 3)), match="got 3, expected at most 2", dtypes=("f32", "i32")),
            Reject(((3, 4), ()), match="last dimension", dtypes=("f32", "i32")),
            Reject(((3, 4), (2, 1)), match="i32 or i64"),
        ),
        doc="""The slices of `params` that the vectors along the last dimension of `indices` name.

    Args: params: any dtype. indices: i32 or i64 [..., depth]; every number in range, another one is an error that
        names it. batch_dims: leading dimensions that both share.
    Returns: an array [..., the dimensions of params behind those named].

    Example:
        >>> gather_nd(np.array([[1, 2], [3, 4]]), np.array([[0, 1], [1, 0]]))
        array([2, 3])
    """,
    )
)


def infer_scatter_nd(
    attrs: GatherNdAttrs, indices: TensorType, updates: TensorType, shape: TensorType
) -> tuple[TensorType, ...]:
    target = target_shape("ScatterNd", shape)
    merge_shapes("ScatterNd", gathered_shape("ScatterNd", attrs, target, indices), updates.shape)
    if updates.dtype == np.bool_:
        raise OpError("ScatterNd", "dtype of updates", got="bool", expected="numbers")
    return (updates.with_shape(target),)


def scatter_nd(xp: Any, attrs: GatherNdAttrs, indices: Any, updates: Any, shape: Any) -> Any:
    target = tuple(int(d) for d in shape)
    rows = rows_of(xp, "ScatterNd", attrs, target, indices)
    named = attrs.batch_dims + indices.shape[-1]
    inner = math.prod(target[named:])
    total = xp.zeros((math.prod(target[:named]), inner), updates.dtype)
    xp.add.at(total, rows.reshape(-1), updates.reshape(rows.size, inner))
    return total.reshape(target)


def scatter_nd_gradient(emit: Emit, attrs: GatherNdAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return None, emit("GatherNd", dy, inputs[0], batch_dims=attrs.batch_dims), None


def scatter_nd_cases(rng: np.random.Generator) -> Iterable[Case]:
    for case in gather_nd_cases(rng):
        params, indices = case.inputs
        assert params is not None and indices is not None
        y = gather_nd(np, GatherNdAttrs(**case.attrs), params, indices)
        yield Case((indices, rng.normal(size=y.shape), np.array(params.shape, np.int32)), case.attrs, label=case.label)
    yield Case((np.array([[1], [1]]), rng.normal(size=(2,)), np.array([3])), label="one place twice")


SCATTER_ND = define_op(
    Op(
        "ScatterNd",
        inputs=("indices", "updates", "shape"),
        outputs=("y",),
        attrs=GatherNdAttrs,
        infer=infer_scatter_nd,
        reference=scatter_nd,
        gradient=scatter_nd_gradient,
        native="scatter_nd",
        cases=scatter_nd_cases,
        rejects=(
            Reject(((2, 1), (3,), (1,)), match="got 3, expected 2", dtypes=("i32", "f32", "i32"),
                   values=(None, None, (4,))),
            Reject(((2, 2), (2,), (1,)), match="got 2, expected at most 1", dtypes=("i32", "f32", "i32"),
                   values=(None, None, (4,))),
        ),
        doc="""Zeros of `shape` to which every slice of `updates` is added, in order, where its index vector says.

    Args: indices: i32 or i64 [..., depth]. updates: numbers [..., the dimensions behind those named]. shape: of the
        result. batch_dims: leading dimensions that indices and result share.
    Returns: an array of shape; slices for one place add up.

    Example:
        >>> scatter_nd(np.array([[2], [2]]), np.array([1.0, 4.0], np.float32), np.array([3]))
        array([0., 0., 5.], dtype=float32)
    """,
    )
)  # fmt: skip
