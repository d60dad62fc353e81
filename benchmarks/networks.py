"""The networks that benchmarks run, as float Programs with random weights (batch norm already folded)."""

from __future__ import annotations

import numpy as np

from rillet.shared_ops.program import Program
from rillet.shared_ops.registry import get_op
from rillet.shared_ops.types import TensorType


class Builder:
    """Appends layers to a Program; He-scaled weights from one seeded generator: always the same network."""

    def __init__(self, name: str, shape: tuple[int, ...], seed: int = 0) -> None:
        self.program = Program(name)
        self.rng = np.random.default_rng(seed)
        self.count = 0
        self.x = self.program.add_input("image", TensorType(np.dtype(np.float32), shape))

    def channels(self, x: str) -> int:
        return int(self.program.values[x].type.shape[-1])  # type: ignore[arg-type]

    def _constant(self, shape: tuple[int, ...], deviation: float) -> str:
        self.count += 1
        array = (self.rng.standard_normal(shape) * deviation).astype(np.float32)
        return self.program.add_constant(f"weight{self.count}", array)

    def apply(self, op: str, *inputs: str, **attrs: object) -> str:
        self.count += 1
        return self.program.apply(get_op(op), inputs, name=f"{op.lower()}{self.count}", **attrs)[0]

    def conv(self, x: str, channels: int, kernel: int, stride: int = 1, activation: str = "NONE") -> str:
        c = self.channels(x)
        w = self._constant((kernel, kernel, c, channels), (2.0 / (kernel * kernel * c)) ** 0.5)
        b = self._constant((channels,), 0.02)
        return self.apply("Conv2D", x, w, b, strides=(stride, stride), padding="SAME", activation=activation)

    def depthwise(self, x: str, kernel: int, stride: int = 1, activation: str = "NONE") -> str:
        c = self.channels(x)
        w = self._constant((kernel, kernel, c, 1), (2.0 / (kernel * kernel)) ** 0.5)
        b = self._constant((c,), 0.02)
        return self.apply("DepthwiseConv2D", x, w, b, strides=(stride, stride), padding="SAME", activation=activation)

    def dense(self, x: str, channels: int) -> str:
        w = self._constant((self.channels(x), channels), self.channels(x) ** -0.5)
        return self.apply("MatMul", x, w, self._constant((channels,), 0.02))

    def done(self, x: str) -> Program:
        self.program.outputs.append(x)
        self.program.check()
        return self.program


def round_to_8(v: float) -> int:
    n = max(8, int(v + 4) // 8 * 8)
    return n + 8 if n < 0.9 * v else n


def mobilenet_v2(resolution: int = 224, width: float = 1.0, classes: int = 1000) -> Program:
    """MobileNetV2 (Sandler et al., 2018, table 2), batch 1, with softmax."""
    b = Builder(f"mobilenet_v2_{width}_{resolution}", (1, resolution, resolution, 3))
    x = b.conv(b.x, round_to_8(32 * width), 3, 2, "RELU6")
    blocks = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for expansion, channels, repeats, first_stride in blocks:
        out = round_to_8(channels * width)
        for repeat in range(repeats):
            c, y = b.channels(x), x
            if expansion != 1:
                y = b.conv(y, c * expansion, 1, 1, "RELU6")
            stride = first_stride if repeat == 0 else 1
            y = b.conv(b.depthwise(y, 3, stride, "RELU6"), out, 1)
            x = b.apply("Add", x, y) if stride == 1 and c == out else y
    x = b.conv(x, max(1280, round_to_8(1280 * width)), 1, 1, "RELU6")
    x = b.apply("Mean", x, axes=(1, 2))
    return b.done(b.apply("Softmax", b.dense(x, classes)))
