"""Program: a straight list of op applications over named, typed values.

It is what is left of a graph when nothing but computing remains. quant, export and lite speak only Program; the runner
over the references at the end of this file is the yardstick for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError, ProgramError
from rillet.shared_ops.op import Op
from rillet.shared_ops.types import Array, QuantParams, TensorType, type_of


@dataclass(frozen=True, eq=False)
class Value:
    """One value of a Program: an input, a constant (then `constant` holds it), a variable, or an op's output.

    `quant` is set for int8 values (and for the int32 bias of an int8 op).
    """

    name: str
    type: TensorType
    quant: QuantParams | None = None
    constant: Array | None = None

    @property
    def is_variable(self) -> bool:
        return self.type.variable


@dataclass(frozen=True, eq=False)
class Application:
    """One op applied. Values are named; None is an absent optional input. `source`: the user's line, "train.py:41"."""

    op: Op
    attrs: Any
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]
    name: str = ""
    source: str = ""


@dataclass(eq=False)
class Program:
    """Inputs, outputs, and the applications in an order in which they can run.

    `values` holds every value by name; constants and variables are values that no application produces.
    `metadata` travels with the model file (labels, preprocessing, quantization profile); keys and values are text.
    """

    name: str = "main"
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    applications: list[Application] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)

    # -- building ---------------------------------------------------------------------------------------------------

    def fresh(self, stem: str) -> str:
        """A value name that is not taken: `stem`, `stem_1`, ..."""
        name, i = stem, 0
        while name in self.values:
            i += 1
            name = f"{stem}_{i}"
        return name

    def add_value(self, value: Value) -> str:
        if value.name in self.values:
            raise ProgramError(f"two values named {value.name!r}.")
        self.values[value.name] = value
        return value.name

    def add_input(self, name: str, type: TensorType, quant: QuantParams | None = None) -> str:
        self.inputs.append(self.add_value(Value(name, type, quant)))
        return name

    def add_constant(self, name: str, array: Array, quant: QuantParams | None = None) -> str:
        array = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
        return self.add_value(Value(name, type_of(array), quant, array))

    def add_variable(self, name: str, type: TensorType) -> str:
        return self.add_value(Value(name, replace(type, variable=True)))

    def apply(
        self,
        op: Op,
        inputs: Iterable[str | None],
        *,
        name: str = "",
        source: str = "",
        outputs: Iterable[str] = (),
        quants: Iterable[QuantParams | None] = (),
        types: Any = None,
        **attrs: Any,
    ) -> tuple[str, ...]:
        """Appends an application; returns its output names. Types come from `infer` unless given (int8 values keep the
        float op's shapes: pass `types`). Raises OpError, with the application's name and line, where infer refuses."""
        inputs = tuple(inputs)
        name = name or op.name
        try:
            record = op.make_attrs(attrs)
            if types is None:
                types = op.infer_types(record, tuple(None if n is None else self.values[n].type for n in inputs))
        except OpError as error:
            raise error.located(name, source) from None
        names = list(outputs) or [self.fresh(name if len(types) == 1 else f"{name}:{i}") for i in range(len(types))]
        qs = list(quants) or [None] * len(names)
        for n, t, q in zip(names, types, qs):
            self.add_value(Value(n, t, q))
        self.applications.append(Application(op, record, inputs, tuple(names), name, source))
        return tuple(names)

    # -- reading ----------------------------------------------------------------------------------------------------

    def input_values(self, application: Application) -> tuple[Value | None, ...]:
        return tuple(None if n is None else self.values[n] for n in application.inputs)

    def output_values(self, application: Application) -> tuple[Value, ...]:
        return tuple(self.values[n] for n in application.outputs)

    def variables(self) -> list[Value]:
        return [v for v in self.values.values() if v.is_variable]

    def consumers(self) -> dict[str, list[Application]]:
        """For every value, the applications that read it (Program outputs are not among them)."""
        readers: dict[str, list[Application]] = {name: [] for name in self.values}
        for application in self.applications:
            for name in dict.fromkeys(application.inputs):
                if name is not None:
                    readers[name].append(application)
        return readers

    def producers(self) -> dict[str, Application]:
        return {name: a for a in self.applications for name in a.outputs}

    def copy(self) -> Program:
        return Program(
            self.name,
            list(self.inputs),
            list(self.outputs),
            list(self.applications),
            dict(self.values),
            dict(self.metadata),
        )

    def prune(self) -> None:
        """Drops applications whose results nobody reads (updates of variables stay) and values nobody names."""
        needed, kept = set(self.outputs), []
        for application in reversed(self.applications):
            if application.op.updates or needed.intersection(application.outputs):
                kept.append(application)
                needed.update(n for n in application.inputs if n is not None)
        self.applications = kept[::-1]
        named = needed | set(self.inputs) | {n for a in self.applications for n in a.outputs}
        self.values = {n: v for n, v in self.values.items() if n in named}

    def check(self) -> None:
        """Raises ProgramError unless every value is known, written once, and written before it is read."""
        ready = set(self.inputs) | {n for n, v in self.values.items() if v.constant is not None or v.is_variable}
        for application in self.applications:
            for name in application.inputs:
                if name is not None and name not in ready:
                    raise ProgramError(f"{application.name!r} reads {name!r}, which nothing has written yet.")
            for name in application.outputs:
                if name in ready:
                    raise ProgramError(f"{application.name!r} writes {name!r} a second time.")
                if name not in self.values:
                    raise ProgramError(f"{application.name!r} writes {name!r}, which the program does not know.")
                ready.add(name)
        if missing := [n for n in self.outputs if n not in ready]:
            raise ProgramError(f"no value for the output {missing[0]!r}.")

    def __iter__(self) -> Iterator[Application]:
        return iter(self.applications)


def run_reference(
    program: Program,
    feeds: Mapping[str, Array],
    variables: Mapping[str, Array] | None = None,
    keep: bool = False,
) -> dict[str, Array]:
    """Runs a Program with the reference kernels: float ops as they are, int8 ops through their family.

    Returns the outputs by name, or every value with `keep`. Variables that ops update are replaced in `variables`.
    """
    state = dict(variables or {})
    env: dict[str, Array] = {n: v.constant for n, v in program.values.items() if v.constant is not None}
    env.update({n: np.asarray(feeds[n]) for n in program.inputs})
    env.update(state)
    for a in program:
        ins = tuple(None if n is None else env[n] for n in a.inputs)
        results = compute_application(program, a, ins)
        env.update(zip(a.outputs, results))
        updated = [n for name, n in zip(a.op.inputs, a.inputs) if name in a.op.updates]
        for n, new in zip(updated, results[len(a.outputs) :]):
            assert n is not None
            env[n] = new
    if variables is not None and isinstance(variables, dict):
        variables.update({n: env[n] for n in state})
    return env if keep else {n: env[n] for n in program.outputs}


def compute_application(program: Program, a: Application, inputs: tuple[Array | None, ...]) -> tuple[Array, ...]:
    """One application by its reference, or by its int8 family where it works on quantized values."""
    in_q = tuple(None if v is None else v.quant for v in program.input_values(a))
    out_q = tuple(v.quant for v in program.output_values(a))
    if is_int8(program, a):
        assert a.op.quantize is not None
        return a.op.quantize.run(a.op, a.attrs, inputs, in_q, out_q)
    return a.op.compute(np, a.attrs, *inputs)


def is_int8(program: Program, a: Application) -> bool:
    """Whether an application runs through its int8 family: it has one, and its first input or output is quantized.

    (The output alone: Quantize, whose parameters are those of the value it makes.)
    """
    if a.op.quantize is None:
        return False
    first = [program.values[n] for n in (*a.inputs[:1], *a.outputs[:1]) if n is not None]
    return any(v.quant is not None and v.type.dtype.kind == "i" for v in first)
