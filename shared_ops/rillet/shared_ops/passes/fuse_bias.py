"""Moves the addition of a constant channel vector into the op before it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rillet.shared_ops.passes.edit import Note, absorb, add_constant_like, constant_of, read_counts, silent
from rillet.shared_ops.program import Application, Program
from rillet.shared_ops.types import Array


def takes_bias(a: Application) -> bool:
    """Whether the op has an optional bias, has none yet, and adds it last (no activation is fused)."""
    free = "bias?" in a.op.inputs and (len(a.inputs) < 3 or a.inputs[2] is None)
    return free and getattr(a.attrs, "activation", "NONE") == "NONE"


def fuse_bias(program: Program, note: Note = silent) -> Program:
    """BiasAdd, or Add of a constant [C], [1, ..., C] or single number, goes into the op whose only reader it is.

    The kernels add the bias after the whole sum, exactly as the separate op does: the bits stay.
    """
    program = program.copy()
    while (found := _find(program)) is not None:
        linear, addition, bias = found
        name = add_constant_like(program, f"{linear.name}/bias", bias)
        absorb(program, linear, addition, replace(linear, inputs=(*linear.inputs[:2], name), outputs=addition.outputs))
        note(f"{addition.name}: into {linear.name}")
    program.prune()
    return program


def _find(program: Program) -> tuple[Application, Application, Array] | None:
    producers, counts = program.producers(), read_counts(program)
    for a in program:
        if a.op.name not in ("BiasAdd", "Add") or getattr(a.attrs, "activation", "NONE") != "NONE":
            continue
        for x, b in (a.inputs[:2], a.inputs[1::-1]) if a.op.name == "Add" else (a.inputs[:2],):
            linear, constant = producers.get(x or ""), constant_of(program, b)
            if linear is None or constant is None or counts[linear.outputs[0]] != 1 or not takes_bias(linear):
                continue
            if (vector := _channel_vector(program, linear, constant)) is not None:
                return linear, a, vector
    return None


def _channel_vector(program: Program, linear: Application, constant: Array) -> Array | None:
    """The constant as one number a channel, or None where it varies along another axis (or broadcasts the op up)."""
    type = program.values[linear.outputs[0]].type
    channels = type.shape[-1]
    if not isinstance(channels, int) or constant.ndim > type.rank or constant.dtype != type.dtype:
        return None
    if constant.size == 1:
        return np.full(channels, constant.reshape(()), constant.dtype)
    return constant.reshape(-1) if constant.size == channels == constant.shape[-1] else None
