"""Applies ops to arrays at once. The yardstick for every other executor, and what `ops.<name>(array, ...)` calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rillet.shared_ops.conversion import as_number
from rillet.shared_ops.op import Op
from rillet.shared_ops.registry import get_op
from rillet.shared_ops.types import Array, type_of

# A faster way to apply an op to arrays, or NotImplemented where it has none. rillet.train sets it to the engine.
Backend = Callable[[Op, Any, tuple[Any, ...]], Any]
_backend: Backend | None = None


def set_backend(backend: Backend | None) -> None:
    """Makes eager calls try `backend` before the reference."""
    global _backend
    _backend = backend


def as_arrays(inputs: tuple[Any, ...], op: str = "constant") -> tuple[Array | None, ...]:
    """Inputs of `op` as arrays; Python numbers take the dtype of the first array among them (float32 if none).

    Raises OpError where that dtype cannot hold the number.
    """
    dtype = next((x.dtype for x in inputs if isinstance(x, (np.ndarray, np.generic))), None)

    def one(x: Any) -> Any:
        if x is None or hasattr(x, "dtype"):
            return np.asarray(x) if isinstance(x, np.generic) else x
        if isinstance(x, (bool, int, float)):
            if dtype is not None:
                return as_number(op, x, dtype)
            return np.asarray(x, np.float32 if isinstance(x, float) else None)
        array = np.asarray(x)
        return array.astype(np.float32) if array.dtype == np.float64 and dtype != np.float64 else array

    return tuple(one(x) for x in inputs)


def apply(name: str, *inputs: Any, **attrs: Any) -> Any:
    """Applies op `name` with its reference (or the backend): one array, or a tuple where the op has several outputs.

    Example:
        >>> apply("Relu", np.array([-1.0, 2.0], np.float32))
        array([0., 2.], dtype=float32)
    """
    op = get_op(name)
    record = op.make_attrs(attrs)
    arrays = as_arrays(inputs, name)
    op.infer_types(record, tuple(None if x is None else type_of(x) for x in arrays))
    results: Any = NotImplemented
    if _backend is not None:
        results = _backend(op, record, arrays)
    if results is NotImplemented:
        results = op.compute(np, record, *arrays)
    return results if len(results) != 1 else results[0]


def reference(name: str, *inputs: Any, **attrs: Any) -> Any:
    """`apply`, but always with the reference kernel and without inference: the Emit that tests use."""
    op = get_op(name)
    results = op.compute(np, op.make_attrs(attrs), *as_arrays(inputs, name))
    return results if len(results) != 1 else results[0]
