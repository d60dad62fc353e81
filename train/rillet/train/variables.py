"""Variables: mutable state of a session, read and updated by operations of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rillet.shared_ops.conversion import as_number, convert
from rillet.shared_ops.types import DTYPE_NAMES, Array, TensorType
from rillet.train.arithmetic import Arithmetic
from rillet.train.graph import Graph, GraphError, get_default_graph, stream_of
from rillet.train.initializers import Initializer
from rillet.train.source import user_source
from rillet.train.tensor import Operation, Tensor


class Variable(Arithmetic):
    """State that outlives a run. The session holds its buffer; operations read it and update it in place.

    initial: an array (or number), or an initializer such as `initializers.glorot_uniform` with a `shape`.
    `value` is what the variable held before the run updated it, unless a control dependency says otherwise.
    Arithmetic and ops take the variable as they take its value.

    Example:
        >>> from rillet.train import Graph, Session, Variable
        >>> with Graph().as_default():
        ...     count = Variable(np.zeros((), np.float32), name="count")
        ...     more = count.assign(count + 1.0)
        ...     session = Session()
        ...     session.initialize()
        ...     _ = session.run(more), session.run(more)
        ...     float(session.run(count))
        2.0
    """

    def __init__(
        self,
        initial: Initializer | Any,
        shape: Sequence[int] | None = None,
        *,
        name: str = "variable",
        dtype: Any = None,
        trainable: bool = True,
        graph: Graph | None = None,
    ) -> None:
        self.graph = graph or get_default_graph()
        self._initializer: Initializer | None = None
        self._initial: Array | None = None
        if callable(initial):
            if shape is None:
                raise GraphError(f"the variable {name!r} has an initializer and no shape; pass shape=(...).")
            self._initializer = initial
            dtype = np.dtype(dtype or np.float32)
        else:
            self._initial = self._as_initial(initial, dtype, shape)
            shape, dtype = self._initial.shape, self._initial.dtype
        if any(int(d) != d or d < 0 for d in shape):
            raise GraphError(f"shape of the variable {name!r}: got {tuple(shape)}, expected sizes of 0 or more.")
        if dtype not in DTYPE_NAMES:
            raise GraphError(f"the variable {name!r} cannot hold {dtype}; {', '.join(DTYPE_NAMES.values())} can be.")
        self.type = TensorType(dtype, tuple(int(d) for d in shape), variable=True)
        self.trainable = trainable and self.type.is_float
        self.name = self.graph.unique_name(name)
        self.source = user_source()
        self.handle: Tensor = self.graph.add_variable(self.name, self.type)
        self.graph.variables.append(self)
        # One read for all, outside of any control dependency: the value from before the run's updates.
        with self.graph.without_control():
            self.value: Tensor = self._read()

    @staticmethod
    def _as_initial(initial: Any, dtype: Any, shape: Sequence[int] | None) -> Array:
        array = np.array(initial, dtype)
        if dtype is None and array.dtype == np.float64 and not isinstance(initial, (np.ndarray, np.generic)):
            array = array.astype(np.float32)
        return array if shape is None else np.broadcast_to(array, tuple(shape)).copy()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(d) for d in self.type.shape if isinstance(d, int))

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    def initial_value(self) -> Array:
        """The value to start from: depends on the graph's seed and the variable's name, on nothing else."""
        if self._initializer is None:
            assert self._initial is not None
            return self._initial
        value = np.asarray(self._initializer(self.shape, self.graph.seed, stream_of(self.name)))
        if value.shape != self.shape:
            raise GraphError(
                f"the initializer of the variable {self.name!r} ({self.source}) gave shape {value.shape}, expected "
                f"{self.shape}."
            )
        fitting = convert(value, self.dtype)
        if fitting is None:
            raise GraphError(
                f"the initializer of {self.name!r} ({self.source}) gave values that {self.dtype} cannot hold."
            )
        return fitting

    def _read(self) -> Tensor:
        with self.graph.without_scope():
            tensor: Tensor = self.graph.emit("ReadVariable", self.handle, name=f"{self.name}/read")
        return tensor

    def read_value(self) -> Tensor:
        """A further read, under the control dependencies in force: after an update, it sees the new value."""
        return self._read()

    def assign(self, value: Any) -> Operation:
        """An operation that overwrites the variable."""
        return self._update("Assign", value)

    def assign_add(self, value: Any) -> Operation:
        return self._update("AssignAdd", value)

    def assign_sub(self, value: Any) -> Operation:
        return self._update("AssignSub", value)

    def _update(self, op: str, value: Any) -> Operation:
        if not isinstance(value, (Tensor, Variable)):
            value = self.graph.constant(as_number(op, value, self.dtype))
        operation: Operation = self.graph.emit(op, self.handle, value)
        return operation

    def __rillet_emit__(self, op: str, *inputs: Any, name: str | None = None, **attrs: Any) -> Any:
        return self.graph.emit(op, *inputs, name=name, **attrs)

    def __repr__(self) -> str:
        return f"<Variable {self.name!r} {self.type}>"


def trainable_variables(graph: Graph | None = None) -> list[Variable]:
    """The variables that optimizers train, in the order of their making."""
    return [v for v in (graph or get_default_graph()).variables if v.trainable]
