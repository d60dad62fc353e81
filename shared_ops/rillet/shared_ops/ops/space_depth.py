"""Moving blocks of pixels into channels and back (SpaceToDepth), or into the batch and back (SpaceToBatchND)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import SameScale
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import add_dims, require_rank
from rillet.shared_ops.types import Dim, TensorType


def _divide(op: str, what: str, dim: Dim, by: int) -> Dim:
    if isinstance(dim, int) and dim % by:
        raise OpError(op, f"{what} does not divide into blocks", got=dim, expected=f"a multiple of {by}")
    return dim // by if isinstance(dim, int) else dim if by == 1 else None


def _times(dim: Dim, by: int) -> Dim:
    return dim * by if isinstance(dim, int) else dim if by == 1 else None


@dataclass(frozen=True)
class SpaceToDepthAttrs:
    block_size: int


def _check_image(op: str, attrs: SpaceToDepthAttrs, x: TensorType) -> int:
    require_rank(op, "x", x, 4, "NHWC")
    if attrs.block_size < 1:
        raise OpError(op, "block_size", got=attrs.block_size, expected="1 or more")
    return attrs.block_size


def infer_space_to_depth(attrs: SpaceToDepthAttrs, x: TensorType) -> tuple[TensorType, ...]:
    b = _check_image("SpaceToDepth", attrs, x)
    n, h, w, c = x.shape
    h, w = _divide("SpaceToDepth", "height", h, b), _divide("SpaceToDepth", "width", w, b)
    return (x.with_shape((n, h, w, _times(c, b * b))),)


def space_to_depth(xp: Any, attrs: SpaceToDepthAttrs, x: Any) -> Any:
    (n, h, w, c), b = x.shape, attrs.block_size
    blocks = x.reshape(n, h // b, b, w // b, b, c)
    return blocks.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // b, w // b, b * b * c)


def infer_depth_to_space(attrs: SpaceToDepthAttrs, x: TensorType) -> tuple[TensorType, ...]:
    b = _check_image("DepthToSpace", attrs, x)
    n, h, w, c = x.shape
    return (x.with_shape((n, _times(h, b), _times(w, b), _divide("DepthToSpace", "depth", c, b * b))),)


def depth_to_space(xp: Any, attrs: SpaceToDepthAttrs, x: Any) -> Any:
    (n, h, w, c), b = x.shape, attrs.block_size
    pixels = x.reshape(n, h, w, b, b, c // (b * b))
    return pixels.transpose(0, 1, 3, 2, 4, 5).reshape(n, h * b, w * b, c // (b * b))


SPACE_TO_DEPTH = define_op(
    Op(
        "SpaceToDepth",
        inputs=("x",),
        outputs=("y",),
        attrs=SpaceToDepthAttrs,
        infer=infer_space_to_depth,
        reference=space_to_depth,
        gradient=lambda emit, attrs, inputs, outputs, dy: (emit("DepthToSpace", dy, block_size=attrs.block_size),),
        quantize=SameScale(),
        native="space_to_depth",
        cases=lambda rng: (
            Case((rng.normal(size=(2, 4, 6, 3)),), {"block_size": 2}, label="by two"),
            Case((rng.normal(size=(1, 3, 6, 2)),), {"block_size": 3}, label="by three"),
            Case((rng.normal(size=(1, 0, 4, 2)),), {"block_size": 2}, label="empty"),
        ),
        rejects=(
            Reject(((1, 3, 4, 1),), {"block_size": 2}, match="height .* got 3"),
            Reject(((1, 4, 4),), {"block_size": 2}, match="NHWC"),
            Reject(((1, 4, 4, 1),), {"block_size": 0}, match="1 or more"),
        ),
        doc="""Every block of pixels becomes one pixel with all their channels, rows of the block first.

    Args: x: [N, H, W, C], H and W multiples of block_size.
    Returns: [N, H / b, W / b, b * b * C].

    Example:
        >>> space_to_depth(np.arange(4).reshape(1, 2, 2, 1), block_size=2)
        array([[[[0, 1, 2, 3]]]])
    """,
    )
)

DEPTH_TO_SPACE = define_op(
    Op(
        "DepthToSpace",
        inputs=("x",),
        outputs=("y",),
        attrs=SpaceToDepthAttrs,
        infer=infer_depth_to_space,
        reference=depth_to_space,
        gradient=lambda emit, attrs, inputs, outputs, dy: (emit("SpaceToDepth", dy, block_size=attrs.block_size),),
        quantize=SameScale(),
        native="depth_to_space",
        cases=lambda rng: (
            Case((rng.normal(size=(2, 2, 3, 12)),), {"block_size": 2}, label="by two"),
            Case((rng.normal(size=(1, 1, 2, 9)),), {"block_size": 3}, label="by three"),
            Case((rng.normal(size=(0, 1, 2, 4)),), {"block_size": 2}, label="empty"),
        ),
        rejects=(
            Reject(((1, 3, 4, 6),), {"block_size": 2}, match="depth .* got 6"),
            Reject(((1, 4, 4),), {"block_size": 2}, match="NHWC"),
        ),
        doc="""Every pixel becomes a block of pixels with fewer channels: undoes SpaceToDepth.

    Args: x: [N, H, W, C], C a multiple of block_size * block_size.
    Returns: [N, H * b, W * b, C / (b * b)].

    Example:
        >>> depth_to_space(np.arange(4).reshape(1, 1, 1, 4), block_size=2).reshape(2, 2)
        array([[0, 1],
               [2, 3]])
    """,
    )
)


@dataclass(frozen=True)
class SpaceToBatchNDAttrs:
    """value: what the padding holds."""

    block_shape: tuple[int, ...]
    paddings: tuple[tuple[int, int], ...]
    value: float = 0.0


@dataclass(frozen=True)
class BatchToSpaceNDAttrs:
    block_shape: tuple[int, ...]
    crops: tuple[tuple[int, int], ...]


def _check_blocks(op: str, x: TensorType, blocks: Sequence[int], pairs: Sequence[tuple[int, int]]) -> None:
    if not blocks or len(blocks) != len(pairs) or len(blocks) >= x.rank:
        raise OpError(op, "block_shape and pairs", got=f"{blocks} and {pairs}",
                      expected=f"one each for 1 to {x.rank - 1} dimensions behind the batch")  # fmt: skip
    if any(b < 1 for b in blocks) or any(p < 0 for pair in pairs for p in pair):
        raise OpError(op, "block_shape and pairs", got=f"{blocks} and {pairs}",
                      expected="blocks of 1 or more, pairs of 0 or more")  # fmt: skip


def infer_space_to_batch(attrs: SpaceToBatchNDAttrs, x: TensorType) -> tuple[TensorType, ...]:
    op, m = "SpaceToBatchND", len(attrs.block_shape)
    _check_blocks(op, x, attrs.block_shape, attrs.paddings)
    space = [
        _divide(op, f"dimension {i + 1} with its padding", add_dims(x.shape[i + 1], sum(pair)), b)
        for i, (b, pair) in enumerate(zip(attrs.block_shape, attrs.paddings))
    ]
    return (x.with_shape((_times(x.shape[0], math.prod(attrs.block_shape)), *space, *x.shape[m + 1 :])),)


def space_to_batch(xp: Any, attrs: SpaceToBatchNDAttrs, x: Any) -> Any:
    blocks, m = attrs.block_shape, len(attrs.block_shape)
    pads = ((0, 0), *attrs.paddings, *((0, 0),) * (x.ndim - m - 1))
    x = xp.pad(x, pads, constant_values=attrs.value)
    space, rest = [d // b for d, b in zip(x.shape[1:], blocks)], x.shape[m + 1 :]
    split = x.reshape(x.shape[0], *(v for pair in zip(space, blocks) for v in pair), *rest)
    inner = range(2 * m + 1, split.ndim)
    moved = split.transpose(*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m + 1, 2), *inner)
    return moved.reshape(x.shape[0] * math.prod(blocks), *space, *rest)


def infer_batch_to_space(attrs: BatchToSpaceNDAttrs, x: TensorType) -> tuple[TensorType, ...]:
    op, m = "BatchToSpaceND", len(attrs.block_shape)
    _check_blocks(op, x, attrs.block_shape, attrs.crops)
    space = []
    for d, b, pair in zip(x.shape[1:], attrs.block_shape, attrs.crops):
        full = _times(d, b)
        if isinstance(full, int) and full < sum(pair):
            raise OpError(op, "crops are larger than the image", got=pair, expected=f"at most {full} together")
        space.append(add_dims(full, -sum(pair)))
    batch = _divide(op, "batch", x.shape[0], math.prod(attrs.block_shape))
    return (x.with_shape((batch, *space, *x.shape[m + 1 :])),)


def batch_to_space(xp: Any, attrs: BatchToSpaceNDAttrs, x: Any) -> Any:
    blocks, m = attrs.block_shape, len(attrs.block_shape)
    batch, space, rest = x.shape[0] // math.prod(blocks), x.shape[1 : m + 1], x.shape[m + 1 :]
    split = x.reshape(*blocks, batch, *space, *rest)
    order = [m, *(v for i in range(m) for v in (m + 1 + i, i)), *range(2 * m + 1, split.ndim)]
    full = split.transpose(*order).reshape(batch, *(d * b for d, b in zip(space, blocks)), *rest)
    kept = (slice(None), *(slice(before, d - after) for d, (before, after) in zip(full.shape[1:], attrs.crops)))
    return full[kept]


def space_to_batch_gradient(
    emit: Emit, attrs: SpaceToBatchNDAttrs, inputs: Any, outputs: Any, dy: Any
) -> tuple[Any, ...]:
    return (emit("BatchToSpaceND", dy, block_shape=attrs.block_shape, crops=attrs.paddings),)


def batch_to_space_gradient(
    emit: Emit, attrs: BatchToSpaceNDAttrs, inputs: Any, outputs: Any, dy: Any
) -> tuple[Any, ...]:
    return (emit("SpaceToBatchND", dy, block_shape=attrs.block_shape, paddings=attrs.crops),)


def space_to_batch_cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, x: tuple[int, ...], blocks: tuple[int, ...], *pairs: tuple[int, int]) -> Case:
        return Case((rng.normal(size=x),), {"block_shape": blocks, "paddings": pairs}, label=label)

    yield case("image", (2, 4, 6, 3), (2, 3), (0, 0), (0, 0))
    yield case("padded", (1, 3, 4, 2), (2, 2), (1, 0), (2, 2))
    yield case("one dimension", (2, 5, 3), (3,), (0, 1))
    yield case("no channels", (1, 4, 4), (2, 2), (0, 0), (0, 0))
    yield case("empty", (0, 4, 4, 1), (2, 2), (0, 0), (0, 0))


def batch_to_space_cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, x: tuple[int, ...], blocks: tuple[int, ...], *pairs: tuple[int, int]) -> Case:
        return Case((rng.normal(size=x),), {"block_shape": blocks, "crops": pairs}, label=label)

    yield case("image", (12, 2, 2, 3), (2, 3), (0, 0), (0, 0))
    yield case("cropped", (4, 3, 4, 2), (2, 2), (1, 2), (0, 3))
    yield case("one dimension", (6, 2, 3), (3,), (0, 1))
    yield case("all cropped", (4, 1, 1, 2), (2, 2), (1, 1), (0, 0))


SPACE_TO_BATCH_ND = define_op(
    Op(
        "SpaceToBatchND",
        inputs=("x",),
        outputs=("y",),
        attrs=SpaceToBatchNDAttrs,
        infer=infer_space_to_batch,
        reference=space_to_batch,
        gradient=space_to_batch_gradient,
        quantize=SameScale(fill="value"),
        native="space_to_batch_nd",
        cases=space_to_batch_cases,
        rejects=(
            Reject(((1, 3, 4, 1),), {"block_shape": (2, 2), "paddings": ((0, 0), (0, 0))}, match="got 3"),
            Reject(((1, 4, 4, 1),), {"block_shape": (2,), "paddings": ((0, 0), (0, 0))}, match="one each"),
            Reject(((1, 4, 4, 1),), {"block_shape": (0, 1), "paddings": ((0, 0), (0, 0))}, match="1 or more"),
        ),
        doc="""Pads the dimensions behind the batch, then moves each position within their blocks into the batch.

    Args: x: [N, space..., rest...]. block_shape: one number a dimension of space. paddings: (before, after) each; the
        padded sizes are multiples of the blocks. value: what the padding holds.
    Returns: [N * blocks, space / blocks..., rest...].

    Example:
        >>> space_to_batch_nd(np.array([[1, 2, 3, 4]]), block_shape=(2,), paddings=((0, 0),))
        array([[1, 3],
               [2, 4]])
    """,
    )
)

BATCH_TO_SPACE_ND = define_op(
    Op(
        "BatchToSpaceND",
        inputs=("x",),
        outputs=("y",),
        attrs=BatchToSpaceNDAttrs,
        infer=infer_batch_to_space,
        reference=batch_to_space,
        gradient=batch_to_space_gradient,
        quantize=SameScale(),
        native="batch_to_space_nd",
        cases=batch_to_space_cases,
        rejects=(
            Reject(((3, 3, 4, 1),), {"block_shape": (2, 2), "crops": ((0, 0), (0, 0))}, match="batch .* got 3"),
            Reject(((4, 1, 4, 1),), {"block_shape": (2, 2), "crops": ((2, 1), (0, 0))}, match="larger than the image"),
        ),
        doc="""Undoes SpaceToBatchND: moves positions out of the batch into blocks, then crops.

    Args: x: [N * blocks, space..., rest...]. block_shape: one number a dimension of space. crops: (before, after) each.
    Returns: [N, space * blocks - crops..., rest...].

    Example:
        >>> batch_to_space_nd(np.array([[1, 3], [2, 4]]), block_shape=(2,), crops=((0, 0),))
        array([[1, 2, 3, 4]])
    """,
    )
)
