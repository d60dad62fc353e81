"""Ranges from data, and parameters from ranges: the functions that must have an answer for everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rillet.quant.observers import CalibrationError, MinMax, MovingAverage, Percentile, Range, Watch, make_observer
from rillet.quant.parameters import activation_params, guard_bias, quantize_bias, quantize_weights, weight_scales
from rillet.shared_ops.quantize import dequantize, quantize
from rillet.shared_ops.types import QuantParams

EDGES = [0.0, 1e-45, -1e-38, 1e-30, 0.5, -7.0, 1.0, 3.0, -3.0, 1e6, -3e38]


@pytest.mark.parametrize(
    "low, high, scale, zero_point",
    [(1, 3, 3 / 255, -128), (-3, -1, 3 / 255, 127), (0, 0, 1, 0), (0.5, 0.5, 0.5 / 255, -128), (-1, 1, 2 / 255, 0)],
)
def test_ranges_are_widened_to_hold_zero(low: float, high: float, scale: float, zero_point: int) -> None:
    q = activation_params(Range(low, high))
    assert q.scale[0] == pytest.approx(scale, rel=1e-6) and abs(q.zero_point - zero_point) <= (low == -high)


@given(st.sampled_from(EDGES) | st.floats(-1e30, 1e30), st.sampled_from(EDGES) | st.floats(-1e30, 1e30))
def test_every_range_gives_usable_parameters(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    q = activation_params(Range(low, high))
    assert np.isfinite(q.scale[0]) and q.scale[0] > 0 and -128 <= q.zero_point <= 127
    ends = np.array([0.0, low, high], np.float32)
    back = dequantize(quantize(ends, q), q)
    assert back[0] == 0.0
    if high - low > 1e-15:
        assert np.all(np.abs(back - ends) <= 0.51 * q.scale[0] + 1e-6 * np.abs(ends))


@pytest.mark.parametrize("constant", [0.0, 0.5, -7.0])
def test_constant_activations_come_back_within_a_step(constant: float) -> None:
    watch = Watch("h", MinMax())
    watch.update(np.full((4, 3), constant, np.float32), 0)
    found = watch.range()
    assert found is not None
    q = activation_params(found)
    x = np.array([constant], np.float32)
    assert abs(dequantize(quantize(x, q), q) - x) <= q.scale[0]
    assert watch.findings() == [f"h is {constant:g} everywhere, in every sample"]


def test_nan_and_infinity_name_tensor_and_sample() -> None:
    x = np.zeros((4, 3), np.float32)
    x[2, 1] = np.nan
    with pytest.raises(
        CalibrationError, match=r"tensor 'conv/y', calibration sample 34, element \[2, 1\]: got nan \(1 "
    ):
        Watch("conv/y", MinMax()).update(x, 32)
    x[2, 1] = -np.inf
    with pytest.raises(CalibrationError, match="sample 34.*-inf"):
        Watch("conv/y", MinMax()).update(x, 32)


def test_dead_channels_are_found_over_all_samples() -> None:
    watch = Watch("h", MinMax())
    for live in (0, 2):
        x = np.zeros((2, 4, 4, 5), np.float32)
        x[1, 2, 2, live] = 1
        watch.update(x, 0)
    assert watch.findings() == ["h: 3 of 5 channels are 0 in every sample (1, 3, 4)"]


def test_percentile_agrees_with_numpy_and_ignores_outliers() -> None:
    rng = np.random.default_rng(0)
    observer, parts = Percentile(99.0), []
    for i in range(20):  # ranges grow: the histogram has to double several times
        parts.append((rng.normal(size=5000) * (1 + i)).astype(np.float32))
        observer.update(parts[-1])
    observer.update(np.array([1e4], np.float32))
    everything = np.concatenate([*parts, [1e4]])
    low, high = np.percentile(everything, [0.5, 99.5])
    found, bin_width = observer.range(), 2 * 2 * 1e4 / Percentile.BINS
    assert abs(found.low - low) <= bin_width and abs(found.high - high) <= bin_width


def test_percentile_of_one_sided_data_does_not_cross_zero() -> None:
    observer = Percentile(99.99)
    observer.update(np.abs(np.random.default_rng(0).normal(size=10000)))
    assert observer.range().low >= 0
    zeros = Percentile()
    zeros.update(np.zeros(10))
    assert zeros.range() == Range(0, 0)


def test_moving_average_follows_slowly() -> None:
    observer = MovingAverage(0.9)
    for high in (1.0, 1.0, 11.0):
        observer.update(np.array([0.0, high]))
    assert observer.range().high == pytest.approx(2.0)


def test_unknown_observers_are_refused_with_the_known_ones() -> None:
    with pytest.raises(CalibrationError, match="got 'minmax', expected one of min_max, moving_average, percentile"):
        make_observer("minmax")


def test_weights_of_any_size_quantize_without_nan() -> None:
    """Channels of zeros, of subnormal, tiny and huge numbers: positive scales, zeros exact, the rest to half a step."""
    w = np.array([[0, 0], [1e-40, -1e-40], [1e-30, 5e-31], [1e-6, -1e-6], [1, 0.3], [1e6, -4e5]], np.float32)
    scales = guard_bias(weight_scales(w, 0), 1.0, None)
    q = QuantParams(scales, 0, 0)
    codes = quantize_weights(w, q.spread(2))
    assert np.all(np.isfinite(scales)) and np.all(scales > 0) and scales[0] == 1
    assert codes.min() >= -127 and np.all(codes[0] == 0)
    assert np.all(np.abs(dequantize(codes, q) - w) <= 0.5001 * scales[:, None])
    assert np.array_equal(np.abs(codes[3:]).max(axis=1), [127, 127, 127])


def test_biases_that_would_be_cut_off_raise_the_weight_scale() -> None:
    w, bias = np.array([[1e-7, 1.0]], np.float32), np.array([100.0, 100.0], np.float32)
    plain = weight_scales(w, 1)
    scales = guard_bias(plain, 0.01, bias)
    assert scales[0] > plain[0] and scales[1] == np.float32(plain[1])
    q = QuantParams(np.float32(0.01) * scales, 0, 0)
    assert np.allclose(dequantize(quantize_bias(bias, q), q), bias, rtol=1e-6)
