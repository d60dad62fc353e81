"""Ops on arrays, run at once by the engine's kernels: the same bits as in a graph."""

from __future__ import annotations

from typing import Any

from rillet.lite.library import is_available
from rillet.lite.single import apply_native
from rillet.shared_ops import eager
from rillet.shared_ops.op import Op


def _backend(op: Op, attrs: Any, arrays: tuple[Any, ...]) -> Any:
    return apply_native(op, attrs, arrays)


def use_engine(on: bool = True) -> None:
    """Lets `ops.<name>(array, ...)` use native kernels where there are any (`on`), or references only."""
    eager.set_backend(_backend if on and is_available() else None)
