"""Batch normalisation in inference: given statistics, one multiplication and addition a channel. Channels last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import merge_dims, require_float, require_same_dtype
from rillet.shared_ops.types import TensorType


@dataclass(frozen=True)
class BatchNormAttrs:
    """epsilon: added to the variance, under the root."""

    epsilon: float = 1e-3


def infer(attrs: BatchNormAttrs, x: TensorType, *per_channel: TensorType) -> tuple[TensorType, ...]:
    require_float("BatchNorm", "x", x)
    require_same_dtype("BatchNorm", x, *per_channel)
    if x.rank < 1:
        raise OpError("BatchNorm", "rank of x", got=x.rank, expected="1 or more, channels last")
    channels = x.shape[-1]
    for name, t in zip(("scale", "offset", "mean", "variance"), per_channel):
        if t.rank != 1:
            raise OpError("BatchNorm", f"rank of {name}", got=t.rank, expected="1 (one element a channel)")
        channels = merge_dims("BatchNorm", channels, t.shape[0], f"x and {name}: number of channel")
    return (x.with_shape((*x.shape[:-1], channels)),)


def reference(xp: Any, attrs: BatchNormAttrs, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    return (x - mean) * (scale / xp.sqrt(variance + x.dtype.type(attrs.epsilon))) + offset


def gradient(emit: Emit, attrs: BatchNormAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    x, scale, _, mean, variance = inputs
    axes = tuple(range(len(x.shape) - 1))
    inv_std = emit("Rsqrt", emit("Add", variance, attrs.epsilon))
    slope = emit("Mul", scale, inv_std)
    doffset = emit("Sum", dy, axes=axes)
    dscale = emit("Mul", emit("Sum", emit("Mul", dy, emit("Sub", x, mean)), axes=axes), inv_std)
    dmean = emit("Neg", emit("Mul", doffset, slope))
    dvariance = emit("Mul", emit("Mul", dscale, slope), emit("Mul", inv_std, -0.5))
    return emit("Mul", dy, slope), dscale, doffset, dmean, dvariance


def cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, *shape: int, epsilon: float = 1e-3) -> Case:
        c = shape[-1]
        vectors = (rng.normal(size=c), rng.normal(size=c), rng.normal(size=c), rng.random(c) + 0.5)
        return Case((rng.normal(size=shape), *vectors), {"epsilon": epsilon}, label=label)

    yield case("images", 2, 3, 4, 5)
    yield case("rows", 7, 18, epsilon=1e-5)
    yield case("one vector", 33)


BATCH_NORM = define_op(
    Op(
        "BatchNorm",
        inputs=("x", "scale", "offset", "mean", "variance"),
        outputs=("y",),
        attrs=BatchNormAttrs,
        infer=infer,
        reference=reference,
        gradient=gradient,
        native="batch_norm",
        cases=cases,
        rejects=(
            Reject(((2, 3, 3, 4), (4,), (4,), (3,), (4,)), match="mean.*channel"),
            Reject(((2, 4), (4,), (4, 1), (4,), (4,)), match="rank of offset"),
        ),
        doc="""y = (x - mean) * (scale / sqrt(variance + epsilon)) + offset, a channel at a time.

    Args: x: float, channels last. scale, offset, mean, variance: one element a channel.
    Raises: OpError where the numbers of channels differ.

    Example:
        >>> one, zero = np.ones(2, np.float32), np.zeros(2, np.float32)
        >>> batch_norm(np.array([[3.0, 5.0]], np.float32), one, zero, one, 3 * one + 1, epsilon=0.0)
        array([[1., 2.]], dtype=float32)
    """,
    )
)
