"""StridedSlice: Python's x[begin:end:stride, ..., None, i] with TensorFlow's masks; its gradient; and Reverse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Union

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import SameScale
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.reduction import shape_vector
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import MAX_RANK, merge_shapes, normalize_axes, target_shape
from rillet.shared_ops.types import Dim, Shape, TensorType


@dataclass(frozen=True)
class StridedSliceAttrs:
    """One entry of begin, end and strides an index; bit i of a mask speaks of entry i."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    strides: tuple[int, ...]
    begin_mask: int = 0  # begin is ignored: from the first (or last, with a negative stride) element
    end_mask: int = 0  # end is ignored: through the last (or first) element
    ellipsis_mask: int = 0  # the entry stands for all dimensions that no other entry names
    new_axis_mask: int = 0  # the entry makes a new dimension of size 1
    shrink_axis_mask: int = 0  # the entry is one index, and its dimension goes


class Range(NamedTuple):
    """One entry as Python writes it: x[begin:end:stride], or x[begin] where `shrink`."""

    begin: int | None
    end: int | None
    stride: int
    shrink: bool


FULL = Range(None, None, 1, False)
Entry = Union[Range, None]  # None: a new dimension


def entries(op: str, attrs: StridedSliceAttrs, rank: int) -> list[Entry]:
    """The entries, with the ellipsis (or what is left at the end) spelt out: one Range a dimension of the input."""
    n = len(attrs.begin)
    if len(attrs.end) != n or len(attrs.strides) != n:
        raise OpError(op, "begin, end and strides differ in length",
                      got=(n, len(attrs.end), len(attrs.strides)), expected="one length")  # fmt: skip
    ellipses = [i for i in range(n) if attrs.ellipsis_mask >> i & 1]
    if len(ellipses) > 1:
        raise OpError(op, "more than one ellipsis", got=len(ellipses), expected="at most 1")
    at = ellipses[0] if ellipses else n
    spelt: list[Entry] = [_entry(op, attrs, i) for i in range(n) if i != at]
    missing = rank - sum(e is not None for e in spelt)
    if missing < 0:
        raise OpError(op, "more indices than dimensions", got=rank - missing, expected=f"at most {rank}")
    spelt[at:at] = [FULL] * missing
    if sum(not (e and e.shrink) for e in spelt) > MAX_RANK:
        raise OpError(op, "too many dimensions", expected=f"at most {MAX_RANK}", got=len(spelt))
    return spelt


def _entry(op: str, attrs: StridedSliceAttrs, i: int) -> Entry:
    def bit(mask: int) -> bool:
        return bool(mask >> i & 1)

    if bit(attrs.new_axis_mask):
        return None
    stride = attrs.strides[i]
    if bit(attrs.shrink_axis_mask):
        if stride != 1:
            raise OpError(op, "stride of a single index", got=stride, expected=1)
        return Range(attrs.begin[i], None, 1, True)
    if stride == 0:
        raise OpError(op, f"stride {i}", got=0, expected="a number other than 0")
    begin = None if bit(attrs.begin_mask) else attrs.begin[i]
    return Range(begin, None if bit(attrs.end_mask) else attrs.end[i], stride, False)


def python_index(op: str, attrs: StridedSliceAttrs, rank: int) -> tuple[Any, ...]:
    """The entries as an index that NumPy understands; out-of-range slices are clamped there as here."""
    found = entries(op, attrs, rank)
    return tuple(None if e is None else e.begin if e.shrink else slice(e.begin, e.end, e.stride) for e in found)


def sliced_shape(op: str, attrs: StridedSliceAttrs, shape: Sequence[Dim]) -> Shape:
    dims, result = iter(enumerate(shape)), list[Dim]()
    for e in entries(op, attrs, len(shape)):
        if e is None:
            result.append(1)
            continue
        axis, dim = next(dims)
        if not e.shrink:
            result.append(len(range(*slice(*e[:3]).indices(dim))) if isinstance(dim, int) else _unknown(e, dim))
        elif isinstance(dim, int) and e.begin is not None and not -dim <= e.begin < dim:
            raise OpError(op, f"index of axis {axis} out of range", got=e.begin, expected=f"{-dim} to {dim - 1}")
    return tuple(result)


def _unknown(e: Range, dim: Dim) -> Dim:
    """The length of a slice of an unknown dimension: known only where it takes all."""
    return dim if e.begin in (None, 0) and e.end is None and e.stride == 1 else None


def infer(attrs: StridedSliceAttrs, x: TensorType) -> tuple[TensorType, ...]:
    shape = sliced_shape("StridedSlice", attrs, x.shape)
    value = None
    if x.value is not None and x.rank == 1 and x.is_static:
        picked = x.value[python_index("StridedSlice", attrs, 1)[-1]] if len(attrs.begin) == 1 else None
        value = picked if isinstance(picked, tuple) else (picked,) if len(attrs.begin) == 1 else None
        value = None if attrs.new_axis_mask or attrs.ellipsis_mask else value
    return (TensorType(x.dtype, shape, value),)


def reference(xp: Any, attrs: StridedSliceAttrs, x: Any) -> Any:
    return xp.asarray(x[python_index("StridedSlice", attrs, x.ndim)])


def gradient(emit: Emit, attrs: StridedSliceAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (emit("StridedSliceGrad", shape_vector(emit, inputs[0]), dy, **asdict(attrs)),)


def cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, shape: tuple[int, ...], spec: Sequence[tuple[int, int, int]], **masks: int) -> Case:
        begin, end, strides = (tuple(s[i] for s in spec) for i in range(3))
        return Case((rng.normal(size=shape),), {"begin": begin, "end": end, "strides": strides, **masks}, label=label)

    yield case("block", (4, 6, 3), [(1, 3, 1), (0, 6, 2)])
    yield case("reversed", (4,), [(0, 0, -1)], begin_mask=1, end_mask=1)
    yield case("every second backwards", (4, 5), [(0, 0, -2), (3, -6, -1)], begin_mask=1, end_mask=1)
    yield case("clamped", (4, 5), [(-9, 9, 1), (2, 99, 3)])
    yield case("last element", (4,), [(-1, 0, 1)], shrink_axis_mask=1)
    yield case("one index of three dimensions", (7, 3, 2), [(4, 0, 1)], shrink_axis_mask=1)
    yield case("ellipsis and new axis", (2, 3, 4, 5), [(1, 2, 1), (0, 0, 1), (0, 0, 1), (1, -1, 2)],
               ellipsis_mask=2, new_axis_mask=4)  # fmt: skip
    yield case("empty", (4, 5), [(3, 1, 1)])
    yield case("of an empty one", (0, 5), [(0, 2, 1), (1, 3, 1)])


STRIDED_SLICE = define_op(
    Op(
        "StridedSlice",
        inputs=("x",),
        outputs=("y",),
        attrs=StridedSliceAttrs,
        infer=infer,
        reference=reference,
        gradient=gradient,
        quantize=SameScale(),
        native="strided_slice",
        cases=cases,
        rejects=(
            Reject(((4,),), {"begin": (4,), "end": (5,), "strides": (1,), "shrink_axis_mask": 1}, match="got 4"),
            Reject(((4,),), {"begin": (-5,), "end": (5,), "strides": (1,), "shrink_axis_mask": 1}, match="got -5"),
            Reject(((4,),), {"begin": (0,), "end": (5,), "strides": (0,)}, match="other than 0"),
            Reject(((4,),), {"begin": (0, 0), "end": (1, 1), "strides": (1, 1)}, match="more indices"),
            Reject(((4,),), {"begin": (0,), "end": (1, 1), "strides": (1,)}, match="differ in length"),
            Reject(((4,),), {"begin": (0, 0), "end": (0, 0), "strides": (1, 1), "ellipsis_mask": 3}, match="ellipsis"),
        ),
        doc="""x[begin:end:stride, ...] as Python means it; masks say what TensorFlow's do.

    Args: x: any dtype. begin, end, strides: one entry an index; negative ones count from the end, slices are clamped.
        begin_mask, end_mask: bit i: that bound is open. ellipsis_mask, new_axis_mask: bit i: entry i is `...`, `None`.
        shrink_axis_mask: bit i: entry i is the single index begin[i], which must be in range.
    Returns: an array.

    Example:
        >>> strided_slice(np.array([1, 2, 3, 4]), begin=(0,), end=(0,), strides=(-2,), begin_mask=1, end_mask=1)
        array([4, 2])
    """,
    )
)


def infer_grad(attrs: StridedSliceAttrs, shape: TensorType, dy: TensorType) -> tuple[TensorType, ...]:
    target = target_shape("StridedSliceGrad", shape)
    merge_shapes("StridedSliceGrad", sliced_shape("StridedSliceGrad", attrs, target), dy.shape)
    return (dy.with_shape(target),)


def reference_grad(xp: Any, attrs: StridedSliceAttrs, shape: Any, dy: Any) -> Any:
    dx = xp.zeros(tuple(int(d) for d in shape), dy.dtype)
    dx[python_index("StridedSliceGrad", attrs, dx.ndim)] = dy
    return dx


def gradient_grad(emit: Emit, attrs: StridedSliceAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return None, emit("StridedSlice", dy, **asdict(attrs))


def grad_cases(rng: np.random.Generator) -> Iterable[Case]:
    for case in cases(rng):
        (x,) = case.inputs
        assert x is not None
        y = np.asarray(x[python_index("StridedSlice", StridedSliceAttrs(**case.attrs), x.ndim)])
        yield Case((np.array(x.shape, np.int32), rng.normal(size=y.shape)), case.attrs, label=case.label)


STRIDED_SLICE_GRAD = define_op(
    Op(
        "StridedSliceGrad",
        inputs=("shape", "dy"),
        outputs=("dx",),
        attrs=StridedSliceAttrs,
        infer=infer_grad,
        reference=reference_grad,
        gradient=gradient_grad,
        native="strided_slice_grad",
        cases=grad_cases,
        rejects=(
            Reject(
                ((1,), (3,)),
                {"begin": (0,), "end": (2,), "strides": (1,)},
                match="got 3, expected 2",
                dtypes=("i32", "f32"),
                values=((4,), None),
            ),
        ),  # fmt: skip
        doc="""Zeros of `shape` with `dy` where StridedSlice took its elements: its gradient.

    Args: shape: i32 or i64 vector. dy: any numbers, of the shape of the slice. Attributes: those of StridedSlice.
    Returns: an array of shape.

    Example:
        >>> strided_slice_grad(np.array([3]), np.array([5.0], np.float32), begin=(1,), end=(2,), strides=(1,))
        array([0., 5., 0.], dtype=float32)
    """,
    )
)


@dataclass(frozen=True)
class ReverseAttrs:
    axes: tuple[int, ...]


def infer_reverse(attrs: ReverseAttrs, x: TensorType) -> tuple[TensorType, ...]:
    normalize_axes("Reverse", attrs.axes, x.rank)
    return (x.plain(),)


def reverse_gradient(emit: Emit, attrs: ReverseAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    return (emit("Reverse", dy, axes=attrs.axes),)


REVERSE = define_op(
    Op(
        "Reverse",
        inputs=("x",),
        outputs=("y",),
        attrs=ReverseAttrs,
        infer=infer_reverse,
        reference=lambda xp, attrs, x: xp.flip(x, axis=attrs.axes) if attrs.axes else x.copy(),
        gradient=reverse_gradient,
        quantize=SameScale(),
        native="reverse",
        cases=lambda rng: (
            Case((rng.normal(size=(3, 4)),), {"axes": (0,)}, label="rows"),
            Case((rng.normal(size=(2, 3, 4)),), {"axes": (-1, 0)}, label="two axes"),
            Case((rng.normal(size=(2, 0)),), {"axes": (0, 1)}, label="empty"),
            Case((rng.normal(size=(2,)),), {"axes": ()}, label="no axis"),
        ),
        rejects=(
            Reject(((3,),), {"axes": (1,)}, match="out of range"),
            Reject(((3,),), {"axes": (0, -1)}, match="twice"),
        ),
        doc="""`x` with the order of its elements turned round along `axes`.

    Args: x: any dtype. axes: which; negative ones count from the end.
    Returns: an array like x.

    Example:
        >>> reverse(np.array([1, 2, 3]), axes=(0,))
        array([3, 2, 1])
    """,
    )
)
