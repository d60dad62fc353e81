"""What is known of a tensor without looking at its values: Shape, Size, Rank."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import dim_product
from rillet.shared_ops.types import DTYPES, TensorType


@dataclass(frozen=True)
class ShapeAttrs:
    out_type: Literal["i32", "i64"] = "i32"


def infer_shape(attrs: ShapeAttrs, x: TensorType) -> tuple[TensorType, ...]:
    return (TensorType(DTYPES[attrs.out_type], (x.rank,), x.shape),)


def infer_size(attrs: ShapeAttrs, x: TensorType) -> tuple[TensorType, ...]:
    return (TensorType(DTYPES[attrs.out_type], (), (dim_product(x.shape),)),)


def infer_rank(attrs: ShapeAttrs, x: TensorType) -> tuple[TensorType, ...]:
    return (TensorType(DTYPES[attrs.out_type], (), (x.rank,)),)


def no_gradient(emit: Emit, attrs: ShapeAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (None,)


def cases(rng: np.random.Generator) -> Iterable[Case]:
    yield Case((rng.normal(size=(2, 3, 4)),), label="rank 3", differentiable=())
    yield Case((rng.normal(size=(5, 0)),), {"out_type": "i64"}, label="empty", differentiable=())
    yield Case((np.array(True),), label="scalar", differentiable=())


REJECTS = (Reject(((2,),), {"out_type": "f32"}, match="one of 'i32', 'i64'"),)

SHAPE = define_op(
    Op(
        "Shape",
        inputs=("x",),
        outputs=("shape",),
        attrs=ShapeAttrs,
        infer=infer_shape,
        reference=lambda xp, attrs, x: xp.asarray(x.shape, DTYPES[attrs.out_type]),
        gradient=no_gradient,
        native="shape",
        cases=cases,
        rejects=REJECTS,
        doc="""The dimensions of `x` as a vector.

    Args: x: any dtype, any shape. out_type: "i32" or "i64".
    Returns: a vector with one number a dimension.

    Example:
        >>> shape(np.zeros((2, 3), np.float32))
        array([2, 3], dtype=int32)
    """,
    )
)

SIZE = define_op(
    Op(
        "Size",
        inputs=("x",),
        outputs=("size",),
        attrs=ShapeAttrs,
        infer=infer_size,
        reference=lambda xp, attrs, x: xp.asarray(x.size, DTYPES[attrs.out_type]),
        gradient=no_gradient,
        native="size",
        cases=cases,
        rejects=REJECTS,
        doc="""The number of elements of `x`.

    Args: x: any dtype, any shape. out_type: "i32" or "i64".
    Returns: a scalar.

    Example:
        >>> int(size(np.zeros((2, 3), np.float32)))
        6
    """,
    )
)

RANK = define_op(
    Op(
        "Rank",
        inputs=("x",),
        outputs=("rank",),
        attrs=ShapeAttrs,
        infer=infer_rank,
        reference=lambda xp, attrs, x: xp.asarray(x.ndim, DTYPES[attrs.out_type]),
        gradient=no_gradient,
        native="rank",
        cases=cases,
        rejects=REJECTS,
        doc="""The number of dimensions of `x`.

    Args: x: any dtype, any shape. out_type: "i32" or "i64".
    Returns: a scalar.

    Example:
        >>> int(rank(np.zeros((2, 3), np.float32)))
        2
    """,
    )
)
