"""MaxPool and AvgPool over rows and columns (NHWC), with their gradients.

Padding never wins a maximum and never counts in an average: the divisor is the number of elements inside the image.
In a tie the first element of the window, row by row, gets the gradient of the maximum. NaN wins a maximum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import AverageRaw, SameScale
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.reduction import lowest, shape_vector
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import require_rank
from rillet.shared_ops.types import TensorType
from rillet.shared_ops.windows import infer_windows, taps, windows


@dataclass(frozen=True)
class PoolAttrs:
    """ksize: rows and columns of the window. pads: (before, after) of rows and of columns, for padding="EXPLICIT"."""

    ksize: tuple[int, int] = (2, 2)
    strides: tuple[int, int] = (2, 2)
    padding: Literal["SAME", "VALID", "EXPLICIT"] = "VALID"
    pads: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
    dilations: tuple[int, int] = (1, 1)


def _check(op: str, attrs: PoolAttrs, x: TensorType) -> tuple[Any, Any]:
    """Output rows and columns. Refuses what has a window that lies in the padding altogether."""
    require_rank(op, "x", x, 4, "NHWC")
    for i in range(2):
        reach = (attrs.ksize[i] - 1) * attrs.dilations[i] + 1
        if max(attrs.pads[i]) >= max(reach, 1):
            raise OpError(op, "pads must be smaller than the window", got=attrs.pads[i], expected=f"below {reach}")
    return infer_windows(op, attrs, x.shape[1:3], attrs.ksize)


def infer_max(attrs: PoolAttrs, x: TensorType) -> tuple[TensorType, ...]:
    p, q = _check("MaxPool", attrs, x)
    return (x.with_shape((x.shape[0], p, q, x.shape[3])),)


def infer_average(attrs: PoolAttrs, x: TensorType) -> tuple[TensorType, ...]:
    if not x.is_float and x.dtype != np.int8:
        raise OpError("AvgPool", "dtype of x", got=x.dtype, expected="f32, f64, or quantized i8")
    p, q = _check("AvgPool", attrs, x)
    return (x.with_shape((x.shape[0], p, q, x.shape[3])),)


def infer_like_first(attrs: PoolAttrs, first: TensorType, *rest: TensorType) -> tuple[TensorType, ...]:
    return (first.plain(),)


def infer_like_second(attrs: PoolAttrs, x: TensorType, y: TensorType, dx: TensorType) -> tuple[TensorType, ...]:
    return (y.plain(),)


def infer_average_grad(attrs: PoolAttrs, input_shape: TensorType, dy: TensorType) -> tuple[TensorType, ...]:
    if input_shape.rank != 1 or input_shape.dtype.kind != "i" or input_shape.shape[0] not in (4, None):
        raise OpError("AvgPoolGrad", "input_shape", got=str(input_shape), expected="a vector of 4 integers")
    return (dy.with_shape(input_shape.value or (None,) * 4),)


# -- reference --


def _padded(xp: Any, attrs: PoolAttrs, x: Any, fill: Any) -> tuple[Any, Any, Any]:
    """The image with its padding, output (rows, columns), and the paddings."""
    count, (rows, columns) = windows(attrs, x.shape[1:3], attrs.ksize)
    return xp.pad(x, ((0, 0), rows, columns, (0, 0)), constant_values=fill), count, (rows, columns)


def _crop(x: Any, pads: Any, size: Any) -> Any:
    (top, _), (left, _) = pads
    return x[:, top : top + size[0], left : left + size[1]]


def max_reference(xp: Any, attrs: PoolAttrs, x: Any) -> Any:
    padded, count, _ = _padded(xp, attrs, x, lowest(x.dtype))
    y = None
    for _, at in taps(attrs, count, attrs.ksize):
        y = padded[at] if y is None else xp.maximum(y, padded[at])
    return xp.ascontiguousarray(y)


def _winners(xp: Any, attrs: PoolAttrs, padded: Any, count: Any, y: Any) -> Iterable[tuple[Any, Any]]:
    """For each tap, where it reads and where it is the first to hold the maximum."""
    free = xp.ones(y.shape, bool)
    for _, at in taps(attrs, count, attrs.ksize):
        wins = (padded[at] == y) & free
        free = free & ~wins
        yield at, wins


def max_grad_reference(xp: Any, attrs: PoolAttrs, x: Any, y: Any, dy: Any) -> Any:
    padded, count, pads = _padded(xp, attrs, x, lowest(x.dtype))
    dx = xp.zeros(padded.shape, dy.dtype)
    for at, wins in _winners(xp, attrs, padded, count, y):
        dx[at] += dy * wins
    return _crop(dx, pads, x.shape[1:3])


def max_grad_grad_reference(xp: Any, attrs: PoolAttrs, x: Any, y: Any, dx: Any) -> Any:
    padded, count, _ = _padded(xp, attrs, x, lowest(x.dtype))
    spread, _, _ = _padded(xp, attrs, dx, 0)
    dy = xp.zeros(y.shape, dx.dtype)
    for at, wins in _winners(xp, attrs, padded, count, y):
        dy += spread[at] * wins
    return dy


def _inside(xp: Any, attrs: PoolAttrs, size: Any, dtype: Any) -> Any:
    """How many elements of each window lie inside the image: [1, rows, columns, 1]."""
    ones, count, _ = _padded(xp, attrs, xp.ones((1, *size, 1), dtype), 0)
    return sum(ones[at] for _, at in taps(attrs, count, attrs.ksize))


def average_reference(xp: Any, attrs: PoolAttrs, x: Any) -> Any:
    padded, count, _ = _padded(xp, attrs, x, 0)
    total = sum(padded[at] for _, at in taps(attrs, count, attrs.ksize))
    with np.errstate(invalid="ignore"):  # dilation can leave a window without elements: NaN
        return xp.asarray(total / _inside(xp, attrs, x.shape[1:3], x.dtype), x.dtype)


def average_grad_reference(xp: Any, attrs: PoolAttrs, input_shape: Any, dy: Any) -> Any:
    n, h, w, c = (int(d) for d in input_shape)
    count, (rows, columns) = windows(attrs, (h, w), attrs.ksize)
    share = dy / _inside(xp, attrs, (h, w), dy.dtype)
    dx = xp.zeros((n, h + sum(rows), w + sum(columns), c), dy.dtype)
    for _, at in taps(attrs, count, attrs.ksize):
        dx[at] += share
    return xp.ascontiguousarray(_crop(dx, (rows, columns), (h, w)))


# -- gradients --


def max_gradient(emit: Emit, attrs: PoolAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (emit("MaxPoolGrad", inputs[0], outputs[0], dy, **asdict(attrs)),)


def max_grad_gradient(emit: Emit, attrs: PoolAttrs, inputs: Any, outputs: Any, ddx: Any) -> tuple[Any, ...]:
    x, y, _ = inputs
    return None, None, emit("MaxPoolGradGrad", x, y, ddx, **asdict(attrs))


def max_grad_grad_gradient(emit: Emit, attrs: PoolAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    x, y, _ = inputs
    return None, None, emit("MaxPoolGrad", x, y, dy, **asdict(attrs))


def average_gradient(emit: Emit, attrs: PoolAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (emit("AvgPoolGrad", shape_vector(emit, inputs[0]), dy, **asdict(attrs)),)


def average_grad_gradient(emit: Emit, attrs: PoolAttrs, inputs: Any, outputs: Any, ddx: Any) -> tuple[Any, ...]:
    return None, emit("AvgPool", ddx, **asdict(attrs))


# -- examples --

GEOMETRIES: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...] = (
    ("halves", (2, 4, 6, 3), {}),
    ("odd zero after", (1, 4, 5, 2), {"ksize": (3, 2), "padding": "SAME"}),
    ("overlapping", (1, 5, 5, 18), {"ksize": (3, 3), "strides": (1, 2), "padding": "SAME"}),
    ("explicit pads", (1, 5, 4, 2), {"ksize": (3, 3), "padding": "EXPLICIT", "pads": ((2, 1), (0, 1))}),
    ("dilated", (1, 7, 6, 1), {"ksize": (2, 3), "strides": (1, 1), "dilations": (3, 2)}),
    ("a remainder", (1, 7, 5, 35), {"ksize": (2, 2), "strides": (3, 2)}),
)


def cases(rng: np.random.Generator) -> Iterable[Case]:
    for label, shape, attrs in GEOMETRIES:
        yield Case((rng.normal(size=shape),), attrs, label=label)


def max_cases(rng: np.random.Generator) -> Iterable[Case]:
    yield from cases(rng)
    ties = rng.integers(0, 3, (1, 5, 5, 2)).astype(np.float64)
    yield Case((ties,), {"ksize": (3, 3), "strides": (1, 1)}, label="ties", differentiable=())
    yield Case((rng.integers(-128, 128, (1, 5, 5, 19), np.int8),), {"padding": "SAME"}, label="i8")


def max_grad_cases(rng: np.random.Generator) -> Iterable[Case]:
    """With ties: the finite differences move only dy, and the native kernels are compared on them."""
    for label, shape, given in GEOMETRIES:
        attrs, x = PoolAttrs(**given), rng.integers(0, 5, shape).astype(np.float64)
        y = max_reference(np, attrs, x)
        yield Case((x, y, rng.normal(size=y.shape)), given, label=label, differentiable=(2,))


def average_grad_cases(rng: np.random.Generator) -> Iterable[Case]:
    for i, (label, shape, given) in enumerate(GEOMETRIES):
        y = average_reference(np, PoolAttrs(**given), np.zeros(shape))
        dtype = np.int64 if i % 2 else np.int32
        yield Case((np.array(shape, dtype), rng.normal(size=y.shape)), given, label=label)


REJECTS = (
    Reject(((4, 4, 3),), match="rank of x"),
    Reject(((1, 2, 2, 3),), {"ksize": (3, 3)}, match="beyond"),
    Reject(((1, 4, 4, 3),), {"padding": "EXPLICIT", "pads": ((2, 0), (0, 0))}, match="smaller than the window"),
    Reject(((1, 4, 4, 3),), {"strides": (0, 1)}, match="strides"),
)
ARGS = """Args: x: NHWC. ksize, strides, dilations: rows and columns. padding: SAME, VALID, or EXPLICIT with pads.
    Returns: NHWC. Raises: OpError for a window beyond the image, or pads not smaller than the window.
"""

MAX_POOL = define_op(
    Op(
        "MaxPool",
        inputs=("x",),
        outputs=("y",),
        attrs=PoolAttrs,
        infer=infer_max,
        reference=max_reference,
        gradient=max_gradient,
        quantize=SameScale(),
        native="max_pool",
        cases=max_cases,
        rejects=REJECTS,
        doc=f"""The largest element of each window; padding never wins.

    {ARGS}
    Example:
        >>> max_pool(np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)).ravel()
        array([ 5.,  7., 13., 15.], dtype=float32)
    """,
    )
)
AVG_POOL = define_op(
    Op(
        "AvgPool",
        inputs=("x",),
        outputs=("y",),
        attrs=PoolAttrs,
        infer=infer_average,
        reference=average_reference,
        gradient=average_gradient,
        quantize=AverageRaw(),
        native="avg_pool",
        cases=cases,
        rejects=(*REJECTS, Reject(((1, 4, 4, 3),), match="dtype of x", dtypes=("i32",))),
        doc=f"""The mean of each window; padding does not count. (With counted padding: Pad, then this with VALID.)

    {ARGS}
    Example:
        >>> avg_pool(np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)).ravel()
        array([ 2.5,  4.5, 10.5, 12.5], dtype=float32)
    """,
    )
)
MAX_POOL_GRAD = define_op(
    Op(
        "MaxPoolGrad",
        inputs=("x", "y", "dy"),
        outputs=("dx",),
        attrs=PoolAttrs,
        infer=infer_like_first,
        reference=max_grad_reference,
        gradient=max_grad_gradient,
        native="max_pool_grad",
        cases=max_grad_cases,
        doc="The gradient of MaxPool: dy goes to the first element that holds the maximum.",
    )
)
MAX_POOL_GRAD_GRAD = define_op(
    Op(
        "MaxPoolGradGrad",
        inputs=("x", "y", "dx"),
        outputs=("dy",),
        attrs=PoolAttrs,
        infer=infer_like_second,
        reference=max_grad_grad_reference,
        gradient=max_grad_grad_gradient,
        doc="The gradient of MaxPoolGrad: picks dx where the maximum was.",
    )
)
AVG_POOL_GRAD = define_op(
    Op(
        "AvgPoolGrad",
        inputs=("input_shape", "dy"),
        outputs=("dx",),
        attrs=PoolAttrs,
        infer=infer_average_grad,
        reference=average_grad_reference,
        gradient=average_grad_gradient,
        native="avg_pool_grad",
        cases=average_grad_cases,
        doc="The gradient of AvgPool for an input of input_shape: each element gets its share of its windows.",
    )
)
