"""The three products of a convolution, as sums over filter taps: result, input gradient, filter gradient.

Shape letters: N batch, H W image, C its channels, R S filter rows and columns, K result channels, P Q result, G groups.
For tap (r, s) the padded image, shifted by (r, s) and strided, is multiplied with the C-by-K matrix w[r, s]; all three
walk the same taps. The image is NHWC, the filter [R, S, C/G, K]. A depthwise convolution multiplies channel by channel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Emit
from rillet.shared_ops.product import check_operands
from rillet.shared_ops.reduction import shape_vector
from rillet.shared_ops.shapes import merge_dims, require_rank
from rillet.shared_ops.types import Dim, TensorType
from rillet.shared_ops.windows import Padding, Pads, infer_windows, taps, windows


@dataclass(frozen=True)
class WindowAttrs:
    """Of every convolution. pads: (before, after) of rows and of columns, for padding="EXPLICIT"."""

    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    padding: Padding = "VALID"
    pads: Pads = ((0, 0), (0, 0))


@dataclass(frozen=True)
class GroupedAttrs(WindowAttrs):
    """groups: the channels of image and result fall into this many groups that do not mix."""

    groups: int = 1


def window_attrs(attrs: Any) -> dict[str, Any]:
    """The attributes that a convolution hands to its gradients."""
    names = ("strides", "dilations", "padding", "pads") + (("groups",) if hasattr(attrs, "groups") else ())
    return {name: getattr(attrs, name) for name in names}


# -- types --------------------------------------------------------------------------------------------------------


def infer_convolution(op: str, attrs: Any, x: TensorType, w: TensorType, depthwise: bool = False) -> TensorType:
    """The type of the result. Raises OpError where image and filter do not fit."""
    check_operands(op, x, w)
    require_rank(op, "x", x, 4, "NHWC")
    require_rank(op, "w", w, 4, "HWCM: rows, columns, channels, multiplier" if depthwise else "HWIO")
    channels, last = w.shape[2], w.shape[3]
    if depthwise:
        merge_dims(op, x.shape[3], channels, "channel")
        c = channels if isinstance(channels, int) else x.shape[3]
        k: Dim = c * last if isinstance(c, int) and isinstance(last, int) else None
    else:
        check_groups(op, attrs.groups, x.shape[3], channels, last)
        k = last
    p, q = infer_windows(op, attrs, x.shape[1:3], w.shape[:2])
    return x.with_shape((x.shape[0], p, q, k))


def check_groups(op: str, groups: int, image: Dim, filters: Dim, result: Dim) -> None:
    """Refuses a number of groups that does not divide the channels, and a filter made for other channels."""
    if groups < 1:
        raise OpError(op, "groups", got=groups, expected="at least 1")
    for name, n in (("image", image), ("result", result)):
        if isinstance(n, int) and n % groups:
            raise OpError(
                op, f"groups must divide the channels of the {name}", got=f"{n} channels", expected=f"{groups}n"
            )
    if isinstance(image, int) and isinstance(filters, int) and image != filters * groups:
        raise OpError(
            op,
            "image and filter disagree on input channels",
            got=f"{filters} a group",
            expected=image // groups,
            hint="The filter layout is HWIO: rows, columns, in (a group), out.",
        )


def known_shape(op: str, name: str, shape: TensorType, rank: int = 4) -> tuple[Dim, ...]:
    """What a shape input says: its value, or `rank` unknown dimensions. Raises OpError for another rank or dtype."""
    if shape.dtype.kind != "i" or shape.rank != 1 or shape.shape[0] not in (rank, None):
        raise OpError(op, name, got=str(shape), expected=f"a vector of {rank} i32 or i64")
    return (None,) * rank if shape.value is None else shape.value


def infer_input_gradient(
    op: str, attrs: Any, input_shape: TensorType, w: TensorType, dy: TensorType, depthwise: bool = False
) -> TensorType:
    """The type of the image of `input_shape`. Raises OpError where dy is not a result of convolving it."""
    check_operands(op, w, dy)
    x = dy.with_shape(known_shape(op, "input_shape", input_shape))
    require_rank(op, "w", w, 4)
    require_rank(op, "dy", dy, 4, "NHWC")
    y = infer_convolution(op, attrs, x, w, depthwise)
    for axis, (a, b) in enumerate(zip(y.shape, dy.shape)):
        merge_dims(op, a, b, f"dy does not fit: dimension {axis}")
    channels = w.shape[2]
    if not depthwise and isinstance(channels, int):
        channels *= attrs.groups
    n, h, wide, c = x.shape
    return x.with_shape((n if n is not None else dy.shape[0], h, wide, c if c is not None else channels))


def infer_filter_gradient(
    op: str, attrs: Any, x: TensorType, filter_shape: TensorType, dy: TensorType, depthwise: bool = False
) -> TensorType:
    """The type of the filter of `filter_shape`. Raises OpError where dy is not a result of convolving x with it."""
    check_operands(op, x, dy)
    w = x.with_shape(known_shape(op, "filter_shape", filter_shape))
    require_rank(op, "dy", dy, 4, "NHWC")
    y = infer_convolution(op, attrs, x, w, depthwise)
    for axis, (a, b) in enumerate(zip(y.shape, dy.shape)):
        merge_dims(op, a, b, f"dy does not fit: dimension {axis}")
    return w


# -- meaning ------------------------------------------------------------------------------------------------------


def grouped(xp: Any, t: Any, groups: int) -> Any:
    """[..., G*c] -> [G, rows, c]: rows of an image, or one filter tap [C/G, K]."""
    return xp.moveaxis(t.reshape(math.prod(t.shape[:-1]), groups, t.shape[-1] // groups), 1, 0)


def pad_image(xp: Any, x: Any, pads: Pads) -> Any:
    return xp.pad(x, ((0, 0), *pads, (0, 0)))


def convolve(xp: Any, attrs: Any, x: Any, w: Any) -> Any:
    """[N, H, W, C] and [R, S, C/G, K] -> [N, P, Q, K]."""
    pq, pads = windows(attrs, x.shape[1:3], w.shape[:2])
    image, n, k, g = pad_image(xp, x, pads), x.shape[0], w.shape[3], attrs.groups
    y = xp.zeros((g, n * pq[0] * pq[1], k // g), xp.result_type(x, w))
    for tap, at in taps(attrs, pq, w.shape[:2]):
        y = y + grouped(xp, image[at], g) @ grouped(xp, w[tap], g)
    return xp.moveaxis(y, 0, 1).reshape(n, *pq, k)


def convolve_input_gradient(xp: Any, attrs: Any, shape: tuple[int, ...], w: Any, dy: Any) -> Any:
    """The gradient of `convolve` for the image, of the given shape."""
    n, h, wide, c = shape
    pq, pads = windows(attrs, (h, wide), w.shape[:2])
    dx = xp.zeros((n, h + sum(pads[0]), wide + sum(pads[1]), c), xp.result_type(w, dy))
    rows = grouped(xp, dy, attrs.groups)
    for tap, at in taps(attrs, pq, w.shape[:2]):
        part = rows @ xp.swapaxes(grouped(xp, w[tap], attrs.groups), 1, 2)
        dx[at] += xp.moveaxis(part, 0, 1).reshape(n, *pq, c)
    return crop(dx, pads, h, wide)


def crop(image: Any, pads: Pads, h: int, w: int) -> Any:
    return image[:, pads[0][0] : pads[0][0] + h, pads[1][0] : pads[1][0] + w]


def convolve_filter_gradient(xp: Any, attrs: Any, x: Any, shape: tuple[int, ...], dy: Any) -> Any:
    """The gradient of `convolve` for the filter, of the given shape."""
    pq, pads = windows(attrs, x.shape[1:3], shape[:2])
    image, dw = pad_image(xp, x, pads), xp.zeros(shape, xp.result_type(x, dy))
    rows = grouped(xp, dy, attrs.groups)
    for tap, at in taps(attrs, pq, shape[:2]):
        part = xp.swapaxes(grouped(xp, image[at], attrs.groups), 1, 2) @ rows
        dw[tap] = xp.moveaxis(part, 0, 1).reshape(shape[2:])
    return dw


def depthwise(xp: Any, attrs: Any, x: Any, w: Any) -> Any:
    """[N, H, W, C] and [R, S, C, M] -> [N, P, Q, C*M]; result channel c*M + m."""
    pq, pads = windows(attrs, x.shape[1:3], w.shape[:2])
    image = pad_image(xp, x, pads)
    y = xp.zeros((x.shape[0], *pq, *w.shape[2:]), xp.result_type(x, w))
    for tap, at in taps(attrs, pq, w.shape[:2]):
        y = y + image[at][..., None] * w[tap]
    return y.reshape(x.shape[0], *pq, w.shape[2] * w.shape[3])


def depthwise_input_gradient(xp: Any, attrs: Any, shape: tuple[int, ...], w: Any, dy: Any) -> Any:
    """The gradient of `depthwise` for the image, of the given shape."""
    n, h, wide, c = shape
    pq, pads = windows(attrs, (h, wide), w.shape[:2])
    dx = xp.zeros((n, h + sum(pads[0]), wide + sum(pads[1]), c), xp.result_type(w, dy))
    dy = dy.reshape(n, *pq, *w.shape[2:])
    for tap, at in taps(attrs, pq, w.shape[:2]):
        dx[at] += (dy * w[tap]).sum(axis=-1, dtype=dx.dtype)
    return crop(dx, pads, h, wide)


def depthwise_filter_gradient(xp: Any, attrs: Any, x: Any, shape: tuple[int, ...], dy: Any) -> Any:
    """The gradient of `depthwise` for the filter, of the given shape."""
    pq, pads = windows(attrs, x.shape[1:3], shape[:2])
    image, dw = pad_image(xp, x, pads), xp.zeros(shape, xp.result_type(x, dy))
    dy = dy.reshape(x.shape[0], *pq, *shape[2:])
    for tap, at in taps(attrs, pq, shape[:2]):
        dw[tap] = (image[at][..., None] * dy).sum(axis=(0, 1, 2), dtype=dw.dtype)
    return dw


# -- gradients: the three products are closed under differentiation -------------------------------------------------


def product_gradient(emit: Emit, op: str, attrs: Any, x: Any, w: Any, dy: Any) -> tuple[Any, Any]:
    """(dx, dw) of y = op(x, w)."""
    given = window_attrs(attrs)
    return (
        emit(f"{op}BackpropInput", shape_vector(emit, x), w, dy, **given),
        emit(f"{op}BackpropFilter", x, shape_vector(emit, w), dy, **given),
    )


def input_gradient_gradient(emit: Emit, op: str, attrs: Any, w: Any, dy: Any, dz: Any) -> tuple[Any, Any, Any]:
    """(None, dw, ddy) of z = opBackpropInput(shape, w, dy); dz has the shape of the image."""
    given = window_attrs(attrs)
    return (
        None,
        emit(f"{op}BackpropFilter", dz, shape_vector(emit, w), dy, **given),
        emit(op, dz, w, **given),
    )


def filter_gradient_gradient(emit: Emit, op: str, attrs: Any, x: Any, dy: Any, dz: Any) -> tuple[Any, Any, Any]:
    """(dx, None, ddy) of z = opBackpropFilter(x, shape, dy); dz has the shape of the filter."""
    given = window_attrs(attrs)
    return (
        emit(f"{op}BackpropInput", shape_vector(emit, x), dz, dy, **given),
        None,
        emit(op, x, dz, **given),
    )
