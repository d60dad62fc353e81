"""The value types that every rillet folder speaks: dimensions, tensor types, quantization parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

# A dimension is a number, a name (two equal names are equal numbers, say "batch"), or None: known only at run time.
Dim = Union[int, str, None]
Shape = tuple[Dim, ...]
Array = NDArray[Any]

# The dtypes that live in graphs, with the names the C++ side and the file format use.
DTYPE_NAMES: dict[np.dtype[Any], str] = {
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.int8): "i8",
    np.dtype(np.uint8): "u8",
    np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64",
    np.dtype(np.bool_): "bool",
}
DTYPES: dict[str, np.dtype[Any]] = {name: dtype for dtype, name in DTYPE_NAMES.items()}


@dataclass(frozen=True)
class TensorType:
    """What is known of a tensor before it is computed.

    `value` is set for small integer scalars and vectors whose contents are (partly) known while the graph is built,
    such as the result of Shape: it lets Reshape and BroadcastTo infer their result. `variable` marks the handle of a
    variable: ops that update it in place take the handle, every other op takes the value that ReadVariable returns.
    """

    dtype: np.dtype[Any]
    shape: Shape
    value: tuple[Dim, ...] | None = None
    variable: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        return all(isinstance(d, int) for d in self.shape)

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"

    def contents(self) -> Array | None:
        """The value as an array of this type where every number of it is known, else None.

        >>> TensorType(np.dtype(np.int32), (2,), (4, 5)).contents()
        array([4, 5], dtype=int32)
        """
        if self.value is None or not all(isinstance(d, int) for d in self.value):
            return None
        return np.array(self.value if self.shape else self.value[0], self.dtype)

    def with_shape(self, shape: Sequence[Dim]) -> TensorType:
        """The same dtype with another shape; a known value is dropped."""
        return TensorType(self.dtype, tuple(shape))

    def with_dtype(self, dtype: Any) -> TensorType:
        return TensorType(np.dtype(dtype), self.shape)

    def plain(self) -> TensorType:
        """Without the known value and the variable mark."""
        return replace(self, value=None, variable=False)

    def __str__(self) -> str:
        dims = ", ".join("?" if d is None else str(d) for d in self.shape)
        return f"{DTYPE_NAMES.get(self.dtype, self.dtype)}[{dims}]"


def type_of(array: Array) -> TensorType:
    """The full type of an array; small integer scalars and vectors carry their value."""
    value = None
    if array.dtype.kind == "i" and array.ndim <= 1 and array.size <= 16:
        value = tuple(int(v) for v in array.reshape(-1))
    return TensorType(array.dtype, tuple(int(d) for d in array.shape), value)


@dataclass(frozen=True, eq=False)
class QuantParams:
    """real = scale * (quantized - zero_point).

    scale: float32 vector of one element (per tensor) or one per channel along `axis`. The zero point is always
    subtracted; per-channel parameters are symmetric (zero point 0).
    """

    scale: NDArray[np.float32]
    zero_point: int = 0
    axis: int | None = None

    @staticmethod
    def per_tensor(scale: float, zero_point: int = 0) -> QuantParams:
        return QuantParams(np.array([scale], np.float32), int(zero_point))

    def spread(self, rank: int) -> NDArray[np.float32]:
        """The scale, shaped to broadcast against a tensor of `rank` dimensions."""
        if self.axis is None:
            return self.scale.reshape((1,) * rank)
        return self.scale.reshape(tuple(-1 if i == self.axis else 1 for i in range(rank)))

    def same(self, other: QuantParams | None) -> bool:
        return (
            other is not None
            and self.zero_point == other.zero_point
            and self.axis == other.axis
            and np.array_equal(self.scale, other.scale)
        )
