"""SumTo undoes a broadcast: it sums over the axes along which that repeated. The gradient of broadcasting ops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case, Emit, NoAttrs, Op, Reject
from rillet.shared_ops.reduction import shape_vector
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.types import TensorType


def infer(attrs: NoAttrs, x: TensorType, shape: TensorType) -> tuple[TensorType, ...]:
    if shape.dtype.kind != "i" or shape.rank != 1:
        raise OpError("SumTo", "shape", got=str(shape), expected="a vector of i32 or i64")
    if shape.value is None:
        if not isinstance(shape.shape[0], int):
            raise OpError(
                "SumTo", "the rank of the result is unknown", got=str(shape), expected="a vector of known length"
            )
        return (x.with_shape([None] * shape.shape[0]),)
    target = shape.value
    if len(target) > x.rank:
        raise OpError("SumTo", "shape has too many dimensions", got=len(target), expected=f"at most {x.rank}")
    for axis, (want, have) in enumerate(zip(target, x.shape[x.rank - len(target) :])):
        if isinstance(want, int) and isinstance(have, int) and want not in (1, have):
            raise OpError("SumTo", f"dimension {axis} of shape", got=want, expected=f"1 or {have}")
    return (x.with_shape(target),)


def reference(xp: Any, attrs: NoAttrs, x: Any, shape: Any) -> Any:
    target = tuple(int(d) for d in shape)
    lead = x.ndim - len(target)
    x = x.sum(axis=tuple(range(lead)), dtype=x.dtype)
    return x.sum(
        axis=tuple(a for a, d in enumerate(target) if d == 1 and x.shape[a] != 1), keepdims=True, dtype=x.dtype
    )


def gradient(emit: Emit, attrs: NoAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return emit("BroadcastTo", dy, shape_vector(emit, inputs[0])), None


def cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, x: tuple[int, ...], to: tuple[int, ...], dtype: type = np.int32) -> Case:
        return Case((rng.normal(size=x), np.array(to, dtype)), label=label)

    yield case("bias", (4, 5, 3), (3,))
    yield case("kept ones", (4, 5, 3), (4, 1, 3), np.int64)
    yield case("lead and ones", (2, 4, 5, 3), (4, 1, 1))
    yield case("scalar", (3, 7), ())
    yield case("same", (3, 2), (3, 2))
    yield case("ones stay", (37, 1, 2), (1, 1, 2))


SUM_TO = define_op(
    Op(
        "SumTo",
        inputs=("x", "shape"),
        outputs=("y",),
        infer=infer,
        reference=reference,
        gradient=gradient,
        native="sum_to",
        cases=cases,
        rejects=(
            Reject(((4, 3), (1,)), match="1 or 3", dtypes=("f32", "i32"), values=(None, (2,))),
            Reject(((3,), (2,)), match="too many", dtypes=("f32", "i32"), values=(None, (1, 3))),
            Reject(((3,), (1,)), match="vector", dtypes=("f32", "f32")),
        ),
        doc="""Sums `x` over the axes along which an array of `shape` would have been repeated to get the shape of `x`.

    Args: x: numbers. shape: i32 or i64 vector; aligned at the right, each dimension is 1 or that of `x`.
    Returns: an array of `shape`.

    Example:
        >>> sum_to(np.ones((4, 3), np.float32), np.array([3]))
        array([4., 4., 4.], dtype=float32)
    """,
    )
)
