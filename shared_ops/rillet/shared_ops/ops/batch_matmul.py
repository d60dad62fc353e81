"""BatchMatMul: products of matrices in the last two axes; the axes before them broadcast as in NumPy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.gradient_rules import unbroadcast
from rillet.shared_ops.int8 import Accumulate
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.product import check_operands
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import broadcast_shapes
from rillet.shared_ops.types import TensorType


@dataclass(frozen=True)
class BatchMatMulAttrs:
    adj_x: bool = False
    adj_y: bool = False


def infer(attrs: BatchMatMulAttrs, x: TensorType, y: TensorType) -> tuple[TensorType, ...]:
    check_operands("BatchMatMul", x, y)
    for name, t in (("x", x), ("y", y)):
        if t.rank < 2:
            raise OpError("BatchMatMul", f"rank of {name}", got=t.rank, expected="at least 2")
    m, k = x.shape[:-3:-1] if attrs.adj_x else x.shape[-2:]
    k2, n = y.shape[:-3:-1] if attrs.adj_y else y.shape[-2:]
    if isinstance(k, int) and isinstance(k2, int) and k != k2:
        raise OpError(
            "BatchMatMul", "inner dimensions disagree", got=k2, expected=k, hint="See the attributes adj_x and adj_y."
        )
    return (x.with_shape((*broadcast_shapes("BatchMatMul", x.shape[:-2], y.shape[:-2]), m, n)),)


def reference(xp: Any, attrs: BatchMatMulAttrs, x: Any, y: Any) -> Any:
    return xp.matmul(x.swapaxes(-1, -2) if attrs.adj_x else x, y.swapaxes(-1, -2) if attrs.adj_y else y)


def gradient(emit: Emit, attrs: BatchMatMulAttrs, inputs: Any, outputs: Any, dz: Any) -> tuple[Any, ...]:
    x, y = inputs

    def product(a: Any, b: Any, adj_x: bool, adj_y: bool) -> Any:
        return emit("BatchMatMul", a, b, adj_x=adj_x, adj_y=adj_y)

    ax, ay = attrs.adj_x, attrs.adj_y
    dx = product(y, dz, ay, True) if ax else product(dz, y, False, not ay)
    dy = product(dz, x, True, ax) if ay else product(x, dz, not ax, False)
    return unbroadcast(emit, dx, x), unbroadcast(emit, dy, y)


def cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, x: tuple[int, ...], y: tuple[int, ...], **attrs: Any) -> Case:
        return Case((rng.normal(size=x), rng.normal(size=y)), attrs, label=label)

    yield case("stack", (3, 4, 5), (3, 5, 6))
    yield case("matrices", (9, 5), (5, 17))
    yield case("adj_x", (2, 3, 5, 4), (2, 3, 5, 7), adj_x=True)
    yield case("adj_y", (2, 3, 7, 5), (2, 3, 19, 5), adj_y=True)
    yield case("both", (2, 5, 4), (2, 9, 5), adj_x=True, adj_y=True)
    yield case("batch broadcasts", (2, 1, 4, 5), (3, 5, 6))
    yield case("one matrix for all", (4, 3, 5), (5, 18))
    yield case("stack against one row", (7, 1, 4), (2, 1, 4, 1))
    yield case("no batch", (0, 2, 3), (0, 3, 4))
    yield case("empty sum", (2, 2, 0), (2, 0, 3))


BATCH_MATMUL = define_op(
    Op(
        "BatchMatMul",
        inputs=("x", "y"),
        outputs=("z",),
        attrs=BatchMatMulAttrs,
        infer=infer,
        reference=reference,
        gradient=gradient,
        quantize=Accumulate(channel_axis=None),
        native="batch_matmul",
        cases=cases,
        rejects=(
            Reject(((2, 3, 4), (2, 5, 6)), match="inner dimensions disagree: got 5, expected 4"),
            Reject(((2, 3, 4), (3, 4, 6)), match="broadcast"),
            Reject(((4,), (4, 2)), match="rank of x: got 1"),
            Reject(((2, 3), (3, 5)), match="dtypes", dtypes=("f32", "f64")),
        ),
        doc="""Products of matrices in the last two axes; leading axes broadcast.

    Args: x: floats [..., M, K] ([..., K, M] with adj_x). y: floats [..., K, N] ([..., N, K] with adj_y).
    Returns: floats [..., M, N]. Raises OpError where ranks, dtypes, inner or batch dimensions do not fit.

    Example:
        >>> batch_matmul(np.ones((2, 1, 3), np.float32), np.ones((3, 1), np.float32))
        array([[[3.]],
        <BLANKLINE>
               [[3.]]], dtype=float32)
    """,
    )
)
