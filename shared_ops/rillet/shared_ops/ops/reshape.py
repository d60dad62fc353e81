"""The same values under another shape: Reshape, ExpandDims, Squeeze, Flatten. No kernel moves a byte."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import SameScale
from rillet.shared_ops.op import Case, Emit, NoAttrs, Op, Reject
from rillet.shared_ops.reduction import shape_vector
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import MAX_RANK, dim_product, normalize_axes, normalize_axis, shape_from_input
from rillet.shared_ops.types import Dim, TensorType


def infer_reshape(attrs: NoAttrs, x: TensorType, shape: TensorType) -> tuple[TensorType, ...]:
    target = shape_from_input("Reshape", shape)
    if any(isinstance(d, int) and d < -1 for d in target) or target.count(-1) > 1:
        raise OpError("Reshape", "shape", got=target, expected="dimensions of 0 or more, and at most one -1")
    if -1 in target:
        rest = tuple(d for d in target if d != -1)
        missing = _quotient(x.shape, rest)
        target = tuple(missing if d == -1 else d for d in target)
    given, asked = dim_product(x.shape), dim_product(target)
    if isinstance(given, int) and isinstance(asked, int) and given != asked:
        raise OpError("Reshape", "the number of elements changes", got=f"{x} to {target}", expected=f"{given} elements")
    return (x.with_shape(target),)


def _quotient(dims: Sequence[Dim], divisor: Sequence[Dim]) -> Dim:
    """What -1 stands for: the product of `dims` over the product of `divisor`; names cancel."""
    if 0 in divisor:
        raise OpError("Reshape", "-1 beside a dimension of 0 could be any number", got=tuple(divisor))
    top, bottom = math.prod(d for d in dims if isinstance(d, int)), math.prod(d for d in divisor if isinstance(d, int))
    names: list[Dim] = [d for d in dims if not isinstance(d, int)]
    for d in divisor:
        if isinstance(d, int):
            continue
        if d is None or d not in names:
            return None
        names.remove(d)
    if not names:
        if top % bottom:
            raise OpError("Reshape", "-1 does not come out whole", got=f"{top} elements", expected=f"times {bottom}")
        return top // bottom
    return names[0] if len(names) == 1 and top == bottom else None


def reshape(xp: Any, attrs: NoAttrs, x: Any, shape: Any) -> Any:
    return x.reshape(tuple(int(d) for d in shape))


def reshape_gradient(emit: Emit, attrs: NoAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return emit("Reshape", dy, shape_vector(emit, inputs[0])), None


def reshape_cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, shape: tuple[int, ...], to: tuple[int, ...], dtype: type = np.int32) -> Case:
        return Case((rng.normal(size=shape), np.array(to, dtype)), label=label)

    yield case("split an axis", (2, 6), (2, 2, 3))
    yield case("minus one", (4, 6), (-1, 8), np.int64)
    yield case("to scalar", (1, 1), ())
    yield case("from scalar", (), (1, -1, 1))
    yield case("empty", (0, 3), (3, 0, 5))
    yield case("empty minus one", (0, 3), (-1, 3))


RESHAPE = define_op(
    Op(
        "Reshape",
        inputs=("x", "shape"),
        outputs=("y",),
        infer=infer_reshape,
        reference=reshape,
        gradient=reshape_gradient,
        quantize=SameScale(),
        native="reshape",
        cases=reshape_cases,
        rejects=(
            Reject(((2, 3), (1,)), match="number of elements", dtypes=("f32", "i32"), values=(None, (7,))),
            Reject(((2, 3), (2,)), match="at most one -1", dtypes=("f32", "i32"), values=(None, (-1, -1))),
            Reject(((2, 3), (2,)), match="come out whole", dtypes=("f32", "i32"), values=(None, (-1, 4))),
            Reject(((2, 3), (2,)), match="any number", dtypes=("f32", "i32"), values=(None, (-1, 0))),
            Reject(((2, 3), (1,)), match="i32 or i64", dtypes=("f32", "f32")),
            Reject(((2, 3), (9,)), match="at most 8", dtypes=("f32", "i32")),
        ),
        doc="""The values of `x`, in row-major order, under another shape.

    Args: x: any dtype. shape: i32 or i64 vector; one -1 stands for whatever is left. A 0 is a 0.
    Returns: an array of that shape.

    Example:
        >>> reshape(np.arange(6), np.array([2, -1]))
        array([[0, 1, 2],
               [3, 4, 5]])
    """,
    )
)


@dataclass(frozen=True)
class ExpandDimsAttrs:
    axis: int = 0


def infer_expand_dims(attrs: ExpandDimsAttrs, x: TensorType) -> tuple[TensorType, ...]:
    if x.rank == MAX_RANK:
        raise OpError("ExpandDims", "too many dimensions", got=MAX_RANK + 1, expected=f"at most {MAX_RANK}")
    axis = normalize_axis("ExpandDims", attrs.axis, x.rank + 1)
    value = x.value if x.rank == 0 else None
    return (TensorType(x.dtype, (*x.shape[:axis], 1, *x.shape[axis:]), value),)


def expand_dims_gradient(
    emit: Emit, attrs: ExpandDimsAttrs, inputs: Any, outputs: Any, dy: Any
) -> tuple[Any, ...]:  # fmt: skip
    return (emit("Squeeze", dy, axes=(attrs.axis,)),)


EXPAND_DIMS = define_op(
    Op(
        "ExpandDims",
        inputs=("x",),
        outputs=("y",),
        attrs=ExpandDimsAttrs,
        infer=infer_expand_dims,
        reference=lambda xp, attrs, x: xp.expand_dims(x, attrs.axis),
        gradient=expand_dims_gradient,
        quantize=SameScale(),
        native="expand_dims",
        cases=lambda rng: (
            Case((rng.normal(size=(2, 3)),), {"axis": axis}, label=f"axis {axis}") for axis in (0, 1, 2, -1, -3)
        ),
        rejects=(
            Reject(((2, 3),), {"axis": 3}, match="out of range"),
            Reject(((1,) * 8,), match="at most 8"),
        ),
        doc="""`x` with a new dimension of size 1 at `axis` of the result.

    Args: x: any dtype. axis: where; negative ones count from the end of the result.
    Returns: the values of x with one dimension more.

    Example:
        >>> expand_dims(np.array([1, 2]), axis=-1)
        array([[1],
               [2]])
    """,
    )
)


@dataclass(frozen=True)
class SqueezeAttrs:
    axes: tuple[int, ...] | None = None


def squeezed(attrs: SqueezeAttrs, shape: Sequence[Dim]) -> tuple[int, ...]:
    """The axes that go; with none named, every one of size 1 (then all dimensions must be known)."""
    if attrs.axes:
        axes = tuple(sorted(normalize_axes("Squeeze", attrs.axes, len(shape))))
        for a in axes:
            if isinstance(shape[a], int) and shape[a] != 1:
                raise OpError("Squeeze", f"dimension {a}", got=shape[a], expected=1)
        return axes
    if any(not isinstance(d, int) for d in shape):
        raise OpError(
            "Squeeze", "the rank of the result is unknown", got=tuple(shape), expected="axes, or known dimensions"
        )
    return tuple(a for a, d in enumerate(shape) if d == 1)


def infer_squeeze(attrs: SqueezeAttrs, x: TensorType) -> tuple[TensorType, ...]:
    axes = squeezed(attrs, x.shape)
    shape = tuple(d for a, d in enumerate(x.shape) if a not in axes)
    return (TensorType(x.dtype, shape, x.value if axes else None),)


def squeeze_gradient(emit: Emit, attrs: SqueezeAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    for axis in squeezed(attrs, inputs[0].shape):
        dy = emit("ExpandDims", dy, axis=axis)
    return (dy,)


SQUEEZE = define_op(
    Op(
        "Squeeze",
        inputs=("x",),
        outputs=("y",),
        attrs=SqueezeAttrs,
        infer=infer_squeeze,
        reference=lambda xp, attrs, x: xp.squeeze(x, axis=squeezed(attrs, x.shape)),
        gradient=squeeze_gradient,
        quantize=SameScale(),
        native="squeeze",
        cases=lambda rng: (
            Case((rng.normal(size=(1, 2, 1)),), {"axes": (0, -1)}, label="two axes"),
            Case((rng.normal(size=(0, 1)),), {"axes": (1,)}, label="empty"),
            Case((rng.normal(size=(3, 1, 2, 1)),), {"axes": (1,)}, label="one axis"),
        ),
        rejects=(
            Reject(((2, 3),), {"axes": (1,)}, match="got 3, expected 1"),
            Reject(((1, None),), match="rank of the result"),
            Reject(((1, 1),), {"axes": (0, -2)}, match="twice"),
        ),
        doc="""`x` without dimensions of size 1.

    Args: x: any dtype. axes: those to drop; None: all of size 1.
    Returns: the values of x with fewer dimensions.

    Example:
        >>> squeeze(np.zeros((1, 2, 1), np.int32), axes=(0,))
        array([[0],
               [0]], dtype=int32)
    """,
    )
)


@dataclass(frozen=True)
class FlattenAttrs:
    axis: int = 1


def _split_point(attrs: FlattenAttrs, rank: int) -> int:
    return normalize_axis("Flatten", attrs.axis, rank + 1) if attrs.axis >= 0 else attrs.axis + rank


def infer_flatten(attrs: FlattenAttrs, x: TensorType) -> tuple[TensorType, ...]:
    axis = _split_point(attrs, x.rank)
    if axis < 0:
        raise OpError("Flatten", "axis out of range", got=attrs.axis, expected=f"{-x.rank} to {x.rank}")
    return (x.with_shape((dim_product(x.shape[:axis]), dim_product(x.shape[axis:]))),)


def flatten(xp: Any, attrs: FlattenAttrs, x: Any) -> Any:
    axis = _split_point(attrs, x.ndim)
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


def flatten_gradient(emit: Emit, attrs: FlattenAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (emit("Reshape", dy, shape_vector(emit, inputs[0])),)


FLATTEN = define_op(
    Op(
        "Flatten",
        inputs=("x",),
        outputs=("y",),
        attrs=FlattenAttrs,
        infer=infer_flatten,
        reference=flatten,
        gradient=flatten_gradient,
        quantize=SameScale(),
        native="flatten",
        cases=lambda rng: (
            *(Case((rng.normal(size=(2, 3, 4)),), {"axis": a}, label=f"axis {a}") for a in (0, 1, 2, 3, -1, -3)),
            Case((rng.normal(size=(0, 2, 2)),), label="empty"),
        ),
        rejects=(
            Reject(((2, 3),), {"axis": 3}, match="out of range"),
            Reject(((2, 3),), {"axis": -3}, match="out of range"),
        ),
        doc="""A matrix of the values of `x`: the dimensions before `axis` make the rows, the others the columns.

    Args: x: any dtype. axis: 0 to the rank of x.
    Returns: a matrix.

    Example:
        >>> flatten(np.zeros((2, 3, 4), np.float32)).shape
        (2, 12)
    """,
    )
)
