"""The operators of tensors and variables: each adds a node."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from rillet.train.indexing import strided_slice_attrs


class Arithmetic:
    """`+ - * / ** @`, comparisons and indexing, for what an op takes as an input; and no way to take it for a value."""

    # NumPy arrays on the left of an operator must hand over to ours.
    __array_ufunc__ = None

    @property
    @abstractmethod
    def ndim(self) -> int: ...

    @abstractmethod
    def __rillet_emit__(self, op: str, *inputs: Any, name: str | None = None, **attrs: Any) -> Any: ...

    def __add__(self, other: Any) -> Any:
        return self.__rillet_emit__("Add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.__rillet_emit__("Add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self.__rillet_emit__("Sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.__rillet_emit__("Sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.__rillet_emit__("Mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.__rillet_emit__("Mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self.__rillet_emit__("RealDiv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.__rillet_emit__("RealDiv", other, self)

    def __pow__(self, other: Any) -> Any:
        return self.__rillet_emit__("Pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self.__rillet_emit__("Pow", other, self)

    def __matmul__(self, other: Any) -> Any:
        return self.__rillet_emit__("MatMul" if self.ndim == 2 else "BatchMatMul", self, other)

    def __neg__(self) -> Any:
        return self.__rillet_emit__("Neg", self)

    def __lt__(self, other: Any) -> Any:
        return self.__rillet_emit__("Less", self, other)

    def __le__(self, other: Any) -> Any:
        return self.__rillet_emit__("LessEqual", self, other)

    def __gt__(self, other: Any) -> Any:
        return self.__rillet_emit__("Greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return self.__rillet_emit__("GreaterEqual", self, other)

    def __getitem__(self, key: Any) -> Any:
        return self.__rillet_emit__("StridedSlice", self, **strided_slice_attrs(key, self.ndim))

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} has no truth value while the graph is built; run it, or use ops.select.")

    def __iter__(self) -> Any:
        raise TypeError(f"{self!r} cannot be iterated; use ops.split, or index it.")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(f"{self!r} has no value while the graph is built; fetch it with session.run.")

    def __len__(self) -> int:
        raise TypeError(f"{self!r} has no length; its first dimension is .shape[0].")
