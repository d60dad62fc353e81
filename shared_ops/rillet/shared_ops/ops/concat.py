"""Joining tensors: Concat along an axis that they have, Pack along a new one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import SameScale
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.reduction import shape_vector
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import MAX_RANK, merge_shapes, normalize_axis, require_same_dtype
from rillet.shared_ops.types import Dim, TensorType


@dataclass(frozen=True)
class ConcatAttrs:
    axis: int = 0


def infer_concat(attrs: ConcatAttrs, *values: TensorType) -> tuple[TensorType, ...]:
    if not values:
        raise OpError("Concat", "nothing to join", got=0, expected="one tensor or more")
    first = values[0]
    axis = normalize_axis("Concat", attrs.axis, first.rank)
    require_same_dtype("Concat", *values)
    shape, total = first.shape, list[Dim]()
    for v in values:
        if v.rank != first.rank:
            raise OpError("Concat", "ranks disagree", got=v.rank, expected=first.rank)
        total.append(v.shape[axis])
        shape = merge_shapes("Concat", shape, (*v.shape[:axis], shape[axis], *v.shape[axis + 1 :]))
    known = all(v.value is not None for v in values)
    value = tuple(d for v in values for d in v.value or ()) if known else None
    return (TensorType(first.dtype, (*shape[:axis], _sum(total), *shape[axis + 1 :]), value),)


def _sum(dims: list[Dim]) -> Dim:
    """The sum of dimensions, where they are known; a name beside zeros stays."""
    others = [d for d in dims if d != 0]
    if len(others) == 1:
        return others[0]
    return None if any(not isinstance(d, int) for d in others) else sum(d for d in others if isinstance(d, int))


def concat_gradient(emit: Emit, attrs: ConcatAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    axis = normalize_axis("Concat", attrs.axis, len(inputs[0].shape))
    sizes = tuple(x.shape[axis] for x in inputs)
    if all(isinstance(d, (int, np.integer)) for d in sizes):
        pieces = emit("SplitV", dy, sizes=sizes, axis=axis)
        return pieces if isinstance(pieces, tuple) else (pieces,)
    along = np.array([int(a == axis) for a in range(len(inputs[0].shape))], np.int32)
    start, gradients = np.zeros_like(along), []
    for x in inputs:
        gradients.append(emit("DynamicSlice", dy, start, shape_vector(emit, x)))
        start = emit("Add", start, emit("Mul", shape_vector(emit, x), along))
    return tuple(gradients)


def concat_cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, axis: int, *shapes: tuple[int, ...]) -> Case:
        return Case(tuple(rng.normal(size=s) for s in shapes), {"axis": axis}, label=label)

    yield case("first axis", 0, (2, 3), (1, 3), (4, 3))
    yield case("last axis", -1, (2, 2, 3), (2, 2, 5))
    yield case("middle axis", 1, (2, 1, 3), (2, 4, 3), (2, 2, 3))
    yield case("one input", 0, (2, 3))
    yield case("an empty one", 1, (2, 0), (2, 3))
    yield case("all empty", 0, (0, 3), (0, 3))


CONCAT = define_op(
    Op(
        "Concat",
        inputs=("*values",),
        outputs=("y",),
        attrs=ConcatAttrs,
        infer=infer_concat,
        reference=lambda xp, attrs, *values: xp.concatenate(values, axis=attrs.axis),
        gradient=concat_gradient,
        quantize=SameScale(),
        native="concat",
        cases=concat_cases,
        rejects=(
            Reject(((2, 3), (2, 4)), {"axis": 0}, match="got 4, expected 3"),
            Reject(((2, 3), (2,)), {"axis": 0}, match="ranks disagree"),
            Reject(((2, 3), (2, 3)), {"axis": 0}, match="dtype", dtypes=("f32", "i32")),
            Reject(((2,),), {"axis": 1}, match="out of range"),
            Reject((), {"axis": 0}, match="nothing to join"),
        ),
        doc="""The tensors one after the other along `axis`.

    Args: values: one dtype, shapes that are equal but for `axis`. axis: negative ones count from the end.
    Returns: one array.

    Example:
        >>> concat(np.array([1, 2]), np.array([3]), axis=0)
        array([1, 2, 3])
    """,
    )
)


@dataclass(frozen=True)
class PackAttrs:
    axis: int = 0


def infer_pack(attrs: PackAttrs, *values: TensorType) -> tuple[TensorType, ...]:
    if not values:
        raise OpError("Pack", "nothing to pack", got=0, expected="one tensor or more")
    first = values[0]
    if first.rank == MAX_RANK:
        raise OpError("Pack", "too many dimensions", got=MAX_RANK + 1, expected=f"at most {MAX_RANK}")
    axis = normalize_axis("Pack", attrs.axis, first.rank + 1)
    require_same_dtype("Pack", *values)
    shape = first.shape
    for v in values:
        shape = merge_shapes("Pack", shape, v.shape)
    value = None
    if first.rank == 0 and any(v.value is not None for v in values):
        value = tuple(v.value[0] if v.value else None for v in values)
    return (TensorType(first.dtype, (*shape[:axis], len(values), *shape[axis:]), value),)


def pack_gradient(emit: Emit, attrs: PackAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    pieces = emit("Unpack", dy, num=len(inputs), axis=attrs.axis)
    return pieces if isinstance(pieces, tuple) else (pieces,)


def pack_cases(rng: np.random.Generator) -> Iterable[Case]:
    for axis in (0, 1, -1):
        yield Case(tuple(rng.normal(size=(2, 3)) for _ in range(3)), {"axis": axis}, label=f"axis {axis}")
    yield Case((np.array(1.5), np.array(2.5)), label="scalars")
    yield Case((rng.normal(size=(2, 0)), rng.normal(size=(2, 0))), {"axis": 1}, label="empty")
    yield Case((rng.normal(size=(2,)),), label="one input")


PACK = define_op(
    Op(
        "Pack",
        inputs=("*values",),
        outputs=("y",),
        attrs=PackAttrs,
        infer=infer_pack,
        reference=lambda xp, attrs, *values: xp.stack(values, axis=attrs.axis),
        gradient=pack_gradient,
        quantize=SameScale(),
        native="pack",
        cases=pack_cases,
        rejects=(
            Reject(((2, 3), (2, 4)), match="got 4, expected 3"),
            Reject(((2,), (2,)), match="dtype", dtypes=("f32", "i32")),
            Reject(((2,),), {"axis": 2}, match="out of range"),
            Reject((), match="nothing to pack"),
        ),
        doc="""The tensors side by side along a new dimension at `axis` of the result.

    Args: values: one dtype and shape. axis: negative ones count from the end of the result.
    Returns: one array with one dimension more.

    Example:
        >>> pack(np.array([1, 2]), np.array([3, 4]), axis=1)
        array([[1, 3],
               [2, 4]])
    """,
    )
)
