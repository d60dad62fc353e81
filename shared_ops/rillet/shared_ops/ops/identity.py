"""Ops that give their input back, or constants of its shape: Identity, StopGradient, ZerosLike, OnesLike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rillet.shared_ops.int8 import SameScale
from rillet.shared_ops.op import Case, Emit, NoAttrs, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.types import TensorType


def infer(attrs: NoAttrs, x: TensorType) -> tuple[TensorType, ...]:
    return (TensorType(x.dtype, x.shape, x.value),)


def infer_like(attrs: NoAttrs, x: TensorType) -> tuple[TensorType, ...]:
    return (x.plain(),)


def identity(xp: Any, attrs: NoAttrs, x: Any) -> Any:
    return x


def identity_gradient(emit: Emit, attrs: NoAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (dy,)


def no_gradient(emit: Emit, attrs: NoAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    """The result does not move with the input."""
    return (None,)


def cases(rng: np.random.Generator) -> Iterable[Case]:
    yield Case((rng.normal(size=(2, 3)),), label="matrix")
    yield Case((np.zeros((0,)),), label="empty")
    yield Case((np.array(3, np.int64),), label="scalar")


def constant_cases(rng: np.random.Generator) -> Iterable[Case]:
    """As `cases`; the gradient is None on purpose, so no input is moved."""
    for case in cases(rng):
        yield Case(case.inputs, label=case.label, differentiable=())


TOO_MANY = (Reject(((2,), (2,)), match="number of inputs"),)

IDENTITY = define_op(
    Op(
        "Identity",
        inputs=("x",),
        outputs=("y",),
        infer=infer,
        reference=identity,
        gradient=identity_gradient,
        quantize=SameScale(),
        native="identity",
        cases=cases,
        rejects=TOO_MANY,
        doc="""The input itself.

    Args: x: any dtype, any shape.
    Returns: x.

    Example:
        >>> identity(np.array([1.0, 2.0], np.float32))
        array([1., 2.], dtype=float32)
    """,
    )
)

STOP_GRADIENT = define_op(
    Op(
        "StopGradient",
        inputs=("x",),
        outputs=("y",),
        infer=infer,
        reference=identity,
        gradient=no_gradient,
        quantize=SameScale(),
        native="stop_gradient",
        cases=constant_cases,
        rejects=TOO_MANY,
        inference=lambda emit, attrs, inputs: emit("Identity", inputs[0]),
        doc="""The input itself, as a constant in the eyes of the gradient.

    Args: x: any dtype, any shape.
    Returns: x.

    Example:
        >>> stop_gradient(np.array([1.0], np.float32))
        array([1.], dtype=float32)
    """,
    )
)

ZEROS_LIKE = define_op(
    Op(
        "ZerosLike",
        inputs=("x",),
        outputs=("y",),
        infer=infer_like,
        reference=lambda xp, attrs, x: xp.zeros_like(x),
        gradient=no_gradient,
        native="zeros_like",
        cases=constant_cases,
        rejects=TOO_MANY,
        doc="""Zeros of the dtype and shape of `x`.

    Args: x: any dtype, any shape.
    Returns: zeros (False) like x.

    Example:
        >>> zeros_like(np.array([1, 2], np.int32))
        array([0, 0], dtype=int32)
    """,
    )
)

ONES_LIKE = define_op(
    Op(
        "OnesLike",
        inputs=("x",),
        outputs=("y",),
        infer=infer_like,
        reference=lambda xp, attrs, x: xp.ones_like(x),
        gradient=no_gradient,
        native="ones_like",
        cases=constant_cases,
        rejects=TOO_MANY,
        doc="""Ones of the dtype and shape of `x`.

    Args: x: any dtype, any shape.
    Returns: ones (True) like x.

    Example:
        >>> ones_like(np.array([1, 2], np.int32))
        array([1, 1], dtype=int32)
    """,
    )
)
