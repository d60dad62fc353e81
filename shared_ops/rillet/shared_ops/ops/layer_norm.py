"""LayerNorm and RMSNorm over the trailing axes, with their gradients; L2Normalize over one axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import merge_shapes, normalize_axis, require_float, require_same_dtype
from rillet.shared_ops.types import TensorType


@dataclass(frozen=True)
class NormAttrs:
    """axis: the first axis of what is normalised together: it and all behind it. epsilon: added under the root."""

    axis: int = -1
    epsilon: float = 1e-5


@dataclass(frozen=True)
class L2NormalizeAttrs:
    """axis: along which the squares are summed. epsilon: the least sum of squares that counts."""

    axis: int = -1
    epsilon: float = 1e-12


def infer_norm(op: str, names: tuple[str, ...]) -> Callable[..., tuple[TensorType, ...]]:
    def infer(attrs: NormAttrs, x: TensorType, *params: TensorType | None) -> tuple[TensorType, ...]:
        require_float(op, "x", x)
        require_same_dtype(op, x, *params)
        axis = normalize_axis(op, attrs.axis, x.rank)
        tail = x.shape[axis:]
        for name, t in zip(names, params):
            if t is not None:
                tail = merge_shapes(op, tail, t.shape, f"x and {name}: normalised dimension")
        return (x.with_shape(x.shape[:axis] + tail),)

    return infer


def infer_grad(op: str, results: int) -> Callable[..., tuple[TensorType, ...]]:
    def infer(attrs: NormAttrs, x: TensorType, scale: TensorType, dy: TensorType) -> tuple[TensorType, ...]:
        require_same_dtype(op, x, scale, dy)
        merge_shapes(op, x.shape, dy.shape, "x and dy: dimension")
        return (x.plain(),) + (scale.plain(),) * (results - 1)

    return infer


def _axes(attrs: Any, x: Any) -> tuple[int, ...]:
    return tuple(range(attrs.axis % x.ndim, x.ndim))


def _leading(attrs: Any, x: Any) -> tuple[int, ...]:
    return tuple(range(attrs.axis % x.ndim))


def _standardize(xp: Any, attrs: NormAttrs, x: Any, centre: bool) -> tuple[Any, Any]:
    """x with mean taken off (if `centre`) and divided by the root of the mean square; and one over that root."""
    axes = _axes(attrs, x)
    if centre:
        x = x - x.mean(axis=axes, keepdims=True)
    inv = 1 / xp.sqrt((x * x).mean(axis=axes, keepdims=True) + x.dtype.type(attrs.epsilon))
    return x * inv, inv


def layer_norm(xp: Any, attrs: NormAttrs, x: Any, scale: Any, offset: Any = None) -> Any:
    y = _standardize(xp, attrs, x, True)[0] * scale
    return y if offset is None else y + offset


def rms_norm(xp: Any, attrs: NormAttrs, x: Any, scale: Any) -> Any:
    return _standardize(xp, attrs, x, False)[0] * scale


def _grad(xp: Any, attrs: NormAttrs, x: Any, scale: Any, dy: Any, centre: bool) -> tuple[Any, Any]:
    axes = _axes(attrs, x)
    x_hat, inv = _standardize(xp, attrs, x, centre)
    g = dy * scale
    rest = x_hat * (g * x_hat).mean(axis=axes, keepdims=True)
    if centre:
        rest = rest + g.mean(axis=axes, keepdims=True)
    return (g - rest) * inv, (dy * x_hat).sum(axis=_leading(attrs, x))


def layer_norm_grad(xp: Any, attrs: NormAttrs, x: Any, scale: Any, dy: Any) -> tuple[Any, ...]:
    return *_grad(xp, attrs, x, scale, dy, True), dy.sum(axis=_leading(attrs, x))


def rms_norm_grad(xp: Any, attrs: NormAttrs, x: Any, scale: Any, dy: Any) -> tuple[Any, ...]:
    return _grad(xp, attrs, x, scale, dy, False)


def l2_normalize(xp: Any, attrs: L2NormalizeAttrs, x: Any) -> Any:
    total = (x * x).sum(axis=attrs.axis, keepdims=True)
    return x / xp.sqrt(xp.maximum(total, x.dtype.type(attrs.epsilon)))


def infer_l2(attrs: L2NormalizeAttrs, x: TensorType) -> tuple[TensorType, ...]:
    require_float("L2Normalize", "x", x)
    normalize_axis("L2Normalize", attrs.axis, x.rank)
    return (x.plain(),)


def layer_norm_gradient(emit: Emit, attrs: NormAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    x, scale = inputs[:2]
    return emit("LayerNormGrad", x, scale, dy, **asdict(attrs))[: len(inputs)]


def rms_norm_gradient(emit: Emit, attrs: NormAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return tuple(emit("RMSNormGrad", *inputs, dy, **asdict(attrs)))


def l2_gradient(emit: Emit, attrs: L2NormalizeAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    """dx = (dy - y sum(dy y)) / norm; where epsilon decides the norm is a constant, and only dy / norm is left."""
    (x,), (y,) = inputs, outputs
    total = emit("Sum", emit("Square", x), axes=(attrs.axis,), keepdims=True)
    inv = emit("Rsqrt", emit("Maximum", total, attrs.epsilon))
    along = emit("Sum", emit("Mul", dy, y), axes=(attrs.axis,), keepdims=True)
    bent = emit("Select", emit("Greater", total, attrs.epsilon), emit("Mul", y, along), emit("ZerosLike", y))
    return (emit("Mul", emit("Sub", dy, bent), inv),)


def cases(parameters: int) -> Callable[[np.random.Generator], Iterable[Case]]:
    def norm_cases(rng: np.random.Generator) -> Iterable[Case]:
        def case(label: str, shape: tuple[int, ...], axis: int = -1, epsilon: float = 1e-5, drop: int = 0) -> Case:
            tail = shape[axis:]
            params = tuple(rng.normal(size=tail) for _ in range(parameters - drop))
            attrs = {"axis": axis, "epsilon": epsilon}
            return Case((rng.normal(size=shape) + 1, *params), attrs, tolerance=2e-5, label=label)

        yield case("rows", (4, 10))
        yield case("two blocks of lanes and more", (2, 3, 37), epsilon=1e-3)
        yield case("two axes", (3, 4, 5), axis=-2)
        yield case("one block of lanes", (16,))
        if parameters == 2:
            yield case("no offset", (3, 6), drop=1)

    return norm_cases


def l2_cases(rng: np.random.Generator) -> Iterable[Case]:
    yield Case((rng.normal(size=(4, 10)),), label="rows")
    yield Case((rng.normal(size=(3, 35, 4)),), {"axis": 1}, label="a middle axis")
    yield Case((rng.normal(size=(2, 5)) * 0.1,), {"epsilon": 10.0}, label="epsilon decides")


def define(name: str, inputs: tuple[str, ...], reference: Any, gradient: Any, doc: str) -> Op:
    return define_op(
        Op(
            name,
            inputs=("x", *inputs),
            outputs=("y",),
            attrs=NormAttrs,
            infer=infer_norm(name, tuple(n.rstrip("?") for n in inputs)),
            reference=reference,
            gradient=gradient,
            native="rms_norm" if name == "RMSNorm" else "layer_norm",
            cases=cases(len(inputs)),
            rejects=(Reject(((4, 3), (4,)), match="scale"), Reject(((4, 3), (3,)), {"axis": 2}, match="axis")),
            doc=doc,
        )
    )


LAYER_NORM = define(
    "LayerNorm",
    ("scale", "offset?"),
    layer_norm,
    layer_norm_gradient,
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, over the axes from `axis` on; the variance is biased.

    Args: x: float. scale, offset: of the shape of the normalised axes; offset may be left out.
    Raises: OpError where shapes disagree.

    Example:
        >>> layer_norm(np.array([[1.0, 3.0]], np.float32), np.ones(2, np.float32), epsilon=0.0)
        array([[-1.,  1.]], dtype=float32)
    """,
)
RMS_NORM = define(
    "RMSNorm",
    ("scale",),
    rms_norm,
    rms_norm_gradient,
    """x / sqrt(mean(x^2) + epsilon) * scale, over the axes from `axis` on.

    Args: x: float. scale: of the shape of the normalised axes. Raises: OpError where shapes disagree.

    Example:
        >>> rmsnorm(np.array([[3.0, 3.0]], np.float32), np.ones(2, np.float32), epsilon=0.0)
        array([[1., 1.]], dtype=float32)
    """,
)
LAYER_NORM_GRAD = define_op(
    Op(
        "LayerNormGrad",
        inputs=("x", "scale", "dy"),
        outputs=("dx", "dscale", "doffset"),
        attrs=NormAttrs,
        infer=infer_grad("LayerNormGrad", 3),
        reference=layer_norm_grad,
        native="layer_norm_grad",
        doc="The gradient of LayerNorm with respect to x, scale and offset.",
    )
)
RMS_NORM_GRAD = define_op(
    Op(
        "RMSNormGrad",
        inputs=("x", "scale", "dy"),
        outputs=("dx", "dscale"),
        attrs=NormAttrs,
        infer=infer_grad("RMSNormGrad", 2),
        reference=rms_norm_grad,
        native="rms_norm_grad",
        doc="The gradient of RMSNorm with respect to x and scale.",
    )
)
L2_NORMALIZE = define_op(
    Op(
        "L2Normalize",
        inputs=("x",),
        outputs=("y",),
        attrs=L2NormalizeAttrs,
        infer=infer_l2,
        reference=l2_normalize,
        gradient=l2_gradient,
        native="l2_normalize",
        cases=l2_cases,
        rejects=(Reject(((2, 3),), {"axis": 2}, match="axis"),),
        doc="""x / sqrt(max(sum(x^2), epsilon)) along `axis`: vectors of length one.

    Args: x: float. Raises: OpError for an axis out of range.

    Example:
        >>> l2_normalize(np.array([3.0, 4.0], np.float32))
        array([0.6, 0.8], dtype=float32)
    """,
    )
)
