"""LiteRT as an outside yardstick: writes .tflite models op by op and runs them with LiteRT's default interpreter.

Layer methods take weights in rillet's layouts (HWIO, HWCM, [K, N]) and write them in LiteRT's. Every tensor may carry
quantization; a model of float tensors only is a float model.

    model = LiteRtModel()
    x = model.input((1, 224, 224, 3), np.int8, quant(0.02, -5))
    y = model.conv2d(x, w, bias, (2, 2), "SAME", "RELU6", quant(0.023, -128), w_scale)
    (result,) = run_litert(model.bytes(y), [image])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Quant:
    """scale: one, or one a channel along `axis`."""

    scale: Array
    zero_point: int = 0
    axis: int = 0


def quant(scale: float | Array, zero_point: int = 0, axis: int = 0) -> Quant:
    return Quant(np.atleast_1d(np.asarray(scale, np.float32)), zero_point, axis)


@dataclass(frozen=True)
class Ref:
    """A tensor of a model being written."""

    index: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    quant: Quant | None


# The lowest op version that takes int8 with every feature used here; float models run under them as well.
VERSIONS = {
    "CONV_2D": 3,
    "TRANSPOSE_CONV": 3,
    "DEPTHWISE_CONV_2D": 3,
    "FULLY_CONNECTED": 5,
    "SUB": 4,
    "QUANTIZE": 1,
    "RESHAPE": 1,
}


class LiteRtModel:
    """Collects tensors and ops; `bytes(*outputs)` is the file."""

    def __init__(self) -> None:
        from ai_edge_litert import schema_py_generated as schema

        self.schema: Any = schema
        self.buffers: list[Any] = [schema.BufferT()]
        self.tensors: list[Any] = []
        self.operators: list[Any] = []
        self.codes: dict[str, int] = {}
        self.inputs: list[int] = []

    # -- tensors --

    def tensor(self, shape: Sequence[int], dtype: Any, q: Quant | None = None, data: Array | None = None) -> Ref:
        s, dtype = self.schema, np.dtype(dtype)
        kinds = {"f4": s.TensorType.FLOAT32, "i1": s.TensorType.INT8, "i4": s.TensorType.INT32}
        t = s.TensorT()
        t.name, t.shape, t.type, t.buffer = f"t{len(self.tensors)}", list(shape), kinds[dtype.str[1:]], 0
        if data is not None:
            buffer = s.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data, dtype).tobytes(), np.uint8)
            t.buffer = len(self.buffers)
            self.buffers.append(buffer)
        if q is not None:
            p = s.QuantizationParametersT()
            p.scale, p.zeroPoint = q.scale.tolist(), [q.zero_point] * q.scale.size
            p.quantizedDimension = q.axis
            t.quantization = p
        self.tensors.append(t)
        return Ref(len(self.tensors) - 1, tuple(shape), dtype, q)

    def input(self, shape: Sequence[int], dtype: Any, q: Quant | None = None) -> Ref:
        ref = self.tensor(shape, dtype, q)
        self.inputs.append(ref.index)
        return ref

    def constant(self, data: Array, q: Quant | None = None) -> Ref:
        return self.tensor(data.shape, data.dtype, q, data)

    # -- ops --

    def op(self, name: str, inputs: Sequence[Ref | None], output: Ref, options: str = "", **fields: Any) -> Ref:
        """Any builtin op: `options` names its options table, `fields` are that table's fields."""
        s = self.schema
        o = s.OperatorT()
        o.opcodeIndex = self.codes.setdefault(name, len(self.codes))
        o.inputs, o.outputs = [-1 if r is None else r.index for r in inputs], [output.index]
        if options:
            o.builtinOptionsType = getattr(s.BuiltinOptions, options)
            o.builtinOptions = getattr(s, options + "T")()
            for key, value in fields.items():
                setattr(o.builtinOptions, key, value)
        self.operators.append(o)
        return output

    def activation(self, name: str) -> int:
        return int(getattr(self.schema.ActivationFunctionType, name))

    def _bias(self, bias: Array | None, x: Ref, w: Quant | None) -> Ref | None:
        if bias is None:
            return None
        if x.quant is None or w is None:
            return self.constant(bias.astype(np.float32))
        return self.constant(bias.astype(np.int32), quant(x.quant.scale * w.scale))

    def conv2d(
        self,
        x: Ref,
        w_HWIO: Array,
        bias: Array | None,
        strides: tuple[int, int] = (1, 1),
        padding: str = "SAME",
        activation: str = "NONE",
        out: Quant | None = None,
        w_scale: Array | None = None,
    ) -> Ref:
        """w_scale: one an output channel, for int8 weights."""
        q = None if w_scale is None else quant(w_scale, 0, 0)
        w = self.constant(np.ascontiguousarray(w_HWIO.transpose(3, 0, 1, 2)), q)
        y = self._windowed(x, w_HWIO.shape[:2], w_HWIO.shape[3], strides, padding, out)
        return self.op("CONV_2D", (x, w, self._bias(bias, x, q)), y, "Conv2DOptions",
                       **self._window_fields(strides, padding, activation))  # fmt: skip

    def depthwise_conv2d(
        self,
        x: Ref,
        w_HWCM: Array,
        bias: Array | None,
        strides: tuple[int, int] = (1, 1),
        padding: str = "SAME",
        activation: str = "NONE",
        out: Quant | None = None,
        w_scale: Array | None = None,
    ) -> Ref:
        """w_scale: one an output channel (c * M + m)."""
        h, v, c, m = w_HWCM.shape
        q = None if w_scale is None else quant(w_scale, 0, 3)
        w = self.constant(w_HWCM.reshape(1, h, v, c * m), q)
        y = self._windowed(x, (h, v), c * m, strides, padding, out)
        return self.op("DEPTHWISE_CONV_2D", (x, w, self._bias(bias, x, q)), y, "DepthwiseConv2DOptions",
                       depthMultiplier=m, **self._window_fields(strides, padding, activation))  # fmt: skip

    def conv2d_transpose(
        self,
        x: Ref,
        w_HWOI: Array,
        bias: Array,
        shape: Sequence[int],
        strides: tuple[int, int],
        padding: str,
        activation: str,
        out: Quant | None = None,
        w_scale: Array | None = None,
    ) -> Ref:
        """shape: of the output. w_scale: one an output channel."""
        q = None if w_scale is None else quant(w_scale, 0, 0)
        w = self.constant(np.ascontiguousarray(w_HWOI.transpose(2, 0, 1, 3)), q)
        fields = self._window_fields(strides, padding, activation)
        del fields["dilationHFactor"], fields["dilationWFactor"]
        size = self.constant(np.array(shape, np.int32))
        y = self.tensor(shape, x.dtype, out)
        return self.op("TRANSPOSE_CONV", (size, w, x, self._bias(bias, x, q)), y, "TransposeConvOptions", **fields)

    def pool2d(
        self, kind: str, x: Ref, ksize: tuple[int, int], strides: tuple[int, int], padding: str = "VALID"
    ) -> Ref:
        """kind: MAX or AVERAGE."""
        fields = self._window_fields(strides, padding, "NONE")
        del fields["dilationHFactor"], fields["dilationWFactor"]
        y = self._windowed(x, ksize, x.shape[3], strides, padding, x.quant)
        return self.op(
            f"{kind}_POOL_2D", (x,), y, "Pool2DOptions", filterHeight=ksize[0], filterWidth=ksize[1], **fields
        )

    def _window_fields(self, strides: tuple[int, int], padding: str, activation: str) -> dict[str, int]:
        return {
            "padding": getattr(self.schema.Padding, padding),
            "strideH": strides[0],
            "strideW": strides[1],
            "dilationHFactor": 1,
            "dilationWFactor": 1,
            "fusedActivationFunction": self.activation(activation),
        }

    def _windowed(
        self, x: Ref, ksize: Sequence[int], channels: int, strides: tuple[int, int], padding: str, out: Quant | None
    ) -> Ref:
        size = [-(-n // s) if padding == "SAME" else (n - k) // s + 1 for n, k, s in zip(x.shape[1:3], ksize, strides)]
        return self.tensor((x.shape[0], *size, channels), x.dtype, out)

    def fully_connected(
        self,
        x: Ref,
        w_KN: Array,
        bias: Array | None,
        activation: str = "NONE",
        out: Quant | None = None,
        w_scale: Array | None = None,
    ) -> Ref:
        """x: [M, K]. w_scale: one a column."""
        q = None if w_scale is None else quant(w_scale, 0, 0)
        w = self.constant(np.ascontiguousarray(w_KN.T), q)
        y = self.tensor((x.shape[0], w_KN.shape[1]), x.dtype, out)
        return self.op("FULLY_CONNECTED", (x, w, self._bias(bias, x, q)), y, "FullyConnectedOptions",
                       fusedActivationFunction=self.activation(activation))  # fmt: skip

    def binary(self, name: str, a: Ref, b: Ref, activation: str = "NONE", out: Quant | None = None) -> Ref:
        """name: Add, Sub or Mul."""
        y = self.tensor(np.broadcast_shapes(a.shape, b.shape), a.dtype, out)
        return self.op(name.upper(), (a, b), y, name + "Options", fusedActivationFunction=self.activation(activation))

    def mean(self, x: Ref, axes: Sequence[int], out: Quant | None = None) -> Ref:
        """Dimensions are kept."""
        y = self.tensor([1 if i in axes else d for i, d in enumerate(x.shape)], x.dtype, out)
        return self.op("MEAN", (x, self.constant(np.array(axes, np.int32))), y, "ReducerOptions", keepDims=True)

    def reshape(self, x: Ref, shape: Sequence[int]) -> Ref:
        y = self.tensor(shape, x.dtype, x.quant)
        return self.op("RESHAPE", (x, self.constant(np.array(shape, np.int32))), y, "ReshapeOptions",
                       newShape=list(shape))  # fmt: skip

    def softmax(self, x: Ref) -> Ref:
        out = None if x.quant is None else quant(1 / 256, -128)
        return self.op("SOFTMAX", (x,), self.tensor(x.shape, x.dtype, out), "SoftmaxOptions", beta=1.0)

    def quantize(self, x: Ref, out: Quant) -> Ref:
        return self.op("QUANTIZE", (x,), self.tensor(x.shape, np.int8, out), "QuantizeOptions")

    def dequantize(self, x: Ref) -> Ref:
        return self.op("DEQUANTIZE", (x,), self.tensor(x.shape, np.float32), "DequantizeOptions")

    # -- the file --

    def bytes(self, *outputs: Ref) -> bytes:
        import flatbuffers

        s = self.schema
        graph, model = s.SubGraphT(), s.ModelT()
        graph.name, graph.tensors, graph.operators = "main", self.tensors, self.operators
        graph.inputs, graph.outputs = self.inputs, [o.index for o in outputs]
        model.version, model.subgraphs, model.buffers, model.operatorCodes = 3, [graph], self.buffers, []
        for name in self.codes:
            code = s.OperatorCodeT()
            code.builtinCode = getattr(s.BuiltinOperator, name)
            code.deprecatedBuiltinCode = min(code.builtinCode, 127)
            code.version = VERSIONS.get(name, 2)
            model.operatorCodes.append(code)
        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def litert_interpreter(model: bytes, threads: int = 1) -> Any:
    """LiteRT's interpreter with its default kernels, tensors allocated."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=model, num_threads=threads)
    interpreter.allocate_tensors()
    return interpreter


def run_litert(model: bytes, inputs: Sequence[Array], threads: int = 1) -> list[Array]:
    """The outputs of one run."""
    interpreter = litert_interpreter(model, threads)
    for detail, x in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]).copy() for d in interpreter.get_output_details()]
