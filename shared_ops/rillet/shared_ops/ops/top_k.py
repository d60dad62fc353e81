"""Where the extremes are: TopK, ArgMax, ArgMin. Equal values: the first one wins. NaN is above every number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import SameScale
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.reduction import shape_vector
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import normalize_axis
from rillet.shared_ops.types import DTYPES, TensorType


@dataclass(frozen=True)
class TopKAttrs:
    """sorted: best first; else in the order in which they stand in `x`."""

    k: int
    largest: bool = True
    sorted: bool = True
    axis: int = -1
    index_type: Literal["i32", "i64"] = "i32"


def infer_top_k(attrs: TopKAttrs, x: TensorType) -> tuple[TensorType, ...]:
    axis = normalize_axis("TopK", attrs.axis, x.rank)
    dim = x.shape[axis]
    if attrs.k < 0 or (isinstance(dim, int) and attrs.k > dim):
        raise OpError("TopK", "k", got=attrs.k, expected=f"0 to {dim}")
    if x.dtype == np.bool_:
        raise OpError("TopK", "dtype of x", got="bool", expected="numbers")
    shape = (*x.shape[:axis], attrs.k, *x.shape[axis + 1 :])
    return x.with_shape(shape), TensorType(DTYPES[attrs.index_type], shape)


def top_k(xp: Any, attrs: TopKAttrs, x: Any) -> Any:
    """A stable sort: NumPy puts NaN last; to find the largest, the reversed array is sorted and read from its end."""
    n = x.shape[attrs.axis]
    if attrs.largest:
        order = xp.flip(n - 1 - xp.argsort(xp.flip(x, attrs.axis), axis=attrs.axis, kind="stable"), attrs.axis)
    else:
        order = xp.argsort(x, axis=attrs.axis, kind="stable")
    indices = xp.take(order, xp.arange(attrs.k), axis=attrs.axis)
    if not attrs.sorted:
        indices = xp.sort(indices, axis=attrs.axis)
    return xp.take_along_axis(x, indices, axis=attrs.axis), indices.astype(DTYPES[attrs.index_type])


def top_k_gradient(
    emit: Emit, attrs: TopKAttrs, inputs: Any, outputs: Any, dy: Any, d_indices: Any = None
) -> tuple[Any, ...]:
    """The values are a Gather along the last axis in which all other axes are batch dimensions."""
    x, indices, rank = inputs[0], outputs[1], len(inputs[0].shape)
    axis = normalize_axis("TopK", attrs.axis, rank)
    perm = tuple(a for a in range(rank) if a != axis) + (axis,)
    moved = axis != rank - 1
    if moved:
        x, indices, dy = (emit("Transpose", t, perm=perm) for t in (x, indices, dy))
    dx = emit("GatherGrad", shape_vector(emit, x), indices, dy, axis=rank - 1, batch_dims=rank - 1)
    return (emit("Transpose", dx, perm=tuple(perm.index(a) for a in range(rank))) if moved else dx,)


def top_k_cases(rng: np.random.Generator) -> Iterable[Case]:
    yield Case((rng.normal(size=(3, 9)),), {"k": 3}, label="largest")
    yield Case((rng.normal(size=(3, 9)),), {"k": 4, "largest": False, "index_type": "i64"}, label="smallest")
    yield Case((rng.normal(size=(3, 5, 2)),), {"k": 2, "axis": 1}, label="middle axis")
    yield Case((rng.normal(size=(2, 9)),), {"k": 3, "sorted": False}, label="as they stand")
    ties = np.array([[1.0, 2.0, 2.0, 1.0, 2.0]])
    yield Case((ties,), {"k": 4}, label="ties", differentiable=())
    yield Case((ties,), {"k": 3, "largest": False}, label="ties, smallest", differentiable=())
    yield Case((np.array([1.0, np.nan, 3.0, -np.inf]),), {"k": 3}, label="NaN is largest", differentiable=())
    yield Case((np.array([1.0, np.nan, 3.0]),), {"k": 3, "largest": False}, label="NaN is last", differentiable=())
    yield Case((rng.normal(size=(0, 4)),), {"k": 2}, label="no rows")
    yield Case((rng.normal(size=(3, 0)),), {"k": 0}, label="none of none")
    yield Case((rng.integers(-9, 9, size=(2, 12)).astype(np.int32),), {"k": 5}, label="integers", differentiable=())


TOP_K = define_op(
    Op(
        "TopK",
        inputs=("x",),
        outputs=("values", "indices"),
        attrs=TopKAttrs,
        infer=infer_top_k,
        reference=top_k,
        gradient=top_k_gradient,
        quantize=SameScale(),
        native="top_k",
        cases=top_k_cases,
        rejects=(
            Reject(((2, 3),), {"k": 4}, match="got 4, expected 0 to 3"),
            Reject(((2, 3),), {"k": -1}, match="got -1"),
            Reject(((),), {"k": 1}, match="axis out of range"),
        ),
        doc="""The `k` largest (or smallest) values along `axis`, and where they stand.

    Of equal values the first ones are taken. NaN counts as larger than every number.

    Args: x: numbers. k: at most the size of the axis. largest; sorted: best first, else in the order of x. axis.
        index_type: "i32" or "i64".
    Returns: (values, indices).

    Example:
        >>> top_k(np.array([3, 9, 9, 1]), k=2)
        (array([9, 9]), array([1, 2], dtype=int32))
    """,
    )
)


@dataclass(frozen=True)
class ArgMaxAttrs:
    axis: int = -1
    keepdims: bool = False
    output_type: Literal["i32", "i64"] = "i64"


def no_gradient(emit: Emit, attrs: ArgMaxAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (None,)


def arg_cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, x: Any, **attrs: Any) -> Case:
        return Case((x,), attrs, label=label, differentiable=())

    yield case("last axis", rng.normal(size=(3, 40)))
    yield case("first axis", rng.normal(size=(5, 3)), axis=0, output_type="i32")
    yield case("middle axis", rng.normal(size=(2, 5, 33)), axis=1, keepdims=True)
    yield case("equal values", np.array([[2.0, 1.0, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0]]))
    yield case("NaN", np.array([[1.0, np.nan, 3.0, np.nan], [1.0, 2.0, 3.0, 4.0]]))
    yield case("zeros of both signs", np.array([[-0.0, 0.0], [0.0, -0.0]]))
    yield case("integers", rng.integers(-9, 9, size=(4, 20)).astype(np.int32))
    yield case("no rows", rng.normal(size=(0, 3)))


def _define(name: str, native: str, choose: Callable[[Any], Any], word: str, example: str) -> Op:
    def infer(attrs: ArgMaxAttrs, x: TensorType) -> tuple[TensorType, ...]:
        axis = normalize_axis(name, attrs.axis, x.rank)
        if x.shape[axis] == 0:
            raise OpError(name, f"axis {axis} has no elements", got=x, expected="at least one")
        middle = (1,) if attrs.keepdims else ()
        return (TensorType(DTYPES[attrs.output_type], (*x.shape[:axis], *middle, *x.shape[axis + 1 :])),)

    def reference(xp: Any, attrs: ArgMaxAttrs, x: Any) -> Any:
        found = xp.asarray(choose(xp)(x, axis=attrs.axis))
        return (xp.expand_dims(found, attrs.axis) if attrs.keepdims else found).astype(DTYPES[attrs.output_type])

    return define_op(
        Op(
            name,
            inputs=("x",),
            outputs=("indices",),
            attrs=ArgMaxAttrs,
            infer=infer,
            reference=reference,
            gradient=no_gradient,
            quantize=SameScale(),
            native=native,
            cases=arg_cases,
            rejects=(
                Reject(((2, 3),), {"axis": 2}, match="out of range"),
                Reject(((2, 0),), match="no elements"),
                Reject(((2,),), {"output_type": "f32"}, match="one of"),
            ),
            doc=f"""Where the {word} value along `axis` stands: the first of equal ones; the first NaN if there is one.

    Args: x: any dtype. axis. keepdims: leave the axis, with size 1. output_type: "i32" or "i64".
    Returns: indices.

    Example:
        >>> {native}(np.array([3, 9, 1, 9]), axis=0)
        {example}
    """,
        )
    )


ARG_MAX = _define("ArgMax", "arg_max", lambda xp: xp.argmax, "largest", "array(1)")
ARG_MIN = _define("ArgMin", "arg_min", lambda xp: xp.argmin, "smallest", "array(2)")
