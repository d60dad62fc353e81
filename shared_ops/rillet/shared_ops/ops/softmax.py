"""Softmax and LogSoftmax over one axis, shifted by the maximum so that no finite input overflows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.int8 import SoftmaxTable
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import normalize_axis, require_float
from rillet.shared_ops.types import TensorType


@dataclass(frozen=True)
class SoftmaxAttrs:
    """axis: the one along which the results sum to one; negative ones count from the end."""

    axis: int = -1


def infer(op: str) -> Callable[..., tuple[TensorType, ...]]:
    def infer_softmax(attrs: SoftmaxAttrs, x: TensorType) -> tuple[TensorType, ...]:
        if x.dtype != np.int8:  # quantized: the int8 family sees to it
            require_float(op, "x", x)
        normalize_axis(op, attrs.axis, x.rank)
        return (x.plain(),)

    return infer_softmax


def softmax(xp: Any, attrs: SoftmaxAttrs, x: Any) -> Any:
    e = xp.exp(x - x.max(axis=attrs.axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis=attrs.axis, keepdims=True)


def log_softmax(xp: Any, attrs: SoftmaxAttrs, x: Any) -> Any:
    shifted = x - x.max(axis=attrs.axis, keepdims=True, initial=-np.inf)
    return shifted - xp.log(xp.exp(shifted).sum(axis=attrs.axis, keepdims=True))


def softmax_gradient(emit: Emit, attrs: SoftmaxAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    (y,) = outputs
    along = emit("Sum", emit("Mul", dy, y), axes=(attrs.axis,), keepdims=True)
    return (emit("Mul", emit("Sub", dy, along), y),)


def log_softmax_gradient(emit: Emit, attrs: SoftmaxAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    (y,) = outputs
    total = emit("Sum", dy, axes=(attrs.axis,), keepdims=True)
    return (emit("Sub", dy, emit("Mul", emit("Exp", y), total)),)


def cases(rng: np.random.Generator) -> Iterable[Case]:
    yield Case((rng.normal(size=(4, 10)) * 4,), label="rows")
    yield Case((rng.normal(size=(2, 3, 37)),), label="two blocks of lanes and more")
    yield Case((rng.normal(size=(3, 6, 5)) * 3,), {"axis": 1}, label="a middle axis")
    yield Case((rng.normal(size=(19, 4)),), {"axis": -2}, label="first axis")
    yield Case((rng.normal(size=(3, 1)),), label="one class")
    yield Case((np.array([[1e4, 0.0, -1e4], [-2e4, -2e4, -3e4]]),), label="large", differentiable=())


REJECTS = (
    Reject(((2, 3),), {"axis": 2}, match="axis"),
    Reject(((2, 3),), match="dtype", dtypes=("i32",)),
)

SOFTMAX = define_op(
    Op(
        "Softmax",
        inputs=("x",),
        outputs=("y",),
        attrs=SoftmaxAttrs,
        infer=infer("Softmax"),
        reference=softmax,
        gradient=softmax_gradient,
        quantize=SoftmaxTable(),
        native="softmax",
        cases=cases,
        rejects=REJECTS,
        doc="""exp(x) / sum(exp(x)) over `axis`, for any finite x.

    Args: x: float. axis: negative ones count from the end.
    Raises: OpError for an axis out of range.

    Example:
        >>> softmax(np.zeros((1, 4), np.float32))
        array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)
    """,
    )
)
LOG_SOFTMAX = define_op(
    Op(
        "LogSoftmax",
        inputs=("x",),
        outputs=("y",),
        attrs=SoftmaxAttrs,
        infer=infer("LogSoftmax"),
        reference=log_softmax,
        gradient=log_softmax_gradient,
        quantize=SoftmaxTable(log=True),
        native="log_softmax",
        cases=cases,
        rejects=REJECTS,
        doc="""The logarithm of softmax over `axis`, without the detour that loses small probabilities.

    Args: x: float. axis: negative ones count from the end.
    Raises: OpError for an axis out of range.

    Example:
        >>> log_softmax(np.array([0.0, 1000.0], np.float32))
        array([-1000.,     0.], dtype=float32)
    """,
    )
)
