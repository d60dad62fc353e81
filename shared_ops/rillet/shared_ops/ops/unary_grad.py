"""Backprop ops of the activations whose gradient follows from their output y: one pass over memory instead of three."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from rillet.shared_ops.functions import snake_case
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.pointwise import FLOATS, describe, draw, require_dtype
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


def _cases(masks: bool, rng: np.random.Generator) -> Iterator[Case]:
    y = draw(rng, (5, 9), -1, 7, (0, 6)) if masks else draw(rng, (5, 9), 0.05, 0.95)
    yield Case((draw(rng, (5, 9)), y), differentiable=(0,) if masks else (0, 1), label="matrix")


# Name, function, gradient, what it gives, and the result for dy = 2, 2 at y = 0, 0.5.
ROWS: tuple[tuple[str, Callable[..., Any], Callable[..., tuple[Any, ...]], str, str], ...] = (
    ("ReluGrad", lambda xp, a, dy, y: xp.where(y > 0, dy, xp.zeros_like(dy)), _mask_gradient,
     "dy where y > 0, else 0.", "[0., 2.]"),
    ("Relu6Grad", lambda xp, a, dy, y: xp.where((y > 0) & (y < 6), dy, xp.zeros_like(dy)), _mask_gradient,
     "dy where 0 < y < 6, else 0.", "[0., 2.]"),
    ("SigmoidGrad", lambda xp, a, dy, y: dy * (y * (1 - y)), _sigmoid_gradient, "dy * y * (1 - y).", "[0. , 0.5]"),
    ("TanhGrad", lambda xp, a, dy, y: dy * (1 - y * y), _tanh_gradient, "dy * (1 - y * y).", "[2. , 1.5]"),
)  # fmt: skip

for _name, _function, _gradient, _doc, _result in ROWS:
    define_op(
        Op(
            _name,
            inputs=("dy", "y"),
            outputs=("dx",),
            infer=partial(_infer, _name),
            reference=_function,
            gradient=partial(_gradient, _name),
            native=snake_case(_name),
            rejects=(
                Reject(((2, 3), (2, 4)), match="got 4, expected 3"),
                Reject(((2,), (2,)), match="dtype of dy: got i32", dtypes=("i32", "i32")),
            ),
            cases=partial(_cases, _gradient is _mask_gradient),
            doc=describe(
                _doc,
                "dy, y: f32 or f64 of one shape; y is the activation's output.",
                "the same dtype and shape.",
                f"{snake_case(_name)}(np.array([2.0, 2.0], np.float32), np.array([0.0, 0.5], np.float32))",
                f"array({_result}, dtype=float32)",
            ),
        )
    )
