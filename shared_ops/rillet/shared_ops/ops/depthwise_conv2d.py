"""DepthwiseConv2D (each channel has M filters of its own) and its two backprop ops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.convolution import (
    WindowAttrs,
    depthwise,
    depthwise_filter_gradient,
    depthwise_input_gradient,
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
from rillet.shared_ops.types import TensorType

NAME = "DepthwiseConv2D"


@dataclass(frozen=True)
class DepthwiseConv2DAttrs(WindowAttrs):
    activation: Activation = "NONE"


def infer(attrs: DepthwiseConv2DAttrs, x: TensorType, w: TensorType, bias: TensorType | None) -> tuple[TensorType, ...]:
    y = infer_convolution(NAME, attrs, x, w, depthwise=True)
    check_bias(NAME, bias, y.shape[3])
    return (y,)


def reference(xp: Any, attrs: DepthwiseConv2DAttrs, x: Any, w: Any, bias: Any = None) -> Any:
    return finish(xp, attrs, depthwise(xp, attrs, x, w), bias)


def gradient(emit: Emit, attrs: DepthwiseConv2DAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    dy, dbias = finish_gradient(emit, attrs, inputs, outputs[0], dy)
    return (*product_gradient(emit, NAME, attrs, inputs[0], inputs[1], dy), *dbias)


Shape4 = tuple[int, int, int, int]
# label: image NHWC, filter HWCM, attributes
SHAPES: dict[str, tuple[Shape4, Shape4, dict[str, Any]]] = {
    "3x3": ((2, 7, 11, 19), (3, 3, 19, 1), {"padding": "SAME"}),
    "3x3, valid": ((1, 5, 9, 8), (3, 3, 8, 1), {}),
    "3x3, strided": ((2, 8, 7, 9), (3, 3, 9, 1), {"padding": "SAME", "strides": (2, 2)}),
    "3x3, narrow": ((1, 6, 2, 5), (3, 3, 5, 1), {"padding": "SAME"}),
    "5x2": ((1, 7, 6, 3), (5, 2, 3, 1), {"padding": "SAME", "strides": (1, 2)}),
    "multiplier": ((2, 5, 6, 3), (3, 2, 3, 2), {"padding": "SAME"}),
    "multiplier, strided, dilated": ((1, 9, 8, 2), (2, 3, 2, 3), {"strides": (2, 3), "dilations": (3, 2)}),
    "dilated": ((1, 8, 9, 4), (3, 3, 4, 1), {"dilations": (2, 3), "padding": "SAME"}),
    "explicit": ((1, 4, 5, 3), (3, 3, 3, 1), {"padding": "EXPLICIT", "pads": ((2, 0), (1, 3)), "strides": (2, 1)}),
    "pointwise": ((2, 3, 4, 17), (1, 1, 17, 1), {}),
    "stride beyond the window": ((1, 7, 8, 3), (2, 1, 3, 1), {"strides": (3, 4)}),
    "no images": ((0, 4, 5, 2), (3, 3, 2, 1), {"padding": "SAME"}),
    "no channels": ((1, 4, 5, 0), (3, 3, 0, 1), {"padding": "SAME"}),
}


def cases(rng: np.random.Generator) -> Iterable[Case]:
    for label, (image, kernel, attrs) in SHAPES.items():
        yield Case((rng.normal(size=image), rng.normal(size=kernel)), attrs, label=label)
    x, w, bias = rng.normal(size=(2, 5, 6, 3)), rng.normal(size=(3, 3, 3, 1)), rng.normal(size=3)
    yield Case((x, w, bias), {"padding": "SAME"}, label="bias")
    yield Case((x, w, bias), {"padding": "SAME", "activation": "RELU6"}, label="bias and relu6")
    yield Case((x, w), {"strides": (2, 2), "activation": "RELU"}, label="relu alone")


def served_cases(rng: np.random.Generator, which: str) -> Iterable[Case]:
    """The same convolutions, seen from their input ("input") or filter ("filter") gradient."""
    for label, (x_shape, w_shape, attrs) in SHAPES.items():
        x, w = rng.normal(size=x_shape), rng.normal(size=w_shape)
        dy = rng.normal(size=depthwise(np, DEPTHWISE_CONV2D.make_attrs(attrs), x, w).shape)
        given = (np.array(x_shape, np.int32), w, dy) if which == "input" else (x, np.array(w_shape, np.int32), dy)
        yield Case(given, attrs, label=label)


DEPTHWISE_CONV2D = define_op(
    Op(
        NAME,
        inputs=("x", "w", "bias?"),
        outputs=("y",),
        attrs=DepthwiseConv2DAttrs,
        infer=infer,
        reference=reference,
        gradient=gradient,
        quantize=Accumulate(channel_axis=2),
        native="depthwise_conv2d",
        cases=cases,
        rejects=(
            Reject(((1, 8, 8, 3), (3, 3, 4, 1)), match="channels disagree: got 4, expected 3"),
            Reject(((1, 8, 8), (3, 3, 3, 1)), match="rank of x"),
            Reject(((1, 8, 8, 3), (3, 3, 3)), match="HWCM"),
            Reject(((1, 8, 2, 3), (3, 3, 3, 1)), match="columns: got 3, expected at most 2"),
            Reject(((1, 8, 8, 3), (3, 3, 3, 2), (3,)), match="length of the bias: got 3, expected 6"),
            Reject(((1, 8, 8, 3), (3, 3, 3, 1)), {"dilations": (1, 0)}, match="dilations must be positive"),
            Reject(((1, 8, 8, 3), (3, 3, 3, 1)), match="dtypes", dtypes=("f32", "f64")),
        ),
        doc="""Convolution channel by channel: result channel c*M + m is image channel c with filter w[:, :, c, m].

    Order of each element's native sum: fma from +0 over filter rows, then columns; then the bias, then the clamp.
    Args: x: floats [N, H, W, C]. w: floats [R, S, C, M]. bias: floats [C*M]. strides, dilations, padding, pads: as for
        conv2d. activation: NONE, RELU or RELU6. Returns: floats [N, P, Q, C*M].
    Raises OpError where ranks, dtypes, channels or window do not fit.

    Example:
        >>> depthwise_conv2d(np.ones((1, 2, 2, 1), np.float32), np.ones((2, 2, 1, 2), np.float32))
        array([[[[4., 4.]]]], dtype=float32)
    """,
    )
)

DEPTHWISE_CONV2D_BACKPROP_INPUT = define_op(
    Op(
        "DepthwiseConv2DBackpropInput",
        inputs=("input_shape", "w", "dy"),
        outputs=("dx",),
        attrs=WindowAttrs,
        infer=lambda attrs, shape, w, dy: (
            infer_input_gradient("DepthwiseConv2DBackpropInput", attrs, shape, w, dy, depthwise=True),
        ),
        reference=lambda xp, attrs, shape, w, dy: depthwise_input_gradient(
            xp, attrs, tuple(int(d) for d in shape), w, dy
        ),
        gradient=lambda emit, attrs, inputs, outputs, dz: input_gradient_gradient(
            emit, NAME, attrs, inputs[1], inputs[2], dz
        ),
        native="depthwise_conv2d_backprop_input",
        cases=lambda rng: served_cases(rng, "input"),
        rejects=(
            Reject(
                ((4,), (3, 3, 2, 1), (1, 5, 5, 2)),
                match="dy does not fit",
                dtypes=("i32", "f32", "f32"),
                values=((1, 8, 8, 2),),
            ),
        ),
        doc="""The gradient of DepthwiseConv2D for its image; each sum runs over filter rows, columns, multiplier.

    Args: input_shape: int vector, the image's shape. w: floats [R, S, C, M]. dy: floats [N, P, Q, C*M].
    Returns: floats of `input_shape`. Raises OpError where dy is not of the shape that DepthwiseConv2D gives.

    Example:
        >>> depthwise_conv2d_backprop_input(
        ...     np.array([1, 2, 2, 1]), np.ones((1, 1, 1, 1), np.float32), np.ones((1, 2, 2, 1), np.float32)
        ... ).shape
        (1, 2, 2, 1)
    """,
    )
)

DEPTHWISE_CONV2D_BACKPROP_FILTER = define_op(
    Op(
        "DepthwiseConv2DBackpropFilter",
        inputs=("x", "filter_shape", "dy"),
        outputs=("dw",),
        attrs=WindowAttrs,
        infer=lambda attrs, x, shape, dy: (
            infer_filter_gradient("DepthwiseConv2DBackpropFilter", attrs, x, shape, dy, depthwise=True),
        ),
        reference=lambda xp, attrs, x, shape, dy: depthwise_filter_gradient(
            xp, attrs, x, tuple(int(d) for d in shape), dy
        ),
        gradient=lambda emit, attrs, inputs, outputs, dz: filter_gradient_gradient(
            emit, NAME, attrs, inputs[0], inputs[2], dz
        ),
        native="depthwise_conv2d_backprop_filter",
        cases=lambda rng: served_cases(rng, "filter"),
        rejects=(
            Reject(
                ((1, 8, 8, 2), (4,), (1, 5, 5, 2)),
                match="dy does not fit",
                dtypes=("f32", "i32", "f32"),
                values=(None, (3, 3, 2, 1)),
            ),
        ),
        doc="""The gradient of DepthwiseConv2D for its filter; each sum runs over batch, rows, columns of dy.

    Args: x: floats [N, H, W, C]. filter_shape: int vector, the filter's shape. dy: floats [N, P, Q, C*M].
    Returns: floats of `filter_shape`. Raises OpError where dy is not of the shape that DepthwiseConv2D gives.

    Example:
        >>> depthwise_conv2d_backprop_filter(
        ...     np.ones((1, 2, 2, 1), np.float32), np.array([1, 1, 1, 1]), np.ones((1, 2, 2, 1), np.float32)
        ... )
        array([[[[4.]]]], dtype=float32)
    """,
    )
)
