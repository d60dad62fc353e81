"""Reductions that only floats have: LogSumExp, L2Loss, and Norm (the Euclidean length)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rillet.shared_ops.op import Case, Emit, NoAttrs, Op, Reject
from rillet.shared_ops.reduction import (
    ReduceAttrs,
    infer_reduction,
    reduced_axes,
    reduction_cases,
    reduction_rejects,
    with_reduced_axes,
)
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import require_float
from rillet.shared_ops.types import TensorType


def log_sum_exp(xp: Any, attrs: ReduceAttrs, x: Any) -> Any:
    axes = reduced_axes("LogSumExp", attrs, x.ndim)
    top = x.max(axis=axes, keepdims=True, initial=-np.inf)
    shift = xp.where(xp.isfinite(top), top, xp.zeros_like(top))  # a row of -inf gives -inf, not NaN
    with np.errstate(divide="ignore"):
        y = xp.log(xp.exp(x - shift).sum(axis=axes, keepdims=True)) + shift
    return y if attrs.keepdims else xp.asarray(y.squeeze(axes), x.dtype)


def log_sum_exp_gradient(emit: Emit, attrs: ReduceAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    (x,), rank = inputs, len(inputs[0].shape)
    y = with_reduced_axes(emit, "LogSumExp", attrs, outputs[0], rank)
    return (emit("Mul", emit("Exp", emit("Sub", x, y)), with_reduced_axes(emit, "LogSumExp", attrs, dy, rank)),)


def infer_l2_loss(attrs: NoAttrs, x: TensorType) -> tuple[TensorType, ...]:
    require_float("L2Loss", "x", x)
    return (x.with_shape(()),)


def norm(xp: Any, attrs: ReduceAttrs, x: Any) -> Any:
    axes = reduced_axes("Norm", attrs, x.ndim)
    return xp.asarray(xp.sqrt((x * x).sum(axis=axes, keepdims=attrs.keepdims)), x.dtype)


def norm_gradient(emit: Emit, attrs: ReduceAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    """x / y; at x = 0, where the norm has a corner, 0."""
    (x,), (y,) = inputs, outputs
    divisor = emit("Select", emit("Equal", y, 0.0), emit("OnesLike", y), y)
    share = with_reduced_axes(emit, "Norm", attrs, emit("RealDiv", dy, divisor), len(x.shape))
    return (emit("Mul", x, share),)


def log_sum_exp_cases(rng: np.random.Generator) -> Iterable[Case]:
    yield from reduction_cases(rng)
    large = np.array([[1e4, 1e4], [-1e4, -2e4], [-np.inf, -np.inf], [-np.inf, 2.0]])
    yield Case((large,), {"axes": (1,)}, label="large and infinite", differentiable=())


LOG_SUM_EXP = define_op(
    Op(
        "LogSumExp",
        inputs=("x",),
        outputs=("y",),
        attrs=ReduceAttrs,
        infer=infer_reduction("LogSumExp", "f"),
        reference=log_sum_exp,
        gradient=log_sum_exp_gradient,
        native="log_sum_exp",
        cases=log_sum_exp_cases,
        rejects=(*reduction_rejects(), Reject(((3,),), match="dtype", dtypes=("i32",))),
        doc="""log(sum(exp(x))) over axes, shifted by the maximum; over nothing but -inf: -inf.

    Args: x: float. axes, keepdims: as for `sum`. Raises: OpError for an axis out of range or named twice.

    Example:
        >>> log_sum_exp(np.array([-np.inf, 3.0], np.float32))
        array(3., dtype=float32)
    """,
    )
)
L2_LOSS = define_op(
    Op(
        "L2Loss",
        inputs=("x",),
        outputs=("loss",),
        infer=infer_l2_loss,
        reference=lambda xp, attrs, x: xp.asarray((x * x).sum() * x.dtype.type(0.5), x.dtype),
        gradient=lambda emit, attrs, inputs, outputs, dy: (emit("Mul", inputs[0], dy),),
        native="l2_loss",
        cases=lambda rng: [Case((rng.normal(size=(4, 9)),)), Case((rng.normal(size=37),), label="vector")],
        rejects=(Reject(((3,),), match="dtype", dtypes=("i32",)),),
        doc="""sum(x^2) / 2, over everything: a scalar. Its gradient is x.

    Example:
        >>> l2_loss(np.array([3.0, 4.0], np.float32))
        array(12.5, dtype=float32)
    """,
    )
)
NORM = define_op(
    Op(
        "Norm",
        inputs=("x",),
        outputs=("y",),
        attrs=ReduceAttrs,
        infer=infer_reduction("Norm", "f"),
        reference=norm,
        gradient=norm_gradient,
        native="norm",
        cases=reduction_cases,
        rejects=(*reduction_rejects(), Reject(((3,),), match="dtype", dtypes=("i32",))),
        doc="""sqrt(sum(x^2)) over axes. The gradient at 0 is 0.

    Args: x: float. axes, keepdims: as for `sum`. Raises: OpError for an axis out of range or named twice.

    Example:
        >>> norm(np.array([[3.0, 4.0]], np.float32), axes=(1,))
        array([5.], dtype=float32)
    """,
    )
)
