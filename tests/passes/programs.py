"""A short way to write Programs by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from rillet.shared_ops.program import Program, run_reference
from rillet.shared_ops.registry import get_op
from rillet.shared_ops.types import TensorType


class Build:
    """`Build(x=(None, 4))` has inputs; a call applies an op to names and arrays; the last result is the output."""

    def __init__(self, **inputs: Any) -> None:
        self.program = Program()
        for name, shape in inputs.items():
            self.program.add_input(name, TensorType(np.dtype(np.float32), tuple(shape)))

    def __call__(self, op: str, *operands: Any, name: str = "", **attrs: Any) -> str:
        program = self.program
        names = [
            x if x is None or isinstance(x, str) else program.add_constant(program.fresh(f"c{i}"), np.asarray(x))
            for i, x in enumerate(operands)
        ]
        results = program.apply(get_op(op), names, name=name, source="net.py:1", **attrs)
        program.outputs = [results[0]]
        return results[0]


def floats(rng: np.random.Generator, *shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float32)


def ops_of(program: Program) -> list[str]:
    return [a.op.name for a in program]


def outputs(program: Program, **feeds: Any) -> list[Any]:
    return list(run_reference(program, feeds).values())
