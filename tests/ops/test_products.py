"""The order of operations of float32 products: chains, chunks of 8192, and everything that must not change them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rillet.lite.library import current_isa, is_available, isas, set_isa
from rillet.lite.single import apply_native
from rillet.shared_ops.registry import get_op
from rillet.shared_ops.types import Array

pytestmark = pytest.mark.skipif(not is_available(), reason="the native library is not built")
CHUNK = 8192


def native(name: str, *arrays: Any, threads: int = 1, **attrs: Any) -> Any:
    op = get_op(name)
    (result,) = apply_native(op, op.make_attrs(attrs), arrays, threads=threads)
    return result


def floats(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(size=shape).astype(np.float32)


def chain(a: Array, b: Array) -> Array:
    """a @ b as the contract has it, for factors of `coarse`: their products have 16 bits, so float64 adds them to a
    float32 sum with bits to spare, and rounding to float32 afterwards gives what one fma gives."""
    total: Array | None = None
    for start in range(0, max(a.shape[1], 1), CHUNK):
        acc = np.zeros((a.shape[0], b.shape[1]), np.float32)
        for k in range(start, min(start + CHUNK, a.shape[1])):
            acc = (a[:, k : k + 1].astype(np.float64) * b[k].astype(np.float64) + acc).astype(np.float32)
        total = acc if total is None else total + acc
    assert total is not None
    return total


def coarse(x: Array) -> Array:
    """The nearest float32 towards zero with 8 bits of mantissa."""
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


@pytest.mark.parametrize("k", [1, 7, 511, 1500, CHUNK, CHUNK + 1, 3 * CHUNK + 77])
def test_matmul_is_one_chain_a_chunk(k: int) -> None:
    rng = np.random.default_rng(k)
    a, b = coarse(floats(rng, 7, k)), coarse(floats(rng, k, 21))
    want = chain(a, b).tobytes()
    before = current_isa()
    try:
        for isa in isas():
            set_isa(isa)
            assert native("MatMul", a, b).tobytes() == want, isa
            assert native("MatMul", a, b, threads=2).tobytes() == want, isa
            assert native("MatMul", np.ascontiguousarray(a.T), b, transpose_a=True).tobytes() == want, isa
            assert native("MatMul", a, np.ascontiguousarray(b.T), transpose_b=True).tobytes() == want, isa
    finally:
        set_isa(before)


def test_rows_do_not_depend_on_their_number() -> None:
    """Batch 1 and batch 70 give the same bits, though one reads B in place and the other packs it."""
    rng = np.random.default_rng(0)
    a, b = floats(rng, 70, 300), floats(rng, 300, 53)
    whole = native("MatMul", a, b)
    for rows in (1, 5, 6, 13, 50):
        assert native("MatMul", a[:rows], b).tobytes() == whole[:rows].tobytes()


def test_convolution_is_the_product_of_its_windows() -> None:
    """Bit for bit a MatMul over rows, columns, channels; 8208 of them, so that a chunk ends inside a tap."""
    rng = np.random.default_rng(1)
    x, w = floats(rng, 1, 4, 5, 912), floats(rng, 3, 3, 912, 17)
    windows = np.stack([x[0, i : i + 3, j : j + 3].ravel() for i in range(2) for j in range(3)])
    want = native("MatMul", windows, w.reshape(-1, 17))
    for threads in (1, 2):
        got = native("Conv2D", x, w, threads=threads)
        assert got.reshape(6, 17).tobytes() == want.tobytes()


def test_filter_gradient_chains_over_the_batch() -> None:
    """9000 pixels: a chunk ends inside an image. Equal to A^T B, for both kinds of convolution."""
    rng = np.random.default_rng(2)
    x, dy = floats(rng, 10, 32, 32, 3), floats(rng, 10, 30, 30, 5)
    shape = np.array([3, 3, 3, 5], np.int32)
    got = native("Conv2DBackpropFilter", x, shape, dy, threads=2)
    for r, s in ((0, 0), (1, 2), (2, 1)):
        a = np.ascontiguousarray(x[:, r : r + 30, s : s + 30].reshape(-1, 3))
        want = native("MatMul", a, dy.reshape(-1, 5), transpose_a=True)
        assert got[r, s].tobytes() == want.tobytes()
    depthwise = native("DepthwiseConv2DBackpropFilter", x, np.array([3, 3, 3, 1], np.int32), dy[..., :3], threads=2)
    full = native("Conv2DBackpropFilter", x, np.array([3, 3, 3, 3], np.int32), np.ascontiguousarray(dy[..., :3]))
    for c in range(3):
        assert depthwise[:, :, c, 0].tobytes() == full[:, :, c, c].tobytes()


def test_strided_input_gradient_equals_the_dense_one() -> None:
    """A stride is a dy with zeros between, and adding zero times a weight changes nothing."""
    rng = np.random.default_rng(3)
    w, dy = floats(rng, 3, 3, 4, 6), floats(rng, 2, 4, 5, 6)
    spread = np.zeros((2, 7, 9, 6), np.float32)
    spread[:, ::2, ::2] = dy
    shape = np.array([2, 9, 11, 4], np.int32)
    got = native("Conv2DBackpropInput", shape, w, dy, strides=(2, 2))
    assert got.tobytes() == native("Conv2DBackpropInput", shape, w, spread).tobytes()


@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6"])
def test_fused_equals_separate(activation: str) -> None:
    rng = np.random.default_rng(4)
    x, w, bias = floats(rng, 2, 9, 9, 5), floats(rng, 3, 3, 5, 19), floats(rng, 19)
    fused = native("Conv2D", x, w, bias, padding="SAME", activation=activation)
    y = native("BiasAdd", native("Conv2D", x, w, padding="SAME"), bias)
    if activation != "NONE":
        y = np.maximum(y, np.float32(0))
    if activation == "RELU6":
        y = np.minimum(y, np.float32(6))
    np.testing.assert_array_equal(fused, y)


def test_clamp_lets_nan_pass() -> None:
    a = np.array([[np.nan], [-1.0], [9.0]], np.float32)
    got = native("MatMul", a, np.ones((1, 3), np.float32), activation="RELU6")
    assert np.isnan(got[0]).all() and (got[1] == 0).all() and (got[2] == 6).all()
