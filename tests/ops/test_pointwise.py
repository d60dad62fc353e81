"""What the cases of the pointwise ops do not say: random broadcasts, integer edges, NaN, exact zero gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rillet.lite.library import is_available
from rillet.lite.single import apply_native
from rillet.lite.status import ModelError
from rillet.shared_ops.eager import reference
from rillet.shared_ops.errors import OpError
from rillet.shared_ops.gradient_rules import unbroadcast
from rillet.shared_ops.registry import get_op

needs_library = pytest.mark.skipif(not is_available(), reason="the native library is not built")


def native(name: str, *inputs: Any, **attrs: Any) -> Any:
    op = get_op(name)
    return apply_native(op, op.make_attrs(attrs), inputs)[0]


BOTH = [pytest.param(reference, id="reference"), pytest.param(native, id="native", marks=needs_library)]


# -- broadcasting ---------------------------------------------------------------------------------------------------


@st.composite
def broadcastable(draw: Any, count: int) -> tuple[tuple[int, ...], ...]:
    """Shapes of up to five axes that broadcast against each other."""
    full = draw(st.lists(st.sampled_from([1, 2, 3, 5, 33]), max_size=5).filter(lambda d: np.prod(d) < 20000))
    shapes = []
    for _ in range(count):
        kept = full[draw(st.integers(0, len(full))) :]
        shapes.append(tuple(1 if draw(st.booleans()) else d for d in kept))
    return tuple(shapes)


@needs_library
@settings(max_examples=60, deadline=None)
@given(broadcastable(2))
def test_any_two_shapes_broadcast_as_in_numpy(shapes: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(0)
    a, b = (np.asarray(rng.normal(size=s), np.float32) for s in shapes)
    np.testing.assert_array_equal(native("Sub", a, b), a - b)
    np.testing.assert_array_equal(native("Less", a, b), a < b)


@needs_library
@settings(max_examples=40, deadline=None)
@given(broadcastable(3))
def test_any_three_shapes_select_as_numpy_where(shapes: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(0)
    c, a, b = (np.asarray(rng.normal(size=s), np.float32) for s in shapes)
    np.testing.assert_array_equal(native("Select", c > 0, a, b), np.where(c > 0, a, b))


@needs_library
@pytest.mark.parametrize("n", [*range(1, 18), 31, 32, 33, 63, 64, 65, 1023, 1025])
def test_lengths_around_the_vectors(n: int) -> None:
    """One less, equal, one more than a vector and than a turn of the loops, alone and as rows."""
    x = np.linspace(-3, 3, n, dtype=np.float32)
    np.testing.assert_array_equal(native("Relu", x), np.maximum(x, 0))
    np.testing.assert_array_equal(native("Add", x, x[::-1]), x + x[::-1])
    rows = np.add.outer(np.arange(7, dtype=np.float32), x)
    np.testing.assert_array_equal(native("Mul", rows, x), rows * x)
    np.testing.assert_array_equal(native("Mul", x, rows), rows * x)


@needs_library
@pytest.mark.parametrize("rows,row", [((40000, 3), (3,)), ((5, 8009, 3), (5, 1, 3)), ((2, 5, 3, 7), (1, 5, 1, 7))])
def test_a_short_row_is_repeated_in_phase_for_every_thread(rows: tuple[int, ...], row: tuple[int, ...]) -> None:
    x, s = np.arange(np.prod(rows), dtype=np.float32).reshape(rows), np.arange(1, np.prod(row) + 1).reshape(row)
    s = s.astype(np.float32) * 100
    op = get_op("Sub")
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(apply_native(op, op.make_attrs({}), (x, s), threads)[0], x - s)
        np.testing.assert_array_equal(apply_native(op, op.make_attrs({}), (s, x), threads)[0], s - x)


# -- integers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("emit", BOTH)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_wrap(emit: Any, dtype: Any) -> None:
    info = np.iinfo(dtype)
    low, high, one, minus = (np.array([v], dtype) for v in (info.min, info.max, 1, -1))
    with np.errstate(over="ignore"):
        assert emit("Add", high, one) == info.min
        assert emit("Sub", low, one) == info.max
        assert emit("Neg", low) == emit("Abs", low) == emit("FloorDiv", low, minus) == info.min
        assert emit("FloorMod", low, minus) == 0
        assert emit("Mul", high, high) == 1


@pytest.mark.parametrize("emit", BOTH)
def test_floor_division_rounds_down_and_the_remainder_has_the_sign_of_the_divisor(emit: Any) -> None:
    for cast in (np.int32, np.int64, np.float32):
        a, b = np.array([7, -7, 7, -7, 6, -6], cast), np.array([2, 2, -2, -2, 3, 3], cast)
        assert emit("FloorDiv", a, b).tolist() == [3, -4, -4, 3, 2, -2]
        assert emit("FloorMod", a, b).tolist() == [1, 1, -1, -1, 0, 0]


@pytest.mark.parametrize("emit", BOTH)
@pytest.mark.parametrize(
    "name,right,words",
    [
        ("FloorDiv", [1, 0], "divisor is 0"),
        ("FloorMod", [0, 1], "divisor is 0"),
        ("Pow", [2, -1], "exponent is negative"),
    ],
)
def test_what_integers_cannot_do_fails_the_run(emit: Any, name: str, right: list[int], words: str) -> None:
    for dtype in (np.int32, np.int64):
        with pytest.raises((OpError, ModelError), match=words):
            emit(name, np.array([5, 6], dtype), np.array(right, dtype))


# -- NaN, infinity, saturation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("emit", BOTH)
def test_nan_wins_in_maximum_and_minimum(emit: Any) -> None:
    a, b = np.array([np.nan, 1, np.nan], np.float32), np.array([1, np.nan, np.nan], np.float32)
    assert np.isnan(emit("Maximum", a, b)).all() and np.isnan(emit("Minimum", a, b)).all()


@pytest.mark.parametrize("emit", BOTH)
def test_clamps_let_nan_pass_keep_minus_zero_and_prefer_the_upper_bound(emit: Any) -> None:
    x = np.array([np.nan, -0.0, -np.inf, np.inf, 1.0], np.float32)
    for y in (
        emit("Relu6", x),
        emit("ClipByValue", x, lo=0.0, hi=6.0),
        emit("Add", x, np.float32(-0.0), activation="RELU6"),
    ):
        assert np.isnan(y[0]) and np.signbit(y[1]) and y[2:].tolist() == [0, 6, 1]
    assert emit("ClipByValue", x[1:], lo=2.0, hi=-1.0).tolist() == [-1, -1, -1, -1]


@pytest.mark.parametrize("emit", BOTH)
def test_float_to_integer_truncates_saturates_and_makes_nan_zero(emit: Any) -> None:
    x = np.array([2.9, -2.9, 1e30, -1e30, np.inf, -np.inf, np.nan, 300, -300], np.float32)
    i32, i64 = np.iinfo(np.int32), np.iinfo(np.int64)
    assert emit("Cast", x, dtype="i8").tolist() == [2, -2, 127, -128, 127, -128, 0, 127, -128]
    assert emit("Cast", x, dtype="u8").tolist() == [2, 0, 255, 0, 255, 0, 0, 255, 0]
    assert emit("Cast", x, dtype="i32").tolist()[:7] == [2, -2, i32.max, i32.min, i32.max, i32.min, 0]
    assert emit("Cast", x, dtype="i64").tolist()[:7] == [2, -2, i64.max, i64.min, i64.max, i64.min, 0]
    assert emit("Cast", x, dtype="bool").all()
    assert emit("Cast", np.array([300, -1], np.int32), dtype="u8").tolist() == [44, 255]


@pytest.mark.parametrize("emit", BOTH)
def test_zero_wins_in_mul_no_nan(emit: Any) -> None:
    a, b = np.array([np.inf, np.nan, 2, np.inf], np.float32), np.array([0, -0.0, 3, 1], np.float32)
    assert emit("MulNoNan", a, b).tolist() == [0, 0, 6, np.inf]


@needs_library
def test_one_tensor_may_be_every_operand() -> None:
    x = np.arange(1, 70, dtype=np.float32)
    np.testing.assert_array_equal(native("AddN", x, x, x), 3 * x)
    np.testing.assert_array_equal(native("Mul", x, x), x * x)


# -- gradients ------------------------------------------------------------------------------------------------------


def gradient_of(name: str, *inputs: Any, dy: Any) -> tuple[Any, ...]:
    op = get_op(name)
    attrs = op.make_attrs({})
    assert op.gradient is not None
    return op.gradient(reference, attrs, inputs, op.compute(np, attrs, *inputs), dy)


@pytest.mark.parametrize("name,x", [("Sqrt", 0.0), ("Rsqrt", 0.0), ("Log", 0.0), ("Reciprocal", 0.0), ("Exp", 1000.0)])
def test_a_branch_not_taken_passes_back_an_exact_zero(name: str, x: float) -> None:
    """Its derivative is infinite, and nothing comes in from above."""
    (dx,) = gradient_of(name, np.array([x]), dy=np.zeros(1))
    assert dx.tolist() == [0.0]


def test_select_gradient_is_finite_where_the_other_branch_is_not() -> None:
    """where(x >= 0, log(x + 1), 1 / (1 - x)) at x = 1 has the derivative 1/2."""
    x = np.array([1.0])
    taken, other = np.log(x + 1), np.array([np.inf])
    _, da, db = gradient_of("Select", x >= 0, taken, other, dy=np.ones(1))
    (from_log,) = gradient_of("Log", x + 1, dy=da)
    _, from_quotient = gradient_of("RealDiv", np.ones(1), 1 - x, dy=db)
    assert (from_log - from_quotient).tolist() == [0.5]


def test_pow_gradients_at_the_edge_of_its_domain() -> None:
    da, db = gradient_of("Pow", np.array([0.0, -2.0, 0.0]), np.array([2.0, 2.0, 0.0]), dy=np.ones(3))
    assert da.tolist() == [0.0, -4.0, 0.0] and db.tolist() == [0.0, 0.0, 0.0]


class Shaped:
    """All that a gradient function may ask of a tensor."""

    def __init__(self, *shape: int | str | None) -> None:
        self.shape, self.dtype = shape, np.dtype(np.float32)


def emitted(dy: Shaped, x: Shaped, *others: Shaped) -> list[str]:
    log: list[str] = []

    def emit(op: str, *inputs: Any, **attrs: Any) -> Any:
        log.append(op)
        return Shaped()

    unbroadcast(emit, dy, x, *others)
    return log


def test_unbroadcast_emits_only_what_shapes_ask_for() -> None:
    assert emitted(Shaped(2, 3), Shaped(2, 3)) == []
    assert emitted(Shaped("batch", 3), Shaped("batch", 3)) == []
    assert emitted(Shaped(2, 3), Shaped(3)) == ["SumTo"]
    assert emitted(Shaped(None, 3), Shaped(1, 3), Shaped(None, 3)) == ["SumTo"]
    # An unknown batch cannot have been stretched by a bias, but may have been by another unknown batch.
    assert emitted(Shaped(None, 3), Shaped(None, 3), Shaped(3)) == []
    assert emitted(Shaped(None, 3), Shaped(None, 3), Shaped(None, 3)) == ["Shape", "SumTo"]


def test_vector_of_a_known_shape_stays_known_through_cast() -> None:
    from rillet.shared_ops.types import TensorType

    op = get_op("Cast")
    shape = TensorType(np.dtype(np.int32), (2,), (None, 3))
    assert op.infer_types(op.make_attrs({"dtype": "i64"}), (shape,))[0].value == (None, 3)
    assert op.infer_types(op.make_attrs({"dtype": "f32"}), (shape,))[0].value is None
