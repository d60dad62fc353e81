"""Reductions over axes: Sum, Mean, Max, Min, Prod, Any, All.

Integer sums and products wrap around in the dtype of the input; the mean of integers is cut toward zero. The mean is
the sum divided by the count, one division at the end. Max and Min pass NaN on. Over nothing: Sum 0, Prod 1, Mean NaN
(0 for integers), Max the lowest and Min the highest value of the dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import MeanRescale, SameScale
from rillet.shared_ops.op import Case, Emit, Op
from rillet.shared_ops.reduction import (
    ReduceAttrs,
    highest,
    infer_reduction,
    lowest,
    reduced_axes,
    reduction_cases,
    reduction_rejects,
    spread_over,
    with_reduced_axes,
)
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.types import DTYPE_NAMES, TensorType


def sum_reference(xp: Any, attrs: ReduceAttrs, x: Any) -> Any:
    return x.sum(axis=reduced_axes("Sum", attrs, x.ndim), keepdims=attrs.keepdims, dtype=x.dtype)


def mean_reference(xp: Any, attrs: ReduceAttrs, x: Any) -> Any:
    total = sum_reference(xp, attrs, x)
    count = int(np.prod([x.shape[a] for a in reduced_axes("Mean", attrs, x.ndim)], dtype=np.int64))
    if x.dtype.kind == "f":
        with np.errstate(invalid="ignore", divide="ignore"):
            return xp.asarray(total / x.dtype.type(count), x.dtype)
    magnitude = abs(total) // max(count, 1)  # toward zero, as C divides
    return xp.where(total < 0, -magnitude, magnitude).astype(x.dtype)


def max_reference(xp: Any, attrs: ReduceAttrs, x: Any) -> Any:
    axes = reduced_axes("Max", attrs, x.ndim)
    return x.max(axis=axes, keepdims=attrs.keepdims, initial=lowest(x.dtype))


def min_reference(xp: Any, attrs: ReduceAttrs, x: Any) -> Any:
    axes = reduced_axes("Min", attrs, x.ndim)
    return x.min(axis=axes, keepdims=attrs.keepdims, initial=highest(x.dtype))


def prod_reference(xp: Any, attrs: ReduceAttrs, x: Any) -> Any:
    return x.prod(axis=reduced_axes("Prod", attrs, x.ndim), keepdims=attrs.keepdims, dtype=x.dtype)


def any_reference(xp: Any, attrs: ReduceAttrs, x: Any) -> Any:
    return x.any(axis=reduced_axes("Any", attrs, x.ndim), keepdims=attrs.keepdims)


def all_reference(xp: Any, attrs: ReduceAttrs, x: Any) -> Any:
    return x.all(axis=reduced_axes("All", attrs, x.ndim), keepdims=attrs.keepdims)


# -- gradients --


def sum_gradient(emit: Emit, attrs: ReduceAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (spread_over(emit, "Sum", attrs, dy, inputs[0]),)


def mean_gradient(emit: Emit, attrs: ReduceAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    (x,) = inputs
    axes = reduced_axes("Mean", attrs, len(x.shape))
    sizes = [x.shape[a] for a in axes]
    count: Any
    if all(isinstance(d, (int, np.integer)) for d in sizes):
        count = np.asarray(np.prod(sizes), x.dtype)
    else:
        dims = emit("Gather", emit("Shape", x), np.array(axes, np.int32))
        count = emit("Cast", emit("Prod", dims), dtype=DTYPE_NAMES[np.dtype(x.dtype)])
    return (spread_over(emit, "Mean", attrs, emit("RealDiv", dy, count), x),)


def extreme_gradient(op: str) -> Callable[..., tuple[Any, ...]]:
    """Equal values share the gradient equally."""

    def gradient(emit: Emit, attrs: ReduceAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
        (x,), (y,) = inputs, outputs
        rank = len(x.shape)
        wins = emit("Equal", x, with_reduced_axes(emit, op, attrs, y, rank))
        wins = emit("Cast", wins, dtype=DTYPE_NAMES[np.dtype(x.dtype)])
        count = emit("Sum", wins, axes=reduced_axes(op, attrs, rank), keepdims=True)
        return (emit("Mul", wins, emit("RealDiv", with_reduced_axes(emit, op, attrs, dy, rank), count)),)

    return gradient


def prod_gradient(emit: Emit, attrs: ReduceAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    (x,) = inputs
    axes = reduced_axes("Prod", attrs, len(x.shape))
    return (emit("ProdGrad", x, with_reduced_axes(emit, "Prod", attrs, dy, len(x.shape)), axes=axes),)


def infer_prod_grad(attrs: ReduceAttrs, x: TensorType, dy: TensorType) -> tuple[TensorType, ...]:
    if dy.rank != x.rank:
        raise OpError("ProdGrad", "rank of dy", got=dy.rank, expected=x.rank)
    return (x.plain(),)


def prod_grad_reference(xp: Any, attrs: ReduceAttrs, x: Any, dy: Any) -> Any:
    """dy times the product of all *other* elements: the exclusive products from both ends, so that zeros are right."""
    axes = reduced_axes("ProdGrad", attrs, x.ndim)
    kept = tuple(a for a in range(x.ndim) if a not in axes)
    order = kept + axes
    turned = xp.transpose(x, order)
    flat = turned.reshape(*(x.shape[a] for a in kept), -1)
    one = xp.ones((*flat.shape[:-1], 1), x.dtype)
    before = xp.cumprod(xp.concatenate([one, flat], axis=-1), axis=-1)[..., :-1]
    after = xp.cumprod(xp.concatenate([one, flat[..., ::-1]], axis=-1), axis=-1)[..., :-1][..., ::-1]
    others = xp.transpose((before * after).reshape(turned.shape), tuple(int(a) for a in np.argsort(order)))
    return others * dy


# -- examples --


def with_zeros(rng: np.random.Generator) -> Iterable[Case]:
    yield from reduction_cases(rng)
    yield Case((np.array([[2.0, 0.0, 3.0], [0.0, 4.0, 0.0], [1.5, 2.0, -1.0]]),), {"axes": (1,)}, label="zeros")


def with_integers(rng: np.random.Generator) -> Iterable[Case]:
    yield from reduction_cases(rng)
    yield Case((rng.integers(-9, 9, (6, 19), np.int32),), {"axes": (1,)}, label="i32")
    yield Case((rng.integers(-9, 9, (19, 3), np.int64),), {"axes": (0,)}, label="i64")


def extreme_cases(rng: np.random.Generator) -> Iterable[Case]:
    yield from with_integers(rng)
    yield Case((rng.integers(-128, 128, (4, 35), np.int8),), {"axes": (1,)}, label="i8")
    yield Case((np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]),), {"axes": (1,)}, label="equal values", differentiable=())


def logical_cases(rng: np.random.Generator) -> Iterable[Case]:
    yield from reduction_cases(rng, lambda shape: rng.random(shape) < 0.3)


EXAMPLE = """{what}

    Args: x: {dtypes}. axes: the axes to reduce, None for all; negative ones count from the end.
        keepdims: keep them with size 1.
    Raises: OpError for an axis out of range or named twice.

    Example:
        >>> {call}
        {result}
    """


def define(name: str, reference: Any, what: str, example: tuple[str, str], **facets: Any) -> Op:
    kinds = facets.pop("kinds", "fiu")
    cases = facets.pop("cases", with_integers)
    doc = EXAMPLE.format(
        what=what, dtypes="numbers" if kinds != "b" else "booleans", call=example[0], result=example[1]
    )
    return define_op(
        Op(
            name,
            inputs=("x",),
            outputs=("y",),
            attrs=ReduceAttrs,
            infer=infer_reduction(name, kinds),
            reference=reference,
            native=name.lower(),
            cases=cases,
            rejects=reduction_rejects(("bool",) if kinds == "b" else ("f32",)),
            doc=doc,
            **facets,
        )
    )


MATRIX = "np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)"
BITS = "np.array([[True, False], [True, True]])"
SUM = define(
    "Sum",
    sum_reference,
    "The sum over axes.",
    (f"sum({MATRIX}, axes=(0,))", "array([4., 7.], dtype=float32)"),
    gradient=sum_gradient,
)
MEAN = define(
    "Mean",
    mean_reference,
    "The mean over axes: the sum, divided once by the count; of integers cut toward zero.",
    (f"mean({MATRIX}, axes=(1,), keepdims=True)", "array([[1.5],\n               [4. ]], dtype=float32)"),
    gradient=mean_gradient,
    quantize=MeanRescale(),
)
MAX = define(
    "Max",
    max_reference,
    "The largest element over axes; NaN if there is one.",
    (f"max({MATRIX}, axes=(1,))", "array([2., 5.], dtype=float32)"),
    gradient=extreme_gradient("Max"),
    quantize=SameScale(),
    cases=extreme_cases,
)
MIN = define(
    "Min",
    min_reference,
    "The smallest element over axes; NaN if there is one.",
    (f"min({MATRIX}, axes=(1,))", "array([1., 3.], dtype=float32)"),
    gradient=extreme_gradient("Min"),
    quantize=SameScale(),
    cases=extreme_cases,
)
PROD = define(
    "Prod",
    prod_reference,
    "The product over axes.",
    (f"prod({MATRIX}, axes=(1,))", "array([ 2., 15.], dtype=float32)"),
    gradient=prod_gradient,
    cases=with_zeros,
)
ANY = define(
    "Any",
    any_reference,
    "Whether any element over axes is true.",
    (f"any({BITS}, axes=(1,))", "array([ True,  True])"),
    kinds="b",
    cases=logical_cases,
)
ALL = define(
    "All",
    all_reference,
    "Whether all elements over axes are true.",
    (f"all({BITS}, axes=(1,))", "array([False,  True])"),
    kinds="b",
    cases=logical_cases,
)
PROD_GRAD = define_op(
    Op(
        "ProdGrad",
        inputs=("x", "dy"),
        outputs=("dx",),
        attrs=ReduceAttrs,
        infer=infer_prod_grad,
        reference=prod_grad_reference,
        native="prod_grad",
        doc="The gradient of Prod; `dy` has the reduced axes with size 1. Right also where factors are zero.",
    )
)
