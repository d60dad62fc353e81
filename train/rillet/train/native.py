"""The trainer's view of the engine: which ops have kernels, and regions compiled to run in it.

Without the native library nothing has a kernel, and everything runs by the references.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.lite.engine import Context, Model
from rillet.lite.library import kernels
from rillet.lite.single import has_kernel, needs_scales
from rillet.lite.writer import write_model
from rillet.shared_ops.op import Op
from rillet.shared_ops.program import Program
from rillet.shared_ops.types import DTYPE_NAMES, Array


@dataclass(frozen=True)
class KernelInfo:
    """may_alias: the output may be the input's bytes under another shape."""

    may_alias: bool


def kernel_of(op: Op, dtype: np.dtype[Any]) -> KernelInfo | None:
    """The engine's kernel for an op on plain numbers, chosen by `kernel_dtype`."""
    if not has_kernel(op, dtype) or needs_scales(op, dtype):
        return None
    table = kernels()
    # Only kernels that move bytes, whatever these mean, can pass their input through.
    return KernelInfo(may_alias=(op.name, op.version, DTYPE_NAMES[dtype]) not in table)


class Region:
    """A Program of static shapes in the engine, with its variables bound to the session's buffers."""

    def __init__(self, program: Program, threads: int, buffers: Sequence[Array]) -> None:
        self._context = Context(Model(write_model(program)), threads)
        for i, buffer in enumerate(buffers):
            self._context.bind_variable(i, buffer)
        self._context.prepare()
        self._inputs = [self._context.input(i) for i in range(len(program.inputs))]
        self._outputs = [self._context.output(i) for i in range(len(program.outputs))]

    @property
    def context(self) -> Context:
        """The engine's context, for its profile and memory figures."""
        return self._context

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Runs once; the outputs are new arrays."""
        for memory, x in zip(self._inputs, inputs):
            memory[...] = x
        self._context.run()
        return [y.copy() for y in self._outputs]
