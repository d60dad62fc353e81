"""The trainer's view of the engine: which ops have kernels, and regions compiled to run in it.

Without the native library nothing has a kernel, and everything runs by the references.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rillet.shared_ops.op import Op
from rillet.shared_ops.program import Program
from rillet.shared_ops.types import DTYPE_NAMES, Array


@dataclass(frozen=True)
class KernelInfo:
    """alias: the output is the input's bytes under another shape."""

    alias: bool


@lru_cache(maxsize=1)
def _kernels() -> dict[tuple[str, int, str], KernelInfo]:
    return {}


def kernel_of(op: Op, dtype: np.dtype[Any]) -> KernelInfo | None:
    """The engine's kernel for an op whose first input has this dtype."""
    table = _kernels()
    return table.get((op.name, op.version, DTYPE_NAMES[dtype])) or table.get((op.name, op.version, "any"))


class Region:
    """A Program in the engine, with its variables bound to the session's buffers."""

    def __init__(self, program: Program, threads: int, buffers: Sequence[Array]) -> None:
        raise NotImplementedError

    def run(self, inputs: list[Array]) -> list[Array]:
        raise NotImplementedError
