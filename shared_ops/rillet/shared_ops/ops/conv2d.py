"""Conv2D, its two backprop ops, and the examples that all three share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.convolution import (
    GroupedAttrs,
    convolve,
    convolve_filter_gradient,
    convolve_input_gradient,
    filter_gradient_gradient,
    infer_convolution,
    infer_filter_gradient,
    infer_input_gradient,
    input_gradient_gradient,
    product_gradient,
)
from rillet.shared_ops.int8 import Accumulate
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.product import Activation, check_bias, finish, finish_gradient
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.types import Array, TensorType


@dataclass(frozen=True)
class Conv2DAttrs(GroupedAttrs):
    activation: Activation = "NONE"


def infer(attrs: Conv2DAttrs, x: TensorType, w: TensorType, bias: TensorType | None) -> tuple[TensorType, ...]:
    check_bias("Conv2D", bias, w.shape[3] if w.rank == 4 else None)
    return (infer_convolution("Conv2D", attrs, x, w),)


def reference(xp: Any, attrs: Conv2DAttrs, x: Any, w: Any, bias: Any = None) -> Any:
    return finish(xp, attrs, convolve(xp, attrs, x, w), bias)


def gradient(emit: Emit, attrs: Conv2DAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    dy, dbias = finish_gradient(emit, attrs, inputs, outputs[0], dy)
    return (*product_gradient(emit, "Conv2D", attrs, inputs[0], inputs[1], dy), *dbias)


Shape4 = tuple[int, int, int, int]
# label: image NHWC, filter HWIO, attributes
SHAPES: dict[str, tuple[Shape4, Shape4, dict[str, Any]]] = {
    "pointwise": ((1, 3, 4, 2), (1, 1, 2, 3), {}),
    "pointwise, strided": ((2, 5, 4, 9), (1, 1, 9, 17), {"strides": (2, 2)}),
    "same, odd zero after": ((2, 5, 6, 3), (3, 2, 3, 4), {"padding": "SAME", "strides": (2, 1)}),
    "same, several tiles": ((2, 7, 9, 5), (3, 3, 5, 20), {"padding": "SAME"}),
    "same, stride beyond the window": ((1, 7, 5, 2), (1, 2, 2, 3), {"padding": "SAME", "strides": (3, 3)}),
    "dilated": ((1, 7, 8, 2), (3, 3, 2, 2), {"dilations": (2, 3)}),
    "dilated and strided": ((1, 9, 8, 3), (2, 3, 3, 4), {"dilations": (2, 3), "strides": (3, 2), "padding": "SAME"}),
    "stride leaves a remainder": ((1, 6, 5, 1), (2, 2, 1, 2), {"strides": (3, 2)}),
    "explicit": ((2, 4, 5, 3), (3, 3, 3, 2), {"padding": "EXPLICIT", "pads": ((2, 0), (1, 3)), "strides": (1, 2)}),
    "groups": ((2, 5, 4, 6), (3, 2, 2, 9), {"groups": 3, "padding": "SAME"}),
    "pointwise groups": ((1, 3, 3, 4), (1, 1, 2, 6), {"groups": 2}),
    "first layer": ((1, 11, 10, 3), (3, 3, 3, 8), {"strides": (2, 2), "padding": "SAME"}),
    "window as large as the image": ((3, 4, 5, 2), (4, 5, 2, 3), {}),
    "no images": ((0, 4, 5, 2), (3, 3, 2, 3), {"padding": "SAME"}),
    "no input channels": ((2, 3, 3, 0), (2, 2, 0, 3), {}),
    "no rows": ((1, 0, 3, 2), (3, 3, 2, 3), {"padding": "SAME"}),
    "no result channels": ((1, 3, 3, 2), (2, 2, 2, 0), {}),
}
SERVED_SHAPES = [label for label in SHAPES if not label.startswith("no ")] + ["no images"]


def cases(rng: np.random.Generator) -> Iterable[Case]:
    for label, (image, kernel, attrs) in SHAPES.items():
        yield Case((rng.normal(size=image), rng.normal(size=kernel)), attrs, label=label)
    x, w, bias = rng.normal(size=(2, 5, 4, 3)), rng.normal(size=(3, 3, 3, 18)), rng.normal(size=18)
    yield Case((x, w, bias), {"padding": "SAME"}, label="bias")
    yield Case((x, w, bias), {"padding": "SAME", "activation": "RELU"}, label="bias and relu")
    yield Case((x, w), {"strides": (2, 2), "activation": "RELU6"}, label="relu6 alone")


def shape_of(array: Array) -> Array:
    return np.array(array.shape, np.int32)


def served_cases(rng: np.random.Generator, which: str) -> Iterable[Case]:
    """The same convolutions, seen from their input ("input") or filter ("filter") gradient."""
    for label in SERVED_SHAPES:
        x_shape, w_shape, attrs = SHAPES[label]
        x, w = rng.normal(size=x_shape), rng.normal(size=w_shape)
        dy = rng.normal(size=convolve(np, CONV2D.make_attrs(attrs), x, w).shape)
        yield Case((shape_of(x), w, dy) if which == "input" else (x, shape_of(w), dy), attrs, label=label)


REJECTS = (
    Reject(((1, 8, 8, 3), (3, 3, 4, 8)), match="input channels: got 4 a group, expected 3"),
    Reject(((8, 8, 3), (3, 3, 3, 8)), match="rank of x: got 3, expected 4"),
    Reject(((1, 8, 8, 3), (3, 3, 8)), match="rank of w"),
    Reject(((1, 2, 8, 3), (3, 3, 3, 8)), match="rows: got 3, expected at most 2"),
    Reject(((1, 8, 8, 3), (3, 0, 3, 8)), match="no columns"),
    Reject(((1, 8, 8, 4), (3, 3, 2, 3)), {"groups": 2}, match="divide the channels of the result"),
    Reject(((1, 8, 8, 3), (3, 3, 3, 8)), {"groups": 0}, match="groups"),
    Reject(((1, 8, 8, 3), (3, 3, 3, 8), (7,)), match="length of the bias: got 7, expected 8"),
    Reject(((1, 8, 8, 3), (3, 3, 3, 8)), {"strides": (0, 1)}, match="strides must be positive"),
    Reject(((1, 8, 8, 3), (3, 3, 3, 8)), {"pads": ((1, 1), (1, 1))}, match="EXPLICIT"),
    Reject(
        ((1, 8, 8, 3), (3, 3, 3, 8)), {"pads": ((-1, 1), (1, 1)), "padding": "EXPLICIT"}, match="must not be negative"
    ),
    Reject(((1, 8, 8, 3), (3, 3, 3, 8)), {"padding": "FULL"}, match="padding"),
    Reject(((1, 8, 8, 3), (3, 3, 3, 8)), match="dtypes", dtypes=("f32", "f64")),
)

CONV2D = define_op(
    Op(
        "Conv2D",
        inputs=("x", "w", "bias?"),
        outputs=("y",),
        attrs=Conv2DAttrs,
        infer=infer,
        reference=reference,
        gradient=gradient,
        quantize=Accumulate(channel_axis=3),
        native="conv2d",
        cases=cases,
        rejects=REJECTS,
        doc="""Convolution of NHWC images with an HWIO filter, plus an optional bias, then an optional activation.

    Order of each element's native sum: fma from +0 over filter rows, columns, channels, in chunks of 8192; then bias
    and clamp.
    Args: x: floats [N, H, W, C]. w: floats [R, S, C/groups, K]. bias: floats [K]. strides, dilations: of rows and
        columns. padding: SAME (the odd zero after), VALID, or EXPLICIT with pads ((top, bottom), (left, right)).
    Returns: floats [N, P, Q, K]. Raises OpError where ranks, dtypes, channels or window do not fit.

    Example:
        >>> conv2d(np.ones((1, 3, 3, 1), np.float32), np.ones((2, 2, 1, 1), np.float32))[0, :, :, 0]
        array([[4., 4.],
               [4., 4.]], dtype=float32)
    """,
    )
)

CONV2D_BACKPROP_INPUT = define_op(
    Op(
        "Conv2DBackpropInput",
        inputs=("input_shape", "w", "dy"),
        outputs=("dx",),
        attrs=GroupedAttrs,
        infer=lambda attrs, shape, w, dy: (infer_input_gradient("Conv2DBackpropInput", attrs, shape, w, dy),),
        reference=lambda xp, attrs, shape, w, dy: convolve_input_gradient(
            xp, attrs, tuple(int(d) for d in shape), w, dy
        ),
        gradient=lambda emit, attrs, inputs, outputs, dz: input_gradient_gradient(
            emit, "Conv2D", attrs, inputs[1], inputs[2], dz
        ),
        native="conv2d_backprop_input",
        cases=lambda rng: served_cases(rng, "input"),
        rejects=(
            Reject(
                ((4,), (3, 3, 2, 3), (1, 5, 5, 3)),
                match="dy does not fit",
                dtypes=("i32", "f32", "f32"),
                values=((1, 8, 8, 2),),
            ),
            Reject(((3,), (3, 3, 2, 3), (1, 5, 5, 3)), match="vector of 4", dtypes=("i32",)),
        ),
        doc="""The gradient of Conv2D for its image; each sum runs over filter rows, columns, channels of dy.

    Args: input_shape: int vector, the image's shape. w: floats [R, S, C/groups, K]. dy: floats [N, P, Q, K].
    Returns: floats of `input_shape`. Raises OpError where dy is not of the shape that Conv2D gives.

    Example:
        >>> conv2d_backprop_input(
        ...     np.array([1, 2, 2, 1]), np.ones((1, 1, 1, 1), np.float32), np.ones((1, 2, 2, 1), np.float32)
        ... ).shape
        (1, 2, 2, 1)
    """,
    )
)

CONV2D_BACKPROP_FILTER = define_op(
    Op(
        "Conv2DBackpropFilter",
        inputs=("x", "filter_shape", "dy"),
        outputs=("dw",),
        attrs=GroupedAttrs,
        infer=lambda attrs, x, shape, dy: (infer_filter_gradient("Conv2DBackpropFilter", attrs, x, shape, dy),),
        reference=lambda xp, attrs, x, shape, dy: convolve_filter_gradient(
            xp, attrs, x, tuple(int(d) for d in shape), dy
        ),
        gradient=lambda emit, attrs, inputs, outputs, dz: filter_gradient_gradient(
            emit, "Conv2D", attrs, inputs[0], inputs[2], dz
        ),
        native="conv2d_backprop_filter",
        cases=lambda rng: served_cases(rng, "filter"),
        rejects=(
            Reject(
                ((1, 8, 8, 2), (4,), (1, 5, 5, 3)),
                match="dy does not fit",
                dtypes=("f32", "i32", "f32"),
                values=(None, (3, 3, 2, 3)),
            ),
        ),
        doc="""The gradient of Conv2D for its filter; the sum of each element runs over batch, rows, columns of dy.

    Args: x: floats [N, H, W, C]. filter_shape: int vector, the filter's shape. dy: floats [N, P, Q, K].
    Returns: floats of `filter_shape`. Raises OpError where dy is not of the shape that Conv2D gives.

    Example:
        >>> conv2d_backprop_filter(
        ...     np.ones((1, 2, 2, 1), np.float32), np.array([1, 1, 1, 1]), np.ones((1, 2, 2, 1), np.float32)
        ... )
        array([[[[4.]]]], dtype=float32)
    """,
    )
)
