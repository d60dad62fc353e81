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
class Prepared:
    """One op, ready to run: its model file, a context, and which arrays go where."""

    data: bytes
    context: Context
    fed: list[int]  # for each model input: which array feeds it
    updated: list[int]  # for each variable: which array it takes

    def run(self, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
        """The outputs, then the new values of the updated inputs, as new arrays."""
        variables = [np.array(arrays[i], order="C") for i in self.updated]
        for v, array in enumerate(variables):
            self.context.bind_variable(v, array)
        for k, i in enumerate(self.fed):
            self.context.input(k)[...] = arrays[i]
        self.context.run()
        outputs = (self.context.output(k).copy() for k in range(len(self.context.output_names)))
        return (*outputs, *variables)


_cache: dict[Any, Prepared] = {}


def kernel_dtype(
    inputs: Sequence[TensorType | Array | None], outputs: Sequence[TensorType] = ()
) -> np.dtype[Any] | None:
    """The dtype that chooses the kernel of an application: of its first input of real numbers (float or int8).

    Where there is none, of input 0, or of output 0. The engine's rule (ResolveKernels in model.cc).
    """
    dtypes = [x.dtype for x in inputs if x is not None]
    real = [d for d in dtypes if d.kind == "f" or d == np.int8]
    candidates = real or dtypes or [y.dtype for y in outputs]
    return candidates[0] if candidates else None


def has_kernel(op: Op, dtype: np.dtype[Any]) -> bool:
    """Whether the library has a kernel of this op on values of this dtype."""
    if not op.native or not is_available():
        return False
    return bool({(op.name, op.version, DTYPE_NAMES.get(dtype, "?")), (op.name, op.version, "any")} & kernels())


def needs_scales(op: Op, dtype: np.dtype[Any]) -> bool:
    """Whether the kernel takes quantized values only: on plain int8 numbers the reference has to do."""
    return dtype == np.int8 and op.quantize is not None and (op.name, op.version, "any") not in kernels()


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

    Example:
        >>> from rillet.shared_ops.registry import get_op
        >>> apply_native(get_op("Relu"), {}, [np.array([-1, 2], np.float32)])
        (array([0., 2.], dtype=float32),)
    """
    prepared = prepare_single(op, attrs, arrays, threads, in_q, out_q)
    return NotImplemented if prepared is None else prepared.run(arrays)


def prepare_single(
    op: Op,
    attrs: Any,
    arrays: Sequence[Array | None],
    threads: int = 1,
    in_q: Quants = None,
    out_q: Quants = None,
    constants: Sequence[int] = (),
) -> Prepared | None:
    """One op made ready for arrays of these shapes; None where there is no kernel for their dtypes.

    constants: indices of the inputs whose contents stand in the model, as weights do; inputs that describe shapes do so
    anyhow. What `apply_native` raises.
    """
    record = attrs if is_dataclass(attrs) else op.make_attrs(attrs)
    given = [None if x is None else np.ascontiguousarray(x).reshape(np.shape(x)) for x in arrays]
    while given and given[-1] is None:
        given.pop()
    call = _Call(op, record, given, threads, tuple(in_q or ()), tuple(out_q or ()))
    key_dtype = kernel_dtype(given, call.types)
    if key_dtype is None or not has_kernel(op, key_dtype):
        return None
    if not any((*call.in_q, *call.out_q)) and needs_scales(op, key_dtype):
        return None
    return call.find(frozenset(constants))


class _Call:
    """An application of one op to arrays."""

    def __init__(
        self,
        op: Op,
        attrs: Any,
        given: list[Array | None],
        threads: int,
        in_q: tuple[QuantParams | None, ...],
        out_q: tuple[QuantParams | None, ...],
    ) -> None:
        self.op, self.attrs, self.given, self.threads = op, attrs, given, threads
        self.in_q = in_q + (None,) * (len(given) - len(in_q))
        self.types = self._output_types(out_q)
        self.out_q = out_q + (None,) * (len(self.types) - len(out_q))

    def _output_types(self, out_q: tuple[QuantParams | None, ...]) -> list[TensorType]:
        """An int8 op has its float op's shapes: quantized inputs count as float in `infer`."""
        floats = np.dtype(np.float32)
        is_int8 = self.op.quantize is not None
        in_types = [
            None if x is None else replace(type_of(x), dtype=floats, value=None) if is_int8 and q else type_of(x)
            for x, q in zip(self.given, self.in_q)
        ]
        types = list(self.op.infer_types(self.attrs, tuple(in_types)))
        if is_int8 and out_q:
            types = [replace(t, dtype=np.dtype(np.int8)) if q else t for t, q in zip(types, out_q)]
        return types

    def find(self, wanted: frozenset[int]) -> Prepared:
        """Tries with few constants first; kernels that need to know small integer inputs refuse, and get them."""
        named = wanted | {i for i, n in enumerate(self.op.inputs) if "shape" in n and i < len(self.given)}
        small = {i for i, x in enumerate(self.given) if x is not None and x.dtype.kind == "i" and x.size <= _SMALL}
        choices = [named, named | small] if small - named else [named]
        for constants in choices:
            if (key := self._key(constants)) in _cache:
                return _cache[key]
        for constants in choices:
            try:
                prepared = self._prepare(constants)
            except ModelError as error:
                if constants is choices[-1] or error.status is not Status.BAD_OPERATION:
                    raise
                continue
            while len(_cache) >= _CACHE_SIZE:
                _cache.pop(next(iter(_cache)))
            _cache[self._key(constants)] = prepared
            return prepared
        raise AssertionError("one of the choices returns or raises")

    def _key(self, constants: frozenset[int]) -> Any:
        signature = tuple(None if x is None else (x.dtype.char, x.shape) for x in self.given)
        contents = tuple((i, x.tobytes()) for i, x in enumerate(self.given) if i in constants and x is not None)
        quants = tuple(q and (q.scale.tobytes(), q.zero_point, q.axis) for q in (*self.in_q, None, *self.out_q))
        attrs = repr(self.attrs)
        return self.op.name, self.op.version, attrs, signature, contents, quants, self.threads, current_isa()

    def _prepare(self, constants: frozenset[int]) -> Prepared:
        op, program = self.op, Program(self.op.name)
        names: list[str | None] = []
        fed, updated = [], []
        for i, (x, quant) in enumerate(zip(self.given, self.in_q)):
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
        values = [Value(f"out{k}", t.plain(), q) for k, (t, q) in enumerate(zip(self.types, self.out_q))]
        program.outputs = [program.add_value(v) for v in values]
        program.applications.append(Application(op, self.attrs, tuple(names), tuple(program.outputs)))
        data = write_model(program)
        return Prepared(data, Context(Model(data), self.threads), fed, updated)
