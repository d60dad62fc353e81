"""What the pointwise op tables share: the dtypes they take, their `infer` functions, and inputs for their cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case
from rillet.shared_ops.shapes import broadcast_shapes, require_same_dtype
from rillet.shared_ops.types import DTYPE_NAMES, Array, Dim, TensorType

Infer = Callable[..., tuple[TensorType, ...]]
FLOATS = ("f32", "f64")
NUMBERS = (*FLOATS, "i8", "u8", "i32", "i64")
SIGNED = (*FLOATS, "i8", "i32", "i64")
BOOLS = ("bool",)
ANY = (*NUMBERS, "bool")


def require_dtype(op: str, name: str, x: TensorType, allowed: tuple[str, ...]) -> None:
    """Refuses input `name` if its dtype is not among `allowed`."""
    got = DTYPE_NAMES.get(x.dtype, str(x.dtype))
    if got not in allowed:
        raise OpError(op, f"dtype of {name}", got=got, expected=" or ".join(allowed))


def unary_infer(op: str, dtypes: tuple[str, ...], result: Any = None) -> Infer:
    """`infer` of a one-input op: the input's shape, and its dtype unless `result` names another."""

    def infer(attrs: Any, x: TensorType) -> tuple[TensorType, ...]:
        require_dtype(op, "x", x, dtypes)
        return (x.plain() if result is None else x.plain().with_dtype(result),)

    return infer


def broadcast_infer(op: str, dtypes: tuple[str, ...], result: Any = None) -> Infer:
    """`infer` of an op whose inputs broadcast against each other and share a dtype."""

    def infer(attrs: Any, *inputs: TensorType) -> tuple[TensorType, ...]:
        require_dtype(op, "the first input", inputs[0], dtypes)
        require_same_dtype(op, *inputs)
        shape: tuple[Dim, ...] = inputs[0].shape
        for x in inputs[1:]:
            shape = broadcast_shapes(op, shape, x.shape)
        return (TensorType(inputs[0].dtype if result is None else np.dtype(result), shape),)

    return infer


def clamp(xp: Any, x: Any, lo: float | None, hi: float | None) -> Any:
    """The clamp of the numeric contract: NaN passes, -0 stays, and `hi` wins where lo > hi."""
    if lo is not None:
        x = xp.where(lo > x, xp.asarray(lo, x.dtype), x)
    return x if hi is None else xp.where(hi < x, xp.asarray(hi, x.dtype), x)


def activate(xp: Any, activation: str, x: Any) -> Any:
    """A fused activation: NONE, RELU or RELU6."""
    if activation == "NONE":
        return x
    return clamp(xp, x, 0, 6 if activation == "RELU6" else None)


def draw(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    low: float = -3.0,
    high: float = 3.0,
    away_from: tuple[float, ...] = (),
) -> Array:
    """Uniform numbers in [low, high], none within 0.01 of the points where a function has a kink or a pole."""
    x = rng.uniform(low, high, size=shape)
    for point in away_from:
        x = np.where(np.abs(x - point) < 0.01, point + np.where(x < point, -0.02, 0.02), x)
    return x


def draw_ints(rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "int32", low: int = -9) -> Array:
    """Small integers in [low, 9], as an array of `dtype`."""
    return rng.integers(low, 10, size=shape).astype(dtype)


# Pairs of shapes that meet every way the native loops walk: equal, scalar on either side, row, column, both stretched,
# a short last axis, an axis in the middle, none at all, nothing to do.
BROADCASTS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "same shape": ((3, 37), (3, 37)),
    "scalar right": ((5, 7), ()),
    "scalar left": ((1, 1), (5, 7)),
    "row": ((4, 35), (35,)),
    "short row": ((41, 3), (3,)),
    "column": ((6, 19), (6, 1)),
    "both stretched": ((1, 5), (4, 1)),
    "middle axis": ((2, 1, 9), (2, 3, 9)),
    "four axes": ((2, 1, 3, 1), (1, 4, 1, 5)),
    "scalars": ((), ()),
    "empty": ((0, 3), (3,)),
}


def broadcast_cases(draw_left: Callable[..., Array], draw_right: Callable[..., Array], **case: Any) -> Iterator[Case]:
    """One case for every pair of shapes in BROADCASTS."""
    for label, (left, right) in BROADCASTS.items():
        yield Case((draw_left(left), draw_right(right)), label=label, **case)


def describe(doc: str, args: str, returns: str, call: str, result: str) -> str:
    """An op's documentation: what it does, what it takes and gives, and an example, which a test runs."""
    return f"{doc}\n\nArgs: {args}\nReturns: {returns}\n\nExample:\n    >>> {call}\n    {result}\n"
