"""Making a tensor larger: Pad with a value, MirrorPad with its own elements, and the gradient of the latter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import SameScale
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import add_dims
from rillet.shared_ops.types import Shape, TensorType

Paddings = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class PadAttrs:
    paddings: Paddings
    value: float = 0.0


def padded_shape(op: str, x: TensorType, paddings: Paddings) -> Shape:
    if len(paddings) != x.rank:
        raise OpError(op, "paddings", got=paddings, expected=f"{x.rank} pairs (before, after)")
    if any(p < 0 for pair in paddings for p in pair):
        raise OpError(op, "negative padding", got=paddings, expected="0 or more", hint="Slice cuts off.")
    return tuple(add_dims(d, before + after) for d, (before, after) in zip(x.shape, paddings))


def infer_pad(attrs: PadAttrs, x: TensorType) -> tuple[TensorType, ...]:
    if not x.is_float and not float(attrs.value).is_integer():
        raise OpError("Pad", "value", got=attrs.value, expected=f"a whole number for {x.dtype}")
    return (x.with_shape(padded_shape("Pad", x, attrs.paddings)),)


def pad(xp: Any, attrs: PadAttrs, x: Any) -> Any:
    y = xp.full([d + b + a for d, (b, a) in zip(x.shape, attrs.paddings)], attrs.value, x.dtype)
    y[tuple(slice(b, b + d) for d, (b, _) in zip(x.shape, attrs.paddings))] = x
    return y


def pad_gradient(emit: Emit, attrs: PadAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    if not attrs.paddings:
        return (dy,)
    open_ends = sum(1 << i for i, (_, after) in enumerate(attrs.paddings) if after == 0)
    begin, end = tuple(b for b, _ in attrs.paddings), tuple(-a for _, a in attrs.paddings)
    return (emit("StridedSlice", dy, begin=begin, end=end, strides=(1,) * len(end), end_mask=open_ends),)


def pad_cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, shape: tuple[int, ...], paddings: Paddings, value: float = 0.0) -> Case:
        return Case((rng.normal(size=shape),), {"paddings": paddings, "value": value}, label=label)

    yield case("image", (1, 3, 4, 2), ((0, 0), (1, 2), (0, 1), (0, 0)))
    yield case("a value", (2, 3), ((1, 0), (0, 2)), -1.5)
    yield case("nothing", (2, 3), ((0, 0), (0, 0)))
    yield case("of an empty one", (0, 3), ((1, 1), (0, 0)), 2.0)
    yield case("scalar", (), ())


PAD = define_op(
    Op(
        "Pad",
        inputs=("x",),
        outputs=("y",),
        attrs=PadAttrs,
        infer=infer_pad,
        reference=pad,
        gradient=pad_gradient,
        quantize=SameScale(fill="value"),
        native="pad",
        cases=pad_cases,
        rejects=(
            Reject(((2, 3),), {"paddings": ((1, 1),)}, match="2 pairs"),
            Reject(((2,),), {"paddings": ((-1, 0),)}, match="negative padding"),
            Reject(((2,),), {"paddings": ((1, 0),), "value": 0.5}, match="whole number", dtypes=("i32",)),
        ),
        doc="""`x` with `value` before and after it along every dimension.

    Args: x: any dtype. paddings: (before, after) a dimension, 0 or more. value: what to fill with.
    Returns: an array, larger by the paddings.

    Example:
        >>> pad(np.array([1, 2]), paddings=((1, 2),))
        array([0, 1, 2, 0, 0])
    """,
    )
)


@dataclass(frozen=True)
class MirrorPadAttrs:
    """REFLECT leaves the border element out, SYMMETRIC repeats it; EDGE repeats only it; WRAP goes round."""

    paddings: Paddings
    mode: Literal["REFLECT", "SYMMETRIC", "EDGE", "WRAP"] = "REFLECT"


def sources(attrs: MirrorPadAttrs, axis: int, size: int) -> list[int]:
    """For every position of the result along an axis, the position of `x` that it shows."""
    before, after = attrs.paddings[axis]
    positions = range(-before, size + after)
    if attrs.mode == "EDGE":
        return [min(max(i, 0), size - 1) for i in positions]
    if attrs.mode == "WRAP":
        return [i % size for i in positions]
    shift = 1 if attrs.mode == "SYMMETRIC" else 0
    low = [-i - shift if i < 0 else i for i in positions]
    return [2 * (size - 1) + shift - i if i >= size else i for i in low]


def infer_mirror_pad(attrs: MirrorPadAttrs, x: TensorType) -> tuple[TensorType, ...]:
    shape = padded_shape("MirrorPad", x, attrs.paddings)
    for axis, (dim, pair) in enumerate(zip(x.shape, attrs.paddings)):
        if isinstance(dim, int) and max(pair) > _most(attrs.mode, dim):
            raise OpError("MirrorPad", f"padding of axis {axis} in mode {attrs.mode}", got=max(pair),
                          expected=f"at most {_most(attrs.mode, dim)} for a dimension of {dim}")  # fmt: skip
    return (x.with_shape(shape),)


def _most(mode: str, dim: int) -> int:
    """How far the mode can reach past a dimension."""
    if mode in ("EDGE", "WRAP"):
        return 1 << 40 if dim else 0
    return dim if mode == "SYMMETRIC" else max(dim - 1, 0)


def mirror_pad(xp: Any, attrs: MirrorPadAttrs, x: Any) -> Any:
    for axis in range(x.ndim):
        if any(attrs.paddings[axis]):
            x = xp.take(x, xp.asarray(sources(attrs, axis, x.shape[axis])), axis=axis)
    return x


def mirror_pad_gradient(emit: Emit, attrs: MirrorPadAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (emit("MirrorPadGrad", dy, **asdict(attrs)),)


def mirror_pad_cases(rng: np.random.Generator) -> Iterable[Case]:
    for mode in ("REFLECT", "SYMMETRIC", "EDGE", "WRAP"):
        attrs = {"paddings": ((2, 1), (0, 3)), "mode": mode}
        yield Case((rng.normal(size=(3, 4)),), attrs, label=mode.lower())
    yield Case((rng.normal(size=(0, 2)),), {"paddings": ((0, 0), (1, 0))}, label="empty")
    yield Case((rng.normal(size=(3,)),), {"paddings": ((4, 7),), "mode": "WRAP"}, label="round twice")


MIRROR_PAD = define_op(
    Op(
        "MirrorPad",
        inputs=("x",),
        outputs=("y",),
        attrs=MirrorPadAttrs,
        infer=infer_mirror_pad,
        reference=mirror_pad,
        gradient=mirror_pad_gradient,
        quantize=SameScale(),
        native="mirror_pad",
        cases=mirror_pad_cases,
        rejects=(
            Reject(((3,),), {"paddings": ((3, 0),)}, match="got 3, expected at most 2"),
            Reject(((3,),), {"paddings": ((0, 4),), "mode": "SYMMETRIC"}, match="got 4, expected at most 3"),
            Reject(((3,),), {"paddings": ((0, -1),)}, match="negative"),
            Reject(((3,),), {"paddings": ((0, 1),), "mode": "CIRCLE"}, match="REFLECT"),
        ),
        doc="""`x` continued past its borders by its own elements.

    Args: x: any dtype. paddings: (before, after) a dimension. mode: REFLECT (without the border element), SYMMETRIC
        (with it), EDGE (the border element again and again), WRAP (from the other end).
    Returns: an array, larger by the paddings.

    Example:
        >>> mirror_pad(np.array([1, 2, 3]), paddings=((2, 1),))
        array([3, 2, 1, 2, 3, 2])
    """,
    )
)


def infer_mirror_pad_grad(attrs: MirrorPadAttrs, dy: TensorType) -> tuple[TensorType, ...]:
    op = "MirrorPadGrad"
    padded_shape(op, dy, attrs.paddings)
    for axis, (d, pair) in enumerate(zip(dy.shape, attrs.paddings)):
        if isinstance(d, int) and d < sum(pair):
            raise OpError(op, f"dimension {axis} of dy", got=d, expected=f"at least the paddings, {sum(pair)}")
    return (dy.with_shape([add_dims(d, -b - a) for d, (b, a) in zip(dy.shape, attrs.paddings)]),)


def mirror_pad_grad(xp: Any, attrs: MirrorPadAttrs, dy: Any) -> Any:
    for axis in range(dy.ndim):
        if not any(attrs.paddings[axis]):
            continue
        moved = xp.moveaxis(dy, axis, 0)
        size = moved.shape[0] - sum(attrs.paddings[axis])
        total = xp.zeros((size, *moved.shape[1:]), dy.dtype)
        for i, source in enumerate(sources(attrs, axis, size)):
            total[source] += moved[i]
        dy = xp.moveaxis(total, 0, axis)
    return dy


def mirror_pad_grad_gradient(emit: Emit, attrs: MirrorPadAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (emit("MirrorPad", dy, **asdict(attrs)),)


MIRROR_PAD_GRAD = define_op(
    Op(
        "MirrorPadGrad",
        inputs=("dy",),
        outputs=("dx",),
        attrs=MirrorPadAttrs,
        infer=infer_mirror_pad_grad,
        reference=mirror_pad_grad,
        gradient=mirror_pad_grad_gradient,
        native="mirror_pad_grad",
        cases=lambda rng: (
            Case((rng.normal(size=(6, 7)),), {"paddings": ((2, 1), (0, 3)), "mode": mode}, label=mode.lower())
            for mode in ("REFLECT", "SYMMETRIC", "EDGE", "WRAP")
        ),
        rejects=(Reject(((3,),), {"paddings": ((3, 1),)}, match="got 3, expected at least"),),
        doc="""The gradient of MirrorPad: every element of `x` gets the sum of where it was shown.

    Args: dy: numbers. paddings, mode: those of MirrorPad.
    Returns: an array, smaller by the paddings.

    Example:
        >>> mirror_pad_grad(np.ones(4, np.float32), paddings=((1, 0),))
        array([1., 2., 1.], dtype=float32)
    """,
    )
)
