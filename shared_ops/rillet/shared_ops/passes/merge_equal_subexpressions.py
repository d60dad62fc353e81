"""Computes once what the Program computes twice, and stores once what it stores twice."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import replace

from rillet.shared_ops.passes.edit import Note, silent
from rillet.shared_ops.program import Application, Program, Value


def merge_equal_subexpressions(program: Program, note: Note = silent) -> Program:
    """Applications of the same op with the same attributes and operands become one; equal constants become one.

    Ops that read or update a variable stay (its value may differ between two reads), and so does an application
    whose results are outputs of the Program (their names are the caller's).
    """
    program = program.copy()
    same = _equal_constants(program, note)
    first: dict[Hashable, Application] = {}
    kept = []
    for application in program:
        a = replace(application, inputs=tuple(same.get(n, n) if n else n for n in application.inputs))
        touches_state = a.op.updates or any(v is not None and v.is_variable for v in program.input_values(a))
        key = (a.op.name, a.attrs, a.inputs, tuple(_quant_key(v) for v in program.output_values(a)))
        twin = None if touches_state else first.setdefault(key, a)
        if twin is None or twin is a or any(n in program.outputs for n in a.outputs):
            kept.append(a)
            continue
        same.update(zip(a.outputs, twin.outputs))
        note(f"{a.name}: equal to {twin.name}")
    program.applications = kept
    program.prune()
    return program


def _equal_constants(program: Program, note: Note) -> dict[str, str]:
    """Constant -> the equal one that comes first."""
    first: dict[Hashable, str] = {}
    same = {}
    for value in program.values.values():
        if value.constant is None or value.name in program.outputs:
            continue
        digest = hashlib.sha256(value.constant.tobytes()).digest()
        twin = first.setdefault((value.type.dtype.str, value.constant.shape, digest, _quant_key(value)), value.name)
        if twin != value.name:
            same[value.name] = twin
            note(f"{value.name}: the same bytes as {twin}")
    return same


def _quant_key(value: Value) -> Hashable:
    q = value.quant
    return None if q is None else (q.scale.tobytes(), q.zero_point, q.axis)
