"""Float Programs made int8: parameters, islands, requantization, and how close the results are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from programs import Build, floats, ops_of, outputs

from rillet.lite.library import is_available
from rillet.quant import CalibrationError, quantize_program
from rillet.quant.runner import run_engine
from rillet.shared_ops.passes import inference_passes
from rillet.shared_ops.program import Program, run_reference
from rillet.shared_ops.quantize import dequantize

RNG = np.random.default_rng(3)


def values(program: Program, **feeds: Any) -> dict[str, Any]:
    """Every value by the references; the engine, where there is one, must agree with them byte by byte."""
    found = run_reference(program, feeds, keep=True)
    engine = run_engine(program) if is_available() else None
    if engine is not None:
        kept = engine(feeds)
        assert set(program.outputs) <= set(kept)
        differ = [n for n in kept if not np.array_equal(kept[n], found[n])]
        assert not differ, f"engine and reference disagree on {differ}"
    return found


def int8_of(b: Build, **feeds: Any) -> tuple[Program, Any]:
    return quantize_program(b.program, feeds)


def test_int8_pad_is_filled_with_real_zero() -> None:
    b = Build(x=(1, 2))
    b("Pad", "x", paddings=((0, 0), (1, 1)))
    int8, _ = int8_of(b, x=np.array([[-1.0, 254.0]], np.float32))  # zero point is not 0
    x = np.array([[1.0, 2.0]], np.float32)
    assert np.array_equal(values(int8, x=x)["Pad"], [[0, 1, 2, 0]])


@pytest.mark.parametrize("sentinel", [-1e9, -1e30])
def test_a_sentinel_does_not_crush_the_range(sentinel: float) -> None:
    b = Build(x=(1, 4, 4, 2))
    y = b("Pad", "x", paddings=((0, 0), (1, 1), (1, 1), (0, 0)), value=sentinel)
    b("MaxPool", y, ksize=(2, 2), strides=(2, 2))
    x = RNG.random((1, 4, 4, 2)).astype(np.float32)
    int8, report = int8_of(b, x=x)
    error = np.abs(values(int8, x=x)["MaxPool"] - outputs(b.program, x=x)[0])
    assert error.max() <= 0.5001 / 255
    assert any("outside the int8 range" in n for n in report.notes)


def test_an_ordinary_fill_is_part_of_the_range() -> None:
    b = Build(x=(2, 3))
    b("Pad", "x", paddings=((1, 0), (0, 0)), value=-4.0)
    x = RNG.random((2, 3)).astype(np.float32)
    int8, _ = int8_of(b, x=x)
    assert np.allclose(values(int8, x=x)["Pad"][0], -4.0, atol=0.011)


@pytest.mark.parametrize("shared", [False, True], ids=["read once", "read elsewhere too"])
def test_concat_of_different_scales(shared: bool) -> None:
    b = Build(a=(2, 8), c=(2, 8))
    y = b("Concat", "a", "c", axis=1)
    if shared:
        b.program.outputs = [y, b("Mul", "a", "a")]
    a, c = RNG.random((2, 8)).astype(np.float32), RNG.uniform(-6, 6, (2, 8)).astype(np.float32)
    c.flat[:2] = -6, 6
    int8, _ = int8_of(b, a=a, c=c)
    found = values(int8, a=a, c=c)
    step = int8.values["Concat/int8"].quant.scale[0]
    own = int8.values["a/int8"].quant.scale[0]
    slack = own / 2 if shared else 0.0
    assert np.abs(found[y] - np.concatenate([a, c], 1)).max() <= 0.5001 * step + slack
    assert (own < 0.01) == shared  # an operand that others read keeps its own, finer scale


def test_concat_of_one_input() -> None:
    b = Build(a=(2, 8))
    b("Concat", "a", axis=1)
    a = floats(RNG, 2, 8)
    assert np.abs(values(int8_of(b, a=a)[0], a=a)["Concat"] - a).max() < 0.02


def test_prescribed_outputs_meet_others_through_a_table() -> None:
    b = Build(x=(4, 8))
    b("Concat", b("Sigmoid", "x"), b("LeakyRelu", "x"), axis=1)
    x = floats(RNG, 4, 8) * 3
    int8, _ = int8_of(b, x=x)
    sigmoid = int8.values["Sigmoid"].quant
    assert (float(sigmoid.scale[0]), sigmoid.zero_point) == (1 / 256, -128)
    assert ops_of(int8).count("LookupTable") == 3  # both functions and the way from one scale to the other
    step = int8.values["Concat/int8"].quant.scale[0]
    assert np.abs(values(int8, x=x)["Concat"] - outputs(b.program, x=x)[0]).max() <= 1.5 * step


def test_a_group_that_only_prescribed_values_enter_takes_their_scale() -> None:
    b = Build(x=(4, 8))
    b("Transpose", b("Softmax", "x"), perm=(1, 0))
    int8, _ = int8_of(b, x=floats(RNG, 4, 8))
    assert "Requantize" not in ops_of(int8) and ops_of(int8).count("LookupTable") == 0
    assert int8.values["Transpose/int8"].quant.zero_point == -128


@pytest.mark.parametrize("kind", ["Conv2D", "DepthwiseConv2D"])
def test_folded_layers_quantize_per_channel(kind: str) -> None:
    """Variances of 1e-8, 1 and 100 side by side: with one scale for all, two channels would vanish."""
    b = Build(x=(4, 6, 6, 3))
    y = b(kind, "x", floats(RNG, *((1, 1, 3, 6) if kind == "Conv2D" else (3, 3, 3, 2))), padding="SAME")
    variance = np.array([1e-8, 1, 100] * 2, np.float32)
    gamma = np.array([1, 1, 0, -1, 1, 1], np.float32)
    b("BatchNorm", y, gamma, floats(RNG, 6), floats(RNG, 6), variance, epsilon=1e-3)
    x = floats(RNG, 4, 6, 6, 3)
    program, _ = inference_passes(b.program)
    int8, report = quantize_program(program, x)
    assert not report.islands and ops_of(int8) == ["Quantize", "Conv2D", "Dequantize"]
    expected, found = outputs(b.program, x=x)[0], values(int8, x=x)["BatchNorm"]
    step = int8.values["BatchNorm/int8"].quant.scale[0]
    assert np.abs(found - expected).max() <= 3 * step
    weights = next(v for v in int8.values.values() if v.constant is not None and v.constant.ndim == 4)
    assert weights.quant.scale.shape == (6,) and weights.quant.scale.max() / weights.quant.scale.min() > 100


def test_degenerate_weight_channels_survive_the_whole_path() -> None:
    w = np.zeros((3, 5), np.float32)
    w[:, 1:] = np.array([[1e-30], [0.7], [-1.0]]) * np.array([1e-30, 1e-6, 1, 1e3])
    b = Build(x=(8, 3))
    b("MatMul", "x", w, np.array([0.5, 0, 0, 0, 0], np.float32))
    x = floats(RNG, 8, 3)
    int8, report = int8_of(b, x=x)
    found = values(int8, x=x)["MatMul"]
    assert np.all(np.isfinite(found)) and not report.islands
    step = int8.values["MatMul/int8"].quant.scale[0]
    assert np.abs(found - outputs(b.program, x=x)[0]).max() <= 3 * step


def test_islands_stay_float_and_say_why() -> None:
    b = Build(x=(4, 8))
    h = b("MatMul", "x", floats(RNG, 8, 6), name="first")
    h = b("Floor", h, name="island")
    b("MatMul", h, floats(RNG, 6, 3), name="second")
    x = floats(RNG, 4, 8)
    int8, report = int8_of(b, x=x)
    assert ops_of(int8) == ["Quantize", "MatMul", "Dequantize", "Floor", "Quantize", "MatMul", "Dequantize"]
    (island,) = report.islands
    assert str(island) == "Floor at 'island' (net.py:1) stays float: Floor has no int8 family"
    values(int8, x=x)
    assert "second/int8" in report.sqnr and report.worst(1)[0][1] <= min(report.sqnr.values())


def test_moves_between_islands_stay_float() -> None:
    b = Build(x=(4, 8))
    h = b("Floor", b("MatMul", "x", floats(RNG, 8, 6)))
    b("Ceil", b("Transpose", b("Reshape", h, np.array([6, 4], np.int32)), perm=(1, 0)))
    int8, report = int8_of(b, x=floats(RNG, 4, 8))
    assert ops_of(int8) == ["Quantize", "MatMul", "Dequantize", "Floor", "Reshape", "Transpose", "Ceil"]
    assert [i.op for i in report.islands] == ["Floor", "Reshape", "Transpose", "Ceil"]


def test_products_of_two_activations() -> None:
    b = Build(x=(2, 3, 4), y=(2, 4, 5))
    b("Mul", b("BatchMatMul", "x", "y"), np.float32(3.0))
    x, y = floats(RNG, 2, 3, 4), floats(RNG, 2, 4, 5)
    int8, report = int8_of(b, x=x, y=y)
    assert not report.islands
    step = int8.values["Mul/int8"].quant.scale[0]
    assert np.abs(values(int8, x=x, y=y)["Mul"] - outputs(b.program, x=x, y=y)[0]).max() <= 4 * step


def test_weights_that_are_computed_are_an_island() -> None:
    b = Build(x=(8, 8), w=(8, 6))
    b("MatMul", "x", "w")
    _, report = int8_of(b, x=floats(RNG, 8, 8), w=floats(RNG, 8, 6))
    assert [i.reason for i in report.islands] == ["its weights are not constant"]


def test_sums_of_very_different_scales_are_an_island() -> None:
    b = Build(x=(4, 8))
    small = b("Mul", "x", np.float32(1e-6))
    b("Add", b("Relu", "x"), small)
    _, report = int8_of(b, x=floats(RNG, 4, 8))
    assert [i.op for i in report.islands] == ["Add"] and "2^-10 to 2^8" in report.islands[0].reason


def test_sums_that_may_leave_int32_are_an_island() -> None:
    b = Build(x=(1, 40000))
    b("MatMul", "x", np.ones((40000, 1), np.float32))
    _, report = int8_of(b, x=floats(RNG, 1, 40000))
    assert "may leave int32" in report.islands[0].reason


def test_residual_net_end_to_end() -> None:
    b = Build(x=("n", 8, 8, 3))
    h = b(
        "Conv2D", "x", floats(RNG, 3, 3, 3, 8) * 0.3, floats(RNG, 8), strides=(2, 2), padding="SAME", activation="RELU6"
    )
    g = b("DepthwiseConv2D", h, floats(RNG, 3, 3, 8, 1), padding="SAME")
    g = b("HardSwish", b("Conv2D", g, floats(RNG, 1, 1, 8, 8) * 0.3))
    h = b("Add", h, g, activation="RELU")
    h = b("AvgPool", h, ksize=(2, 2), strides=(2, 2))
    h = b("Reshape", b("Mean", h, axes=(1, 2)), np.array([-1, 8], np.int32))
    b("Softmax", b("MatMul", h, floats(RNG, 8, 4)))
    x = floats(RNG, 40, 8, 8, 3)
    int8, report = quantize_program(b.program, x, observer="percentile")
    assert not report.islands and int8.metadata["quant_profile"] == "rq_f32"
    assert all(v.type.dtype != np.float32 for n, v in int8.values.items() if n not in ("x", "Softmax"))
    found = values(int8, x=x)["Softmax"]
    assert np.abs(found - outputs(b.program, x=x)[0]).max() < 0.1
    assert set(report.params) == {n for n, v in int8.values.items() if v.quant is not None}
    assert min(report.sqnr.values()) > 15


def test_int8_values_stand_near_their_float_values() -> None:
    """Parameters stand with the right value: a dequantized layer is the float layer to a step or two."""
    b = Build(x=(16, 8))
    h = b("MatMul", "x", floats(RNG, 8, 8), floats(RNG, 8), activation="RELU", name="hidden")
    b("MatMul", h, floats(RNG, 8, 3), name="last")
    x = floats(RNG, 16, 8)
    int8, _ = int8_of(b, x=x)
    q = int8.values["hidden"].quant
    error = dequantize(values(int8, x=x)["hidden"], q) - run_reference(b.program, {"x": x}, keep=True)["hidden"]
    assert np.abs(error).max() <= 2.5 * q.scale[0]


class TestCalibrationData:
    """What does not fit the inputs is refused with both shapes."""

    @staticmethod
    def two() -> Build:
        b = Build(x=("n", 3), y=("n", 2))
        b("Concat", "x", "y", axis=1)
        return b

    def test_wrong_names(self) -> None:
        with pytest.raises(CalibrationError, match=r"got \['x', 'z'\], expected \['x', 'y'\]"):
            int8_of(self.two(), x=floats(RNG, 4, 3), z=floats(RNG, 4, 2))

    def test_one_array_for_two_inputs(self) -> None:
        with pytest.raises(CalibrationError, match="a mapping with an array for each of"):
            quantize_program(self.two().program, floats(RNG, 4, 3))

    @pytest.mark.parametrize("y", [np.zeros((4, 3), np.float32), np.zeros((4, 2)), np.zeros(4, np.float32)])
    def test_wrong_shape_or_dtype(self, y: Any) -> None:
        with pytest.raises(CalibrationError, match=r"input 'y': got float.*expected float32 \[samples, 2\]"):
            int8_of(self.two(), x=floats(RNG, 4, 3), y=y)

    def test_different_counts_and_none(self) -> None:
        with pytest.raises(CalibrationError, match="the same number for all"):
            int8_of(self.two(), x=floats(RNG, 4, 3), y=floats(RNG, 5, 2))
        with pytest.raises(CalibrationError, match="at least 1"):
            int8_of(self.two(), x=floats(RNG, 0, 3), y=floats(RNG, 0, 2))

    def test_fewer_samples_than_the_batch(self) -> None:
        b = Build(x=(8, 3))
        b("Neg", "x")
        with pytest.raises(CalibrationError, match="got 5, expected at least 8"):
            int8_of(b, x=floats(RNG, 5, 3))

    def test_nan_in_the_data(self) -> None:
        x = floats(RNG, 70, 3)
        x[66, 1] = np.nan
        b = Build(x=("n", 3))
        b("Neg", "x")
        with pytest.raises(CalibrationError, match=r"tensor 'x', calibration sample 66, element \[2, 1\]: got nan"):
            int8_of(b, x=x)
