"""Backprop ops of the activations whose gradient follows from their output y: one pass over memory instead of three."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rillet.shared_ops.op import Emit, Op, Reject
from rillet.shared_ops.ops.unary import snake
from rillet.shared_ops.pointwise import FLOATS, require_dtype
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import merge_shapes, require_same_dtype
from rillet.shared_ops.types import TensorType


def _infer(name: str, attrs: Any, dy: TensorType, y: TensorType) -> tuple[TensorType, ...]:
    require_dtype(name, "dy", dy, FLOATS)
    require_same_dtype(name, dy, y)
    return (TensorType(dy.dtype, merge_shapes(name, dy.shape, y.shape)),)


def _mask_gradient(name: str, emit: Emit, attrs: Any, inputs: Any, outputs: Any, ddx: Any) -> tuple[Any, ...]:
    """Of dy * mask(y): linear in dy, and flat in y."""
    return emit(name, ddx, inputs[1]), None


def _sigmoid_gradient(name: str, emit: Emit, attrs: Any, inputs: Any, outputs: Any, ddx: Any) -> tuple[Any, ...]:
    dy, y = inputs
    slope = emit("Sub", 1.0, emit("Mul", 2.0, y))
    return emit(name, ddx, y), emit("Mul", emit("Mul", ddx, dy), slope)


def _tanh_gradient(name: str, emit: Emit, attrs: Any, inputs: Any, outputs: Any, ddx: Any) -> tuple[Any, ...]:
    dy, y = inputs
    return emit(name, ddx, y), emit("Mul", emit("Mul", ddx, dy), emit("Mul", -2.0, y))


ROWS: tuple[tuple[str, Callable[..., Any], Callable[..., tuple[Any, ...]], str], ...] = (
    ("ReluGrad", lambda xp, a, dy, y: xp.where(y > 0, dy, xp.zeros_like(dy)), _mask_gradient,
     "dy where y > 0, else 0."),
    ("Relu6Grad", lambda xp, a, dy, y: xp.where((y > 0) & (y < 6), dy, xp.zeros_like(dy)), _mask_gradient,
     "dy where 0 < y < 6, else 0."),
    ("SigmoidGrad", lambda xp, a, dy, y: dy * (y * (1 - y)), _sigmoid_gradient, "dy * y * (1 - y)."),
    ("TanhGrad", lambda xp, a, dy, y: dy * (1 - y * y), _tanh_gradient, "dy * (1 - y * y)."),
)  # fmt: skip

for _name, _function, _gradient, _doc in ROWS:
    define_op(
        Op(
            _name,
            inputs=("dy", "y"),
            outputs=("dx",),
            infer=partial(_infer, _name),
            reference=_function,
            gradient=partial(_gradient, _name),
            native=snake(_name),
            rejects=(
                Reject(((2, 3), (2, 4)), match="got 4, expected 3"),
                Reject(((2,), (2,)), match="dtype of dy: got i32", dtypes=("i32", "i32")),
            ),
            doc=_doc,
        )
    )
