"""Moves Relu and Relu6 into the op before them."""

from __future__ import annotations

from dataclasses import replace

from rillet.shared_ops.passes.edit import Note, absorb, read_counts, silent
from rillet.shared_ops.program import Application, Program

ACTIVATIONS = {"Relu": "RELU", "Relu6": "RELU6"}


def fuse_activation(program: Program, note: Note = silent) -> Program:
    """Relu or Relu6 becomes the `activation` of the op whose only reader it is, where that op has such an attribute.

    A fused clamp is the same compare and select as the separate op: the bits stay.
    """
    program = program.copy()
    while (found := _find(program)) is not None:
        producer, activation = found
        attrs = replace(producer.attrs, activation=ACTIVATIONS[activation.op.name])
        absorb(program, producer, activation, replace(producer, attrs=attrs, outputs=activation.outputs))
        note(f"{activation.name}: {activation.op.name} into {producer.name}")
    return program


def _find(program: Program) -> tuple[Application, Application] | None:
    producers, counts = program.producers(), read_counts(program)
    for a in program:
        if a.op.name not in ACTIVATIONS or a.inputs[0] is None:
            continue
        producer = producers.get(a.inputs[0])
        if producer is None or len(producer.outputs) != 1 or counts[producer.outputs[0]] != 1:
            continue
        if getattr(producer.attrs, "activation", None) == "NONE":
            return producer, a
    return None
