"""Transpose: the dimensions in another order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import SameScale
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import normalize_axes
from rillet.shared_ops.types import TensorType


@dataclass(frozen=True)
class TransposeAttrs:
    perm: tuple[int, ...] | None = None


def order(attrs: TransposeAttrs, rank: int) -> tuple[int, ...]:
    """For every dimension of the result, the dimension of the input that it is."""
    if not attrs.perm:
        return tuple(range(rank))[::-1]
    if len(attrs.perm) != rank:
        raise OpError("Transpose", "length of perm", got=attrs.perm, expected=f"{rank} axes")
    return normalize_axes("Transpose", attrs.perm, rank)


def infer(attrs: TransposeAttrs, x: TensorType) -> tuple[TensorType, ...]:
    return (x.with_shape([x.shape[a] for a in order(attrs, x.rank)]),)


def reference(xp: Any, attrs: TransposeAttrs, x: Any) -> Any:
    return xp.transpose(x, order(attrs, x.ndim))


def gradient(emit: Emit, attrs: TransposeAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    perm = order(attrs, len(inputs[0].shape))
    return (emit("Transpose", dy, perm=tuple(perm.index(a) for a in range(len(perm)))),)


def cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, shape: tuple[int, ...], perm: tuple[int, ...] | None) -> Case:
        return Case((rng.normal(size=shape),), {"perm": perm}, label=label)

    yield case("reversed", (2, 3, 4), None)
    yield case("matrix off the block", (37, 65), (1, 0))
    yield case("to channels first", (2, 5, 7, 3), (0, 3, 1, 2))
    yield case("heads", (2, 9, 4, 8), (0, 2, 1, 3))
    yield case("identity", (3, 4), (0, 1))
    yield case("negative axes", (2, 3, 4), (-1, 0, 1))
    yield case("rank 8", (2, 1, 3, 1, 2, 2, 1, 3), (7, 3, 0, 1, 6, 4, 2, 5))
    yield case("scalar", (), None)
    yield case("empty", (3, 0, 2), (2, 0, 1))


TRANSPOSE = define_op(
    Op(
        "Transpose",
        inputs=("x",),
        outputs=("y",),
        attrs=TransposeAttrs,
        infer=infer,
        reference=reference,
        gradient=gradient,
        quantize=SameScale(),
        native="transpose",
        cases=cases,
        rejects=(
            Reject(((2, 3),), {"perm": (0,)}, match="length of perm"),
            Reject(((2, 3),), {"perm": (0, 0)}, match="twice"),
            Reject(((2, 3),), {"perm": (0, 2)}, match="out of range"),
        ),
        doc="""`x` with its dimensions in the order `perm`.

    Args: x: any dtype. perm: for every dimension of the result, that of x; None: reversed.
    Returns: an array of the permuted shape.

    Example:
        >>> transpose(np.array([[1, 2, 3], [4, 5, 6]]))
        array([[1, 4],
               [2, 5],
               [3, 6]])
    """,
    )
)
