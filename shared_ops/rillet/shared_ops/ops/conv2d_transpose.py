"""Conv2DTranspose: the image whose convolution would give x. Its gradients are products of Conv2D."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.convolution import GroupedAttrs, convolve_input_gradient, window_attrs
from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import Accumulate
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.product import Activation, check_bias, check_operands, finish, finish_gradient
from rillet.shared_ops.reduction import shape_vector
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import merge_dims, require_rank
from rillet.shared_ops.types import Dim, TensorType
from rillet.shared_ops.windows import AXES, check_window_attrs

NAME = "Conv2DTranspose"


@dataclass(frozen=True)
class Conv2DTransposeAttrs(GroupedAttrs):
    """output_padding: extra rows and columns after, for padding="EXPLICIT"; below the stride."""

    output_padding: tuple[int, int] = (0, 0)
    activation: Activation = "NONE"


def output_size(attrs: Conv2DTransposeAttrs, axis: int, size: Dim, kernel: Dim) -> Dim:
    """The size along one axis: that of the smallest image whose convolution gives `size`, but n*stride under SAME."""
    stride = attrs.strides[axis]
    if size == 0:
        return 0
    if not isinstance(size, int):
        return None
    if attrs.padding == "SAME":
        return size * stride
    if not isinstance(kernel, int):
        return None
    reach = (kernel - 1) * attrs.dilations[axis] + 1
    if attrs.padding == "VALID":
        return size * stride + max(reach - stride, 0)
    return (size - 1) * stride + reach - sum(attrs.pads[axis]) + attrs.output_padding[axis]


def check_output_padding(attrs: Conv2DTransposeAttrs) -> None:
    given = attrs.output_padding
    if any(given) and attrs.padding != "EXPLICIT":
        raise OpError(NAME, "output_padding needs padding='EXPLICIT'", got=attrs.padding, expected="EXPLICIT")
    if any(not 0 <= o < s for o, s in zip(given, attrs.strides)):
        raise OpError(NAME, "output_padding", got=given, expected=f"0 or more, below the strides {attrs.strides}")


def infer(attrs: Conv2DTransposeAttrs, x: TensorType, w: TensorType, bias: TensorType | None) -> tuple[TensorType, ...]:
    check_operands(NAME, x, w, bias)
    require_rank(NAME, "x", x, 4, "NHWC")
    require_rank(NAME, "w", w, 4, "HWOI: rows, columns, out (a group), in")
    check_window_attrs(NAME, attrs)
    check_output_padding(attrs)
    channels = merge_dims(NAME, x.shape[3], w.shape[3], "input channel")
    if attrs.groups < 1 or (isinstance(channels, int) and channels % attrs.groups):
        raise OpError(
            NAME, "groups must divide the input channels", got=attrs.groups, expected=f"a divisor of {channels}"
        )
    size: list[Dim] = []
    for axis in range(2):
        if isinstance(w.shape[axis], int) and w.shape[axis] < 1:  # type: ignore[operator]
            raise OpError(NAME, f"the window has no {AXES[axis]}", got=w.shape[axis], expected="at least 1")
        n = output_size(attrs, axis, x.shape[1 + axis], w.shape[axis])
        if isinstance(n, int) and (n < 1 < x.shape[1 + axis] + 1):  # type: ignore[operator]
            raise OpError(NAME, f"pads leave no {AXES[axis]}", got=n, expected="at least 1")
        size.append(n)
    out = w.shape[2] * attrs.groups if isinstance(w.shape[2], int) else None
    check_bias(NAME, bias, out)
    return (x.with_shape((x.shape[0], *size, out)),)


def reference(xp: Any, attrs: Conv2DTransposeAttrs, x: Any, w: Any, bias: Any = None) -> Any:
    size = [output_size(attrs, axis, x.shape[1 + axis], w.shape[axis]) for axis in range(2)]
    shape = (x.shape[0], *size, w.shape[2] * attrs.groups)
    if 0 in x.shape[:3]:
        return xp.zeros(shape, x.dtype)
    return finish(xp, attrs, convolve_input_gradient(xp, attrs, shape, w, x), bias)


def gradient(emit: Emit, attrs: Conv2DTransposeAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    x, w = inputs[0], inputs[1]
    given = window_attrs(attrs)
    dy, dbias = finish_gradient(emit, attrs, inputs, outputs[0], dy)
    dx = emit("Conv2D", dy, w, **given)
    dw = emit("Conv2DBackpropFilter", dy, shape_vector(emit, w), x, **given)
    return (dx, dw, *dbias)


def cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, x: tuple[int, ...], w: tuple[int, ...], bias: int = 0, **attrs: Any) -> Case:
        arrays = (rng.normal(size=x), rng.normal(size=w))
        return Case((*arrays, rng.normal(size=bias)) if bias else arrays, attrs, label=label)

    explicit: dict[str, Any] = {"padding": "EXPLICIT", "pads": ((1, 2), (0, 1)), "strides": (2, 3)}
    yield case("valid", (2, 3, 4, 5), (3, 2, 6, 5))
    yield case("same, strided", (2, 3, 4, 5), (3, 3, 4, 5), padding="SAME", strides=(2, 2))
    yield case("several tiles", (1, 5, 6, 17), (4, 4, 19, 17), 19, padding="SAME", strides=(2, 2))
    yield case("stride beyond the window", (1, 3, 2, 3), (2, 1, 2, 3), 2, strides=(3, 2), activation="RELU")
    yield case("dilated", (1, 4, 3, 2), (3, 2, 3, 2), dilations=(2, 3), strides=(2, 2), padding="SAME")
    yield case("explicit", (1, 3, 4, 2), (3, 3, 2, 2), **explicit)
    yield case("explicit, output padding", (1, 3, 4, 2), (3, 3, 2, 2), 2, output_padding=(1, 2), **explicit)
    yield case("groups", (1, 3, 4, 6), (3, 2, 2, 6), groups=3, strides=(2, 1), padding="SAME")
    yield case("relu6", (1, 3, 4, 3), (2, 2, 3, 3), activation="RELU6")
    yield case("no images", (0, 3, 4, 2), (3, 3, 2, 2))


CONV2D_TRANSPOSE = define_op(
    Op(
        NAME,
        inputs=("x", "w", "bias?"),
        outputs=("y",),
        attrs=Conv2DTransposeAttrs,
        infer=infer,
        reference=reference,
        gradient=gradient,
        quantize=Accumulate(channel_axis=2),
        native="conv2d_transpose",
        cases=cases,
        rejects=(
            Reject(((1, 8, 8, 3), (3, 3, 3, 4)), match="input channels disagree: got 4, expected 3"),
            Reject(((8, 8, 3), (3, 3, 3, 4)), match="rank of x"),
            Reject(((1, 8, 8, 3), (3, 3, 3)), match="HWOI"),
            Reject(((1, 8, 8, 4), (3, 3, 3, 4), (4,)), match="length of the bias: got 4, expected 3"),
            Reject(((1, 8, 8, 4), (3, 3, 3, 4)), {"output_padding": (1, 0)}, match="EXPLICIT"),
            Reject(
                ((1, 8, 8, 4), (3, 3, 3, 4)),
                {"output_padding": (1, 2), "padding": "EXPLICIT", "strides": (2, 2)},
                match="below the strides",
            ),
            Reject(((1, 1, 8, 4), (1, 3, 3, 4)), {"padding": "EXPLICIT", "pads": ((1, 0), (0, 0))}, match="no rows"),
            Reject(((1, 8, 8, 4), (3, 3, 3, 4)), {"groups": 3}, match="divisor of 4"),
        ),
        doc="""Transposed convolution (fractional stride) with an HWOI filter, plus an optional bias and activation.

    Sizes: SAME: n*stride. VALID: n*stride + max(reach - stride, 0). EXPLICIT: (n - 1)*stride + reach - pads +
    output_padding, where reach = (kernel - 1)*dilation + 1.
    Args: x: floats [N, P, Q, K]. w: floats [R, S, C/groups, K]. bias: floats [C]. Returns: floats [N, H, W, C].
    Raises OpError where ranks, dtypes, channels or padding do not fit.

    Example:
        >>> conv2d_transpose(np.ones((1, 2, 2, 1), np.float32), np.ones((2, 2, 1, 1), np.float32))[0, :, :, 0]
        array([[1., 2., 1.],
               [2., 4., 2.],
               [1., 2., 1.]], dtype=float32)
    """,
    )
)
