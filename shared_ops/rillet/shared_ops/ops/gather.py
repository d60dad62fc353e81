"""Gather: slices of a table by index; its gradient, which adds them back; and UnsortedSegmentSum."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import SameScale
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.reduction import shape_vector
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import MAX_RANK, merge_shapes, normalize_axis, require_integers, target_shape
from rillet.shared_ops.types import Shape, TensorType


@dataclass(frozen=True)
class GatherAttrs:
    axis: int = 0
    batch_dims: int = 0


def check_indices(op: str, indices: Any, limit: int) -> None:
    """Refuses an index outside [0, limit), and says where it stands."""
    bad = (indices < 0) | (indices >= limit)
    if bad.any():
        position = tuple(int(i) for i in np.unravel_index(int(bad.argmax()), bad.shape))
        raise OpError(op, f"index out of range at position {position} of indices",
                      got=int(indices[position]), expected=f"0 to {limit - 1}")  # fmt: skip


def gathered_shape(op: str, attrs: GatherAttrs, params: Shape, indices: TensorType) -> tuple[int, Shape]:
    """The axis, counted from the front, and the shape of the result."""
    require_integers(op, "indices", indices)
    axis, batch = normalize_axis(op, attrs.axis, len(params)), attrs.batch_dims
    if not 0 <= batch <= min(axis, indices.rank):
        raise OpError(op, "batch_dims", got=batch, expected=f"0 to {min(axis, indices.rank)}")
    lead = merge_shapes(op, params[:batch], indices.shape[:batch], "batch dimension")
    shape = (*lead, *params[batch:axis], *indices.shape[batch:], *params[axis + 1 :])
    if len(shape) > MAX_RANK:
        raise OpError(op, "too many dimensions", got=len(shape), expected=f"at most {MAX_RANK}")
    return axis, shape


def infer_gather(attrs: GatherAttrs, params: TensorType, indices: TensorType) -> tuple[TensorType, ...]:
    _, shape = gathered_shape("Gather", attrs, params.shape, indices)
    value = None
    if params.value is not None and params.rank == 1 and indices.value is not None and indices.rank <= 1:
        picked = [i for i in indices.value if isinstance(i, int) and 0 <= i < len(params.value)]
        value = tuple(params.value[i] for i in picked) if len(picked) == len(indices.value) else None
    return (TensorType(params.dtype, shape, value),)


def _flat(axis: int, batch: int, params: tuple[int, ...], indices: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """params as [batch, outer, limit, inner] and indices as [batch, count]."""
    flat = (math.prod(params[:batch]), math.prod(params[batch:axis]), params[axis], math.prod(params[axis + 1 :]))
    return flat, (flat[0], math.prod(indices[batch:]))


def gather(xp: Any, attrs: GatherAttrs, params: Any, indices: Any) -> Any:
    axis = normalize_axis("Gather", attrs.axis, params.ndim)
    check_indices("Gather", indices, params.shape[axis])
    flat, chosen = _flat(axis, attrs.batch_dims, params.shape, indices.shape)
    table, ids = params.reshape(flat), indices.reshape(chosen)
    rows = table[xp.arange(flat[0])[:, None], :, ids, :]  # [batch, count, outer, inner]
    batch = attrs.batch_dims
    shape = (*params.shape[:axis], *indices.shape[batch:], *params.shape[axis + 1 :])
    return xp.moveaxis(rows, 1, 2).reshape(shape)


def gather_gradient(emit: Emit, attrs: GatherAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    params, indices = inputs
    return emit("GatherGrad", shape_vector(emit, params), indices, dy, **asdict(attrs)), None


def gather_cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, params: tuple[int, ...], indices: tuple[int, ...], **attrs: int) -> Case:
        limit = params[attrs.get("axis", 0)]
        ids = rng.integers(0, max(limit, 1), size=indices).astype(np.int32 if len(indices) % 2 else np.int64)
        return Case((rng.normal(size=params), ids), attrs, label=label)

    yield case("rows", (5, 3), (4,))
    yield case("rows by matrix", (5, 2, 3), (4, 2))
    yield case("middle axis", (2, 5, 3), (4,), axis=1)
    yield case("last axis", (2, 5), (2, 3), axis=-1)
    yield case("scalar index", (5, 3), ())
    yield case("batch", (3, 5, 2), (3, 4), axis=1, batch_dims=1)
    yield case("batch, last axis", (2, 3, 4), (2, 3, 2), axis=2, batch_dims=2)
    yield case("batch beside an outer axis", (2, 3, 4), (2, 5), axis=2, batch_dims=1)
    yield case("no index", (5, 3), (0,))
    yield case("empty rows", (5, 0), (3,))


GATHER = define_op(
    Op(
        "Gather",
        inputs=("params", "indices"),
        outputs=("y",),
        attrs=GatherAttrs,
        infer=infer_gather,
        reference=gather,
        gradient=gather_gradient,
        quantize=SameScale(),
        native="gather",
        cases=gather_cases,
        rejects=(
            Reject(((5, 3), (2,)), match="i32 or i64"),
            Reject(((5, 3), (2,)), {"axis": 2}, match="out of range", dtypes=("f32", "i32")),
            Reject(((5, 3), (4, 2)), {"axis": 1, "batch_dims": 1}, match="got 4, expected 5", dtypes=("f32", "i32")),
            Reject(((5, 3), (5,)), {"axis": 0, "batch_dims": 1}, match="0 to 0", dtypes=("f32", "i32")),
        ),
        doc="""Slices of `params` along `axis`, in the order of `indices`.

    Args: params: any dtype. indices: i32 or i64, any shape, each in [0, params.shape[axis]): another one is an error
        that names it. batch_dims: leading dimensions that params and indices share.
    Returns: params with the axis replaced by the dimensions of indices (but for batch_dims).

    Example:
        >>> gather(np.array([10, 20, 30]), np.array([2, 0]))
        array([30, 10])
    """,
    )
)


def infer_gather_grad(
    attrs: GatherAttrs, shape: TensorType, indices: TensorType, dy: TensorType
) -> tuple[TensorType, ...]:
    target = target_shape("GatherGrad", shape)
    _, gathered = gathered_shape("GatherGrad", attrs, target, indices)
    merge_shapes("GatherGrad", gathered, dy.shape)
    return (dy.with_shape(target),)


def gather_grad(xp: Any, attrs: GatherAttrs, shape: Any, indices: Any, dy: Any) -> Any:
    target = tuple(int(d) for d in shape)
    axis = normalize_axis("GatherGrad", attrs.axis, len(target))
    check_indices("GatherGrad", indices, target[axis])
    flat, chosen = _flat(axis, attrs.batch_dims, target, indices.shape)
    rows = xp.moveaxis(dy.reshape(flat[0], flat[1], chosen[1], flat[3]), 2, 1)
    total = xp.zeros(flat, dy.dtype)
    xp.add.at(total, (xp.arange(flat[0])[:, None], slice(None), indices.reshape(chosen)), rows)
    return total.reshape(target)


def gather_grad_gradient(emit: Emit, attrs: GatherAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return None, None, emit("Gather", dy, inputs[1], **asdict(attrs))


def gather_grad_cases(rng: np.random.Generator) -> Iterable[Case]:
    for case in gather_cases(rng):
        params, indices = case.inputs
        assert params is not None and indices is not None
        y = gather(np, GatherAttrs(**case.attrs), params, indices)
        yield Case((np.array(params.shape, np.int32), indices, rng.normal(size=y.shape)), case.attrs, label=case.label)


GATHER_GRAD = define_op(
    Op(
        "GatherGrad",
        inputs=("shape", "indices", "dy"),
        outputs=("dparams",),
        attrs=GatherAttrs,
        infer=infer_gather_grad,
        reference=gather_grad,
        gradient=gather_grad_gradient,
        native="gather_grad",
        cases=gather_grad_cases,
        rejects=(
            Reject(
                ((2,), (4,), (3, 3)),
                match="got 3, expected 4",
                dtypes=("i32", "i32", "f32"),
                values=((5, 3), None, None),
            ),
        ),  # fmt: skip
        doc="""The gradient of Gather: every slice of `dy` added, in the order of indices, where Gather took it.

    Args: shape: that of params. indices, axis, batch_dims: those of Gather. dy: numbers.
    Returns: an array of shape.

    Example:
        >>> gather_grad(np.array([3]), np.array([2, 2]), np.array([1.0, 4.0], np.float32))
        array([0., 0., 5.], dtype=float32)
    """,
    )
)
