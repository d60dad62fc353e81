"""BiasAdd adds one number a channel (the last axis); BiasAddGrad sums over all other axes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case, Emit, NoAttrs, Op, Reject
from rillet.shared_ops.product import check_bias, check_operands
from rillet.shared_ops.reduction import shape_vector
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import merge_dims
from rillet.shared_ops.types import TensorType


def infer(attrs: NoAttrs, x: TensorType, bias: TensorType) -> tuple[TensorType, ...]:
    check_operands("BiasAdd", x, bias)
    if x.rank < 1:
        raise OpError("BiasAdd", "rank of x", got=0, expected="at least 1 (..., channels)")
    check_bias("BiasAdd", bias, x.shape[-1])
    return (x.with_shape((*x.shape[:-1], merge_dims("BiasAdd", x.shape[-1], bias.shape[0]))),)


def reference(xp: Any, attrs: NoAttrs, x: Any, bias: Any) -> Any:
    return x + bias


def gradient(emit: Emit, attrs: NoAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return dy, emit("BiasAddGrad", dy)


def infer_grad(attrs: NoAttrs, dy: TensorType) -> tuple[TensorType, ...]:
    check_operands("BiasAddGrad", dy)
    if dy.rank < 1:
        raise OpError("BiasAddGrad", "rank of dy", got=0, expected="at least 1 (..., channels)")
    return (dy.with_shape(dy.shape[-1:]),)


def reference_grad(xp: Any, attrs: NoAttrs, dy: Any) -> Any:
    return dy.sum(axis=tuple(range(dy.ndim - 1)), dtype=dy.dtype)


def gradient_grad(emit: Emit, attrs: NoAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (emit("BroadcastTo", dy, shape_vector(emit, inputs[0])),)


def cases(rng: np.random.Generator) -> Iterable[Case]:
    for label, shape in {
        "vector": (3,),
        "rows": (5, 17),
        "image": (2, 3, 5, 9),
        "no rows": (0, 4),
        "no channels": (4, 0),
    }.items():
        yield Case((rng.normal(size=shape), rng.normal(size=shape[-1:])), label=label)


def cases_grad(rng: np.random.Generator) -> Iterable[Case]:
    for label, shape in {
        "vector": (3,),
        "fewer rows than lanes": (5, 17),
        "image": (3, 7, 5, 33),
        "one channel": (50, 1),
        "no rows": (0, 4),
    }.items():
        yield Case((rng.normal(size=shape),), label=label)


BIAS_ADD = define_op(
    Op(
        "BiasAdd",
        inputs=("x", "bias"),
        outputs=("y",),
        infer=infer,
        reference=reference,
        gradient=gradient,
        native="bias_add",
        cases=cases,
        rejects=(
            Reject(((2, 3), (4,)), match="length of the bias: got 4, expected 3"),
            Reject(((2, 3), (1, 3)), match="rank of bias: got 2, expected 1"),
            Reject(((), (1,)), match="rank of x"),
            Reject(((2, 3), (3,)), match="dtype", dtypes=("f32", "f64")),
        ),
        doc="""Adds `bias` along the last axis of `x`.

    Args: x: floats [..., C]. bias: floats [C]. Returns: an array like `x`.
    Raises OpError where the dtypes differ or the bias has another length.

    Example:
        >>> bias_add(np.zeros((2, 2), np.float32), np.array([1, 2], np.float32))
        array([[1., 2.],
               [1., 2.]], dtype=float32)
    """,
    )
)

BIAS_ADD_GRAD = define_op(
    Op(
        "BiasAddGrad",
        inputs=("dy",),
        outputs=("dbias",),
        infer=infer_grad,
        reference=reference_grad,
        gradient=gradient_grad,
        native="bias_add_grad",
        cases=cases_grad,
        rejects=(Reject(((),), match="rank of dy"),),
        doc="""The gradient of a bias: `dy` summed over every axis but the last.

    Order of the native sum: for each channel, row i (all leading axes flattened) goes to lane i mod 16 in increasing i;
    then the lanes are added pairwise (0+8, 1+9, ...; 0+4, ...; 0+2, 1+3; 0+1).
    Args: dy: floats [..., C]. Returns: floats [C].

    Example:
        >>> bias_add_grad(np.ones((2, 3, 2), np.float32))
        array([6., 6.], dtype=float32)
    """,
    )
)
