"""The int8 weights and int32 bias of an op that accumulates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rillet.quant.parameters import bias_params, guard_bias, quantize_bias, quantize_weights, weight_scales
from rillet.shared_ops.int8 import Accumulate
from rillet.shared_ops.program import Application, Program
from rillet.shared_ops.quantize import requantize_scale
from rillet.shared_ops.types import QuantParams

# Where the multiplier of requantization must lie (docs/quantization.md); outside, other runtimes change the rounding.
LARGEST_MULTIPLIER = 256.0


@dataclass(frozen=True)
class LayerWeights:
    """Quantized weights and bias of one application, with their parameters."""

    weights: NDArray[np.int8]
    weights_q: QuantParams
    bias: NDArray[np.int32] | None
    bias_q: QuantParams | None


def quantize_layer(program: Program, a: Application, x: QuantParams) -> LayerWeights:
    """Symmetric weights with one scale an output channel, and the bias in units of the accumulator.

    x: parameters of the layer's input. The weights (input 1) and the bias (input 2, if any) must be constants.
    """
    weights = program.values[a.inputs[1] or ""].constant
    bias = program.values[a.inputs[2]].constant if len(a.inputs) > 2 and a.inputs[2] is not None else None
    assert weights is not None
    axis = _channel_axis(a)
    scales = guard_bias(weight_scales(weights, axis), float(x.scale[0]), bias)
    weights_q = QuantParams(scales, 0, axis)
    spread = weights_q.spread(weights.ndim)
    if bias is None:
        return LayerWeights(quantize_weights(weights, spread), weights_q, None, None)
    bias_q = bias_params(x, scales, 0)
    return LayerWeights(quantize_weights(weights, spread), weights_q, quantize_bias(bias, bias_q), bias_q)


def multiplier_refusal(program: Program, a: Application, x: QuantParams, y: QuantParams) -> str:
    """Why the layer's requantization would leave the range of the profile; "" where it does not."""
    return range_refusal(requantize_scale(x, quantize_layer(program, a, x).weights_q, y))


def range_refusal(multiplier: NDArray[np.float32]) -> str:
    """Why factors of requantization are none that the profile takes; "" where they are."""
    if np.all(multiplier > 0) and np.all(multiplier < LARGEST_MULTIPLIER):
        return ""
    low, high = float(multiplier.min()), float(multiplier.max())
    return f"requantization by {low:.3g} to {high:.3g}, int8 takes above 0 and below {LARGEST_MULTIPLIER:g}"


def _channel_axis(a: Application) -> int:
    """The axis of the weights that numbers the output channels."""
    assert isinstance(a.op.quantize, Accumulate) and a.op.quantize.channel_axis is not None
    if getattr(a.attrs, "transpose_b", False):
        return 0
    return a.op.quantize.channel_axis
