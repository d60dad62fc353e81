"""The int8 families: how a float op becomes an int8 op. An op names one; the integer arithmetic is written here once.

Each `run` is the *derived reference*: exact NumPy code made out of the op's own float reference wherever that is
possible. The native int8 kernels are compared with it byte for byte, and LiteRT's default path is the outside yardstick
(docs/quantization.md). Sums of integers are formed in float64: they stay far below 2^53, so they are exact, and fast.

What quant/ reads of a family: `same_scale` (inputs and outputs share their parameters), `fixed` (the output's scale and
zero point are prescribed) and `channel_axis` (of the weights, input 1, that may have one scale a channel).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Op
from rillet.shared_ops.quantize import (
    QMAX,
    QMIN,
    AddParams,
    activation_bounds,
    add_params,
    dequantize,
    exp_table,
    log64,
    quantize,
    requantize,
    requantize_scale,
)
from rillet.shared_ops.types import Array, QuantParams

Quants = tuple["QuantParams | None", ...]
Inputs = tuple["Array | None", ...]
Fixed = tuple[float, int]
INT32_LIMIT = 1 << 31


@dataclass(frozen=True)
class Family:
    """What all families have; the class attributes are read by quant/."""

    same_scale: ClassVar[bool] = False

    @property
    def fixed(self) -> Fixed | None:
        return None

    @property
    def channel_axis(self) -> int | None:
        return None

    def run(self, op: Op, attrs: Any, inputs: Inputs, in_q: Quants, out_q: Quants) -> tuple[Array, ...]:
        raise NotImplementedError


def _params(op: Op, q: Quants, i: int, what: str) -> QuantParams:
    given = q[i] if i < len(q) else None
    if given is None:
        raise OpError(op.name, f"{what} {i} is int8 but has no quantization parameters")
    return given


def _tensor_params(op: Op, q: Quants, i: int, what: str) -> QuantParams:
    """Parameters of an activation: one scale, finite and positive, and a zero point inside int8."""
    given = _params(op, q, i, what)
    if given.scale.size != 1 or given.axis is not None:
        raise OpError(op.name, f"{what} {i} has one scale a channel", got=given.scale.size, expected=1)
    if not (np.isfinite(given.scale[0]) and given.scale[0] > 0):
        raise OpError(op.name, f"scale of {what} {i}", got=float(given.scale[0]), expected="a positive number")
    if not QMIN <= given.zero_point <= QMAX:
        raise OpError(op.name, f"zero point of {what} {i}", got=given.zero_point, expected=f"{QMIN} to {QMAX}")
    return given


def _array(op: Op, inputs: Inputs, i: int) -> Array:
    x = inputs[i]
    if x is None:
        raise OpError(op.name, f"input {i} is missing")
    return x


def _bounds(op: Op, attrs: Any, y: QuantParams) -> tuple[int, int]:
    return activation_bounds(op.name, getattr(attrs, "activation", "NONE"), y)


def _without_activation(attrs: Any) -> Any:
    return replace(attrs, activation="NONE") if hasattr(attrs, "activation") else attrs


@dataclass(frozen=True)
class Accumulate(Family):
    """Sums of products: int32 accumulator, plus an int32 bias, requantized with one scale a channel.

    channel_axis: of the weights (input 1), which are symmetric and lie in [-127, 127]; the output's channels are its
    last axis. None: input 1 is an activation too (BatchMatMul), with a zero point of its own.
    """

    channel_axis: int | None = None  # a default, or the property of Family would be taken for one

    def run(self, op: Op, attrs: Any, inputs: Inputs, in_q: Quants, out_q: Quants) -> tuple[Array, ...]:
        x, w = _array(op, inputs, 0), _array(op, inputs, 1)
        x_q, w_q, y_q = (
            _tensor_params(op, in_q, 0, "input"),
            _params(op, in_q, 1, "input"),
            _tensor_params(op, out_q, 0, "output"),
        )
        bias = inputs[2] if len(inputs) > 2 else None
        acc = op.reference(
            np, _without_activation(attrs), x.astype(np.float64) - x_q.zero_point, w.astype(np.float64) - w_q.zero_point
        )
        self._check_range(op, w, w_q, bias, acc.shape[-1])
        if bias is not None:
            acc = acc + bias.astype(np.float64)
        scale = requantize_scale(x_q, w_q, y_q)
        if scale.size != 1 and (w_q.axis is None or scale.size != w.shape[w_q.axis]):
            expected = "1" if w_q.axis is None else f"1 or {w.shape[w_q.axis]}"
            raise OpError(op.name, "scales of the weights", got=scale.size, expected=expected)
        if 1 < scale.size < acc.shape[-1]:
            # One scale an input channel (depthwise: its outputs lie side by side) or one for each group alike.
            spread = np.tile if getattr(attrs, "groups", 1) > 1 else np.repeat
            scale = spread(scale, acc.shape[-1] // scale.size)
        if not (np.all(scale > 0) and np.all(scale < 256)):
            raise OpError(
                op.name,
                "scale of input times scale of weights over scale of output",
                got=f"{float(scale.min()):g} to {float(scale.max()):g}",
                expected="above 0 and below 256",
                hint="Calibrate the output again: its range is far too narrow.",
            )
        return (requantize(acc.astype(np.int32), scale, y_q.zero_point, *_bounds(op, attrs, y_q)),)

    def _check_range(self, op: Op, w: Array, w_q: QuantParams, bias: Array | None, channels: int) -> None:
        """The accumulator must fit int32 whatever the activations are; weights of -128 break int16 products."""
        largest = QMAX
        if self.channel_axis is None:
            largest = (
                255  # and 256 below, not 255: the native accumulator starts at the bias less the zero point's share
            )
        elif w_q.zero_point != 0 or (w.size and int(w.min()) < -QMAX):
            raise OpError(op.name, "weights are not symmetric", got=int(w.min()), expected="-127 to 127, zero point 0")
        taps = w.size if self.channel_axis is not None else int(np.prod(w.shape[-2:]))
        bound = taps // max(channels, 1) * 256 * largest + (
            int(np.abs(bias.astype(np.int64)).max(initial=0)) if bias is not None else 0
        )
        if bound >= INT32_LIMIT:
            raise OpError(
                op.name,
                "the sum of products may leave int32",
                got=bound,
                expected=f"below {INT32_LIMIT}",
                hint="Keep this layer in float.",
            )


@dataclass(frozen=True)
class Lookup(Family):
    """Pointwise ops of one input: 256 answers of the float reference, in double, become a table.

    fixed: prescribed output parameters, for example (1/256, -128) of Sigmoid.
    """

    fixed: Fixed | None = None

    def run(self, op: Op, attrs: Any, inputs: Inputs, in_q: Quants, out_q: Quants) -> tuple[Array, ...]:
        table = build_table(op, attrs, _params(op, in_q, 0, "input"), _params(op, out_q, 0, "output"))
        return (look_up(_array(op, inputs, 0), table),)


def build_table(op: Op, attrs: Any, in_q: QuantParams, out_q: QuantParams) -> NDArray[np.int8]:
    """The 256 int8 answers of a pointwise op, entry i for q = i - 128: its reference in double, rounded half to even.

    Where the op has no answer (NaN, such as Log of a negative number) the entry stands for 0.

    Args: in_q, out_q: per-tensor parameters of input and output. Returns: int8[256].
    """
    x_q, y_q = _tensor_params(op, (in_q,), 0, "input"), _tensor_params(op, (out_q,), 0, "output")
    x = (np.arange(QMIN, QMAX + 1, dtype=np.float64) - x_q.zero_point) * np.float64(x_q.scale[0])
    with np.errstate(all="ignore"):
        (y,) = op.compute(np, attrs, x)
        q = np.rint(np.nan_to_num(y, nan=0.0, posinf=np.inf, neginf=-np.inf) / np.float64(y_q.scale[0]))
    return np.clip(q + y_q.zero_point, QMIN, QMAX).astype(np.int8)


def look_up(x: Array, table: Array) -> Array:
    """table[x + 128] for int8 x."""
    return table[x.astype(np.int32) - QMIN]


@dataclass(frozen=True)
class SameScale(Family):
    """Ops that only move, select or compare values: int8 in, the same int8 out, parameters shared.

    fill: name of the attribute that holds a real number put beside the values (Pad's); it is quantized like the input.
    """

    same_scale: ClassVar[bool] = True
    fill: str = ""

    def run(self, op: Op, attrs: Any, inputs: Inputs, in_q: Quants, out_q: Quants) -> tuple[Array, ...]:
        x_q = _require_same(op, inputs, in_q, out_q)
        if self.fill:
            real = np.asarray(getattr(attrs, self.fill), np.float32)
            attrs = replace(attrs, **{self.fill: type(getattr(attrs, self.fill))(quantize(real, x_q))})
        return op.compute(np, attrs, *inputs)


def _require_same(op: Op, inputs: Inputs, in_q: Quants, out_q: Quants) -> QuantParams:
    """The parameters that all int8 inputs and outputs share; refuses where they differ."""
    first = _params(op, in_q, 0, "input")
    int8_inputs = tuple(q for x, q in zip(inputs, in_q) if x is not None and x.dtype == np.int8)
    for q in int8_inputs + tuple(q for q in out_q if q is not None):
        if not first.same(q):
            raise OpError(
                op.name,
                "int8 inputs and outputs have different parameters",
                got=_describe(q),
                expected=_describe(first),
                hint="Put a Requantize before it.",
            )
    return first


def _describe(q: QuantParams | None) -> str:
    return "none" if q is None else f"scale {float(q.scale[0]):g}, zero point {q.zero_point}"


@dataclass(frozen=True)
class AddSub(Family):
    """Add (sign 1) and Sub (sign -1): both inputs brought to one fixed-point scale of 21 bits, rounded half up."""

    sign: int

    def run(self, op: Op, attrs: Any, inputs: Inputs, in_q: Quants, out_q: Quants) -> tuple[Array, ...]:
        a, b = _array(op, inputs, 0).astype(np.int64), _array(op, inputs, 1).astype(np.int64)
        a_q, b_q = (_tensor_params(op, in_q, i, "input") for i in (0, 1))
        y_q = _tensor_params(op, out_q, 0, "output")
        p: AddParams = add_params(op.name, a_q, b_q, y_q, self.sign)
        q = ((p.a * a + p.b * b + p.offset) >> p.shift) + y_q.zero_point
        return (np.clip(q, *_bounds(op, attrs, y_q)).astype(np.int8),)


@dataclass(frozen=True)
class Product(Family):
    """Mul: the int32 product of both inputs, zero points subtracted, requantized."""

    def run(self, op: Op, attrs: Any, inputs: Inputs, in_q: Quants, out_q: Quants) -> tuple[Array, ...]:
        a_q, b_q = (_tensor_params(op, in_q, i, "input") for i in (0, 1))
        y_q = _tensor_params(op, out_q, 0, "output")
        a = _array(op, inputs, 0).astype(np.int32) - a_q.zero_point
        b = _array(op, inputs, 1).astype(np.int32) - b_q.zero_point
        scale = requantize_scale(a_q, b_q, y_q)[0]
        return (requantize(np.asarray(a * b), scale, y_q.zero_point, *_bounds(op, attrs, y_q)),)


@dataclass(frozen=True)
class MeanRescale(Family):
    """Mean over axes: the exact sum of stored values times one float32, plus one float32 that holds both zero points,
    rounded half to even. Every product and sum below is rounded to float32, in this order: so LiteRT does it."""

    def run(self, op: Op, attrs: Any, inputs: Inputs, in_q: Quants, out_q: Quants) -> tuple[Array, ...]:
        x_q, y_q = _tensor_params(op, in_q, 0, "input"), _tensor_params(op, out_q, 0, "output")
        x = _array(op, inputs, 0)
        (mean,) = op.compute(np, attrs, x.astype(np.float64))
        n = x.size // max(mean.size, 1)
        total = np.rint(mean * n)  # the exact sum: the mean is off by less than 2^-52 of itself
        scale = np.float32(x_q.scale[0]) / np.float32(y_q.scale[0]) * (np.float32(1) / np.float32(n))
        offset = np.float32(y_q.zero_point) - np.float32(n * x_q.zero_point) * scale
        q = np.rint(total.astype(np.float32) * scale + offset)
        return (np.clip(q, QMIN, QMAX).astype(np.int8),)


@dataclass(frozen=True)
class AverageRaw(Family):
    """AvgPool: the average of the stored values, rounded half away from (stored) zero; parameters shared."""

    same_scale: ClassVar[bool] = True

    def run(self, op: Op, attrs: Any, inputs: Inputs, in_q: Quants, out_q: Quants) -> tuple[Array, ...]:
        x_q = _require_same(op, inputs, in_q, out_q)
        (mean,) = op.compute(np, attrs, _array(op, inputs, 0).astype(np.float64))
        mean = np.where(np.isnan(mean), x_q.zero_point, mean)  # dilation can leave a window without elements
        # A mean of up to 2^24 int8 values that is not a multiple of 1/2 lies at least 2^-25 away from one.
        halves = np.rint(2 * mean) / 2
        mean = np.where(np.abs(mean - halves) < 2.0**-30, halves, mean)
        return ((np.sign(mean) * np.floor(np.abs(mean) + 0.5)).astype(np.int8),)


@dataclass(frozen=True)
class SoftmaxTable(Family):
    """Softmax (LogSoftmax with `log`) over `attrs.axis`: exponentials of (q - max) from a table of 256, summed in
    float32 in index order; the output's parameters are prescribed."""

    log: bool = False

    @property
    def fixed(self) -> Fixed:
        return (16 / 256, 127) if self.log else (1 / 256, -128)

    def run(self, op: Op, attrs: Any, inputs: Inputs, in_q: Quants, out_q: Quants) -> tuple[Array, ...]:
        x_q, y_q = _tensor_params(op, in_q, 0, "input"), _tensor_params(op, out_q, 0, "output")
        if (float(y_q.scale[0]), y_q.zero_point) != self.fixed:
            raise OpError(op.name, "output parameters", got=_describe(y_q), expected=str(self.fixed))
        x = np.moveaxis(_array(op, inputs, 0), attrs.axis, -1).astype(np.int32)
        table = exp_table(float(x_q.scale[0]))
        below = x.max(axis=-1, keepdims=True) - x
        total = np.zeros(below.shape[:-1] + (1,), np.float32)
        for i in range(x.shape[-1]):
            total[..., 0] += table[below[..., i]]
        q = self._log(below, total, x_q) if self.log else table[below] * (np.float32(256) / total)
        q = np.sign(q) * np.floor(np.abs(q).astype(np.float64) + 0.5) + y_q.zero_point
        return (np.moveaxis(np.clip(q, QMIN, QMAX).astype(np.int8), -1, attrs.axis),)

    @staticmethod
    def _log(below: Array, total: Array, x_q: QuantParams) -> Array:
        return (-np.float64(x_q.scale[0]) * below - log64(total.astype(np.float64))) * 16.0


@dataclass(frozen=True)
class ToInt8(Family):
    """Quantize: the parameters are the output value's."""

    def run(self, op: Op, attrs: Any, inputs: Inputs, in_q: Quants, out_q: Quants) -> tuple[Array, ...]:
        y_q = agreed_params(op, attrs, _tensor_params(op, out_q, 0, "output"))
        return (quantize(_array(op, inputs, 0), y_q),)


@dataclass(frozen=True)
class FromInt8(Family):
    """Dequantize: the parameters are the input value's, one a channel for weights."""

    def run(self, op: Op, attrs: Any, inputs: Inputs, in_q: Quants, out_q: Quants) -> tuple[Array, ...]:
        x_q = agreed_params(op, attrs, _params(op, in_q, 0, "input"))
        return (dequantize(_array(op, inputs, 0), x_q),)


def agreed_params(op: Op, attrs: Any, value: QuantParams) -> QuantParams:
    """The value's parameters; refuses attributes that say something else (scale 0 says nothing)."""
    if attrs.scale and (np.float32(attrs.scale) != value.scale[0] or attrs.zero_point != value.zero_point):
        raise OpError(
            op.name,
            "attributes contradict the value's parameters",
            got=f"scale {attrs.scale:g}, zero point {attrs.zero_point}",
            expected=_describe(value),
            hint="Leave the attributes out: in a Program the value's parameters decide.",
        )
    return value
