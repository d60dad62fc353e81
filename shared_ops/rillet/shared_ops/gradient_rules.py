"""What the gradients of several ops share: undoing a broadcast, and products in which zero wins."""

from __future__ import annotations

from typing import Any

import numpy as np

from rillet.shared_ops.op import Emit
from rillet.shared_ops.types import DTYPE_NAMES


def unbroadcast(emit: Emit, dy: Any, x: Any, *others: Any) -> Any:
    """The gradient `dy` of a broadcast result, summed down to the shape of the operand `x`.

    others: the operands that `x` was broadcast against. They matter only where dimensions are unknown: an axis along
    which none of them can stretch `x` needs no sum. Nothing is emitted where the shapes are known to agree.
    """
    shape = tuple(x.shape)
    if not _may_stretch(shape, tuple(dy.shape), [tuple(o.shape) for o in others]):
        return dy
    if all(isinstance(d, (int, np.integer)) for d in shape):
        return emit("SumTo", dy, np.array(shape, np.int64))
    return emit("SumTo", dy, emit("Shape", x))


def _may_stretch(shape: tuple[Any, ...], full: tuple[Any, ...], others: list[tuple[Any, ...]]) -> bool:
    """Whether `full`, the shape of the result, may differ from `shape`."""
    if len(shape) != len(full):
        return True
    for axis in range(-len(full), 0):
        if shape[axis] is not None and shape[axis] == full[axis]:
            continue
        rivals = [o[axis] for o in others if len(o) >= -axis]
        if not others or any(d != 1 for d in rivals):
            return True
    return False


def mul_no_nan(emit: Emit, derivative: Any, dy: Any) -> Any:
    """derivative * dy, and 0 wherever dy is 0, even where the derivative is infinite or NaN.

    So that a branch that Select did not take passes back an exact zero (sqrt at 0, log at 0, 1/0).
    """
    return emit("MulNoNan", derivative, dy)


def as_number(emit: Emit, condition: Any, like: Any) -> Any:
    """1 where a condition holds, else 0, in the dtype of `like`."""
    return emit("Cast", condition, dtype=DTYPE_NAMES[np.dtype(like.dtype)])


def masked(emit: Emit, condition: Any, dy: Any) -> Any:
    """dy where a condition holds, and 0 elsewhere, whatever dy is there."""
    return emit("MulNoNan", dy, as_number(emit, condition, dy))


def through_activation(emit: Emit, activation: str, y: Any, dy: Any) -> Any:
    """The gradient in front of a fused activation (NONE, RELU or RELU6), from its output y."""
    return dy if activation == "NONE" else emit({"RELU": "ReluGrad", "RELU6": "Relu6Grad"}[activation], dy, y)
