"""Small models that the tests of lite/ share: a float net with shape arithmetic, and an int8 net."""

from __future__ import annotations

from typing import Any

import numpy as np

from rillet.shared_ops.program import Program
from rillet.shared_ops.registry import get_op
from rillet.shared_ops.types import QuantParams, TensorType

F32 = np.dtype(np.float32)
Q = QuantParams.per_tensor


def apply(p: Program, op: str, *inputs: str | None, **attrs: Any) -> str:
    (out,) = p.apply(get_op(op), inputs, name=op.lower() + str(len(p.applications)), source="train.py:1", **attrs)
    return out


def weights(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 0.5, shape).astype(np.float32)


def float_model(batch: Any = 2) -> Program:
    """Image to class scores: convolutions, a residual, pool, a reshape by arithmetic on shapes, dense, softmax."""
    p = Program(metadata={"labels": '["cat", "dog", "eel", "fox"]'})
    x = p.add_input("image", TensorType(F32, (batch, 6, 6, 3)))
    w = p.add_constant("conv/w", weights(3, 3, 3, 8))
    b = p.add_constant("conv/b", weights(8))
    y = apply(p, "Conv2D", x, w, b, padding="SAME", activation="RELU6")
    d = apply(p, "Conv2D", y, p.add_constant("grouped/w", weights(3, 3, 2, 8)), padding="SAME", groups=4)
    y = apply(p, "Add", y, d)
    y = apply(p, "MaxPool", y, ksize=(2, 2), strides=(2, 2))
    shape = apply(p, "Shape", y)
    rows = apply(p, "Slice", shape, begin=(0,), size=(1,))
    shape = apply(p, "Concat", rows, p.add_constant("minus_one", np.array([-1], rows_dtype(p, rows))), axis=0)
    y = apply(p, "Reshape", y, shape)
    y = apply(p, "MatMul", y, p.add_constant("dense/w", weights(72, 4)))
    y = apply(p, "BiasAdd", y, p.add_constant("dense/b", weights(4)))
    p.outputs = [apply(p, "Softmax", y)]
    return p


def rows_dtype(p: Program, name: str) -> Any:
    return p.values[name].type.dtype


def int8_model() -> Program:
    """Quantize, convolution, residual add, average pool, dense, softmax, dequantize."""
    p = Program()

    def quantized(op: str, inputs: list[str], shape: tuple[int, ...], q: QuantParams, **attrs: Any) -> str:
        name = p.fresh(op.lower())
        types = [TensorType(np.dtype(np.int8), shape)]
        p.apply(get_op(op), inputs, name=name, outputs=[name], types=types, quants=[q], **attrs)
        return name

    def constant(name: str, *shape: int, dtype: Any = np.int8, q: QuantParams) -> str:
        return p.add_constant(name, np.random.default_rng(1).integers(-90, 90, shape).astype(dtype), q)

    x = p.add_input("image", TensorType(F32, (1, 6, 6, 3)))
    x = quantized("Quantize", [x], (1, 6, 6, 3), Q(0.03, 5))
    w = constant("w", 3, 3, 3, 8, q=QuantParams(np.full(8, 0.01, np.float32), 0, 3))
    b = constant("b", 8, dtype=np.int32, q=QuantParams(np.full(8, 0.0003, np.float32), 0, 0))
    y = quantized("Conv2D", [x, w, b], (1, 6, 6, 8), Q(0.05, -3), padding="SAME", activation="RELU")
    y = quantized("Add", [y, y], (1, 6, 6, 8), Q(0.1, -3))
    y = quantized("Mean", [y], (1, 8), Q(0.1, -3), axes=(1, 2))
    y = quantized("MatMul", [y, constant("dense", 8, 4, q=Q(0.02))], (1, 4), Q(0.08, 7))
    y = quantized("Softmax", [y], (1, 4), Q(1 / 256, -128))
    p.apply(get_op("Dequantize"), [y], outputs=["scores"], name="dequantize")
    p.outputs = ["scores"]
    return p
