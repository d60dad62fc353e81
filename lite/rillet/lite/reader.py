"""The .rlt file back to Programs, in plain Python: for tools and passes. Checks all that the engine checks."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rillet.lite import _model_fbs as fbs
from rillet.lite.layout import (
    ALIGNMENT,
    CODE_DTYPES,
    FORMAT_VERSION,
    HEADER,
    IDENTIFIER,
    MAGIC,
    MAX_BYTES,
    nest,
    padded,
)
from rillet.lite.status import ModelError, Status
from rillet.shared_ops.errors import OpError, ProgramError
from rillet.shared_ops.op import Op
from rillet.shared_ops.program import Application, Program, Value
from rillet.shared_ops.registry import get_op
from rillet.shared_ops.shapes import MAX_RANK
from rillet.shared_ops.types import Array, QuantParams, TensorType, type_of


@dataclass
class ModelFile:
    """What a model file holds. The first program is the entry; its `metadata` is the file's."""

    programs: list[Program]
    metadata: dict[str, str] = field(default_factory=dict)
    quant_profile: str = ""


def read_model(source: str | os.PathLike[str] | bytes) -> Program:
    """The entry Program of a model file (a path, or its bytes). Constants are views of the bytes or the mapped file.

    Raises:
        ModelError: with a status of the closed list, whatever the bytes are.
    """
    return read_file(source).programs[0]


def read_file(source: str | os.PathLike[str] | bytes) -> ModelFile:
    """All programs, metadata and the quantization profile of a model file."""
    if isinstance(source, bytes):
        data: Any = np.frombuffer(source, np.uint8)
    else:
        try:
            data = np.memmap(source, np.uint8, "r") if os.path.getsize(source) else np.zeros(0, np.uint8)
        except OSError as error:
            raise ModelError(Status.FILE_NOT_FOUND, f"cannot open {os.fspath(source)!r}: {error.strerror}") from None
    try:
        return _File(data).read()
    except (struct.error, IndexError, ValueError, TypeError, OverflowError, AttributeError) as error:
        if isinstance(error, ModelError):
            raise
        # The flatbuffers package follows offsets without a check: what it trips over is a broken structure.
        raise ModelError(Status.MALFORMED, f"the structure of the file is not valid: {error}") from None


def _refuse(condition: bool, status: Status, text: str) -> None:
    if condition:
        raise ModelError(status, text)


class _File:
    def __init__(self, data: Array) -> None:
        self.data = data
        self.structure = self._check_header()
        # A table takes eight bytes at least: more tables than that are one table named again and again.
        # Operations and their attributes are looked at twice.
        self.tables_left = 2 * (len(self.structure) // 8 + 8)
        self.numbers_left = len(self.structure) // 4
        _refuse(self.structure[4:8] != IDENTIFIER, Status.MALFORMED, "the structure is not of type RLT1")
        self.model = fbs.Model.GetRootAs(self.structure, 0)
        self.sections: list[Array] = []

    def numbers(self, owner: Any, field_name: str) -> list[Any]:
        """A vector of numbers, within the budget: a real file does not name the same long list again and again."""
        count = getattr(owner, f"{field_name}Length")()
        self.numbers_left -= count
        _refuse(self.numbers_left < 0, Status.MALFORMED, "more numbers than bytes")
        get = getattr(owner, field_name)
        return [get(i) for i in range(count)]

    def _check_header(self) -> bytes:
        head = self.data[: HEADER.size].tobytes()
        _refuse(head[:8] != MAGIC[: len(head)], Status.BAD_MAGIC, "not a .rlt file")
        _refuse(len(head) < HEADER.size, Status.TRUNCATED, "the file ends inside its header")
        _, version, crc, size, total = HEADER.unpack(head)
        _refuse(version != FORMAT_VERSION, Status.BAD_VERSION, f"format version: got {version}, expected 1")
        _refuse(total != len(self.data), Status.TRUNCATED, f"file size: got {len(self.data)}, expected {total}")
        _refuse(HEADER.size + padded(size) > total, Status.TRUNCATED, f"structure of {size} bytes in a file of {total}")
        _refuse(any(head[32:]), Status.BAD_VERSION, "a reserved byte of the header is set")
        structure = self.data[HEADER.size : HEADER.size + size].tobytes()
        _refuse(crc != zlib.crc32(structure, zlib.crc32(head[16:32])), Status.BAD_CHECKSUM, "damaged structure")
        _refuse(size < 8, Status.MALFORMED, "no structure")
        return structure

    def table(self, owner: Any, getter: str, i: int) -> Any:
        """One element of a vector of tables, within the budget."""
        self.tables_left -= 1
        _refuse(self.tables_left < 0, Status.MALFORMED, "more tables than bytes")
        return getattr(owner, getter)(i)

    def read(self) -> ModelFile:
        model = self.model
        self._read_sections()
        count = model.ProgramsLength()
        _refuse(count == 0, Status.MALFORMED, "the file holds no program")
        tables = [self.table(model, "Programs", i) for i in range(count)]
        for i, program in enumerate(tables):
            self._check_calls(program, i, count)
        programs = [_ProgramReader(self, program).read() for program in tables]
        pairs = [self.table(model, "Metadata", i) for i in range(model.MetadataLength())]
        metadata = {_text(p.Key()): _text(p.Value()) for p in pairs}
        programs[0].metadata = dict(metadata)
        return ModelFile(programs, metadata, _text(model.QuantProfile()))

    def _check_calls(self, program: Any, index: int, count: int) -> None:
        """Programs call only programs that stand after them: so there is no circle."""
        for o in (self.table(program, "Operations", i) for i in range(program.OperationsLength())):
            for a in (self.table(o, "Attrs", i) for i in range(o.AttrsLength())):
                bad = a.Kind() == fbs.AttrKind.Program and not index < a.I() < count
                _refuse(bad, Status.BAD_REFERENCE, f"program {index} calls program {a.I()} of {count}")

    def _read_sections(self) -> None:
        free, size = HEADER.size + len(self.structure), len(self.data)
        for i in range(self.model.SectionsLength()):
            s = self.model.Sections(i)
            begin, length = s.Offset(), s.Size()
            bad = begin % ALIGNMENT or begin < free or begin + length + ALIGNMENT > size
            _refuse(bool(bad), Status.BAD_REFERENCE, f"section {i} lies at {begin} with {length} bytes of {size}")
            self._check_padding(free, begin)
            free, data = begin + length, self.data[begin : begin + length]
            _refuse(zlib.crc32(data.data) != s.Crc32(), Status.BAD_CHECKSUM, f"section {i} is damaged")
            self.sections.append(data)
        self._check_padding(free, size)

    def _check_padding(self, begin: int, end: int) -> None:
        _refuse(bool(self.data[begin:end].any()), Status.BAD_CHECKSUM, f"padding between {begin} and {end} is not zero")


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8")


class _ProgramReader:
    def __init__(self, file: _File, table: Any) -> None:
        self.file, self.t = file, table

    def read(self) -> Program:
        t = self.t
        program = Program(_text(t.Name()))
        tensors = [self.file.table(t, "Tensors", i) for i in range(t.TensorsLength())]
        self.names = [_text(x.Name()) for x in tensors]
        for x, name in zip(tensors, self.names):
            _refuse(name in program.values, Status.BAD_TENSOR, f"two tensors named {name!r}")
            program.values[name] = self._value(x, name)
        program.inputs = [self._name(i) for i in self.file.numbers(t, "Inputs")]
        program.outputs = [self._name(i) for i in self.file.numbers(t, "Outputs")]
        kinds = dict(zip(self.names, (x.Kind() for x in tensors)))
        listed = [n for n, k in kinds.items() if k == fbs.Kind.Input]
        _refuse(sorted(listed) != sorted(program.inputs), Status.BAD_ORDER, "inputs and input tensors disagree")
        operations = [self.file.table(t, "Operations", i) for i in range(t.OperationsLength())]
        program.applications = [self._application(o) for o in operations]
        try:
            program.check()
        except ProgramError as error:
            raise ModelError(Status.BAD_ORDER, str(error)) from None
        return program

    def _name(self, i: int) -> str:
        _refuse(not 0 <= i < len(self.names), Status.BAD_REFERENCE, f"tensor {i} of {len(self.names)}")
        return self.names[i]

    def _value(self, t: Any, name: str) -> Value:
        def bad(condition: bool, text: str, status: Status = Status.BAD_TENSOR) -> None:
            _refuse(condition, status, f"tensor {name!r}: {text}")

        bad(t.Dtype() not in CODE_DTYPES or t.Kind() > fbs.Kind.Variable, "unknown dtype or kind")
        dtype, rank = CODE_DTYPES[t.Dtype()], t.ShapeLength()
        bad(rank > MAX_RANK, f"rank {rank}")
        dims = [int(t.Shape(i)) for i in range(rank)]
        bad(any(d < -1 for d in dims), f"shape {dims}")
        size = dtype.itemsize
        for d in dims:
            size *= max(d, 1)
        bad(0 not in dims and size > MAX_BYTES, f"shape {dims} is too large")
        bad(t.DimsLength() not in (0, rank), "names of dimensions do not match the shape")
        words = [_text(t.Dims(i)) for i in range(t.DimsLength())] or [""] * rank
        shape = tuple(d if d >= 0 else (w or None) for d, w in zip(dims, words))
        quant = self._quant(t, dtype, dims, bad)
        if t.Kind() != fbs.Kind.Constant:
            bad(t.Section() != -1, "only constants have a section")
            return Value(name, TensorType(dtype, shape, variable=t.Kind() == fbs.Kind.Variable), quant)
        bad(-1 in dims, "a constant of unknown shape")
        sections = self.file.sections
        bad(not 0 <= t.Section() < len(sections), f"section {t.Section()}", Status.BAD_REFERENCE)
        data = sections[t.Section()]
        bad(len(data) != int(np.prod(dims, dtype=object)) * dtype.itemsize, f"section of {len(data)} bytes")
        array = np.asarray(data).view(dtype).reshape(dims)
        return Value(name, type_of(array), quant, array)

    def _quant(self, t: Any, dtype: Any, dims: list[int], bad: Callable[..., None]) -> QuantParams | None:
        q = t.Quant()
        if q is None:
            return None
        bad(dtype not in (np.int8, np.uint8, np.int32), "only i8, u8 and i32 tensors may be quantized")
        count, axis, zero = q.ScaleLength(), q.Axis(), q.ZeroPoint()
        scale = np.array(self.file.numbers(q, "Scale"), np.float32)
        bad(count == 0 or not bool(np.all(np.isfinite(scale) & (scale > 0))), "a scale is not a positive number")
        bad(dtype.itemsize == 1 and not np.iinfo(dtype).min <= zero <= np.iinfo(dtype).max, f"zero point {zero}")
        bad(not -1 <= axis < len(dims), f"quantization axis {axis}")
        bad(count != (1 if axis < 0 else dims[axis]), "number of scales differs from number of channels")
        bad(axis >= 0 and zero != 0, "per-channel quantization with a zero point")
        return QuantParams(scale, zero, None if axis < 0 else axis)

    def _application(self, o: Any) -> Application:
        name, source = _text(o.Name()), _text(o.Source())
        op_name = _text(o.Op())
        try:
            op = get_op(op_name)
        except OpError as error:
            raise ModelError(Status.UNKNOWN_OP, str(error.located(name, source))) from None
        if o.Version() != op.version:
            wrong = OpError(op_name, "version", got=o.Version(), expected=op.version, node=name, source=source)
            raise ModelError(Status.UNKNOWN_OP, str(wrong))
        inputs = tuple(None if i == -1 else self._name(i) for i in self.file.numbers(o, "Inputs"))
        outputs = tuple(self._name(i) for i in self.file.numbers(o, "Outputs"))
        found = [self.file.table(o, "Attrs", i) for i in range(o.AttrsLength())]
        try:
            op.check_arity(len(inputs))
            for declared, given in zip(op.inputs, inputs):
                if given is None and not declared.endswith("?"):
                    raise OpError(op_name, f"input {declared!r} is missing")
            attrs = op.make_attrs({k: v for k, v in (self._attr(op, a) for a in found)})
        except OpError as error:
            raise ModelError(Status.BAD_OPERATION, str(error.located(name, source))) from None
        return Application(op, attrs, inputs, outputs, name, source)

    def _attr(self, op: Op, a: Any) -> tuple[str, Any]:
        name, kind = _text(a.Name()), a.Kind()
        if kind == fbs.AttrKind.None_:
            return name, None
        if kind == fbs.AttrKind.Int:
            return name, a.I()
        if kind == fbs.AttrKind.Float:
            return name, a.F()
        if kind == fbs.AttrKind.String:
            _refuse(a.S() is None, Status.MALFORMED, f"attribute {name!r} without text")
            return name, _text(a.S())
        if kind == fbs.AttrKind.Ints:
            return name, nest(self.file.numbers(a, "Ints"), op.attr_types.get(name))
        if kind == fbs.AttrKind.Floats:
            return name, nest(self.file.numbers(a, "Floats"), op.attr_types.get(name))
        _refuse(kind != fbs.AttrKind.Program, Status.MALFORMED, f"attribute {name!r} of unknown kind {kind}")
        return name, a.I()
