"""A trained part of a graph as a Program for inference: what export writes, and what `Session.predict` runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from rillet.shared_ops.conversion import as_number
from rillet.shared_ops.errors import OpError, RilletError
from rillet.shared_ops.passes.edit import rename_value
from rillet.shared_ops.program import Program
from rillet.shared_ops.registry import get_op, is_exportable
from rillet.shared_ops.types import Shape, TensorType
from rillet.train.tensor import CONSTANT, PLACEHOLDER, STEP, VARIABLE, Operation, Tensor

if TYPE_CHECKING:
    from rillet.train.session import Session

Named = Union[Sequence[Tensor], Mapping[str, Tensor]]


class FreezeError(RilletError, ValueError):
    """A part of a graph cannot become an inference Program; the message lists every reason."""


def freeze(session: Session, inputs: Named, outputs: Named, name: str = "main") -> Program:
    """The Program that computes `outputs` from `inputs` with the session's present variables as constants.

    inputs, outputs: tensors (then named as in the graph), or a dict of names and tensors. What only trains is replaced
    (batch norm by its moving averages, dropout by nothing) or not reached. Applications keep the operations' names and
    the user's lines. Dimensions may be unknown.

    Raises FreezeError that lists every operation that has no meaning in inference, and every placeholder not given.

    Example:
        >>> from rillet.train import Graph, Session, Variable, freeze, placeholder
        >>> with Graph().as_default():
        ...     x = placeholder((None, 2), name="x")
        ...     w = Variable([1.0, 10.0], name="w")
        ...     session = Session()
        ...     session.initialize()
        ...     program = freeze(session, [x], {"y": x * w})
        >>> program.inputs, program.outputs, [a.op.name for a in program]
        (['x'], ['y'], ['Mul'])
    """
    return _Freezer(session, name).freeze(_named(inputs), _named(outputs))


def _named(tensors: Named) -> dict[str, Tensor]:
    return dict(tensors) if isinstance(tensors, Mapping) else {t.name: t for t in tensors}


@dataclass(frozen=True)
class _Ref:
    """A value of the Program, as the `inference` functions of records see it."""

    name: str
    type: TensorType

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype


class _Freezer:
    def __init__(self, session: Session, name: str) -> None:
        self.session = session
        self.program = Program(name)
        self.refs: dict[Tensor, _Ref] = {}
        self.faults: list[str] = []
        self._faulty: set[Operation] = set()
        self._variables = {v.handle: v for v in session.graph.variables}

    def freeze(self, inputs: dict[str, Tensor], outputs: dict[str, Tensor]) -> Program:
        for name, tensor in inputs.items():
            self.program.add_input(name, tensor.type.plain())
            self.refs[tensor] = _Ref(name, tensor.type.plain())
        for operation in _reached(outputs.values(), set(inputs.values())):
            self._convert(operation)
        results = {name: self._ref(tensor) for name, tensor in outputs.items()}
        for name, ref in results.items():
            if ref is None and outputs[name].operation not in self._faulty:
                self._fault(outputs[name].operation, f"its output {outputs[name].name!r} has no meaning in inference")
        for name, tensor in outputs.items():
            if name in inputs and inputs[name] is not tensor:
                self._fault(tensor.operation, f"cannot be the output {name!r}: an input has that name")
        if self.faults:
            raise FreezeError("the graph cannot be frozen for inference:\n  " + "\n  ".join(self.faults))
        for name, tensor in outputs.items():
            value = self._output(name, tensor)  # renaming makes new lists: append only then
            self.program.outputs.append(value)
        self.program.prune()
        self.program.check()
        return self.program

    def _fault(self, operation: Operation, what: str) -> None:
        self._faulty.add(operation)
        self.faults.append(f"[{operation.kind} at {operation.name!r} ({operation.source})] {what}.")

    def _convert(self, operation: Operation) -> None:
        if operation.kind == PLACEHOLDER:
            self._fault(operation, "is needed and not among the inputs")
        if operation.op is None or operation.kind == "ReadVariable":
            return  # constants and variables come in where they are read
        inputs = tuple(None if t is None else self._ref(t) for t in operation.inputs)
        for tensor, ref in zip(operation.inputs, inputs):
            if tensor is not None and ref is None:
                if tensor.operation not in self._faulty:
                    self._fault(operation, f"reads {tensor.name!r}, which has no meaning in inference")
                self._faulty.add(operation)
                return
        if operation.op.inference is None and (operation.op.updates or not is_exportable(operation.op)):
            self._fault(operation, "has no meaning in inference")
            return
        try:
            if operation.op.inference is not None:
                made = operation.op.inference(self._emitter(operation), operation.attrs, inputs)
            else:
                made = self._emitter(operation)(operation.kind, *inputs, **asdict(operation.attrs))
        except OpError as error:
            self._faulty.add(operation)
            self.faults.append(str(error))
            return
        made = made if isinstance(made, tuple) else (made,)
        self.refs.update((t, ref) for t, ref in zip(operation.outputs, made) if ref is not None)

    def _emitter(self, operation: Operation) -> Any:
        """An Emit that appends to the Program under the operation's name and line."""

        def emit(op: str, *inputs: Any, **attrs: Any) -> Any:
            dtype = next((x.dtype for x in inputs if isinstance(x, _Ref)), None)
            names = [None if x is None else self._as_ref(op, x, dtype).name for x in inputs]
            outputs = self.program.apply(get_op(op), names, name=operation.name, source=operation.source, **attrs)
            made = tuple(_Ref(n, self.program.values[n].type) for n in outputs)
            return made[0] if len(made) == 1 else made

        return emit

    def _as_ref(self, op: str, x: Any, dtype: np.dtype[Any] | None) -> _Ref:
        if isinstance(x, _Ref):
            return x
        if dtype is not None and isinstance(x, (bool, int, float)):
            return self._constant("constant", as_number(op, x, dtype))
        return self._constant("constant", np.asarray(x))

    def _constant(self, name: str, array: Any) -> _Ref:
        name = self.program.add_constant(self.program.fresh(name), array)
        return _Ref(name, self.program.values[name].type)

    def _ref(self, tensor: Tensor) -> _Ref | None:
        """The value of a tensor in the Program; constants and variables are added when they are first read."""
        if tensor in self.refs:
            return self.refs[tensor]
        source = tensor.operation
        if source.kind == "ReadVariable":
            handle = source.inputs[0]
            made = None if handle is None else self._ref(handle)
        elif source.kind == VARIABLE:
            made = self._constant(tensor.name, self.session.get(self._variables[tensor]))
        elif source.kind == CONSTANT:
            made = self._constant(tensor.name, source.constant)
        elif source.kind == STEP:  # random ops read it; inference is as if no step came after
            made = self._constant(tensor.name, np.asarray(self.session.step, np.int64))
        else:
            return None
        if made is not None:
            self.refs[tensor] = made
        return made

    def _output(self, name: str, tensor: Tensor) -> str:
        """The value of `tensor`, under the name that the user gave it."""
        old = self.refs[tensor].name
        if old == name:
            return name
        if name in self.program.values:
            self._rename(name, self.program.fresh(f"{name}_inner"))
            old = self.refs[tensor].name
        if old in self.program.producers() and old not in self.program.outputs:
            self._rename(old, name)
            return name
        return self.program.apply(get_op("Identity"), [old], name=name, outputs=[name])[0]

    def _rename(self, old: str, new: str) -> None:
        rename_value(self.program, old, new)
        self.refs = {t: replace(r, name=new) if r.name == old else r for t, r in self.refs.items()}


def _reached(outputs: Any, inputs: set[Tensor]) -> list[Operation]:
    """What computes the outputs, following data only: what merely has to run before is of no interest in inference."""
    ahead = [t for t in outputs if t not in inputs]
    found: set[Operation] = set()
    while ahead:
        operation = ahead.pop().operation
        if operation not in found:
            found.add(operation)
            ahead += [t for t in operation.inputs if t is not None and t not in inputs]
    return sorted(found, key=lambda o: o.id)
