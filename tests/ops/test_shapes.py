"""Arithmetic on partly known shapes."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from rillet.shared_ops import shapes
from rillet.shared_ops.errors import OpError
from rillet.shared_ops.types import TensorType

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(shapes).failed == 0


@pytest.mark.parametrize(
    "a,b",
    [((3, 2), (1, 1, 2)), ((1, 1, 6), (6,)), ((2, 1, 3), (4, 1)), ((), (2,)), ((0, 3), (1, 1)), ((1,), (0,)), ((), ())],
)
def test_broadcast_agrees_with_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    assert shapes.broadcast_shapes("Add", a, b) == np.broadcast_shapes(a, b)
    assert shapes.broadcast_shapes("Add", b, a) == np.broadcast_shapes(a, b)


def test_broadcast_of_unknown_dimensions_promises_only_what_is_certain() -> None:
    assert shapes.broadcast_shapes("Add", (None, "n"), (1, "n")) == (None, "n")
    assert shapes.broadcast_shapes("Add", ("n",), ("m",)) == (None,)
    assert shapes.broadcast_shapes("Add", ("n",), (None,)) == (None,)
    assert shapes.broadcast_shapes("Add", ("n",), (5,)) == (5,)
    assert shapes.broadcast_shapes("Add", (None,), (0,)) == (0,)


@pytest.mark.parametrize("a,b", [((2,), (3,)), ((0,), (2,)), ((1,) * 9, (1,))])
def test_broadcast_refuses(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    with pytest.raises(OpError, match="do not broadcast|too many dimensions"):
        shapes.broadcast_shapes("Add", a, b)


def test_merge_refuses_two_numbers() -> None:
    with pytest.raises(OpError, match="got 3, expected 2"):
        shapes.merge_dims("MatMul", 2, 3)
    with pytest.raises(OpError, match="ranks disagree"):
        shapes.merge_shapes("Select", (2,), (2, 1))


def test_axes_out_of_range_or_twice() -> None:
    with pytest.raises(OpError, match="got 2, expected -2 to 1"):
        shapes.normalize_axis("Sum", 2, 2)
    with pytest.raises(OpError, match="twice"):
        shapes.normalize_axes("Sum", (1, -1), 2)


def test_shape_inputs() -> None:
    assert shapes.shape_from_input("Reshape", TensorType(I32, (2,), (-1, "n"))) == (-1, "n")
    assert shapes.shape_from_input("Reshape", TensorType(I32, (2,))) == (None, None)
    for bad in (TensorType(I32, (None,)), TensorType(F32, (2,)), TensorType(I32, ()), TensorType(I32, (9,))):
        with pytest.raises(OpError):
            shapes.shape_from_input("Reshape", bad)
    with pytest.raises(OpError, match="negative"):
        shapes.target_shape("Fill", TensorType(I32, (1,), (-1,)))
