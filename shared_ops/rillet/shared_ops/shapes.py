"""Arithmetic on partly known shapes: what `infer` functions share.

A dimension is a number, a name (equal names are equal numbers), or None, known only at run time. Ranks are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.types import DTYPE_NAMES, Dim, Shape, TensorType

MAX_RANK = 8


def merge_dims(op: str, a: Dim, b: Dim, what: str = "dimension") -> Dim:
    """The one dimension that both are: the better known of the two. Raises OpError where two numbers differ.

    >>> merge_dims("Add", "batch", 4), merge_dims("Add", None, "batch")
    (4, 'batch')
    """
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise OpError(op, f"{what}s disagree", got=b, expected=a)
    if isinstance(a, int) or b is None:
        return a
    return b if isinstance(b, int) or a is None else a


def merge_shapes(op: str, a: Shape, b: Shape, what: str = "dimension") -> Shape:
    """`merge_dims` on every axis of two shapes of one rank."""
    if len(a) != len(b):
        raise OpError(op, "ranks disagree", got=len(b), expected=len(a))
    return tuple(merge_dims(op, x, y, f"{what} {axis}") for axis, (x, y) in enumerate(zip(a, b)))


def _broadcast_dim(op: str, a: Dim, b: Dim, shapes: tuple[Shape, Shape]) -> Dim:
    if a == 1:
        return b
    if b == 1 or a == b:
        return a
    if isinstance(a, int) and isinstance(b, int):
        raise OpError(
            op, "shapes do not broadcast", got=f"{shapes[0]} and {shapes[1]}", expected="equal dimensions or 1"
        )
    if isinstance(a, int):  # the other is unknown, so it must be 1 or this number; 0 and above 1 decide the result
        return a
    return b if isinstance(b, int) else None


def broadcast_shapes(op: str, a: Shape, b: Shape) -> Shape:
    """The shape of an elementwise result, by NumPy's rule: aligned at the right, 1 stretches.

    A name against another name, or against an unknown dimension, leaves the result unknown: either may be 1.

    >>> broadcast_shapes("Add", ("batch", 1, 3), (5, 1)), broadcast_shapes("Add", (None,), (7,))
    (('batch', 5, 3), (7,))
    """
    rank = max(len(a), len(b))
    if rank > MAX_RANK:
        raise OpError(op, "too many dimensions", got=rank, expected=f"at most {MAX_RANK}")
    left: Shape = (1,) * (rank - len(a)) + tuple(a)
    right: Shape = (1,) * (rank - len(b)) + tuple(b)
    return tuple(_broadcast_dim(op, x, y, (a, b)) for x, y in zip(left, right))


def normalize_axis(op: str, axis: int, rank: int) -> int:
    """`axis` as a number in [0, rank); negative ones count from the end."""
    if not -rank <= axis < rank:
        raise OpError(
            op, "axis out of range", got=axis, expected=f"-{rank} to {rank - 1}" if rank else "none: a scalar"
        )
    return axis % rank


def normalize_axes(op: str, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """`normalize_axis` on each, in the order given. Raises OpError where an axis is named twice."""
    result = tuple(normalize_axis(op, a, rank) for a in axes)
    if len(set(result)) != len(result):
        raise OpError(op, "an axis is named twice", got=tuple(axes), expected="different axes")
    return result


def same_type(attrs: Any, x: TensorType, *rest: Any) -> tuple[TensorType, ...]:
    """`infer` of an op whose result has the type of its first input."""
    return (x.plain(),)


def dim_product(dims: Iterable[Dim]) -> Dim:
    """The product of dimensions: a number if known (0 if any is 0), a name if all others are 1, else None.

    >>> dim_product((2, 3)), dim_product(("batch", 1)), dim_product(("batch", 2)), dim_product((None, 0))
    (6, 'batch', None, 0)
    """
    product, unknown = 1, list[Dim]()
    for d in dims:
        if isinstance(d, int):
            product *= d
        else:
            unknown.append(d)
    if not unknown or product == 0:
        return product
    return unknown[0] if product == 1 and len(unknown) == 1 else None


def numel(x: TensorType) -> Dim:
    """The number of elements of a tensor, None if unknown."""
    return dim_product(x.shape)


def require_rank(op: str, name: str, x: TensorType, rank: int, layout: str = "") -> None:
    """Refuses input `name` if it has another rank."""
    if x.rank != rank:
        raise OpError(op, f"rank of {name}", got=x.rank, expected=f"{rank}{f' ({layout})' if layout else ''}")


def require_float(op: str, name: str, x: TensorType) -> None:
    """Refuses input `name` if it is not a float tensor."""
    if not x.is_float:
        raise OpError(op, f"dtype of {name}", got=DTYPE_NAMES.get(x.dtype, x.dtype), expected="f32 or f64")


def require_same_dtype(op: str, *types: TensorType | None) -> None:
    """Refuses inputs whose dtypes differ; absent ones do not count."""
    present = [t for t in types if t is not None]
    for t in present[1:]:
        if t.dtype != present[0].dtype:
            got = [DTYPE_NAMES.get(p.dtype, str(p.dtype)) for p in present]
            raise OpError(op, "dtypes of the inputs differ", got=", ".join(got), expected="the same for all")


def require_integers(op: str, name: str, x: TensorType) -> None:
    """Refuses input `name` if it holds neither int32 nor int64."""
    if x.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise OpError(op, f"dtype of {name}", got=DTYPE_NAMES.get(x.dtype, x.dtype), expected="i32 or i64")


def shape_from_input(op: str, x: TensorType) -> Shape:
    """The shape that a shape input (a vector of int32 or int64) asks for; None where its contents are not known.

    A -1 comes through as it is: what it means is the op's affair. Raises OpError where even the rank stays unknown.
    """
    require_integers(op, "shape", x)
    require_rank(op, "shape", x, 1)
    if x.value is not None:
        dims = x.value
    elif isinstance(x.shape[0], int):
        dims = (None,) * x.shape[0]
    else:
        raise OpError(op, "the length of the shape vector is not known", got=x, expected="a known rank")
    if len(dims) > MAX_RANK:
        raise OpError(op, "too many dimensions", got=len(dims), expected=f"at most {MAX_RANK}")
    return dims


def target_shape(op: str, x: TensorType) -> Shape:
    """`shape_from_input` for ops where every dimension stands for itself: refuses negative ones."""
    dims = shape_from_input(op, x)
    if any(isinstance(d, int) and d < 0 for d in dims):
        raise OpError(op, "negative dimension in the shape", got=dims, expected="0 or more")
    return dims


def add_dims(a: Dim, b: Dim) -> Dim:
    """The sum of two dimensions; adding 0 keeps a name."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return a if b == 0 else b if a == 0 else None
