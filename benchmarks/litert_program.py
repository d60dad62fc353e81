"""Writes a Program of networks.py, float or int8, as a .tflite file: LiteRT then runs the same weights."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from rillet.shared_ops.program import Application, Program, Value

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from oracles.litert import LiteRtModel, Quant, Ref, quant


def quant_of(value: Value) -> Quant | None:
    return None if value.quant is None else quant(value.quant.scale, value.quant.zero_point)


class Converter:
    """One .tflite model out of one Program."""

    def __init__(self, program: Program) -> None:
        self.program, self.model, self.refs = program, LiteRtModel(), {}  # type: ignore[var-annotated]

    def convert(self) -> bytes:
        for name in self.program.inputs:
            value = self.program.values[name]
            self.refs[name] = self.model.input(value.type.shape, value.type.dtype, quant_of(value))
        for a in self.program:
            self.refs[a.outputs[0]] = getattr(self, a.op.name)(a, self.program.output_values(a)[0])
        return self.model.bytes(*(self.refs[n] for n in self.program.outputs))

    def x(self, a: Application, i: int = 0) -> Ref:
        return self.refs[a.inputs[i]]  # type: ignore[no-any-return]

    def weights(self, a: Application) -> tuple[Any, Any, Any]:
        """Filter, bias, and the filter's scales (None in float)."""
        w = self.program.values[str(a.inputs[1])]
        bias = self.program.values[str(a.inputs[2])].constant if len(a.inputs) > 2 and a.inputs[2] else None
        return w.constant, bias, None if w.quant is None else w.quant.scale

    def Conv2D(self, a: Application, y: Value) -> Ref:
        w, bias, scale = self.weights(a)
        return self.model.conv2d(
            self.x(a), w, bias, a.attrs.strides, a.attrs.padding, a.attrs.activation, quant_of(y), scale
        )

    def DepthwiseConv2D(self, a: Application, y: Value) -> Ref:
        w, bias, scale = self.weights(a)
        return self.model.depthwise_conv2d(
            self.x(a), w, bias, a.attrs.strides, a.attrs.padding, a.attrs.activation, quant_of(y), scale
        )

    def MatMul(self, a: Application, y: Value) -> Ref:
        w, bias, scale = self.weights(a)
        return self.model.fully_connected(self.x(a), w, bias, a.attrs.activation, quant_of(y), scale)

    def Add(self, a: Application, y: Value) -> Ref:
        return self.model.binary("Add", self.x(a), self.x(a, 1), a.attrs.activation, quant_of(y))

    def Mean(self, a: Application, y: Value) -> Ref:
        kept = self.model.mean(self.x(a), a.attrs.axes, quant_of(y))
        return self.model.reshape(kept, y.type.shape)

    def Softmax(self, a: Application, y: Value) -> Ref:
        return self.model.softmax(self.x(a))

    def Quantize(self, a: Application, y: Value) -> Ref:
        q = quant_of(y)
        assert q is not None
        return self.model.quantize(self.x(a), q)

    def Dequantize(self, a: Application, y: Value) -> Ref:
        return self.model.dequantize(self.x(a))


def litert_bytes(program: Program) -> bytes:
    """The .tflite file of a Program."""
    return Converter(program).convert()


def image(shape: tuple[int, ...]) -> Any:
    """The benchmark's input: a smooth random picture in [-1, 1]."""
    rng = np.random.default_rng(7)
    return np.tanh(rng.standard_normal(shape)).astype(np.float32)
