"""Removes ops that hand their input on unchanged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rillet.shared_ops.passes.edit import Note, constant_of, rename_value, silent
from rillet.shared_ops.program import Application, Program

# Identity by meaning: StopGradient matters to gradients only, Dropout is the identity outside training.
_ALWAYS = {"Identity", "StopGradient", "Dropout"}
# Identity where the result has the operand's shape. A Reshape keeps the number of elements, which settles one unknown
# dimension; the others do not: of two unknown ones, one may be 1 and the other not.
_SHAPE_ONLY = {"Reshape": 1, "BroadcastTo": 0, "SumTo": 0}


def drop_identities(program: Program, note: Note = silent) -> Program:
    """Removes Identity, StopGradient, Dropout, and no-op Reshape, BroadcastTo, SumTo, Transpose, Cast, Pad and Concat.

    An application stays where its result is an output of the Program and its operand an input, a constant or
    another output: names of inputs and outputs are the caller's.
    """
    program = program.copy()
    bypassed: dict[str, str] = {}  # result of a dropped application -> what its readers read instead
    renamed: dict[str, str] = {}  # value -> the output name it takes over
    kept = []
    for application in program:
        a = replace(application, inputs=tuple(bypassed.get(n, n) if n else n for n in application.inputs))
        source, result = a.inputs[0] if a.inputs else None, a.outputs[0]
        if source is None or not _is_identity(program, a):
            kept.append(a)
        elif result not in program.outputs:
            bypassed[result] = source
        elif _may_rename(program, source) and source not in renamed:
            bypassed[result], renamed[source] = source, result
        else:
            kept.append(a)
            continue
        if result in bypassed:
            note(f"{a.name}: {a.op.name} hands its input on")
    program.applications = kept
    for source, result in renamed.items():
        rename_value(program, source, result)
    program.prune()
    return program


def _may_rename(program: Program, name: str) -> bool:
    """Whether the value may take over an output's name: the names of inputs, constants and outputs are not ours."""
    return name not in program.inputs and name not in program.outputs and constant_of(program, name) is None


def _is_identity(program: Program, a: Application) -> bool:
    assert a.inputs[0] is not None
    if program.values[a.inputs[0]].is_variable:
        return False
    if a.op.name in _ALWAYS:
        return True
    x, y = program.values[a.inputs[0]].type, program.values[a.outputs[0]].type
    if a.op.name in _SHAPE_ONLY:
        return x.shape == y.shape and sum(d is None for d in x.shape) <= _SHAPE_ONLY[a.op.name]
    if a.op.name == "Transpose":
        return tuple(a.attrs.perm) == tuple(range(x.rank))
    if a.op.name == "Cast":
        return x.dtype == y.dtype
    if a.op.name == "Pad":
        return not np.any(a.attrs.paddings)
    return a.op.name == "Concat" and len(a.inputs) == 1
