"""Batch normalisation while training, and its gradient.

x has any rank from 2, channels last; every statistic is over all other axes, n elements a channel. The batch is
normalised with the biased variance; the moving variance takes the unbiased one (n / (n - 1)), as TensorFlow's does.
The op updates the moving averages itself, so that nobody can forget them.
"""

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
class BatchNormTrainingAttrs:
    """epsilon: added to the variance. momentum: the share of the old moving average that is kept."""

    epsilon: float = 1e-3
    momentum: float = 0.99


@dataclass(frozen=True)
class BatchNormTrainingGradAttrs:
    """The statistics come in as they were used, epsilon and all."""


def _check(op: str, x: TensorType, **per_channel: TensorType | None) -> None:
    require_float(op, "x", x)
    require_same_dtype(op, x, *per_channel.values())
    if x.rank < 2:
        raise OpError(op, "rank of x", got=x.rank, expected="2 or more, channels last")
    for name, t in per_channel.items():
        if t is not None and t.rank != 1:
            raise OpError(op, f"rank of {name}", got=t.rank, expected="1 (one element a channel)")
        if t is not None:
            merge_dims(op, x.shape[-1], t.shape[0], f"x and {name}: number of channel")


def infer(
    attrs: BatchNormTrainingAttrs, x: TensorType, scale: TensorType, offset: TensorType, *moving: TensorType
) -> tuple[TensorType, ...]:
    mean, variance = moving
    _check("BatchNormTraining", x, scale=scale, offset=offset, moving_mean=mean, moving_variance=variance)
    channels = scale.with_shape(x.shape[-1:] if isinstance(x.shape[-1], int) else scale.shape)
    return x.plain(), channels, channels


def _flat(x: Any) -> Any:
    return x.reshape(-1, x.shape[-1])


def reference(
    xp: Any, attrs: BatchNormTrainingAttrs, x: Any, scale: Any, offset: Any, moving_mean: Any, moving_variance: Any
) -> tuple[Any, ...]:
    real, rows = x.dtype.type, _flat(x)
    n = rows.shape[0]
    mean = rows.mean(axis=0)
    variance = ((rows - mean) ** 2).mean(axis=0)
    inv_std = real(1) / xp.sqrt(variance + real(attrs.epsilon))
    y = (x - mean) * (scale * inv_std) + offset
    new = real(1 - attrs.momentum)
    unbiased = variance * real(n / max(n - 1, 1))
    moving_mean = moving_mean + (mean - moving_mean) * new
    moving_variance = moving_variance + (unbiased - moving_variance) * new
    return y, mean, inv_std, moving_mean, moving_variance


def gradient(
    emit: Emit, attrs: BatchNormTrainingAttrs, inputs: Any, outputs: Any, dy: Any, dmean: Any, dinv_std: Any
) -> tuple[Any, ...]:
    x, scale, *_ = inputs
    y, mean, inv_std = outputs
    dy = emit("ZerosLike", y) if dy is None else dy
    if dmean is None and dinv_std is None:
        return (*emit("BatchNormTrainingGrad", x, scale, mean, inv_std, dy), None, None)
    dmean = emit("ZerosLike", mean) if dmean is None else dmean
    dinv_std = emit("ZerosLike", mean) if dinv_std is None else dinv_std
    return (*emit("BatchNormTrainingGrad", x, scale, mean, inv_std, dy, dmean, dinv_std), None, None)


def inference(emit: Emit, attrs: BatchNormTrainingAttrs, inputs: Any) -> tuple[Any, ...]:
    """The statistics of the batch have no meaning in inference: nothing stands in for them."""
    return emit("BatchNorm", *inputs, epsilon=attrs.epsilon), None, None


def infer_grad(
    attrs: BatchNormTrainingGradAttrs, x: TensorType, scale: TensorType, *rest: TensorType | None
) -> tuple[TensorType, ...]:
    mean, inv_std, dy, dmean, dinv_std = rest
    _check("BatchNormTrainingGrad", x, scale=scale, mean=mean, inv_std=inv_std, dmean=dmean, dinv_std=dinv_std)
    if dy is None or dy.rank != x.rank:
        raise OpError("BatchNormTrainingGrad", "dy", got=str(dy), expected=f"the shape of x, {x}")
    return x.plain(), scale.plain(), scale.plain()


def grad_reference(
    xp: Any,
    attrs: BatchNormTrainingGradAttrs,
    x: Any,
    scale: Any,
    mean: Any,
    inv_std: Any,
    dy: Any,
    dmean: Any = None,
    dinv_std: Any = None,
) -> tuple[Any, ...]:
    real = x.dtype.type
    n = real(_flat(x).shape[0])
    x_hat = (x - mean) * inv_std
    dscale = _flat(dy * x_hat).sum(axis=0)
    doffset = _flat(dy).sum(axis=0)
    slope = scale * inv_std  # dx = slope * dy + along * x_hat + shift: the last two undo what the statistics took away
    along, shift = slope * dscale, slope * doffset
    if dinv_std is not None:
        along = along + dinv_std * inv_std * inv_std
    if dmean is not None:
        shift = shift - dmean
    return slope * dy - along / n * x_hat - shift / n, dscale, doffset


def cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, *shape: int, **attrs: Any) -> Case:
        c = shape[-1]
        vectors = (rng.normal(size=c), rng.normal(size=c), rng.normal(size=c), rng.random(c) + 0.5)
        x = rng.normal(size=shape) * 2 + 3
        return Case((x, *vectors), attrs, tolerance=1e-4, label=label, differentiable=(0, 1, 2))

    yield case("images", 2, 4, 3, 5)
    yield case("rows", 35, 3, epsilon=1e-5, momentum=0.9)
    yield case("more channels than a block", 2, 3, 3, 70, epsilon=0.1)


BATCH_NORM_TRAINING = define_op(
    Op(
        "BatchNormTraining",
        inputs=("x", "scale", "offset", "moving_mean", "moving_variance"),
        outputs=("y", "batch_mean", "batch_inv_std"),
        attrs=BatchNormTrainingAttrs,
        infer=infer,
        reference=reference,
        gradient=gradient,
        native="batch_norm_training",
        updates=("moving_mean", "moving_variance"),
        cases=cases,
        rejects=(
            Reject(((2, 3, 3, 4), (4,), (3,), (4,), (4,)), match="offset.*channel"),
            Reject(((4,), (4,), (4,), (4,), (4,)), match="rank of x"),
            Reject(((2, 4), (4,), (4,), (1, 4), (4,)), match="moving_mean"),
        ),
        inference=inference,
        doc="""y = (x - mean) / sqrt(variance + epsilon) * scale + offset, with mean and variance of this batch.

    Args: x: float, channels last. scale, offset: one element a channel. moving_mean, moving_variance: variables that
        the op updates: moving = momentum * moving + (1 - momentum) * new.
    Returns: y, the batch's mean and 1 / sqrt(variance + epsilon). In inference BatchNorm stands in for it.
    """,
    )
)

BATCH_NORM_TRAINING_GRAD = define_op(
    Op(
        "BatchNormTrainingGrad",
        inputs=("x", "scale", "batch_mean", "batch_inv_std", "dy", "dmean?", "dinv_std?"),
        outputs=("dx", "dscale", "doffset"),
        attrs=BatchNormTrainingGradAttrs,
        infer=infer_grad,
        reference=grad_reference,
        native="batch_norm_training_grad",
        doc="The gradient of BatchNormTraining, through the statistics too; dmean and dinv_std: of its other outputs.",
    )
)
