"""Layers: thin functions that make variables under a name scope and apply ops. Images are NHWC.

Variables take the dtype of what comes in.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from typing import Any, Literal, Union

import numpy as np

from rillet.shared_ops.functions import snake_case
from rillet.shared_ops.op import Op
from rillet.shared_ops.registry import all_ops
from rillet.train import initializers
from rillet.train.graph import GraphError
from rillet.train.initializers import Initializer
from rillet.train.tensor import Tensor
from rillet.train.variables import Variable

Padding = Literal["SAME", "VALID"]
# The name of an op in snake_case ("relu6"), or a function of a tensor.
Activation = Union[str, Callable[[Tensor], Tensor], None]
Size = Union[int, Sequence[int]]


def activate(x: Tensor, activation: Activation) -> Tensor:
    """`activation` applied: any op of one tensor by name ("relu", "relu6", "gelu", ...), a function, or None."""
    if activation is None:
        return x
    if callable(activation):
        return activation(x)
    known = {snake_case(op.name): op for op in all_ops() if _is_activation(op)}
    if activation not in known:
        close = difflib.get_close_matches(activation, known, n=5, cutoff=0.4)
        hint = f" Did you mean {', '.join(close)}?" if close else ""
        raise GraphError(f"no activation {activation!r}: expected an op of one tensor, or a function.{hint}")
    result: Tensor = x.graph.emit(known[activation].name, x)
    return result


def _is_activation(op: Op) -> bool:
    """One tensor in, one like it out, which a gradient can pass, and no attribute that must be given."""
    one = len(op.inputs) == len(op.outputs) == 1 and op.gradient is not None
    return one and all(f.default is not MISSING for f in fields(op.attrs))


def _pair(size: Size) -> tuple[int, int]:
    if isinstance(size, int):
        return size, size
    rows, columns = size
    return rows, columns


def _channels(x: Tensor, layer: str) -> int:
    """The last dimension, which must be known: variables have its size."""
    if not isinstance(x.shape[-1], int):
        raise GraphError(f"{layer} needs to know the last dimension of {x!r}; give its placeholder a number there.")
    return x.shape[-1]


def dense(
    x: Tensor,
    units: int,
    *,
    activation: Activation = None,
    use_bias: bool = True,
    initializer: Initializer = initializers.glorot_uniform,
    name: str = "dense",
) -> Tensor:
    """x @ kernel + bias, then the activation. x: [..., n] -> [..., units]."""
    graph, width = x.graph, _channels(x, "dense")
    with graph.name_scope(name):
        kernel = Variable(initializer, (width, units), name="kernel", dtype=x.dtype, graph=graph)
        # One product of matrices for all leading axes: its gradients are products too, and export can fuse the bias.
        y = graph.emit("MatMul", x if x.ndim == 2 else graph.emit("Reshape", x, np.array([-1, width])), kernel)
        y = activate(_biased(y, units) if use_bias else y, activation)
        return y if x.ndim == 2 else _with_leading_axes(y, x)


def _with_leading_axes(y: Tensor, like: Tensor) -> Tensor:
    """[product, units] -> [..., units] with the leading axes of `like`, of which one may be unknown."""
    leading = [d if isinstance(d, int) else -1 for d in like.shape[:-1]]
    shape: Any = np.array([*leading, y.shape[-1]], np.int64)
    if leading.count(-1) > 1:
        emit = y.graph.emit
        known = emit("Slice", emit("Shape", like), begin=(0,), size=(like.ndim - 1,))
        units = np.array([y.shape[-1]], known.dtype)
        shape = emit("Concat", known, units, axis=0)
    result: Tensor = y.graph.emit("Reshape", y, shape)
    return result


def _biased(y: Tensor, channels: int) -> Tensor:
    bias = Variable(initializers.zeros, (channels,), name="bias", dtype=y.dtype, graph=y.graph)
    result: Tensor = y.graph.emit("BiasAdd", y, bias)
    return result


def conv2d(  # noqa: PLR0913 - all but three are keywords
    x: Tensor,
    filters: int,
    size: Size = 3,
    *,
    strides: Size = 1,
    dilations: Size = 1,
    padding: Padding = "SAME",
    groups: int = 1,
    activation: Activation = None,
    use_bias: bool = True,
    initializer: Initializer = initializers.he_normal,
    name: str = "conv2d",
) -> Tensor:
    """Convolution. x: [n, rows, columns, channels] -> [n, rows', columns', filters]."""
    graph = x.graph
    with graph.name_scope(name):
        shape = (*_pair(size), _channels(x, "conv2d") // groups, filters)
        kernel = Variable(initializer, shape, name="kernel", dtype=x.dtype, graph=graph)
        attrs: dict[str, Any] = {
            "strides": _pair(strides),
            "dilations": _pair(dilations),
            "padding": padding,
            "groups": groups,
        }
        y = graph.emit("Conv2D", x, kernel, **attrs)
        return activate(_biased(y, filters) if use_bias else y, activation)


def depthwise_conv2d(
    x: Tensor,
    size: Size = 3,
    *,
    multiplier: int = 1,
    strides: Size = 1,
    padding: Padding = "SAME",
    activation: Activation = None,
    use_bias: bool = True,
    initializer: Initializer | None = None,
    name: str = "depthwise_conv2d",
) -> Tensor:
    """Each channel convolved by itself, with `multiplier` filters a channel."""
    graph = x.graph
    with graph.name_scope(name):
        rows, columns = _pair(size)
        channels = _channels(x, "depthwise_conv2d")
        # A filter sees one channel: its fan in is rows * columns.
        initializer = initializer or initializers.truncated_normal(math.sqrt(2.0 / (rows * columns)))
        kernel = Variable(initializer, (rows, columns, channels, multiplier), name="kernel", dtype=x.dtype, graph=graph)
        y = graph.emit("DepthwiseConv2D", x, kernel, strides=_pair(strides), padding=padding)
        return activate(_biased(y, channels * multiplier) if use_bias else y, activation)


def separable_conv2d(
    x: Tensor,
    filters: int,
    size: Size = 3,
    *,
    strides: Size = 1,
    padding: Padding = "SAME",
    activation: Activation = None,
    name: str = "separable_conv2d",
) -> Tensor:
    """A depthwise convolution, then a 1x1 convolution."""
    with x.graph.name_scope(name):
        y = depthwise_conv2d(x, size, strides=strides, padding=padding, use_bias=False, name="depthwise")
        return conv2d(y, filters, 1, activation=activation, name="pointwise")


def batch_norm(
    x: Tensor,
    *,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    activation: Activation = None,
    name: str = "batch_norm",
) -> Tensor:
    """Normalises each channel over the batch; moving averages are kept by the same operation, for inference."""
    graph, c = x.graph, _channels(x, "batch_norm")
    with graph.name_scope(name):
        scale = Variable(initializers.ones, (c,), name="scale", dtype=x.dtype, graph=graph)
        offset = Variable(initializers.zeros, (c,), name="offset", dtype=x.dtype, graph=graph)
        kept: dict[str, Any] = {"trainable": False, "dtype": x.dtype, "graph": graph}
        mean = Variable(initializers.zeros, (c,), name="moving_mean", **kept)
        variance = Variable(initializers.ones, (c,), name="moving_variance", **kept)
        attrs: dict[str, Any] = {"momentum": momentum, "epsilon": epsilon}
        y, _, _ = graph.emit("BatchNormTraining", x, scale, offset, mean, variance, **attrs)
        return activate(y, activation)


def layer_norm(x: Tensor, *, epsilon: float = 1e-5, name: str = "layer_norm") -> Tensor:
    """Normalises over the last axis."""
    graph, c = x.graph, _channels(x, "layer_norm")
    with graph.name_scope(name):
        scale = Variable(initializers.ones, (c,), name="scale", dtype=x.dtype, graph=graph)
        offset = Variable(initializers.zeros, (c,), name="offset", dtype=x.dtype, graph=graph)
        result: Tensor = graph.emit("LayerNorm", x, scale, offset, epsilon=epsilon)
        return result


def dropout(x: Tensor, rate: float, *, name: str = "dropout") -> Tensor:
    """Sets a share `rate` of the elements to zero and scales the others up; nothing in inference."""
    result: Tensor = x.graph.emit("Dropout", x, x.graph.step, rate=rate, name=name)
    return result


def embedding(
    indices: Tensor,
    vocabulary: int,
    width: int,
    *,
    initializer: Initializer | None = None,
    name: str = "embedding",
) -> Tensor:
    """Rows of a table. indices: integers [...] -> [..., width]."""
    graph = indices.graph
    with graph.name_scope(name):
        table = Variable(
            initializer or initializers.uniform(-0.05, 0.05), (vocabulary, width), name="table", graph=graph
        )
        result: Tensor = graph.emit("Gather", table, indices, axis=0)
        return result


def max_pool(x: Tensor, size: Size = 2, *, strides: Size | None = None, padding: Padding = "VALID") -> Tensor:
    """The largest of each window; strides default to the window's size."""
    return _pool("MaxPool", x, size, strides, padding)


def avg_pool(x: Tensor, size: Size = 2, *, strides: Size | None = None, padding: Padding = "VALID") -> Tensor:
    """The mean of each window (padding not counted)."""
    return _pool("AvgPool", x, size, strides, padding)


def _pool(op: str, x: Tensor, size: Size, strides: Size | None, padding: Padding) -> Tensor:
    ksize = _pair(size)
    result: Tensor = x.graph.emit(
        op, x, ksize=ksize, strides=ksize if strides is None else _pair(strides), padding=padding
    )
    return result


def global_average_pool(x: Tensor) -> Tensor:
    """[n, rows, columns, channels] -> [n, channels]."""
    result: Tensor = x.graph.emit("Mean", x, axes=(1, 2))
    return result


def flatten(x: Tensor) -> Tensor:
    """[n, ...] -> [n, product of the rest]."""
    rest = x.shape[1:]
    if not all(isinstance(d, int) for d in rest):
        raise GraphError(f"flatten needs to know all dimensions of {x!r} but the first.")
    width = math.prod(d for d in rest if isinstance(d, int))
    result: Tensor = x.graph.emit("Reshape", x, np.array([-1, width], np.int32))
    return result
