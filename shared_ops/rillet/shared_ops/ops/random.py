"""Random numbers that depend on (seed, stream, step) and the element's place, and on nothing else; and Dropout.

`seed` is the user's, `stream` names the operation (a graph fills in a hash of its name), `step` is the session's step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rillet.shared_ops import philox
from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import dim_product, require_float
from rillet.shared_ops.types import TensorType

# TruncatedNormal draws an element again until it lies within two deviations. One draw in 22 lies beyond, so 16 in a row
# less than once in 10^21; then it is clamped.
ATTEMPTS = 16


@dataclass(frozen=True)
class RandomAttrs:
    """seed: the user's. stream: which operation's numbers these are."""

    seed: int = 0
    stream: int = 0


@dataclass(frozen=True)
class DropoutAttrs:
    """rate: the share of elements that become 0. seed: the user's. stream: which operation's numbers these are."""

    rate: float
    seed: int = 0
    stream: int = 0


def _check_step(op: str, step: TensorType) -> None:
    if step.rank != 0 or step.dtype != np.dtype(np.int64):
        raise OpError(op, "step", got=str(step), expected="an i64 scalar")


def infer_random(op: str) -> Callable[..., tuple[TensorType, ...]]:
    def infer(attrs: RandomAttrs, shape: TensorType, step: TensorType) -> tuple[TensorType, ...]:
        if shape.rank != 1 or shape.dtype.kind != "i" or not isinstance(shape.shape[0], int):
            raise OpError(op, "shape", got=str(shape), expected="a vector of i32 or i64, of known length")
        _check_step(op, step)
        dims = shape.value if shape.value is not None else (None,) * shape.shape[0]
        size = dim_product(dims)
        if any(isinstance(d, int) and d < 0 for d in dims) or (isinstance(size, int) and size > 1 << 38):
            raise OpError(op, "shape", got=dims, expected="dimensions from 0 on, at most 2^38 elements")
        return (TensorType(np.dtype(np.float32), dims),)

    return infer


def infer_dropout(attrs: DropoutAttrs, x: TensorType, step: TensorType) -> tuple[TensorType, ...]:
    require_float("Dropout", "x", x)
    _check_step("Dropout", step)
    if not 0 <= attrs.rate < 1:
        raise OpError("Dropout", "rate", got=attrs.rate, expected="from 0 to below 1")
    return (x.plain(),)


def _bits(xp: Any, attrs: Any, count: int, step: Any, attempt: int = 0) -> Any:
    return philox.random_bits(xp, count, attrs.seed, attrs.stream, int(step), attempt)


def random_uniform(xp: Any, attrs: RandomAttrs, shape: Any, step: Any) -> Any:
    dims = tuple(int(d) for d in shape)
    return philox.uniform(xp, _bits(xp, attrs, int(np.prod(dims)), step)).reshape(dims)


def _normals(xp: Any, attrs: RandomAttrs, count: int, step: Any, attempt: int = 0) -> Any:
    return philox.normal(xp, _bits(xp, attrs, count + count % 2, step, attempt))[:count]


def random_normal(xp: Any, attrs: RandomAttrs, shape: Any, step: Any) -> Any:
    dims = tuple(int(d) for d in shape)
    return _normals(xp, attrs, int(np.prod(dims)), step).reshape(dims)


def truncated_normal(xp: Any, attrs: RandomAttrs, shape: Any, step: Any) -> Any:
    dims = tuple(int(d) for d in shape)
    count = int(np.prod(dims))
    z = _normals(xp, attrs, count, step)
    for attempt in range(1, ATTEMPTS):
        beyond = abs(z) > 2
        if not beyond.any():
            break
        z = xp.where(beyond, _normals(xp, attrs, count, step, attempt), z)
    return xp.clip(z, -2, 2).reshape(dims)


def dropout(xp: Any, attrs: DropoutAttrs, x: Any, step: Any) -> Any:
    u = philox.uniform(xp, _bits(xp, attrs, x.size, step)).reshape(x.shape)
    return xp.where(u < np.float32(attrs.rate), xp.zeros_like(x), x * x.dtype.type(1 / (1 - attrs.rate)))


def dropout_gradient(emit: Emit, attrs: DropoutAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    """The same elements are dropped: the mask is a function of the counter, so nobody has to keep it."""
    return emit("Dropout", dy, inputs[1], **asdict(attrs)), None


def random_cases(rng: np.random.Generator) -> Iterable[Case]:
    zero, later = np.array(0, np.int64), np.array((1 << 40) + 7, np.int64)
    yield Case((np.array([5, 7], np.int64), zero), {"seed": 1, "stream": 2}, label="an odd number")
    yield Case((np.array([1031], np.int32), later), {"seed": -3, "stream": (1 << 63) - 1}, label="more than a chunk")
    yield Case((np.array([], np.int64), zero), label="scalar")


def dropout_cases(rng: np.random.Generator) -> Iterable[Case]:
    step = np.array(3, np.int64)
    yield Case((rng.normal(size=(4, 9)), step), {"rate": 0.25, "seed": 5, "stream": 6}, label="a quarter")
    yield Case((rng.normal(size=1031), step), {"rate": 0.5}, label="more than a chunk")
    yield Case((rng.normal(size=(2, 3)), step), {"rate": 0.0}, label="none")


SHAPE_REJECTS = (
    Reject(((2,), ()), match="shape", dtypes=("f32", "i64")),
    Reject(((2,), (1,)), match="step", dtypes=("i64", "i64"), values=((2, 3), None)),
    Reject(((2,), ()), match="from 0 on", dtypes=("i64", "i64"), values=((2, -3), None)),
)


def define(name: str, reference: Any, native: str, doc: str) -> Op:
    return define_op(
        Op(
            name,
            inputs=("shape", "step"),
            outputs=("y",),
            attrs=RandomAttrs,
            infer=infer_random(name),
            reference=reference,
            native=native,
            cases=random_cases,
            rejects=SHAPE_REJECTS,
            doc=doc,
        )
    )


RANDOM_UNIFORM = define(
    "RandomUniform",
    random_uniform,
    "random_uniform",
    """float32 numbers, uniform in [0, 1), of 24 random bits each.

    Args: shape: i32 or i64 vector. step: i64 scalar. The same (seed, stream, step) gives the same numbers, anywhere.

    Example:
        >>> random_uniform(np.array([2]), np.array(0), seed=1)
        array([0.59923065, 0.8850776 ], dtype=float32)
    """,
)
RANDOM_NORMAL = define(
    "RandomNormal",
    random_normal,
    "random_normal",
    """float32 numbers, normal with mean 0 and standard deviation 1.

    Args: shape: i32 or i64 vector. step: i64 scalar. The same (seed, stream, step) gives the same numbers, anywhere.
    """,
)
TRUNCATED_NORMAL = define(
    "TruncatedNormal",
    truncated_normal,
    "truncated_normal",
    """float32 numbers, standard normal, drawn again where they lie beyond two standard deviations.

    Args: shape: i32 or i64 vector. step: i64 scalar. The same (seed, stream, step) gives the same numbers, anywhere.
    """,
)
DROPOUT = define_op(
    Op(
        "Dropout",
        inputs=("x", "step"),
        outputs=("y",),
        attrs=DropoutAttrs,
        infer=infer_dropout,
        reference=dropout,
        gradient=dropout_gradient,
        native="dropout",
        cases=dropout_cases,
        rejects=(
            Reject(((2,), ()), {"rate": 1.0}, match="rate", dtypes=("f32", "i64")),
            Reject(((2,), (1,)), {"rate": 0.5}, match="step", dtypes=("f32", "i64")),
        ),
        inference=lambda emit, attrs, inputs: inputs[0],
        doc="""Each element becomes 0 with probability `rate`, else x / (1 - rate); in inference: x.

    Args: x: float. step: i64 scalar; every step drops other elements. Raises: OpError for a rate outside [0, 1).

    Example:
        >>> dropout(np.ones(4, np.float32), np.array(0), rate=0.5, seed=1)
        array([2., 2., 0., 2.], dtype=float32)
    """,
    )
)
