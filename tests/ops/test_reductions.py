"""Reductions: the written order of operations to the last bit, every choice of axes, and the edges of their domains."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

from rillet.lite.library import is_available
from rillet.lite.single import apply_native
from rillet.shared_ops import eager
from rillet.shared_ops.registry import get_op

needs_library = pytest.mark.skipif(not is_available(), reason="the native library is not built")


def native(name: str, *inputs: Any, **attrs: Any) -> Any:
    op = get_op(name)
    results = apply_native(op, op.make_attrs(attrs), inputs, threads=2)
    assert results is not NotImplemented
    return results[0]


def in_lanes(values: Any) -> Any:
    """The contract, element by element: lane i mod 16 in order, then lanes l and l + 8, + 4, + 2, + 1."""
    lanes = np.zeros(16, np.float32)
    for i, v in enumerate(values):
        lanes[i % 16] += v
    for half in (8, 4, 2, 1):
        lanes[:half] += lanes[half : 2 * half]
    return lanes[0]


@needs_library
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 33, 1000])
def test_sum_has_the_written_order_along_rows_and_down_columns(n: int) -> None:
    x = np.random.default_rng(n).normal(size=(5, n)).astype(np.float32)
    want = np.array([in_lanes(row) for row in x], np.float32)
    assert native("Sum", x, axes=(1,)).tobytes() == want.tobytes()
    assert native("Sum", np.ascontiguousarray(x.T), axes=(0,)).tobytes() == want.tobytes()
    middle = np.ascontiguousarray(np.broadcast_to(x.T, (2, n, 5)))
    assert native("Sum", middle, axes=(1,)).tobytes() == want.tobytes() * 2


@needs_library
def test_order_counts_positions_over_all_reduced_axes() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 5, 6)).astype(np.float32)
    for axes in ((0, 2), (1, 3), (0, 1, 3), (0, 1), (1, 2)):
        kept = tuple(a for a in range(4) if a not in axes)
        rows = x.transpose(*kept, *axes).reshape(*(x.shape[a] for a in kept), -1)
        want = np.apply_along_axis(in_lanes, -1, rows).astype(np.float32)
        assert native("Sum", x, axes=axes).tobytes() == np.ascontiguousarray(want).tobytes(), axes


@needs_library
@pytest.mark.parametrize("name", ["Sum", "Mean", "Max", "Min", "Prod", "Norm", "LogSumExp"])
def test_every_subset_of_axes(name: str) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 1, 18)).astype(np.float32)
    for axes in chain.from_iterable(combinations(range(4), k) for k in range(5)):
        want = eager.reference(name, x.astype(np.float64), axes=axes)
        got = native(name, x, axes=axes)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6, err_msg=str(axes))


EDGES = [
    ("Max", [1, np.nan, 3], np.nan),
    ("Min", [np.nan, 1, 3], np.nan),
    ("Max", [], -np.inf),
    ("Min", [], np.inf),
    ("Sum", [], 0.0),
    ("Prod", [], 1.0),
    ("Mean", [], np.nan),
    ("LogSumExp", [-np.inf, -np.inf], -np.inf),
    ("LogSumExp", [1e4, 1e4], 1e4 + np.log(2)),
    ("LogSumExp", [np.inf, 0], np.inf),
]


@pytest.mark.parametrize("name,values,want", EDGES)
@pytest.mark.parametrize("by", ["reference", pytest.param("native", marks=needs_library)])
def test_edges(by: str, name: str, values: list[float], want: float) -> None:
    x = np.array(values, np.float32)
    got = native(name, x) if by == "native" else eager.reference(name, x)
    np.testing.assert_allclose(got, np.float32(want), rtol=1e-6)


@needs_library
def test_nan_is_found_wherever_it_lies() -> None:
    for i in range(35):
        x = np.zeros((35, 3), np.float32)
        x[i, 1] = np.nan
        for name in ("Max", "Min"):
            assert np.isnan(native(name, x)) and np.isnan(native(name, x, axes=(0,))).tolist() == [False, True, False]


@pytest.mark.parametrize("by", ["reference", pytest.param("native", marks=needs_library)])
def test_integers_wrap_and_their_mean_is_cut_toward_zero(by: str) -> None:
    apply = native if by == "native" else eager.reference
    assert apply("Sum", np.full(2, 2**31 - 1, np.int32)) == -2
    assert apply("Mean", np.array([-3, -4], np.int32)) == -3
    assert apply("Prod", np.full(3, 1 << 22, np.int64)) == 0


def test_logsumexp_and_norm_against_scipy() -> None:
    special = pytest.importorskip("scipy.special")
    x = np.random.default_rng(0).normal(size=(4, 50)) * 30
    np.testing.assert_allclose(eager.reference("LogSumExp", x, axes=(1,)), special.logsumexp(x, axis=1), rtol=1e-13)
    np.testing.assert_allclose(eager.reference("Norm", x, axes=(1,)), np.linalg.norm(x, axis=1), rtol=1e-13)


def test_norm_has_gradient_zero_at_zero() -> None:
    x, op = np.zeros((2, 3)), get_op("Norm")
    attrs = op.make_attrs({"axes": (1,)})
    (dx,) = op.gradient(eager.reference, attrs, (x,), op.compute(np, attrs, x), np.ones(2))  # type: ignore[misc]
    np.testing.assert_array_equal(dx, 0)
