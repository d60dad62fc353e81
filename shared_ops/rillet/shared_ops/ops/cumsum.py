"""Cumsum: running sums along an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import normalize_axis
from rillet.shared_ops.types import TensorType


@dataclass(frozen=True)
class CumsumAttrs:
    """exclusive: leave out the element itself. reverse: sum from the end."""

    axis: int = 0
    exclusive: bool = False
    reverse: bool = False


def infer(attrs: CumsumAttrs, x: TensorType) -> tuple[TensorType, ...]:
    normalize_axis("Cumsum", attrs.axis, x.rank)
    if x.dtype == np.bool_:
        raise OpError("Cumsum", "dtype of x", got="bool", expected="numbers", hint="Use Cast.")
    return (x.plain(),)


def reference(xp: Any, attrs: CumsumAttrs, x: Any) -> Any:
    x = xp.moveaxis(x, attrs.axis, 0)
    x = x[::-1] if attrs.reverse else x
    y = xp.cumsum(x, axis=0, dtype=x.dtype)
    if attrs.exclusive:
        y = xp.concatenate([xp.zeros_like(x[:1]), y[:-1]])
    return xp.moveaxis(y[::-1] if attrs.reverse else y, 0, attrs.axis)


def gradient(emit: Emit, attrs: CumsumAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (emit("Cumsum", dy, axis=attrs.axis, exclusive=attrs.exclusive, reverse=not attrs.reverse),)


CUMSUM = define_op(
    Op(
        "Cumsum",
        inputs=("x",),
        outputs=("y",),
        attrs=CumsumAttrs,
        infer=infer,
        reference=reference,
        gradient=gradient,
        native="cumsum",
        cases=lambda rng: (
            *(
                Case((rng.normal(size=(3, 4, 2)),), {"axis": a, "exclusive": e, "reverse": r}, label=f"{a} {e} {r}")
                for a, e, r in ((0, False, False), (1, True, False), (-1, False, True), (1, True, True))
            ),
            Case((rng.integers(-9, 9, size=(5,)),), label="integers"),
            Case((rng.normal(size=(0, 2)),), label="empty"),
            Case((rng.normal(size=(0, 2)),), {"exclusive": True}, label="empty, exclusive"),
        ),
        rejects=(Reject(((2, 3),), {"axis": 2}, match="out of range"), Reject(((),), match="out of range")),
        doc="""Running sums of `x` along `axis`, from the first element on.

    Args: x: numbers. axis. exclusive: each sum leaves out its own element. reverse: sum from the last element on.
    Returns: an array like x.

    Example:
        >>> cumsum(np.array([1, 2, 3]), exclusive=True)
        array([0, 1, 3])
    """,
    )
)
