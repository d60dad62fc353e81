"""Scales and zero points out of ranges, and int8 weights and biases out of float ones. Every function is total: zeros,
subnormal numbers and one-sided ranges all give finite, positive scales."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rillet.quant.observers import Range
from rillet.shared_ops.quantize import QMAX, QMIN
from rillet.shared_ops.types import Array, QuantParams

# Below this a scale is no longer worth telling from zero, and products of two scales would leave float32.
SMALLEST_SCALE = 2.0**-60
BIAS_LIMIT = 2.0**30


def activation_params(given: Range) -> QuantParams:
    """Asymmetric int8 parameters of an activation. The range is widened to hold 0, which is then exact.

    The zero point comes from the end of the range whose rounding error is smaller, rounded half away from zero.

    Example:
        >>> q = activation_params(Range(1.0, 3.0))
        >>> round(float(q.scale[0]) * 255, 5), q.zero_point
        (3.0, -128)
    """
    low, high = min(given.low, 0.0), max(given.high, 0.0)
    if high - low < SMALLEST_SCALE:
        return QuantParams.per_tensor(1.0, 0)
    scale = np.float32(max((high - low) / (QMAX - QMIN), SMALLEST_SCALE))
    from_low, from_high = QMIN - low / float(scale), QMAX - high / float(scale)
    error_low = abs(QMIN) + abs(low / float(scale))
    error_high = abs(QMAX) + abs(high / float(scale))
    exact = from_low if error_low < error_high else from_high
    zero_point = int(np.clip(np.sign(exact) * np.floor(abs(exact) + 0.5), QMIN, QMAX))
    return QuantParams(np.array([scale], np.float32), zero_point)


def weight_scales(w: Array, axis: int) -> NDArray[np.float64]:
    """max|w| / 127 of each index along `axis`; 1 for a channel of zeros."""
    others = tuple(i for i in range(w.ndim) if i != axis)
    largest = np.abs(w.astype(np.float64)).max(axis=others, initial=0.0).reshape(-1)
    return np.where(largest == 0, 1.0, np.maximum(largest / 127, SMALLEST_SCALE))


def guard_bias(scales: NDArray[np.float64], x_scale: float, bias: Array | None) -> NDArray[np.float32]:
    """Weight scales, raised where the int32 bias of a channel would otherwise be cut off."""
    if bias is not None:
        scales = np.maximum(scales, np.abs(bias.astype(np.float64)) / (x_scale * BIAS_LIMIT))
    return scales.astype(np.float32)


def quantize_weights(w: Array, spread: NDArray[np.float32]) -> NDArray[np.int8]:
    """rint(w / scale), clamped to [-127, 127]: -128 would overflow sums of two products in int16."""
    return np.clip(np.rint(w.astype(np.float64) / spread), -127, 127).astype(np.int8)


def bias_params(x: QuantParams, scales: NDArray[np.float32], axis: int | None) -> QuantParams:
    """The bias counts in units of the accumulator: input scale times weight scale, in float32."""
    return QuantParams(np.float32(x.scale[0]) * scales, 0, axis)


def quantize_bias(bias: Array, q: QuantParams) -> NDArray[np.int32]:
    """rint(b / scale) as int32; guard_bias has made sure that it fits."""
    return np.clip(np.rint(bias.astype(np.float64) / q.scale.astype(np.float64)), -BIAS_LIMIT, BIAS_LIMIT).astype(
        np.int32
    )
