"""The int8 arithmetic that every family shares: quantize, dequantize, the one requantization, activation bounds.

Profile `rq_f32` of docs/quantization.md: an int32 accumulator, ONE float32 multiply, clamp, round half to even, add
the zero point. shared_ops/native/requantize.h is the same in C++; a test compares the two at every edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.types import Array, QuantParams

QMIN, QMAX = -128, 127
PROFILE = "rq_f32"


def quantize(x: Array, q: QuantParams) -> NDArray[np.int8]:
    """Float to int8: divide by the scale in float32, round half to even, add the zero point, clamp; NaN gives 0."""
    scaled = np.rint(x.astype(np.float32) / q.spread(x.ndim))
    scaled = np.where(np.isnan(scaled), np.float32(0), scaled)
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


@dataclass(frozen=True)
class AddParams:
    """Sum of two int8 values: q = ((a*qa + b*qb + offset) >> shift) + zero point of the result, all in int32."""

    a: int
    b: int
    offset: int
    shift: int


def add_params(op: str, a: QuantParams, b: QuantParams, y: QuantParams, sign: int = 1) -> AddParams:
    """The fixed-point form of a + b (sign -1: a - b). |multipliers| < 2^21, so every sum fits int32.

    Raises OpError where a scale is not within [2^-10, 2^8) of the result's.
    """
    ratios = [np.float32(q.scale[0]) / np.float32(y.scale[0]) for q in (a, b)]
    for i, ratio in enumerate(ratios):
        if not 2.0**-10 <= ratio < 2.0**8:
            raise OpError(
                op,
                f"scale of input {i} over scale of the output",
                got=f"{float(ratio):g}",
                expected="at least 1/1024 and below 256",
                hint="Calibrate again, or keep this op in float.",
            )
    shift = 20 - (math.frexp(float(max(ratios)))[1] - 1)
    ma, mb = (round(math.ldexp(float(r), shift)) for r in ratios)
    mb *= sign
    return AddParams(ma, mb, (1 << (shift - 1)) - ma * a.zero_point - mb * b.zero_point, shift)


# exp and log in double out of +, *, / alone, in one written order, so that softmax tables have the same bits in NumPy
# and in C++ on every machine; libm's last bit is its own affair. Errors stay below 1e-15 relative.
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_EXP = [1.0 / math.factorial(i) for i in range(14)]


def exp64(x: float) -> float:
    """exp(x) for x <= 0."""
    if x < -708.0:
        return 0.0
    n = math.floor(x * 1.4426950408889634 + 0.5)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = _EXP[13]
    for c in reversed(_EXP[:13]):
        p = p * r + c
    return math.ldexp(p, n)


def log64(x: Array) -> NDArray[np.float64]:
    """log(x) for x >= 1."""
    m, e = np.frexp(x)
    low = m < 0.7071067811865476
    m, e = np.where(low, m * 2.0, m), np.where(low, e - 1, e)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = np.full_like(z, 1.0 / 23.0)
    for k in range(21, 0, -2):
        p = p * z + 1.0 / k
    return e * _LN2_HIGH + (2.0 * s * p + e * _LN2_LOW)


def exp_table(scale: float) -> NDArray[np.float32]:
    """Entry k: exp(-k * scale) for k = 0 to 255, in double, rounded to float32."""
    return np.array([exp64(-(k * scale)) for k in range(256)]).astype(np.float32)
