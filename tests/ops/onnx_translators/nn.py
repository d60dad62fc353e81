"""ONNX reductions, pools, softmax, losses and norms. ONNX puts channels second; rillet puts them last."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnx_translators import Node, Unsupported, translate

# -- reductions -----------------------------------------------------------------------------------------------------

REDUCTIONS = {
    "ReduceSum": "Sum",
    "ReduceMean": "Mean",
    "ReduceMax": "Max",
    "ReduceMin": "Min",
    "ReduceProd": "Prod",
    "ReduceL2": "Norm",
    "ReduceLogSumExp": "LogSumExp",
    "ReduceL1": "Sum",
    "ReduceSumSquare": "Sum",
    "ReduceLogSum": "Sum",
}


def reduction_attrs(node: Node, axes: Any) -> dict[str, Any]:
    """Axes were an attribute before opset 13 (18 for most); an empty list means all, unless the node says nothing."""
    given = node.attr("axes") if axes is None else axes
    chosen = None if given is None else tuple(int(a) for a in given)
    if not chosen and not node.attr("noop_with_empty_axes", 0):
        chosen = None
    elif chosen is None:
        chosen = ()
    return {"axes": chosen, "keepdims": bool(node.attr("keepdims", 1))}


@translate(*REDUCTIONS)
def reduce(node: Node, x: Any, axes: Any = None) -> Any:
    kind, attrs = node.proto.op_type, reduction_attrs(node, axes)
    if x.dtype == np.bool_:
        return node.emit("Any" if kind == "ReduceMax" else "All", x, **attrs)
    if kind == "ReduceL1":
        x = node.emit("Abs", x)
    if kind == "ReduceSumSquare":
        x = node.emit("Square", x)
    y = node.emit(REDUCTIONS[kind], x, **attrs)
    return node.emit("Log", y) if kind == "ReduceLogSum" else y


@translate("GlobalAveragePool")
def global_average_pool(node: Node, x: Any) -> Any:
    return node.emit("Mean", x, axes=tuple(range(2, x.ndim)), keepdims=True)


@translate("GlobalMaxPool")
def global_max_pool(node: Node, x: Any) -> Any:
    return node.emit("Max", x, axes=tuple(range(2, x.ndim)), keepdims=True)


# -- pools ----------------------------------------------------------------------------------------------------------


def window(node: Node, size: tuple[int, ...]) -> dict[str, Any]:
    """Attributes of a rillet pool; `extra` are the rows and columns that ceil_mode adds at the end."""
    ksize = tuple(node.attr("kernel_shape"))
    strides = tuple(node.attr("strides", (1,) * len(size)))
    dilations = tuple(node.attr("dilations", (1,) * len(size)))
    flat = node.attr("pads", (0,) * 2 * len(size))
    pads = [(flat[i], flat[i + len(size)]) for i in range(len(size))]
    auto, extra = node.attr("auto_pad", "NOTSET"), []
    for i, n in enumerate(size):
        reach = (ksize[i] - 1) * dilations[i] + 1
        if auto.startswith("SAME"):
            total = max((-(-n // strides[i]) - 1) * strides[i] + reach - n, 0)
            pads[i] = (total // 2, total - total // 2) if auto == "SAME_UPPER" else (total - total // 2, total // 2)
        extra.append(ceil_padding(n, reach, strides[i], pads[i]) if node.attr("ceil_mode", 0) else 0)
    return {"ksize": ksize, "strides": strides, "dilations": dilations, "pads": pads, "extra": extra}


def ceil_padding(n: int, reach: int, stride: int, pads: tuple[int, int]) -> int:
    """A window more where one begins inside the image or its padding before, but ends beyond the padding after."""
    before, after = pads
    count = -(-(n + before + after - reach) // stride) + 1
    if (count - 1) * stride >= n + before:
        count -= 1
    return max((count - 1) * stride + reach - (n + before + after), 0)


@translate("MaxPool", "AveragePool")
def pool(node: Node, x: Any) -> Any:
    if x.ndim > 4:
        raise Unsupported("pools over three axes")
    if node.outputs > 1:
        raise Unsupported("MaxPool with the indices of the maxima")
    flat = x.ndim == 3
    attrs = window(node, x.shape[2:])
    if flat:
        x = node.emit("ExpandDims", x, axis=2)
        for name, one in (("ksize", 1), ("strides", 1), ("dilations", 1), ("pads", (0, 0)), ("extra", 0)):
            attrs[name] = (one, *attrs[name])
    x = node.emit("Transpose", x, perm=(0, 2, 3, 1))
    if node.attr("count_include_pad", 0):  # then the padding is part of the image
        x = node.emit("Pad", x, paddings=((0, 0), *attrs["pads"], (0, 0)))
        attrs["pads"] = ((0, 0), (0, 0))
    extra = attrs.pop("extra")
    attrs["pads"] = tuple((before, after + more) for (before, after), more in zip(attrs["pads"], extra))
    y = node.emit("MaxPool" if node.proto.op_type == "MaxPool" else "AvgPool", x, padding="EXPLICIT", **attrs)
    y = node.emit("Transpose", y, perm=(0, 3, 1, 2))
    return node.emit("Squeeze", y, axes=(2,)) if flat else y


# -- softmax and losses ---------------------------------------------------------------------------------------------


@translate("Softmax", "LogSoftmax")
def softmax(node: Node, x: Any) -> Any:
    return node.emit(node.proto.op_type, x, axis=node.attr("axis", -1))


def channels_last(node: Node, x: Any) -> Any:
    return node.emit("Transpose", x, perm=(0, *range(2, x.ndim), 1)) if x.ndim > 2 else x


def reduced_loss(node: Node, loss: Any, labels: Any, weights: Any, classes: int) -> Any:
    """Applies the weights of the classes and `ignore_index`, and the node's reduction."""
    ignored = node.attr("ignore_index")
    weight = np.ones(classes, loss.dtype) if weights is None else weights
    weight = node.emit("Gather", weight, known_labels(node, labels))
    if ignored is not None:
        used = node.emit("NotEqual", labels, np.asarray(ignored, labels.dtype))
        weight = node.emit("Select", used, weight, np.zeros(weight.shape, weight.dtype))
    loss = node.emit("Mul", loss, weight)
    reduction = node.attr("reduction", "mean")
    if reduction == "none":
        return loss
    total = node.emit("Sum", loss)
    return total if reduction == "sum" else node.emit("RealDiv", total, node.emit("Sum", weight))


def known_labels(node: Node, labels: Any) -> Any:
    """Ignored labels may lie outside the classes: 0 stands in for them."""
    ignored = node.attr("ignore_index")
    if ignored is None:
        return labels
    same = node.emit("Equal", labels, np.asarray(ignored, labels.dtype))
    return node.emit("Select", same, np.zeros(labels.shape, labels.dtype), labels)


@translate("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(node: Node, scores: Any, labels: Any, weights: Any = None) -> Any:
    logits = channels_last(node, scores)
    loss, _ = node.emit("SparseSoftmaxCrossEntropyWithLogits", logits, known_labels(node, labels))
    total = reduced_loss(node, loss, labels, weights, scores.shape[1])
    return (total, node.emit("LogSoftmax", scores, axis=1)) if node.outputs > 1 else total


@translate("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(node: Node, log_p: Any, labels: Any, weights: Any = None) -> Any:
    classes = log_p.shape[1]
    hot = node.emit("Equal", np.arange(classes), known_labels(node, labels)[..., None].astype(np.int64))
    picked = node.emit("Mul", channels_last(node, log_p), node.emit("Cast", hot, dtype="f32"))
    return reduced_loss(node, node.emit("Neg", node.emit("Sum", picked, axes=(-1,))), labels, weights, classes)


# -- norms ----------------------------------------------------------------------------------------------------------


@translate("LayerNormalization")
def layer_normalization(node: Node, x: Any, scale: Any, offset: Any = None) -> Any:
    axis, epsilon = node.attr("axis", -1), node.attr("epsilon", 1e-5)
    y = node.emit("LayerNorm", x, scale, offset, axis=axis, epsilon=epsilon)
    if node.outputs == 1:
        return y
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean = node.emit("Mean", x, axes=axes, keepdims=True)
    variance = node.emit("Mean", node.emit("Square", node.emit("Sub", x, mean)), axes=axes, keepdims=True)
    return y, mean, node.emit("Rsqrt", node.emit("Add", variance, np.float32(epsilon)))


@translate("RMSNormalization")
def rms_normalization(node: Node, x: Any, scale: Any) -> Any:
    return node.emit("RMSNorm", x, scale, axis=node.attr("axis", -1), epsilon=node.attr("epsilon", 1e-5))


@translate("BatchNormalization")
def batch_normalization(node: Node, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    if node.attr("training_mode", 0):
        raise Unsupported("ONNX's moving variance is the biased one")
    x = channels_last(node, x)
    y = node.emit("BatchNorm", x, scale, offset, mean, variance, epsilon=node.attr("epsilon", 1e-5))
    return node.emit("Transpose", y, perm=(0, y.ndim - 1, *range(1, y.ndim - 1)))


@translate("LpNormalization")
def lp_normalization(node: Node, x: Any) -> Any:
    axis = node.attr("axis", -1)
    if node.attr("p", 2) == 2:
        return node.emit("L2Normalize", x, axis=axis)
    total = node.emit("Sum", node.emit("Abs", x), axes=(axis,), keepdims=True)
    return node.emit("RealDiv", x, node.emit("Maximum", total, np.float32(1e-30)))  # zeros stay zeros


@translate("Dropout")
def dropout(node: Node, x: Any, ratio: Any = None, training: Any = None) -> Any:
    """In inference, which is all that node tests can ask for: nothing is dropped."""
    if training is not None and bool(training) and (ratio is None or float(ratio) > 0):
        raise Unsupported("the elements that are dropped depend on the generator")
    y = node.emit("Dropout", x, np.array(0, np.int64), rate=0.0)
    return (y, node.emit("Cast", node.emit("OnesLike", x), dtype="bool")) if node.outputs > 1 else y
