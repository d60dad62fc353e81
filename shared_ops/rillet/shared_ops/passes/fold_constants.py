"""Computes what depends on constants alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rillet.shared_ops.op import Op
from rillet.shared_ops.passes.edit import Note, constant_of, silent
from rillet.shared_ops.program import Application, Program, Value, is_int8
from rillet.shared_ops.types import Array, type_of

# Applies one float op to arrays. NotImplemented: this evaluator cannot, the reference does it.
Evaluate = Callable[[Op, Any, tuple[Array | None, ...]], Any]

# A fold may not blow the file up: results above this size that are larger than all operands stay an op (Fill, Tile).
GROWTH_BYTES = 65536


def evaluate_reference(op: Op, attrs: Any, inputs: tuple[Array | None, ...]) -> tuple[Array, ...]:
    """One op by its reference kernel."""
    return op.compute(np, attrs, *inputs)


def fold_constants(program: Program, note: Note = silent, evaluate: Evaluate | None = None) -> Program:
    """Replaces applications whose operands are all constants, and Shape of a value of known shape, by constants.

    evaluate: computes one op. A caller that promises bits passes the engine; without it the references compute.
    Results that are outputs of the Program stay computed, so that outputs are never constants.
    """
    program = program.copy()
    kept = []
    for a in program:
        results = _results(program, a, evaluate)
        if results is None or any(n in program.outputs for n in a.outputs):
            kept.append(a)
            continue
        for name, array in zip(a.outputs, results):
            program.values[name] = Value(name, type_of(array), None, array)
        note(f"{a.name}: {a.op.name} computed once")
    program.applications = kept
    program.prune()
    return program


def _results(program: Program, a: Application, evaluate: Evaluate | None) -> tuple[Array, ...] | None:
    """The outputs of an application that can be computed now, else None."""
    if a.op.updates or is_int8(program, a):
        return None
    if (known := _known_vector(program, a)) is not None:
        return (known,)
    operands = tuple(constant_of(program, n) for n in a.inputs)
    if not a.inputs or any(n is not None and x is None for n, x in zip(a.inputs, operands)):
        return None
    results = NotImplemented if evaluate is None else evaluate(a.op, a.attrs, operands)
    if results is NotImplemented:
        results = evaluate_reference(a.op, a.attrs, operands)
    types = [v.type for v in program.output_values(a)]
    arrays = tuple(np.asarray(r, t.dtype) for r, t in zip(results, types))
    size = sum(r.nbytes for r in arrays)
    if size > GROWTH_BYTES and size > sum(x.nbytes for x in operands if x is not None):
        return None
    return tuple(np.ascontiguousarray(r) if r.ndim else r for r in arrays)


def _known_vector(program: Program, a: Application) -> Array | None:
    """The contents of a small integer result that `infer` knows in full, such as Shape of a static value."""
    return program.values[a.outputs[0]].type.contents() if len(a.outputs) == 1 else None
