"""ONNX nodes that move data: reshapes, slices, joins, gathers, pads, and where the extremes are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import numpy_helper

from onnx_translators import Node, Unsupported, translate
from rillet.shared_ops.types import DTYPE_NAMES

Array = Any


def ints(array: Array) -> tuple[int, ...]:
    return tuple(int(v) for v in np.atleast_1d(array))


@translate("Identity")
def identity(node: Node, x: Array) -> Array:
    return node.emit("Identity", x)


@translate("Shape")
def shape(node: Node, x: Array) -> Array:
    start, end = node.attr("start", 0), node.attr("end")
    dims = node.emit("Shape", x, out_type="i64")
    masks = {"end_mask": int(end is None)}
    return node.emit("StridedSlice", dims, begin=(start,), end=(end or 0,), strides=(1,), **masks)


@translate("Size")
def size(node: Node, x: Array) -> Array:
    return node.emit("Size", x, out_type="i64")


@translate("Reshape")
def reshape(node: Node, x: Array, target: Array) -> Array:
    """A 0 copies the dimension of the input, unless allowzero is set."""
    dims = ints(target)
    if not node.attr("allowzero", 0):
        dims = tuple(x.shape[i] if d == 0 else d for i, d in enumerate(dims))
    return node.emit("Reshape", x, np.array(dims, np.int64))


@translate("Unsqueeze")
def unsqueeze(node: Node, x: Array, axes: Array) -> Array:
    """The axes are those of the result."""
    rank = x.ndim + len(axes)
    for axis in sorted(a % rank for a in ints(axes)):
        x = node.emit("ExpandDims", x, axis=axis)
    return x


@translate("Squeeze")
def squeeze(node: Node, x: Array, axes: Array | None = None) -> Array:
    return node.emit("Squeeze", x, axes=None if axes is None else ints(axes))


@translate("Flatten")
def flatten(node: Node, x: Array) -> Array:
    return node.emit("Flatten", x, axis=node.attr("axis", 1))


@translate("Transpose")
def transpose(node: Node, x: Array) -> Array:
    perm = node.attr("perm")
    return node.emit("Transpose", x, perm=None if perm is None else tuple(perm))


@translate("Concat")
def concat(node: Node, *values: Array) -> Array:
    return node.emit("Concat", *values, axis=node.attr("axis"))


@translate("Split")
def split(node: Node, x: Array, sizes: Array | None = None) -> Any:
    axis = node.attr("axis", 0)
    if sizes is not None:
        return node.emit("SplitV", x, sizes=ints(sizes), axis=axis)
    n, dim = node.outputs, x.shape[axis]
    if dim % n == 0:
        return node.emit("Split", x, num=n, axis=axis)
    piece = -(-dim // n)  # uneven: the last piece is smaller
    return node.emit("SplitV", x, sizes=(piece,) * (n - 1) + (dim - piece * (n - 1),), axis=axis)


@translate("Slice")
def slice_(
    node: Node, x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None
) -> Array:
    named = range(len(starts)) if axes is None else [a % x.ndim for a in ints(axes)]
    begin, end, strides = [0] * x.ndim, [0] * x.ndim, [1] * x.ndim
    open_ends = set(range(x.ndim))
    for i, axis in enumerate(named):
        begin[axis], end[axis] = int(starts[i]), int(ends[i])
        strides[axis] = 1 if steps is None else int(steps[i])
        if not (strides[axis] < 0 and end[axis] < -x.shape[axis]):  # else: through index 0
            open_ends.discard(axis)
    masks = {"begin_mask": sum(1 << a for a in range(x.ndim) if a not in named),
             "end_mask": sum(1 << a for a in open_ends)}  # fmt: skip
    return node.emit("StridedSlice", x, begin=tuple(begin), end=tuple(end), strides=tuple(strides), **masks)


@translate("Pad")
def pad(node: Node, x: Array, pads: Array, value: Array | None = None, axes: Array | None = None) -> Array:
    """ONNX lists all begins, then all ends."""
    named = range(x.ndim) if axes is None else [a % x.ndim for a in ints(axes)]
    pairs = [(0, 0)] * x.ndim
    for i, axis in enumerate(named):
        pairs[axis] = (int(pads[i]), int(pads[i + len(named)]))
    mode = node.attr("mode", "constant")
    if mode == "constant":
        return node.emit("Pad", x, paddings=tuple(pairs), value=0.0 if value is None else float(value))
    return node.emit("MirrorPad", x, paddings=tuple(pairs), mode=mode.upper())


@translate("Tile")
def tile(node: Node, x: Array, repeats: Array) -> Array:
    return node.emit("Tile", x, multiples=ints(repeats))


@translate("Expand")
def expand(node: Node, x: Array, target: Array) -> Array:
    """The broadcast goes both ways: the result may be larger than the shape given."""
    full = np.broadcast_shapes(x.shape, ints(target))
    return node.emit("BroadcastTo", x, np.array(full, np.int64))


@translate("ConstantOfShape")
def constant_of_shape(node: Node, target: Array) -> Array:
    given = node.attr("value")
    value = np.float32(0) if given is None else numpy_helper.to_array(given).reshape(())
    return node.emit("Fill", target, np.asarray(value))


@translate("Range")
def range_(node: Node, start: Array, limit: Array, delta: Array) -> Array:
    numbers = {"start": float(start), "limit": float(limit), "delta": float(delta)}
    return node.emit("Range", dtype=DTYPE_NAMES[start.dtype], **numbers)


@translate("OneHot")
def one_hot(node: Node, indices: Array, depth: Array, values: Array) -> Array:
    """Negative indices count from the end, and indices may be of any number type."""
    n = int(np.asarray(depth).reshape(()))
    wrapped = indices.astype(np.int64)
    wrapped = np.where(wrapped < 0, wrapped + n, wrapped)
    off, on = (float(v) for v in values)
    return node.emit("OneHot", wrapped, depth=n, on_value=on, off_value=off, axis=node.attr("axis", -1),
                     dtype=DTYPE_NAMES[values.dtype])  # fmt: skip


def from_front(indices: Array, limit: int) -> Array:
    return np.where(indices < 0, indices + limit, indices).astype(indices.dtype)


@translate("Gather")
def gather(node: Node, params: Array, indices: Array) -> Array:
    axis = node.attr("axis", 0)
    return node.emit("Gather", params, from_front(indices, params.shape[axis]), axis=axis)


@translate("GatherND")
def gather_nd(node: Node, params: Array, indices: Array) -> Array:
    return node.emit("GatherNd", params, indices, batch_dims=node.attr("batch_dims", 0))


@translate("TopK")
def top_k(node: Node, x: Array, k: Array) -> Any:
    order = {"largest": bool(node.attr("largest", 1)), "sorted": bool(node.attr("sorted", 1))}
    return node.emit("TopK", x, k=ints(k)[0], axis=node.attr("axis", -1), index_type="i64", **order)


@translate("ArgMax", "ArgMin")
def arg(node: Node, x: Array) -> Array:
    """The last of equal values is the first one of the reversed axis."""
    axis, attrs = node.attr("axis", 0), {"keepdims": bool(node.attr("keepdims", 1))}
    if not node.attr("select_last_index", 0):
        return node.emit(node.proto.op_type, x, axis=axis, **attrs)
    found = node.emit(node.proto.op_type, node.emit("Reverse", x, axes=(axis,)), axis=axis, **attrs)
    return node.emit("Sub", np.array(x.shape[axis] - 1, np.int64), found)


@translate("SpaceToDepth")
def space_to_depth(node: Node, x: Array) -> Array:
    """ONNX images are NCHW; in mode CRD the channel comes before the place in the block."""
    b, (n, c, h, w) = node.attr("blocksize"), x.shape
    if node.attr("mode", "DCR") == "DCR":
        y = node.emit("SpaceToDepth", node.emit("Transpose", x, perm=(0, 2, 3, 1)), block_size=b)
        return node.emit("Transpose", y, perm=(0, 3, 1, 2))
    split = node.emit("Reshape", x, np.array([n, c, h // b, b, w // b, b]))
    moved = node.emit("Transpose", split, perm=(0, 1, 3, 5, 2, 4))
    return node.emit("Reshape", moved, np.array([n, c * b * b, h // b, w // b]))


@translate("DepthToSpace")
def depth_to_space(node: Node, x: Array) -> Array:
    b, (n, c, h, w) = node.attr("blocksize"), x.shape
    if node.attr("mode", "DCR") == "DCR":
        y = node.emit("DepthToSpace", node.emit("Transpose", x, perm=(0, 2, 3, 1)), block_size=b)
        return node.emit("Transpose", y, perm=(0, 3, 1, 2))
    split = node.emit("Reshape", x, np.array([n, c // (b * b), b, b, h, w]))
    moved = node.emit("Transpose", split, perm=(0, 1, 4, 2, 5, 3))
    return node.emit("Reshape", moved, np.array([n, c // (b * b), h * b, w * b]))


@translate("CumSum")
def cumsum(node: Node, x: Array, axis: Array) -> Array:
    flags = {"exclusive": bool(node.attr("exclusive", 0)), "reverse": bool(node.attr("reverse", 0))}
    return node.emit("Cumsum", x, axis=ints(axis)[0], **flags)


@translate("TensorScatter")
def tensor_scatter(node: Node, cache: Array, update: Array, start: Array | None = None) -> Array:
    """One update a batch element, each at a start of its own along the axis: the write of a key-value cache."""
    if node.attr("mode", "linear") != "linear":
        raise Unsupported("a ring buffer is written as two DynamicUpdateSlice")
    axis = node.attr("axis", -2) % cache.ndim
    rows: Sequence[int] = [0] * cache.shape[0] if start is None else ints(start)
    for batch, first in enumerate(rows):
        begin = np.array([batch if a == 0 else first if a == axis else 0 for a in range(cache.ndim)], np.int64)
        one = node.emit("Slice", update, begin=(batch,) + (0,) * (cache.ndim - 1), size=(1,) + (-1,) * (cache.ndim - 1))
        cache = node.emit("DynamicUpdateSlice", cache, one, begin)
    return cache


@translate("ScatterND")
def scatter_nd(node: Node, data: Array, indices: Array, updates: Array) -> Array:
    """With reduction "add": what ScatterNd gives, on top of the data."""
    if node.attr("reduction", "none") != "add":
        raise Unsupported("ScatterNd adds; it neither overwrites nor multiplies")
    sums = node.emit("ScatterNd", indices, updates, np.array(data.shape, np.int64))
    return node.emit("Add", data, sums)
