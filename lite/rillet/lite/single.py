"""Runs one op on arrays with its native kernel, through an in-memory model: what eager calls and kernel tests use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

import numpy as np

from rillet.lite.engine import Context, Model
from rillet.lite.library import current_isa, is_available, kernels
from rillet.lite.status import ModelError, Status
from rillet.lite.writer import write_model
from rillet.shared_ops.op import Op
from rillet.shared_ops.program import Application, Program, Value
from rillet.shared_ops.types import DTYPE_NAMES, Array, QuantParams, TensorType, type_of

Quants = Sequence[QuantParams | None] | None
# Integer inputs up to this size may be asked for as constants by kernels (shapes, axes, limits).
_SMALL = 64
_CACHE_SIZE = 256


@dataclass
class _Prepared:
    context: Context
    fed: list[int]  # for each model input: which array feeds it
    updated: list[int]  # for each variable: which array it takes


_cache: dict[Any, _Prepared] = {}


def has_kernel(op: Op, dtype: np.dtype[Any]) -> bool:
    """Whether the library has a kernel of this op on values of this dtype."""
    if not op.native or not is_available():
        return False
    return bool({(op.name, op.version, DTYPE_NAMES.get(dtype, "?")), (op.name, op.version, "any")} & kernels())


def apply_native(
    op: Op, attrs: Any, arrays: Sequence[Array | None], threads: int = 1, in_q: Quants = None, out_q: Quants = None
) -> Any:
    """Applies one op with its native kernel.

    Args:
        attrs: the op's attrs record, or a dict of attributes.
        arrays: one for each input; None for an optional one left out.
        in_q, out_q: quantization of inputs and outputs, for int8 ops.

    Returns:
        The outputs as a tuple (new arrays), followed by the new values of the inputs that the op updates; or
        NotImplemented where there is no kernel for these dtypes.

    Raises:
        ModelError: the kernel refuses these inputs or attributes.
        OpError: `infer` refuses them.
    """
    record = attrs if is_dataclass(attrs) else op.make_attrs(attrs)
    given = [None if x is None else np.ascontiguousarray(x).reshape(np.shape(x)) for x in arrays]
    while given and given[-1] is None:
        given.pop()
    types = _output_types(op, record, given, in_q, out_q)
    key_dtype = next((x.dtype for x in given[:1] if x is not None), None) or (types[0].dtype if types else None)
    if key_dtype is None or not has_kernel(op, key_dtype):
        return NotImplemented
    prepared = _find(op, record, given, threads, in_q or (), out_q or (), types)
    return _run(prepared, given)


def _output_types(op: Op, attrs: Any, given: Sequence[Array | None], in_q: Quants, out_q: Quants) -> list[TensorType]:
    """Types of the outputs. An int8 op has its float op's shapes: quantized inputs count as float in `infer`."""
    in_types = [None if x is None else type_of(x) for x in given]
    if op.quantize is not None and in_q:
        in_types = [
            replace(t, dtype=np.dtype(np.float32), value=None) if t is not None and i < len(in_q) and in_q[i] else t
            for i, t in enumerate(in_types)
        ]
    types = list(op.infer_types(attrs, tuple(in_types)))
    if op.quantize is not None and out_q:
        types = [replace(t, dtype=np.dtype(np.int8)) if q else t for t, q in zip(types, out_q)]
    return types


def _find(
    op: Op,
    attrs: Any,
    given: list[Array | None],
    threads: int,
    in_q: Sequence[QuantParams | None],
    out_q: Sequence[QuantParams | None],
    types: list[TensorType],
) -> _Prepared:
    def key(constants: frozenset[int]) -> Any:
        signature = tuple(None if x is None else (x.dtype.char, x.shape) for x in given)
        contents = tuple((i, x.tobytes()) for i, x in enumerate(given) if i in constants and x is not None)
        quants = tuple(None if q is None else (q.scale.tobytes(), q.zero_point, q.axis) for q in (*in_q, None, *out_q))
        return op.name, op.version, repr(attrs), signature, contents, quants, threads, current_isa()

    named = frozenset(i for i, n in enumerate(op.inputs) if "shape" in n and i < len(given))
    small = frozenset(i for i, x in enumerate(given) if x is not None and x.dtype.kind == "i" and x.size <= _SMALL)
    choices = [named, named | small] if small - named else [named]
    for constants in choices:
        if (k := key(constants)) in _cache:
            return _cache[k]
    for constants in choices:
        try:
            prepared = _prepare(op, attrs, given, constants, threads, in_q, out_q, types)
        except ModelError as error:
            if constants is choices[-1] or error.status is not Status.BAD_OPERATION:
                raise
            continue
        while len(_cache) >= _CACHE_SIZE:
            _cache.pop(next(iter(_cache)))
        _cache[key(constants)] = prepared
        return prepared
    raise AssertionError("one of the choices returns or raises")


def _prepare(
    op: Op,
    attrs: Any,
    given: list[Array | None],
    constants: frozenset[int],
    threads: int,
    in_q: Sequence[QuantParams | None],
    out_q: Sequence[QuantParams | None],
    types: list[TensorType],
) -> _Prepared:
    program = Program(op.name)
    names: list[str | None] = []
    fed, updated = [], []
    for i, x in enumerate(given):
        quant = in_q[i] if i < len(in_q) else None
        declared = op.inputs[i] if i < len(op.inputs) else op.inputs[-1]
        if x is None:
            names.append(None)
        elif declared in op.updates:
            updated.append(i)
            names.append(program.add_variable(f"in{i}", TensorType(x.dtype, x.shape)))
        elif i in constants:
            names.append(program.add_constant(f"in{i}", x.copy(), quant))
        else:
            fed.append(i)
            names.append(program.add_input(f"in{i}", TensorType(x.dtype, x.shape), quant))
    outputs = tuple(f"out{k}" for k in range(len(types)))
    for k, (name, t) in enumerate(zip(outputs, types)):
        program.add_value(Value(name, t.plain(), out_q[k] if k < len(out_q) else None))
    program.applications.append(Application(op, attrs, tuple(names), outputs))
    program.outputs = list(outputs)
    return _Prepared(Context(Model(write_model(program)), threads), fed, updated)


def _run(prepared: _Prepared, given: list[Array | None]) -> tuple[Array, ...]:
    context = prepared.context
    variables = [given[i].copy() for i in prepared.updated]  # type: ignore[union-attr]
    for v, array in enumerate(variables):
        context.bind_variable(v, array)
    for k, i in enumerate(prepared.fed):
        context.input(k)[...] = given[i]
    context.run()
    return tuple(context.output(k).copy() for k in range(len(context.output_names))) + tuple(variables)
