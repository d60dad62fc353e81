"""Operations of a graph as a Program: for a region of a training step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from rillet.shared_ops.program import Program
from rillet.shared_ops.types import Array, TensorType
from rillet.train.schedule import Types
from rillet.train.tensor import Operation, Tensor


class RegionProgram:
    """The Program of a region, and which graph tensors its inputs and outputs are.

    A read of a variable that need not be copied is the variable itself: the engine then reads the bound buffer. A
    tensor that is fed comes in from outside even where the operation that would compute it runs.
    """

    def __init__(
        self, types: Types, known: Mapping[Tensor, Array], direct_reads: set[Tensor], fed: set[Tensor]
    ) -> None:
        self.program = Program("step")
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.variables: list[Tensor] = []  # handles
        self._types, self._known, self._direct, self._fed = types, known, direct_reads, fed
        self._names: dict[Tensor, str] = {}

    def lower(self, operations: Iterable[Operation], outputs: Iterable[Tensor]) -> RegionProgram:
        for operation in operations:
            if not self._direct.intersection(operation.outputs):
                self._apply(operation)
        for tensor in outputs:
            self.outputs.append(tensor)
            self.program.outputs.append(self._names[tensor])
        return self

    def _apply(self, operation: Operation) -> None:
        assert operation.op is not None
        inputs = [None if t is None else self._name(t) for t in operation.inputs]
        names = [self.program.fresh(t.name) for t in operation.outputs]
        replaced = self._fed.intersection(operation.outputs)
        self.program.apply(
            operation.op,
            inputs,
            name=operation.name,
            source=operation.source,
            outputs=names,
            types=None if replaced else tuple(self._types[t].plain() for t in operation.outputs),
            **asdict(operation.attrs),
        )
        self._names.update((t, n) for t, n in zip(operation.outputs, names) if t not in self._fed)

    def _name(self, tensor: Tensor) -> str:
        """The Program's name of a tensor that is read; from outside the region it becomes an input, once."""
        if tensor in self._names:
            return self._names[tensor]
        type: TensorType = self._types[tensor]
        if tensor in self._direct:
            assert tensor.operation.inputs[0] is not None
            name = self._name(tensor.operation.inputs[0])
        elif tensor in self._known:
            name = self.program.add_constant(self.program.fresh(tensor.name), self._known[tensor])
        elif type.variable:
            name = self.program.add_variable(tensor.name, type)
            self.variables.append(tensor)
        else:
            name = self.program.add_input(self.program.fresh(tensor.name), type.plain())
            self.inputs.append(tensor)
        self._names[tensor] = name
        return name
