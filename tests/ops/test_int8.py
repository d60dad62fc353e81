"""Every op with an int8 family, every case: within a step of float, and native kernels equal to the derived reference.

The derived reference itself is held to LiteRT in test_int8_litert.py.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from int8_native import assert_native_equals

from rillet.lite.single import has_kernel
from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import Accumulate, AddSub, FromInt8, Lookup, SoftmaxTable, ToInt8, build_table
from rillet.shared_ops.op import Case, Op
from rillet.shared_ops.quantize import QMAX, QMIN, dequantize, quantize
from rillet.shared_ops.registry import all_ops, get_op
from rillet.shared_ops.types import Array, QuantParams


def affine(x: Array) -> QuantParams:
    """Parameters that cover the finite values of x and 0; 0 is exactly representable."""
    finite = x[np.isfinite(x)] if x.size else np.zeros(1)
    low, high = min(float(finite.min(initial=0)), 0.0), max(float(finite.max(initial=0)), 0.0)
    scale = np.float32((high - low) / 255) if high > low else np.float32(1)
    return QuantParams.per_tensor(scale, int(np.clip(round(QMIN - low / float(scale)), QMIN, QMAX)))


def per_channel(w: Array, axis: int) -> QuantParams:
    if w.shape[axis] == 0:
        return QuantParams.per_tensor(1.0)
    largest = np.abs(w).max(axis=tuple(a for a in range(w.ndim) if a != axis), initial=0)
    return QuantParams(np.where(largest > 0, largest / 127, 1).astype(np.float32), 0, axis)


@dataclass(frozen=True)
class Int8Case:
    """A float case, quantized; `exact`: the float64 answer for the very values that the int8 inputs stand for."""

    inputs: tuple[Array | None, ...]
    in_q: tuple[QuantParams | None, ...]
    out_q: tuple[QuantParams | None, ...]
    exact: tuple[Array, ...]
    fed: tuple[int, ...]


def is_float(x: Array | None) -> bool:
    return x is not None and x.dtype.kind == "f"


def input_params(op: Op, attrs: Any, case: Case) -> list[QuantParams | None]:
    family = op.quantize
    qs: list[QuantParams | None] = [affine(x) if is_float(x) else None for x in case.inputs]  # type: ignore[arg-type]
    if family.same_scale:  # type: ignore[union-attr]
        shared = affine(np.concatenate([x.ravel() for x in case.inputs if is_float(x)]))  # type: ignore[union-attr]
        qs = [shared if q is not None else None for q in qs]
    if isinstance(family, Accumulate) and family.channel_axis is not None:
        axis = 0 if getattr(attrs, "transpose_b", False) else family.channel_axis
        qs[1] = per_channel(case.inputs[1], axis)  # type: ignore[arg-type]
    return qs


def quantized(op: Op, attrs: Any, case: Case) -> Int8Case:
    family: Any = op.quantize
    in_q = input_params(op, attrs, case)
    given = list(case.inputs)
    if isinstance(family, Accumulate) and family.channel_axis is not None and len(given) > 2 and given[2] is not None:
        scale = in_q[0].scale * in_q[1].scale  # type: ignore[union-attr]
        channels = given[2].size
        in_q[2] = QuantParams(np.repeat(scale, channels // scale.size) if channels > 1 else scale, 0, 0)
    inputs: list[Array | None] = []
    for i, (x, q) in enumerate(zip(given, in_q)):
        if q is None or x is None:
            inputs.append(x)
        elif i == 2 and isinstance(family, Accumulate):
            inputs.append(np.rint(x / q.scale.astype(np.float64)).astype(np.int32))
        else:
            inputs.append(quantize(x, q))
    real = [x if q is None or x is None else (x.astype(np.float64) - q.zero_point) * q.spread(x.ndim)
            for x, q in zip(inputs, in_q)]  # fmt: skip
    with np.errstate(all="ignore"):
        exact = op.compute(np, attrs, *real)
    if family.same_scale:
        out_q: list[Any] = [in_q[0] if is_float(y) else None for y in exact]
    elif family.fixed is not None:
        out_q = [QuantParams.per_tensor(*family.fixed)]
    else:
        out_q = [affine(y) for y in exact]
    weights = isinstance(family, Accumulate) and family.channel_axis is not None
    fed = tuple(i for i, x in enumerate(case.inputs) if is_float(x) and not (weights and i > 0))
    in_q = [None if weights and i == 2 else q for i, q in enumerate(in_q)]
    return Int8Case(tuple(inputs), tuple(in_q), tuple(out_q), tuple(exact), fed)


def float_cases(op: Op) -> list[Case]:
    return [c for c in op.cases(np.random.default_rng(0)) if c.inputs and is_float(c.inputs[0])]


def usable(op: Op) -> bool:
    return op.quantize is not None and not isinstance(op.quantize, (ToInt8, FromInt8))


ALL = [pytest.param(op, case, id=f"{op.name}-{case.label or i}")
       for op in all_ops() if usable(op) for i, case in enumerate(float_cases(op))]  # fmt: skip


@pytest.mark.parametrize("op,case", ALL)
def test_int8_is_within_a_step_of_float_and_native_equals_it(op: Op, case: Case) -> None:
    attrs = op.make_attrs(case.attrs)
    q = quantized(op, attrs, case)
    assert op.quantize is not None
    try:
        results = op.quantize.run(op, attrs, q.inputs, q.in_q, q.out_q)
    except OpError as error:
        pytest.skip(f"refused: {error}")
    for got, exact, out_q in zip(results, q.exact, q.out_q, strict=True):
        assert got.shape == exact.shape
        if out_q is None:
            assert np.array_equal(got, exact)
            continue
        assert got.dtype == np.int8
        with np.errstate(all="ignore"):
            ideal = np.clip(np.rint(exact / np.float64(out_q.scale[0])) + out_q.zero_point, QMIN, QMAX)
        known = ~np.isnan(ideal)
        assert np.abs(got[known].astype(int) - ideal[known]).max(initial=0) <= 1
    if isinstance(op.quantize, Lookup):
        table = build_table(op, attrs, q.in_q[0], q.out_q[0])  # type: ignore[arg-type]
        _check_table(q.inputs[0], table, results[0])  # type: ignore[arg-type]
    elif has_kernel(op, np.dtype(np.int8)):
        assert_native_equals(op, attrs, q.inputs, q.in_q, q.out_q, q.fed)


LOOK_UP = get_op("LookupTable")


def _check_table(x: Array, table: Array, want: Array) -> None:
    from int8_native import ISAS, program_of, run_native

    params = QuantParams.per_tensor(1.0)
    program = program_of(LOOK_UP, LOOK_UP.make_attrs({}), (x, table), (params, None), (want,), (params,))
    for isa in ISAS:
        for threads in (1, 2, 3):
            assert np.array_equal(run_native(program, [x], isa, threads)[0], want)


def test_every_family_has_native_kernels() -> None:
    """What quant/ may choose must run on a device; pointwise ops do so as LookupTable."""
    missing = [op.name for op in all_ops() if usable(op) and not isinstance(op.quantize, Lookup)
               and not has_kernel(op, np.dtype(np.int8))]  # fmt: skip
    assert not missing


# -- edges of the one requantization, Python against C++ --


def test_requantize_edges() -> None:
    """Ties of both signs, zero points at both ends, accumulators beyond 2^24 and beyond 2^31 once scaled, RELU6."""
    op, n = get_op("MatMul"), 64
    x = np.ones((1, 1), np.int8)  # zero point 0, so that the accumulator is w + bias
    edges = np.array([0, 1, -1, 2, 3, -3, 5, -5, 2**24 + 1, -(2**24) - 1, 2**30, -(2**30), 2**31 - 40000])
    bias = np.concatenate([edges, np.arange(-25, n - 25 - edges.size)]).astype(np.int32)
    for scale in (0.5, 0.25, 1.5, 1.0, 2.0**-20, 255.0, 0.1):
        for zero_point in (-128, -1, 0, 1, 127):
            for activation in ("NONE", "RELU", "RELU6"):
                in_q = (QuantParams.per_tensor(1.0), QuantParams(np.full(n, scale, np.float32), 0, 1), None)
                attrs = op.make_attrs({"activation": activation})
                out_q = (QuantParams.per_tensor(1.0, zero_point),)
                zero = np.zeros((1, n), np.int8)
                (got,) = assert_native_equals(op, attrs, (x, zero, bias), in_q, out_q, threads=(1,))
                product = bias.astype(np.float32) * np.float32(scale)
                low, high = {"NONE": (-128, 127), "RELU": (zero_point, 127),
                             "RELU6": (zero_point, min(127, zero_point + 6))}[activation]  # fmt: skip
                want = [
                    min(max(round(float(f)) + zero_point, low), high) for f in product
                ]  # Python rounds half to even
                assert got[0].tolist() == want


def test_ties_are_even_at_every_length() -> None:
    """Vector bodies and scalar tails round alike: lengths around the vector width."""
    for n in (4, 5, 15, 16, 17, 31, 33, 47, 63, 64, 65, 79):
        x = np.resize(np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32), n)
        (got,) = assert_native_equals(get_op("Quantize"), get_op("Quantize").make_attrs({}), (x,), (None,),
                                      (QuantParams.per_tensor(1.0),), threads=(1,))  # fmt: skip
        assert got.tolist() == np.resize([0, 2, 2, 0, -2], n).tolist()


def run(name: str, attrs: dict[str, Any], inputs: tuple[Any, ...], in_q: Any, out_q: Any, fed: Any = (0,)) -> Array:
    op = get_op(name)
    return assert_native_equals(op, op.make_attrs(attrs), inputs, in_q, (out_q,), fed)[0]


def params(scale: float, zero_point: int = 0) -> QuantParams:
    return QuantParams.per_tensor(scale, zero_point)


def test_nan_and_infinity_quantize_to_zero_and_the_ends() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30], np.float32)
    assert run("Quantize", {}, (x,), (None,), params(0.1, -5)).tolist() == [-5, 127, -128, 127, -128]


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_depthwise_3x3_of_any_width(stride: int) -> None:
    """The loop that keeps columns in registers: row lengths around its unrolling, channels around a vector."""
    rng = np.random.default_rng(3)
    for columns in (1, 2, 5, 6, 7, 13):
        for channels in (1, 15, 16, 21, 40):
            x = rng.integers(-128, 128, (2, 4, columns * stride, channels)).astype(np.int8)
            w = rng.integers(-127, 128, (3, 3, channels, 1)).astype(np.int8)
            bias = rng.integers(-3000, 3000, channels).astype(np.int32)
            w_q = QuantParams(rng.uniform(0.002, 0.006, channels).astype(np.float32), 0, 2)
            for dilation in (1, 2):
                attrs = {"strides": (stride, stride), "dilations": (dilation, 1), "padding": "SAME"}
                in_q = (params(0.0235, -11), w_q, None)
                run("DepthwiseConv2D", attrs, (x, w, bias), in_q, params(0.05, 7))


# -- faults that others had --


def test_large_average_does_not_overflow() -> None:
    """A 300 x 300 window of one value: its sum passes 16 bits many times over."""
    q = params(0.1, -4)
    for value in (127, -128):
        x = np.full((1, 300, 300, 3), value, np.int8)
        y = run("AvgPool", {"ksize": (300, 300), "strides": (1, 1)}, (x,), (q,), q)
        assert y.tolist() == [[[[value] * 3]]]
        assert run("Mean", {"axes": (1, 2)}, (x,), (q,), q).tolist() == [[value] * 3]


def test_average_adds_before_it_divides_and_rounds_half_away() -> None:
    q = params(1.0, 5)
    for window, want in (
        ([5, 5, 5, 5], 5),
        ([1, 2, 1, 2], 2),
        ([-1, -2, -1, -2], -2),
        ([1, 0, 0, 1], 1),
        ([3, 3, 3, 2], 3),
    ):
        x = np.array(window, np.int8).reshape(1, 2, 2, 1)
        assert run("AvgPool", {"ksize": (2, 2)}, (x,), (q,), q).item() == want


def test_average_refuses_different_scales() -> None:
    x = np.zeros((1, 2, 2, 1), np.int8)
    with pytest.raises(OpError, match="different parameters: got scale 0.2.*Requantize"):
        run("AvgPool", {"ksize": (2, 2)}, (x,), (params(0.1),), params(0.2))


def test_requantize_op_rounds_once() -> None:
    x = np.arange(-128, 128).astype(np.int8)
    op = get_op("Requantize")
    assert isinstance(op.quantize, Lookup)
    (y,) = op.quantize.run(op, op.make_attrs({}), (x,), (params(0.1),), (params(0.2),))
    assert y.tolist() == [round(v / 2) for v in range(-128, 128)]


def test_softmax_saturates_at_the_top() -> None:
    x = np.array([[127, -128, -128, -128]], np.int8)
    assert run("Softmax", {}, (x,), (params(0.1),), params(1 / 256, -128)).tolist() == [[127, -128, -128, -128]]


@pytest.mark.parametrize("zero_point", [-128, -1, 0, 1, 127])
def test_softmax_ignores_the_zero_point(zero_point: int) -> None:
    x = np.array([[0, 1, 2, 3], [-128, 127, 0, 5]], np.int8)
    out = params(1 / 256, -128)
    assert np.array_equal(run("Softmax", {}, (x,), (params(0.2, zero_point),), out),
                          run("Softmax", {}, (x,), (params(0.2, 0),), out))  # fmt: skip


def test_softmax_over_a_middle_axis() -> None:
    x = np.zeros((2, 3, 4), np.int8)
    assert np.all(run("Softmax", {"axis": 1}, (x,), (params(0.1),), params(1 / 256, -128)) == round(256 / 3) - 128)


@pytest.mark.parametrize("zero_point", [-3, 0, 100])
def test_padding_is_real_zero(zero_point: int) -> None:
    q = params(1.0, zero_point)
    x = np.array([1 + zero_point, 2 + zero_point], np.int8)
    y = run("Pad", {"paddings": ((1, 1),)}, (x,), (q,), q)
    assert dequantize(y, q).tolist() == [0, 1, 2, 0]
    # A convolution's own padding is real zero too: a sum over 3 x 3 ones at the corner sees 4 elements.
    image = np.full((1, 3, 3, 1), zero_point + 1, np.int8)
    w_q = QuantParams(np.ones(1, np.float32), 0, 3)
    y = run("Conv2D", {"padding": "SAME"}, (image, np.ones((3, 3, 1, 1), np.int8)), (q, w_q), params(1.0))
    assert y[0, :, :, 0].tolist() == [[4, 6, 4], [6, 9, 6], [4, 6, 4]]


def test_products_do_not_saturate_at_16_bits() -> None:
    """255 * 113 twice passes 32767; the sum must stay exact on every ISA."""
    x = np.full((1, 2), 127, np.int8)
    w = np.full((2, 1), 113, np.int8)
    y = run("MatMul", {}, (x, w), (params(1.0, 127 - 111), QuantParams(np.ones(1, np.float32), 0, 1)), params(200.0))
    assert y.item() == round(111 * 113 * 2 / 200)
    for a, b in ((-128, -127), (-128, 127), (127, 127)):
        y = run("MatMul", {}, (np.full((3, 512), a, np.int8), np.full((512, 20), b, np.int8)),
                (params(1.0, 127), QuantParams(np.ones(20, np.float32), 0, 1)), params(2.0**17))  # fmt: skip
        assert np.all(y == round((a - 127) * b * 512 / 2**17))


def test_dead_channel_gives_exact_zero() -> None:
    """A channel of zeros has scale 1, not 0: its outputs are the bias, never NaN."""
    x = np.array([[3, -4]], np.int8)
    w = np.array([[0, 5], [0, -7]], np.int8)
    y = run("MatMul", {}, (x, w), (params(0.5), QuantParams(np.array([1.0, 0.1], np.float32), 0, 1)), params(0.5, 9))
    assert y[0, 0] == 9
    with pytest.raises(OpError, match="above 0 and below 256"):
        run("MatMul", {}, (x, w), (params(0.5), QuantParams(np.zeros(2, np.float32), 0, 1)), params(0.5))


def test_refuses_what_would_not_be_exact() -> None:
    one = QuantParams(np.ones(1, np.float32), 0, 1)
    with pytest.raises(OpError, match="not symmetric: got -128"):
        run("MatMul", {}, (np.ones((1, 1), np.int8), np.full((1, 1), -128, np.int8)), (params(1.0), one), params(1.0))
    big = np.ones((70000, 1), np.int8)
    with pytest.raises(OpError, match="may leave int32"):
        run("MatMul", {}, (big.T.copy(), big), (params(1.0), one), params(1000.0))
    a = np.ones((2,), np.int8)
    with pytest.raises(OpError, match="at least 1/1024"):
        run("Add", {}, (a, a), (params(1e-6), params(1.0)), params(1.0), (0, 1))
    assert isinstance(get_op("Add").quantize, AddSub) and isinstance(get_op("Softmax").quantize, SoftmaxTable)
    with pytest.raises(OpError, match="output parameters"):
        run("Softmax", {}, (np.ones((1, 2), np.int8),), (params(1.0),), params(1.0))


def test_attributes_and_values_cannot_contradict() -> None:
    op = get_op("Quantize")
    x = np.ones(3, np.float32)
    attrs = op.make_attrs({"scale": 0.5, "zero_point": 1})
    (y,) = assert_native_equals(op, attrs, (x,), (None,), (params(0.5, 1),))
    assert y.tolist() == [3, 3, 3]
    assert op.quantize is not None
    with pytest.raises(OpError, match="contradict"):
        op.quantize.run(op, attrs, (x,), (None,), (params(0.25, 1),))
