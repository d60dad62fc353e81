"""What a graph consists of: operations, and the tensors that are their results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Op
from rillet.shared_ops.types import Array, Dim, Shape, TensorType
from rillet.train.arithmetic import Arithmetic

if TYPE_CHECKING:
    from rillet.train.graph import Graph

# Operations that are notions of the graph, not ops with a record.
PLACEHOLDER, CONSTANT, VARIABLE, GROUP, STEP = "Placeholder", "Constant", "Variable", "Group", "Step"
SOURCES = (PLACEHOLDER, CONSTANT, VARIABLE, STEP)  # nothing need run before these


@dataclass(eq=False)
class Operation:
    """A node. `op` is its record (None for the graph's own notions), `kind` its name; `source` the user's line.

    Inputs are tensors, None where an optional one is absent. Control inputs run before it. `id` rises in the order of
    construction, which is therefore an order in which operations can run.
    """

    graph: Graph
    id: int
    name: str
    kind: str
    op: Op | None
    attrs: Any
    inputs: tuple[Tensor | None, ...]
    control_inputs: tuple[Operation, ...]
    source: str
    outputs: tuple[Tensor, ...] = ()
    constant: Array | None = None

    def updated_inputs(self) -> list[Tensor]:
        """The handles of the variables that the operation overwrites."""
        if self.op is None or not self.op.updates:
            return []
        return [t for n, t in zip(self.op.inputs, self.inputs) if n.rstrip("?") in self.op.updates and t is not None]

    def __repr__(self) -> str:
        return f"<Operation {self.kind} {self.name!r} ({self.source})>"


@dataclass(eq=False)
class Tensor(Arithmetic):
    """A result of an operation: dtype and shape as far as they are known; the value exists in a run only.

    Arithmetic (`+ - * / ** @`, comparisons, indexing) adds nodes. Two tensors are equal only if they are the same.
    """

    operation: Operation
    index: int
    type: TensorType
    name: str = field(default="")

    @property
    def graph(self) -> Graph:
        return self.operation.graph

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    def set_shape(self, shape: Iterable[Dim]) -> None:
        """Adds what the user knows of the shape. Raises OpError where it contradicts what is known."""
        shape = tuple(shape)
        both = list(zip(shape, self.shape))
        if len(shape) != self.ndim or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in both):
            raise OpError(
                self.operation.kind, "set_shape contradicts the shape", got=shape, expected=self.shape
            ).located(self.operation.name, self.operation.source)
        self.type = TensorType(self.dtype, tuple(b if isinstance(b, int) or a is None else a for a, b in both))

    def __rillet_emit__(self, op: str, *inputs: Any, name: str | None = None, **attrs: Any) -> Any:
        return self.graph.emit(op, *inputs, name=name, **attrs)

    def __repr__(self) -> str:
        return f"<Tensor {self.name!r} {self.type}>"
