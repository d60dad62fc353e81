"""Cutting a tensor along an axis: Split into equal pieces, SplitV into given ones, Unpack into slices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import SameScale
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import normalize_axis
from rillet.shared_ops.types import Dim, TensorType


@dataclass(frozen=True)
class SplitAttrs:
    num: int
    axis: int = 0


def filled(emit: Emit, outputs: Sequence[Any], dys: Sequence[Any]) -> list[Any]:
    """The gradients of several outputs, with zeros for those that nothing reads."""
    return [emit("ZerosLike", y) if dy is None else dy for y, dy in zip(outputs, dys)]


def infer_split(attrs: SplitAttrs, x: TensorType) -> tuple[TensorType, ...]:
    axis = normalize_axis("Split", attrs.axis, x.rank)
    if attrs.num < 1:
        raise OpError("Split", "num", got=attrs.num, expected="1 or more")
    dim = x.shape[axis]
    if isinstance(dim, int) and dim % attrs.num:
        raise OpError("Split", f"dimension {axis} does not split evenly", got=dim,
                      expected=f"a multiple of {attrs.num}", hint="SplitV takes different sizes.")  # fmt: skip
    piece: Dim = dim // attrs.num if isinstance(dim, int) else dim if attrs.num == 1 else None
    return (x.with_shape((*x.shape[:axis], piece, *x.shape[axis + 1 :])),) * attrs.num


def split_gradient(emit: Emit, attrs: SplitAttrs, inputs: Any, outputs: Any, *dys: Any) -> tuple[Any, ...]:
    return (emit("Concat", *filled(emit, outputs, dys), axis=attrs.axis),)


SPLIT = define_op(
    Op(
        "Split",
        inputs=("x",),
        outputs=("*pieces",),
        attrs=SplitAttrs,
        infer=infer_split,
        reference=lambda xp, attrs, x: tuple(xp.split(x, attrs.num, axis=attrs.axis)),
        gradient=split_gradient,
        quantize=SameScale(),
        native="split",
        cases=lambda rng: (
            Case((rng.normal(size=(4, 3)),), {"num": 2}, label="first axis"),
            Case((rng.normal(size=(2, 6)),), {"num": 3, "axis": -1}, label="last axis"),
            Case((rng.normal(size=(2, 4, 3)),), {"num": 4, "axis": 1}, label="middle axis"),
            Case((rng.normal(size=(2, 3)),), {"num": 1}, label="one piece"),
            Case((rng.normal(size=(0, 4)),), {"num": 2, "axis": 1}, label="empty"),
            Case((rng.normal(size=(0, 4)),), {"num": 2, "axis": 0}, label="empty axis"),
        ),
        rejects=(
            Reject(((5, 2),), {"num": 2}, match="got 5, expected a multiple of 2"),
            Reject(((4,),), {"num": 0}, match="1 or more"),
            Reject(((4,),), {"num": 2, "axis": 1}, match="out of range"),
        ),
        doc="""`num` equal pieces of `x` along `axis`.

    Args: x: any dtype; its size along axis is a multiple of num.
    Returns: a tuple of num arrays (the array itself if num is 1).

    Example:
        >>> split(np.array([1, 2, 3, 4]), num=2)
        (array([1, 2]), array([3, 4]))
    """,
    )
)


@dataclass(frozen=True)
class SplitVAttrs:
    sizes: tuple[int, ...]
    axis: int = 0


def resolved_sizes(attrs: SplitVAttrs, dim: Dim) -> tuple[Dim, ...]:
    """The sizes, with the one -1 worked out; refuses sizes that do not sum to the dimension."""
    sizes = attrs.sizes
    if not sizes or any(s < -1 for s in sizes) or sizes.count(-1) > 1:
        raise OpError("SplitV", "sizes", got=sizes, expected="one or more of 0 or above, and at most one -1")
    known = sum(s for s in sizes if s >= 0)
    if isinstance(dim, int) and (known > dim or (known < dim and -1 not in sizes)):
        raise OpError("SplitV", "sizes sum to another number than the dimension", got=known, expected=dim)
    rest: Dim = dim - known if isinstance(dim, int) else dim if known == 0 else None
    return tuple(rest if s == -1 else s for s in sizes)


def infer_split_v(attrs: SplitVAttrs, x: TensorType) -> tuple[TensorType, ...]:
    axis = normalize_axis("SplitV", attrs.axis, x.rank)
    sizes = resolved_sizes(attrs, x.shape[axis])
    return tuple(x.with_shape((*x.shape[:axis], s, *x.shape[axis + 1 :])) for s in sizes)


def split_v(xp: Any, attrs: SplitVAttrs, x: Any) -> Any:
    sizes = resolved_sizes(attrs, x.shape[attrs.axis])
    return tuple(xp.split(x, np.cumsum(np.array(sizes, np.int64))[:-1].tolist(), axis=attrs.axis))


def split_v_gradient(emit: Emit, attrs: SplitVAttrs, inputs: Any, outputs: Any, *dys: Any) -> tuple[Any, ...]:
    return (emit("Concat", *filled(emit, outputs, dys), axis=attrs.axis),)


def split_v_cases(rng: np.random.Generator) -> Iterable[Case]:
    yield Case((rng.normal(size=(6, 2)),), {"sizes": (1, 2, 3)}, label="first axis")
    yield Case((rng.normal(size=(2, 7)),), {"sizes": (2, -1, 1), "axis": -1}, label="the rest")
    yield Case((rng.normal(size=(2, 3)),), {"sizes": (0, 3), "axis": 1}, label="an empty piece")
    yield Case((rng.normal(size=(3,)),), {"sizes": (3,)}, label="one piece")


SPLIT_V = define_op(
    Op(
        "SplitV",
        inputs=("x",),
        outputs=("*pieces",),
        attrs=SplitVAttrs,
        infer=infer_split_v,
        reference=split_v,
        gradient=split_v_gradient,
        quantize=SameScale(),
        native="split_v",
        cases=split_v_cases,
        rejects=(
            Reject(((5,),), {"sizes": (2, 2)}, match="got 4, expected 5"),
            Reject(((5,),), {"sizes": (6, -1)}, match="got 6, expected 5"),
            Reject(((5,),), {"sizes": (-1, -1)}, match="at most one -1"),
            Reject(((5,),), {"sizes": ()}, match="one or more"),
        ),
        doc="""Pieces of `x` along `axis`, of the given sizes.

    Args: x: any dtype. sizes: one a piece, summing to the size of x; one -1 stands for the rest.
    Returns: a tuple of arrays (the array itself if there is one).

    Example:
        >>> split_v(np.array([1, 2, 3]), sizes=(1, -1))
        (array([1]), array([2, 3]))
    """,
    )
)


@dataclass(frozen=True)
class UnpackAttrs:
    num: int
    axis: int = 0


def infer_unpack(attrs: UnpackAttrs, x: TensorType) -> tuple[TensorType, ...]:
    axis = normalize_axis("Unpack", attrs.axis, x.rank)
    dim = x.shape[axis]
    if attrs.num < 1 or (isinstance(dim, int) and dim != attrs.num):
        raise OpError("Unpack", "num", got=attrs.num, expected=f"{dim}, the size of dimension {axis}, and at least 1")
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    values = x.value if x.value is not None and x.rank == 1 else (None,) * attrs.num
    return tuple(TensorType(x.dtype, shape, (v,) if x.value is not None else None) for v in values)


def unpack(xp: Any, attrs: UnpackAttrs, x: Any) -> Any:
    return tuple(xp.moveaxis(x, attrs.axis, 0)[i, ...] for i in range(attrs.num))


def unpack_gradient(emit: Emit, attrs: UnpackAttrs, inputs: Any, outputs: Any, *dys: Any) -> tuple[Any, ...]:
    return (emit("Pack", *filled(emit, outputs, dys), axis=attrs.axis),)


UNPACK = define_op(
    Op(
        "Unpack",
        inputs=("x",),
        outputs=("*slices",),
        attrs=UnpackAttrs,
        infer=infer_unpack,
        reference=unpack,
        gradient=unpack_gradient,
        quantize=SameScale(),
        native="unpack",
        cases=lambda rng: (
            Case((rng.normal(size=(3, 2)),), {"num": 3}, label="first axis"),
            Case((rng.normal(size=(2, 3, 4)),), {"num": 4, "axis": -1}, label="last axis"),
            Case((rng.normal(size=(2, 3, 4)),), {"num": 3, "axis": 1}, label="middle axis"),
            Case((rng.normal(size=(2, 0)),), {"num": 2}, label="empty"),
            Case((rng.normal(size=(2,)),), {"num": 2}, label="scalars"),
        ),
        rejects=(
            Reject(((5, 2),), {"num": 2}, match="got 2, expected 5"),
            Reject(((0, 2),), {"num": 0}, match="at least 1"),
            Reject((), {"num": 1}, match="number of inputs"),
        ),
        doc="""The slices of `x` along `axis`, without that dimension.

    Args: x: any dtype. num: the size of the axis (the number of outputs must be known when the graph is written).
    Returns: a tuple of num arrays (the array itself if num is 1).

    Example:
        >>> unpack(np.array([[1, 2], [3, 4]]), num=2)
        (array([1, 2]), array([3, 4]))
    """,
    )
)
