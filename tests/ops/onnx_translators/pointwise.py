"""Pointwise ONNX ops: one input, arithmetic, comparisons, logic, Where, Clip and Cast."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from onnx import helper

from onnx_translators import Node, Unsupported, translate
from rillet.shared_ops.types import DTYPE_NAMES

SAME_NAME = (
    "Abs", "Neg", "Sign", "Sqrt", "Reciprocal", "Exp", "Log", "Sin", "Cos", "Erf", "Floor", "Ceil", "Round", "Relu",
    "Sigmoid", "Tanh", "HardSwish", "Softplus", "Add", "Sub", "Mul", "PRelu", "Equal", "Greater", "Less",
)  # fmt: skip
RENAMED = {
    "IsNaN": "IsNan",
    "Not": "LogicalNot",
    "And": "LogicalAnd",
    "Or": "LogicalOr",
    "Xor": "LogicalXor",
    "GreaterOrEqual": "GreaterEqual",
    "LessOrEqual": "LessEqual",
    "Where": "Select",
} | {name: name for name in SAME_NAME}


@translate(*RENAMED)
def renamed(node: Node, *inputs: Any) -> Any:
    if node.proto.op_type in ("Add", "Sub", "Mul") and inputs[0].dtype == np.int8:
        raise Unsupported("int8 stands for quantized values, which have scales")
    return node.emit(RENAMED[node.proto.op_type], *inputs)


# -- activations with attributes ------------------------------------------------------------------------------------


@translate("Gelu")
def gelu(node: Node, x: Any) -> Any:
    return node.emit("Gelu", x, approximate=node.attr("approximate", "none") == "tanh")


@translate("HardSigmoid")
def hard_sigmoid(node: Node, x: Any) -> Any:
    return node.emit("HardSigmoid", x, alpha=node.attr("alpha", 0.2), beta=node.attr("beta", 0.5))


@translate("LeakyRelu")
def leaky_relu(node: Node, x: Any) -> Any:
    return node.emit("LeakyRelu", x, alpha=node.attr("alpha", 0.01))


@translate("Elu")
def elu(node: Node, x: Any) -> Any:
    return node.emit("Elu", x, alpha=node.attr("alpha", 1.0))


@translate("Selu")
def selu(node: Node, x: Any) -> Any:
    alpha, gamma = node.attr("alpha", 1.67326319217681884765625), node.attr("gamma", 1.05070102214813232421875)
    return node.emit("Mul", node.emit("Elu", x, alpha=alpha), gamma)


@translate("Celu")
def celu(node: Node, x: Any) -> Any:
    alpha = node.attr("alpha", 1.0)
    return node.emit("Elu", node.emit("RealDiv", x, alpha), alpha=1.0) * np.float32(alpha)


@translate("Swish")
def swish(node: Node, x: Any) -> Any:
    alpha = node.attr("alpha", 1.0)
    return node.emit("Silu", x) if alpha == 1.0 else node.emit("Mul", x, node.emit("Sigmoid", x * np.float32(alpha)))


@translate("Mish")
def mish(node: Node, x: Any) -> Any:
    return node.emit("Mul", x, node.emit("Tanh", node.emit("Softplus", x)))


@translate("Softsign")
def softsign(node: Node, x: Any) -> Any:
    return node.emit("RealDiv", x, node.emit("Add", node.emit("Abs", x), 1.0))


# -- arithmetic -----------------------------------------------------------------------------------------------------


@translate("Div")
def div(node: Node, a: Any, b: Any) -> Any:
    if a.dtype.kind != "f":
        raise Unsupported("integer division that cuts off; FloorDiv rounds down")
    return node.emit("RealDiv", a, b)


@translate("Mod")
def mod(node: Node, a: Any, b: Any) -> Any:
    if node.attr("fmod", 0):
        raise Unsupported("the remainder with the sign of the dividend; FloorMod has the divisor's")
    return node.emit("FloorMod", a, b)


@translate("Pow")
def pow_(node: Node, a: Any, b: Any) -> Any:
    """ONNX lets the exponent have a dtype of its own."""
    return node.emit("Pow", a, node.emit("Cast", b, dtype=DTYPE_NAMES[a.dtype]))


@translate("Max", "Min")
def extreme(node: Node, *values: Any) -> Any:
    name = {"Max": "Maximum", "Min": "Minimum"}[node.proto.op_type]
    return reduce(lambda a, b: node.emit(name, a, b), values)


@translate("Sum")
def sum_(node: Node, *values: Any) -> Any:
    return node.emit("AddN", *values)


@translate("Mean")
def mean(node: Node, *values: Any) -> Any:
    return node.emit("RealDiv", node.emit("AddN", *values), float(len(values)))


# -- Clip and Cast --------------------------------------------------------------------------------------------------


@translate("Clip")
def clip(node: Node, x: Any, low: Any = None, high: Any = None) -> Any:
    """Constant bounds of floats are attributes; others are Maximum and Minimum."""
    if x.dtype.kind == "f" and low is not None and high is not None:
        return node.emit("ClipByValue", x, lo=float(low), hi=float(high))
    x = x if low is None else node.emit("Maximum", x, low)
    return x if high is None else node.emit("Minimum", x, high)


@translate("Cast")
def cast(node: Node, x: Any) -> Any:
    return node.emit("Cast", x, dtype=DTYPE_NAMES[np.dtype(helper.tensor_dtype_to_np_dtype(node.attr("to")))])


@translate("CastLike")
def cast_like(node: Node, x: Any, like: Any) -> Any:
    return node.emit("Cast", x, dtype=DTYPE_NAMES[like.dtype])
