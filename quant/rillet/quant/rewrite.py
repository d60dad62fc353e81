"""Float Program to int8 Program, as an Assignment says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rillet.quant.assign import Assignment
from rillet.quant.weights import quantize_layer
from rillet.shared_ops.int8 import Accumulate, Lookup, build_table
from rillet.shared_ops.op import Op
from rillet.shared_ops.program import Application, Program, Value
from rillet.shared_ops.quantize import PROFILE, quantize
from rillet.shared_ops.registry import get_op
from rillet.shared_ops.types import Array, QuantParams, TensorType

INT8 = np.dtype(np.int8)
PROFILE_KEY = "quant_profile"


def rewrite_program(program: Program, assignment: Assignment) -> Program:
    """The int8 Program: Quantize at the float inputs, int8 ops, Dequantize at the outputs and around float islands.

    Inputs and outputs keep their names and float types. An int8 value keeps the name of the float value that it stands
    for, except where that name is an input, an output or a float island's result: then it is "<name>/int8". Where an
    island reads an int8 value, "<name>/float" stands beside it.
    Pointwise ops become LookupTable, which holds their 256 answers.
    """
    return _Rewrite(program, assignment).run()


class _Rewrite:
    """One walk over the applications. A float value of the old Program lives on as float, as int8, or as both."""

    def __init__(self, program: Program, assignment: Assignment) -> None:
        self._old, self._plan = program, assignment
        self._new = Program(program.name, metadata={**program.metadata, PROFILE_KEY: PROFILE})
        self._int8: dict[str, str] = {}  # old name -> its int8 value with the parameters of the plan
        self._requantized: dict[tuple[str, bytes, int], str] = {}

    def run(self) -> Program:
        for name in self._old.inputs:
            self._new.add_input(name, self._old.values[name].type)
        for a in self._old:
            if self._plan.is_island(a):
                self._copy(a)
            elif isinstance(a.op.quantize, Accumulate) and a.op.quantize.channel_axis is not None:
                self._accumulate(a)
            elif isinstance(a.op.quantize, Lookup):
                self._lookup(a)
            else:
                self._apply(a)
        self._new.outputs = [self._as_float(n) for n in self._old.outputs]
        self._new.prune()
        self._new.check()
        return self._new

    # -- applications -------------------------------------------------------------------------------------------------

    def _copy(self, a: Application) -> None:
        """A float island: as it was."""
        inputs = tuple(None if n is None else self._as_float(n) for n in a.inputs)
        for name in a.outputs:
            self._new.add_value(self._old.values[name])
        self._new.applications.append(replace(a, inputs=inputs))

    def _accumulate(self, a: Application) -> None:
        x_name = a.inputs[0] or ""
        layer = quantize_layer(self._old, a, self._plan.params[x_name])
        inputs = [self._as_int8(x_name), self._constant(a.inputs[1], layer.weights, layer.weights_q)]
        if layer.bias is not None:
            inputs.append(self._constant(a.inputs[2], layer.bias, layer.bias_q))
        self._emit(a, a.op, inputs)

    def _lookup(self, a: Application) -> None:
        x_name, y_name = a.inputs[0] or "", a.outputs[0]
        table = build_table(a.op, a.attrs, self._plan.params[x_name], self._plan.params[y_name])
        inputs = [self._as_int8(x_name), self._constant(f"{a.name}/table", table, None)]
        self._emit(replace(a, attrs=get_op("LookupTable").make_attrs({})), get_op("LookupTable"), inputs)

    def _apply(self, a: Application) -> None:
        shared = self._plan.shared.get(a.outputs[0])
        inputs: list[str | None] = []
        for name in a.inputs:
            if name is None:
                inputs.append(None)
            elif not self._old.values[name].type.is_float:
                inputs.append(self._as_float(name))
            else:
                inputs.append(self._as_int8(name) if shared is None else self._with_params(name, shared))
        self._emit(a, a.op, inputs)

    def _emit(self, a: Application, op: Op, inputs: Iterable[str | None]) -> None:
        """Appends an application whose float results become int8."""
        outputs = []
        for name in a.outputs:
            value = self._old.values[name]
            if not value.type.is_float:
                outputs.append(self._new.add_value(value))
                continue
            outputs.append(self._add_int8(self._int8_name(name), value.type, self._plan.params[name]))
            self._int8[name] = outputs[-1]
        self._new.applications.append(replace(a, op=op, inputs=tuple(inputs), outputs=tuple(outputs)))

    # -- values -------------------------------------------------------------------------------------------------------

    def _as_int8(self, name: str) -> str:
        """The int8 form of an old value; a float one is quantized here, a constant at once."""
        if name not in self._int8:
            self._int8[name] = self._quantized(name, self._plan.params[name])
        return self._int8[name]

    def _with_params(self, name: str, q: QuantParams) -> str:
        """An operand of a same-scale op under the parameters that the op shares."""
        if self._plan.params[name].same(q):
            return self._as_int8(name)
        if self._old.values[name].constant is not None:
            return self._quantized(name, q)
        key = (name, q.scale.tobytes(), q.zero_point)
        if key not in self._requantized:
            op = get_op("Requantize")
            table = build_table(op, op.make_attrs({}), self._plan.params[name], q)
            inputs = (self._as_int8(name), self._constant(f"{name}/requantize_table", table, None))
            result = self._add_int8(f"{name}/requantized", self._old.values[name].type, q)
            self._append("LookupTable", inputs, result)
            self._requantized[key] = result
        return self._requantized[key]

    def _quantized(self, name: str, q: QuantParams) -> str:
        constant = self._old.values[name].constant
        if constant is not None:
            return self._constant(f"{name}/int8", quantize(constant, q), q)
        result = self._add_int8(f"{name}/int8", self._old.values[name].type, q)
        self._append("Quantize", (name,), result)
        return result

    def _as_float(self, name: str) -> str:
        """The value under its own name and type: float, or whatever else it was."""
        if name in self._new.values and name not in self._int8.values():
            return name
        value = self._old.values[name]
        if value.constant is not None or value.is_variable:
            return self._new.add_value(value)
        stem = name if name not in self._new.values else f"{name}/float"
        if stem not in self._new.values:
            self._new.add_value(Value(stem, value.type))
            self._append("Dequantize", (self._int8[name],), stem)
        return stem

    def _int8_name(self, name: str) -> str:
        return f"{name}/int8" if name in self._old.outputs or name in self._new.values else name

    def _add_int8(self, name: str, type: TensorType, q: QuantParams) -> str:
        return self._new.add_value(Value(self._new.fresh(name), TensorType(INT8, type.shape), q))

    def _constant(self, name: str | None, array: Array, q: QuantParams | None) -> str:
        """A constant of the new Program; the same bytes under the same parameters are stored once."""
        assert name is not None
        known = self._new.values.get(name)
        if known is not None and known.constant is not None and np.array_equal(known.constant, array):
            if known.quant is q or (q is not None and q.same(known.quant)):
                return name
        return self._new.add_constant(self._new.fresh(name), array, q)

    def _append(self, op: str, inputs: tuple[str, ...], output: str) -> None:
        record = get_op(op)
        self._new.applications.append(Application(record, record.make_attrs({}), inputs, (output,), output))
