"""What the passes share: reading constants, rewiring values, replacing applications. A pass works on a copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from rillet.shared_ops.program import Application, Program
from rillet.shared_ops.types import Array

# A pass tells what it changed through this, one sentence a change; the report keeps the sentences.
Note = Callable[[str], None]


def silent(change: str) -> None:
    """The Note of somebody who does not want to know."""


def constant_of(program: Program, name: str | None) -> Array | None:
    """The contents of a constant value, None for every other value (and for an absent input)."""
    return None if name is None else program.values[name].constant


def read_counts(program: Program) -> Counter[str]:
    """How often each value is read; being an output of the Program is a read."""
    counts = Counter(n for a in program for n in a.inputs if n is not None)
    counts.update(program.outputs)
    return counts


def add_constant_like(program: Program, stem: str, array: Array) -> str:
    """A new constant with a free name near `stem`."""
    return program.add_constant(program.fresh(stem), array)


def rename_value(program: Program, old: str, new: str) -> None:
    """Gives the value `old` (no input) the name `new`; whoever bore that name must be gone from the applications.

    Its place among the values stays.
    """
    renamed = replace(program.values[old], name=new)
    program.values = {new if n == old else n: renamed if n == old else v for n, v in program.values.items() if n != new}
    swap = {old: new}
    program.applications = [
        replace(
            a,
            inputs=tuple(swap.get(n, n) if n is not None else None for n in a.inputs),
            outputs=tuple(swap.get(n, n) for n in a.outputs),
        )
        for a in program
    ]
    program.outputs = [swap.get(n, n) for n in program.outputs]


def replace_applications(program: Program, changed: Mapping[Application, Application | None]) -> None:
    """Puts other applications in place of the keys; None removes. Application compares by identity."""
    program.applications = [b for a in program if (b := changed.get(a, a)) is not None]


def absorb(program: Program, producer: Application, consumer: Application, merged: Application) -> None:
    """`merged` stands where `consumer` stood, writes its outputs, and `producer` (read by nobody else) goes."""
    replace_applications(program, {producer: None, consumer: merged})
    for name in producer.outputs:
        del program.values[name]
