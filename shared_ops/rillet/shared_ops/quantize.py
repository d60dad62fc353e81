"""The int8 arithmetic that every family shares: quantize, dequantize, the one requantization, activation bounds.

Profile `rq_f32` of docs/quantization.md: an int32 accumulator, ONE float32 multiply, clamp, round half to even, add
the zero point. shared_ops/native/requantize.h is the same in C++; a test compares the two at every edge.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.types import Array, QuantParams

QMIN, QMAX = -128, 127
PROFILE = "rq_f32"


def quantize(x: Array, q: QuantParams) -> NDArray[np.int8]:
    """Float to int8: divide by the scale in float32, round half to even, add the zero point, clamp."""
    scaled = np.rint(x.astype(np.float32) / q.spread(x.ndim))
    return np.clip(scaled + np.float32(q.zero_point), QMIN, QMAX).astype(np.int8)


def dequantize(x: Array, q: QuantParams) -> NDArray[np.float32]:
    """int8 (or an int32 bias) to float32: scale * (x - zero_point)."""
    return ((x.astype(np.int32) - np.int32(q.zero_point)).astype(np.float32) * q.spread(x.ndim)).astype(np.float32)


def requantize_scale(x: QuantParams, w: QuantParams, y: QuantParams) -> NDArray[np.float32]:
    """The float32 multiplier of each output channel: two float32 roundings, in this order."""
    return (np.float32(x.scale[0]) * w.scale.astype(np.float32)) / np.float32(y.scale[0])


def requantize(acc: Array, scale: Array, zero_point: int, low: int = QMIN, high: int = QMAX) -> NDArray[np.int8]:
    """The only rounding step of the accumulating ops.

    acc: int32. scale: float32, broadcast against acc (channels last). low, high: bounds of a fused activation, in q.
    """
    f = acc.astype(np.int32).astype(np.float32) * scale.astype(np.float32)
    f = np.minimum(np.maximum(f, np.float32(low - zero_point)), np.float32(high - zero_point))
    return (np.rint(f).astype(np.int32) + np.int32(zero_point)).astype(np.int8)


def activation_bounds(op: str, activation: str, y: QuantParams) -> tuple[int, int]:
    """The q range that a fused activation leaves: NONE, RELU or RELU6 (6/scale in float32, half away from zero)."""
    if activation == "NONE":
        return QMIN, QMAX
    low = max(QMIN, y.zero_point)
    if activation == "RELU":
        return low, QMAX
    if activation == "RELU6":
        six = math.floor(float(np.float32(6.0) / np.float32(y.scale[0])) + 0.5)
        return low, min(QMAX, y.zero_point + six)
    raise OpError(op, "no int8 form of this fused activation", got=activation, expected="NONE, RELU or RELU6")
