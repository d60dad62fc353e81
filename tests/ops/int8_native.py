"""One int8 op through the engine: a Program of one application, weights constant, on a chosen ISA and thread count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rillet.lite.engine import Context, Model
from rillet.lite.library import library
from rillet.lite.writer import write_model
from rillet.shared_ops.op import Op
from rillet.shared_ops.program import Application, Program, Value
from rillet.shared_ops.types import Array, QuantParams, TensorType

ISAS = [i for i in ("scalar", "avx2", "avx512", "avx512vnni", "neon", "neondot")
        if library().rillet_isa_available(i.encode())]  # fmt: skip


def program_of(
    op: Op,
    attrs: Any,
    inputs: Sequence[Array | None],
    in_q: Sequence[QuantParams | None],
    outputs: Sequence[Array],
    out_q: Sequence[QuantParams | None],
    fed: Sequence[int] = (0,),
) -> Program:
    """Inputs named in `fed` are fed, the others are constants; `outputs` say dtypes and shapes."""
    program = Program()
    names: list[str | None] = []
    for i, (x, q) in enumerate(zip(inputs, in_q)):
        if x is None:
            names.append(None)
        elif i in fed:
            names.append(program.add_input(f"in{i}", TensorType(x.dtype, x.shape), q))
        else:
            names.append(program.add_constant(f"in{i}", x, q))
    program.outputs = [program.add_value(Value(f"out{i}", TensorType(y.dtype, y.shape), q))
                       for i, (y, q) in enumerate(zip(outputs, out_q))]  # fmt: skip
    program.applications.append(Application(op, attrs, tuple(names), tuple(program.outputs)))
    return program


def run_native(program: Program, feeds: Sequence[Array], isa: str = "", threads: int = 1) -> list[Array]:
    """Outputs of the program's kernels on `isa` ("": the best)."""
    before = library().rillet_isa()
    try:
        if isa:
            assert library().rillet_set_isa(isa.encode()) == 0
        context = Context(Model(write_model(program)), threads)
        for i, x in enumerate(feeds):
            context.input(i)[...] = x
        context.run()
        return [context.output(i).copy() for i in range(len(program.outputs))]
    finally:
        library().rillet_set_isa(before)


def assert_native_equals(
    op: Op,
    attrs: Any,
    inputs: Sequence[Array | None],
    in_q: Sequence[QuantParams | None],
    out_q: Sequence[QuantParams | None],
    fed: Sequence[int] = (0,),
    isas: Sequence[str] = ISAS,
    threads: Sequence[int] = (1, 2, 3),
) -> tuple[Array, ...]:
    """The derived reference; asserts that the kernels of every ISA and thread count give the same bytes."""
    assert op.quantize is not None
    want = op.quantize.run(op, attrs, tuple(inputs), tuple(in_q), tuple(out_q))
    program = program_of(op, attrs, inputs, in_q, want, out_q, fed)
    feeds = [x for i, x in enumerate(inputs) if i in fed and x is not None]
    for isa in isas:
        for n in threads:
            got = run_native(program, feeds, isa, n)
            for g, w in zip(got, want):
                assert (g.dtype, g.shape) == (w.dtype, w.shape)
                assert np.array_equal(g, w), f"{op.name} on {isa}, {n} threads: {np.sum(g != w)} of {w.size} differ"
    return want
