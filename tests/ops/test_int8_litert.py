"""The outside yardstick of int8: LiteRT's default interpreter, byte for byte, against references and kernels.

Each op runs with generic scales, and with power-of-two scales that make every rounding a tie now and then; zero points
are odd, weights per channel, RELU and RELU6 fused. At least 1e5 outputs an op.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "oracles"))
from int8_native import assert_native_equals
from litert import LiteRtModel, Quant, Ref, quant, run_litert

from rillet.shared_ops.registry import get_op
from rillet.shared_ops.types import Array, QuantParams

TIES = pytest.mark.parametrize("ties", [False, True], ids=["generic", "ties"])
ACTIVATION = pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6"])


def params(q: Quant | None, axis: int | None = None) -> QuantParams | None:
    if q is None:
        return None
    return QuantParams(q.scale, q.zero_point, axis if q.scale.size > 1 else None)


def check(
    name: str,
    attrs: dict[str, Any],
    inputs: Sequence[Array | None],
    in_q: Sequence[QuantParams | None],
    y: Quant | None,
    model: LiteRtModel,
    out: Ref,
    fed: Sequence[int] = (0,),
) -> int:
    """Asserts that LiteRT, the derived reference and the kernels agree; returns how many outputs were compared."""
    op = get_op(name)
    (want,) = assert_native_equals(op, op.make_attrs(attrs), inputs, in_q, (params(y),), fed, threads=(1, 2))
    (got,) = run_litert(model.bytes(out), [inputs[i] for i in fed])  # type: ignore[misc]
    different = np.sum(got.reshape(want.shape) != want)
    assert different == 0, f"{different} of {want.size} bytes differ from LiteRT's"
    assert np.unique(want).size > 1  # not a saturated constant
    return want.size


def weights(
    rng: np.random.Generator, shape: tuple[int, ...], channels: int, least: int | None, outputs: int = 0
) -> tuple[Array, Array, Array]:
    """Weights, their scales (powers of two from 2^-least to 2^-(least + 3), if given), an int32 bias."""
    w = rng.integers(-127, 128, shape).astype(np.int8)
    scale = (
        2.0 ** -rng.integers(least, least + 4, channels) if least is not None else rng.uniform(0.002, 0.006, channels)
    )
    return w, scale.astype(np.float32), rng.integers(-2000, 2000, outputs or channels).astype(np.int32)


def image(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(-128, 128, shape).astype(np.int8)


def in_out(ties: bool, activation: str, out: float, tie_out: float) -> tuple[Quant, Quant, int | None]:
    """Parameters of input and output, and `least` of the weights. Under RELU6 the output's range ends near 6."""
    if not ties:
        return quant(0.0235, -11), quant(0.02 if activation == "RELU6" else out, 7), None
    return quant(0.5, 3), *((quant(0.0625, -5), 6) if activation == "RELU6" else (quant(tie_out, -5), 0))


@TIES
@ACTIVATION
def test_conv2d(ties: bool, activation: str) -> None:
    rng, count = np.random.default_rng(1), 0
    x_q, y_q, least = in_out(ties, activation, 0.05, 128.0)
    for n, size, c, o, k, stride in (
        (1, 33, 3, 32, 3, 2),
        (4, 17, 16, 24, 3, 1),
        (2, 14, 64, 40, 1, 1),
        (1, 16, 8, 9, 5, 1),
    ):
        x = image(rng, n, size, size, c)
        w, w_scale, bias = weights(rng, (k, k, c, o), o, least)
        model = LiteRtModel()
        ref = model.input(x.shape, np.int8, x_q)
        out = model.conv2d(ref, w, bias, (stride, stride), "SAME", activation, y_q, w_scale)
        attrs = {"strides": (stride, stride), "padding": "SAME", "activation": activation}
        in_q = (params(x_q), QuantParams(w_scale, 0, 3), None)
        count += check("Conv2D", attrs, (x, w, bias), in_q, y_q, model, out)
    assert count * 6 >= 1e5


@TIES
@ACTIVATION
def test_depthwise_conv2d(ties: bool, activation: str) -> None:
    rng, count = np.random.default_rng(2), 0
    x_q, y_q, least = in_out(ties, activation, 0.02, 64.0)
    for n, size, c, m, k, stride in (
        (2, 17, 32, 1, 3, 1),
        (2, 18, 48, 1, 3, 2),
        (1, 15, 70, 1, 5, 1),
        (1, 12, 8, 2, 3, 1),
    ):
        x = image(rng, n, size, size, c)
        w, w_scale, bias = weights(rng, (k, k, c, m), c, least, c * m)
        model = LiteRtModel()
        ref = model.input(x.shape, np.int8, x_q)
        out = model.depthwise_conv2d(ref, w, bias, (stride, stride), "SAME", activation, y_q, np.repeat(w_scale, m))
        attrs = {"strides": (stride, stride), "padding": "SAME", "activation": activation}
        in_q = (params(x_q), QuantParams(w_scale, 0, 2), None)
        count += check("DepthwiseConv2D", attrs, (x, w, bias), in_q, y_q, model, out)
    assert count * 6 >= 1e5


@TIES
def test_conv2d_transpose(ties: bool) -> None:
    rng, count = np.random.default_rng(9), 0
    x_q, y_q, least = in_out(ties, "NONE", 0.03, 128.0)
    # Windows below the stride are left out: there LiteRT leaves its default path, and its arithmetic.
    for size, c, o, k, stride, padding in (
        (15, 16, 24, 3, 2, "SAME"),
        (11, 24, 32, 4, 2, "VALID"),
        (8, 9, 40, 5, 3, "SAME"),
    ):
        x = image(rng, 1, size, size, c)
        w, w_scale, bias = weights(rng, (k, k, o, c), o, least)
        out_size = size * stride + (max(k - stride, 0) if padding == "VALID" else 0)
        model = LiteRtModel()
        shape, strides = (1, out_size, out_size, o), (stride, stride)
        ref = model.input(x.shape, np.int8, x_q)
        out = model.conv2d_transpose(ref, w, bias, shape, strides, padding, "NONE", y_q, w_scale)
        in_q = (params(x_q), QuantParams(w_scale, 0, 2), None)
        attrs = {"strides": strides, "padding": padding}
        count += check("Conv2DTranspose", attrs, (x, w, bias), in_q, y_q, model, out)
    assert count * 2 >= 1e5


@TIES
@ACTIVATION
def test_matmul(ties: bool, activation: str) -> None:
    rng, count = np.random.default_rng(3), 0
    x_q, y_q, least = in_out(ties, activation, 0.03, 128.0)
    for m, k, n in ((256, 64, 64), (33, 129, 51), (1, 640, 100)):
        x = image(rng, m, k)
        w, w_scale, bias = weights(rng, (k, n), n, least)
        model = LiteRtModel()
        out = model.fully_connected(model.input(x.shape, np.int8, x_q), w, bias, activation, y_q, w_scale)
        in_q = (params(x_q), QuantParams(w_scale, 0, 1), None)
        count += check("MatMul", {"activation": activation}, (x, w, bias), in_q, y_q, model, out)
    assert count * 6 >= 1e5


@ACTIVATION
@pytest.mark.parametrize("name", ["Add", "Sub", "Mul"])
def test_binary(name: str, activation: str) -> None:
    rng, count = np.random.default_rng(4), 0
    scales = (
        (0.021, -11, 0.05, 3, 0.06, 7),
        (0.5, 3, 0.25, -5, 0.5, 7),
        (0.5, -1, 0.5, 1, 1.0, 5),
        (0.003, 100, 0.9, -90, 1.1, 0),
    )
    for s1, z1, s2, z2, so, zo in scales:
        if name == "Mul":
            so = 0.05 if activation == "RELU6" else float(np.float32(s1) * np.float32(s2)) * 128
        for other in ((8, 8, 8, 24), (1, 1, 1, 24)):
            a, b = image(rng, 8, 8, 8, 24), image(rng, *other)
            model = LiteRtModel()
            refs = model.input(a.shape, np.int8, quant(s1, z1)), model.input(b.shape, np.int8, quant(s2, z2))
            if name == "Sub" and activation != "NONE":
                continue  # rillet's Sub has no fused activation
            out = model.binary(name, *refs, activation, quant(so, zo))
            attrs = {} if name == "Sub" else {"activation": activation}
            in_q = (params(refs[0].quant), params(refs[1].quant))
            count += check(name, attrs, (a, b), in_q, out.quant, model, out, (0, 1))
    assert count >= 9e4 or (name == "Sub" and activation != "NONE")


@TIES
def test_mean(ties: bool) -> None:
    rng, count = np.random.default_rng(5), 0
    pairs = (
        ((0.5, 3, 0.5, -5), (0.5, -3, 0.25, 7))
        if ties
        else ((0.02, -7, 0.011, 3), (0.03, 5, 0.03, 5), (0.02, 1, 0.003, -9))
    )
    for s1, z1, so, zo in pairs:
        for size in (4, 7, 8):
            x = image(rng, 64, size, size, 288)
            model = LiteRtModel()
            out = model.mean(model.input(x.shape, np.int8, quant(s1, z1)), (1, 2), quant(so, zo))
            attrs = {"axes": (1, 2), "keepdims": True}
            count += check("Mean", attrs, (x,), (QuantParams.per_tensor(s1, z1),), out.quant, model, out)
    assert count >= 1e5


@pytest.mark.parametrize("kind,name", [("AVERAGE", "AvgPool"), ("MAX", "MaxPool")])
def test_pools(kind: str, name: str) -> None:
    rng, count = np.random.default_rng(6), 0
    for size, k, stride, padding in ((32, 2, 2, "VALID"), (31, 3, 2, "SAME"), (17, 3, 1, "SAME"), (14, 7, 1, "VALID")):
        x = image(rng, 2, size, size, 64)
        model = LiteRtModel()
        out = model.pool2d(kind, model.input(x.shape, np.int8, quant(0.05, -7)), (k, k), (stride, stride), padding)
        attrs = {"ksize": (k, k), "strides": (stride, stride), "padding": padding}
        count += check(name, attrs, (x,), (QuantParams.per_tensor(0.05, -7),), out.quant, model, out)
    assert count >= 1e5


def test_softmax() -> None:
    rng, count = np.random.default_rng(7), 0
    for classes in (2, 10, 101, 1001):
        for scale in (0.01, 0.1, 0.37, 1.5):
            x = image(rng, 16000 // classes + 1, classes)
            model = LiteRtModel()
            out = model.softmax(model.input(x.shape, np.int8, quant(scale, 3)))
            count += check("Softmax", {}, (x,), (QuantParams.per_tensor(scale, 3),), out.quant, model, out)
    assert count >= 1e5


@pytest.mark.parametrize("scale,zero_point", [(0.0235, -11), (0.5, 3), (0.25, -128), (1.0, 127), (0.037, 1)])
def test_quantize(scale: float, zero_point: int) -> None:
    rng = np.random.default_rng(8)
    # Half steps are ties where the scale is a power of two. Elsewhere they would only show that LiteRT multiplies by a
    # rounded reciprocal, while rillet divides, as ONNX prescribes.
    ties = np.arange(-600, 600, dtype=np.float32) * np.float32(scale / 2) if np.log2(scale) % 1 == 0 else []
    x = np.concatenate([ties, rng.normal(size=30000) * 100 * scale]).astype(np.float32).reshape(1, -1)
    model = LiteRtModel()
    out = model.quantize(model.input(x.shape, np.float32), quant(scale, zero_point))
    check("Quantize", {}, (x,), (None,), out.quant, model, out)
