"""Repeating: Tile by counts, BroadcastTo by NumPy's rule, and the gradient of Tile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.gradient_rules import unbroadcast
from rillet.shared_ops.int8 import SameScale
from rillet.shared_ops.op import Case, Emit, NoAttrs, Op, Reject
from rillet.shared_ops.reduction import shape_vector
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import merge_shapes, target_shape
from rillet.shared_ops.types import Dim, Shape, TensorType


@dataclass(frozen=True)
class TileAttrs:
    multiples: tuple[int, ...]


def tiled_shape(op: str, attrs: TileAttrs, shape: Shape) -> Shape:
    if len(attrs.multiples) != len(shape) or any(m < 0 for m in attrs.multiples):
        raise OpError(op, "multiples", got=attrs.multiples, expected=f"{len(shape)} numbers of 0 or more")
    return tuple(_times(d, m) for d, m in zip(shape, attrs.multiples))


def _times(d: Dim, m: int) -> Dim:
    return d * m if isinstance(d, int) else d if m == 1 else 0 if m == 0 else None


def infer_tile(attrs: TileAttrs, x: TensorType) -> tuple[TensorType, ...]:
    return (x.with_shape(tiled_shape("Tile", attrs, x.shape)),)


def tile_gradient(emit: Emit, attrs: TileAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (emit("TileGrad", shape_vector(emit, inputs[0]), dy, multiples=attrs.multiples),)


def tile_cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, shape: tuple[int, ...], multiples: tuple[int, ...]) -> Case:
        return Case((rng.normal(size=shape),), {"multiples": multiples}, label=label)

    yield case("both axes", (2, 3), (2, 3))
    yield case("one axis", (2, 3, 4), (1, 3, 1))
    yield case("once", (2, 3), (1, 1))
    yield case("never", (2, 3), (0, 2))
    yield case("empty", (2, 0), (2, 2))
    yield case("scalar", (), ())


TILE = define_op(
    Op(
        "Tile",
        inputs=("x",),
        outputs=("y",),
        attrs=TileAttrs,
        infer=infer_tile,
        reference=lambda xp, attrs, x: xp.tile(x, attrs.multiples),
        gradient=tile_gradient,
        quantize=SameScale(),
        native="tile",
        cases=tile_cases,
        rejects=(
            Reject(((2, 3),), {"multiples": (2,)}, match="2 numbers"),
            Reject(((2,),), {"multiples": (-1,)}, match="0 or more"),
        ),
        doc="""`x` repeated along every dimension.

    Args: x: any dtype. multiples: how often, one number a dimension.
    Returns: an array, larger by the multiples.

    Example:
        >>> tile(np.array([1, 2]), multiples=(2,))
        array([1, 2, 1, 2])
    """,
    )
)


def infer_tile_grad(attrs: TileAttrs, shape: TensorType, dy: TensorType) -> tuple[TensorType, ...]:
    target = target_shape("TileGrad", shape)
    merge_shapes("TileGrad", tiled_shape("TileGrad", attrs, target), dy.shape)
    return (dy.with_shape(target),)


def tile_grad(xp: Any, attrs: TileAttrs, shape: Any, dy: Any) -> Any:
    target = tuple(int(d) for d in shape)
    dx = xp.zeros(target, dy.dtype)
    for copy in np.ndindex(*attrs.multiples):
        dx += dy[tuple(slice(i * d, (i + 1) * d) for i, d in zip(copy, target))]
    return dx


def tile_grad_gradient(emit: Emit, attrs: TileAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return None, emit("Tile", dy, multiples=attrs.multiples)


def tile_grad_cases(rng: np.random.Generator) -> Iterable[Case]:
    for case in tile_cases(rng):
        (x,) = case.inputs
        assert x is not None
        full = tuple(d * m for d, m in zip(x.shape, case.attrs["multiples"]))
        yield Case((np.array(x.shape, np.int64), rng.normal(size=full)), case.attrs, label=case.label)


TILE_GRAD = define_op(
    Op(
        "TileGrad",
        inputs=("shape", "dy"),
        outputs=("dx",),
        attrs=TileAttrs,
        infer=infer_tile_grad,
        reference=tile_grad,
        gradient=tile_grad_gradient,
        native="tile_grad",
        cases=tile_grad_cases,
        rejects=(
            Reject(
                ((1,), (5,)), {"multiples": (2,)}, match="got 5, expected 4", dtypes=("i32", "f32"), values=((2,), None)
            ),
        ),  # fmt: skip
        doc="""The gradient of Tile: the sum over the copies.

    Args: shape: that of the tiled tensor. dy: numbers. multiples: those of Tile.
    Returns: an array of shape.

    Example:
        >>> tile_grad(np.array([2]), np.array([1.0, 2.0, 3.0, 4.0], np.float32), multiples=(2,))
        array([4., 6.], dtype=float32)
    """,
    )
)


def infer_broadcast_to(attrs: NoAttrs, x: TensorType, shape: TensorType) -> tuple[TensorType, ...]:
    target = target_shape("BroadcastTo", shape)
    if len(target) < x.rank:
        raise OpError("BroadcastTo", "shape has too few dimensions", got=len(target), expected=f"at least {x.rank}")
    for axis in range(-x.rank, 0):
        have, want = x.shape[axis], target[axis]
        if isinstance(have, int) and isinstance(want, int) and have not in (1, want):
            raise OpError("BroadcastTo", f"dimension {axis} does not stretch", got=have, expected=f"1 or {want}")
    return (x.with_shape(target),)


def broadcast_to(xp: Any, attrs: NoAttrs, x: Any, shape: Any) -> Any:
    return xp.broadcast_to(x, tuple(int(d) for d in shape)).copy()


def broadcast_to_gradient(emit: Emit, attrs: NoAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return unbroadcast(emit, dy, inputs[0]), None


def broadcast_to_cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, shape: tuple[int, ...], to: tuple[int, ...]) -> Case:
        return Case((rng.normal(size=shape), np.array(to, np.int32)), label=label)

    yield case("rows", (3,), (4, 3))
    yield case("columns", (2, 1, 3), (2, 5, 3))
    yield case("scalar", (), (2, 3))
    yield case("last axis", (3, 1), (3, 7))
    yield case("same", (2, 3), (2, 3))
    yield case("to an empty one", (1, 3), (0, 3))


BROADCAST_TO = define_op(
    Op(
        "BroadcastTo",
        inputs=("x", "shape"),
        outputs=("y",),
        infer=infer_broadcast_to,
        reference=broadcast_to,
        gradient=broadcast_to_gradient,
        quantize=SameScale(),
        native="broadcast_to",
        cases=broadcast_to_cases,
        rejects=(
            Reject(((2,), (1,)), match="got 2, expected 1 or 3", dtypes=("f32", "i32"), values=(None, (3,))),
            Reject(((2, 3), (1,)), match="too few", dtypes=("f32", "i32"), values=(None, (3,))),
            Reject(((2,), (1,)), match="negative", dtypes=("f32", "i32"), values=(None, (-1,))),
        ),
        doc="""`x` repeated to `shape`: dimensions are aligned at the right, and a 1 stretches.

    Args: x: any dtype. shape: i32 or i64 vector.
    Returns: an array of shape.

    Example:
        >>> broadcast_to(np.array([1, 2]), np.array([2, 2]))
        array([[1, 2],
               [1, 2]])
    """,
    )
)
