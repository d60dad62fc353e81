"""Program to .rlt: a FlatBuffer of the structure, then one aligned, checksummed section a constant."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np

from rillet.lite import _model_fbs as fbs
from rillet.lite.layout import ALIGNMENT, DTYPE_CODES, FORMAT_VERSION, HEADER, MAGIC, is_float_list, padded
from rillet.lite.whole_file import whole_file
from rillet.shared_ops.errors import ProgramError
from rillet.shared_ops.op import Op
from rillet.shared_ops.program import Application, Program, Value
from rillet.shared_ops.quantize import PROFILE
from rillet.shared_ops.types import Array, QuantParams

Programs = Program | Sequence[Program]


def write_model(programs: Programs, metadata: Mapping[str, str] | None = None, quant_profile: str = "") -> bytes:
    """The bytes of a model file.

    Args:
        programs: one Program, or several (the first is the entry).
        metadata: text by key, beside what the entry's own `metadata` holds.
        quant_profile: the int8 arithmetic ("rq_f32"); by default, that of any Program with quantized values.

    Raises:
        ProgramError: a Program is malformed, or holds a dtype that the format does not know.

    Example:
        >>> from rillet.shared_ops.program import Program
        >>> from rillet.shared_ops.types import TensorType
        >>> program = Program()
        >>> x = program.add_input("x", TensorType(np.dtype(np.float32), (2,)))
        >>> program.outputs = [x]
        >>> write_model(program)[:6]
        b'RILLET'
    """
    return b"".join(_parts(programs, metadata, quant_profile))


def save_model(
    path: str | os.PathLike[str], programs: Programs, metadata: Mapping[str, str] | None = None, quant_profile: str = ""
) -> None:
    """Writes a model file, whole or not at all: into a temporary file beside it, which then takes its name.

    Raises OSError (a full disk, a missing folder) with no file left behind, and what `write_model` raises.
    """
    with whole_file(Path(path)) as file:
        for part in _parts(programs, metadata, quant_profile):
            file.write(part)


def _parts(
    programs: Programs, metadata: Mapping[str, str] | None, quant_profile: str
) -> Iterator[bytes | memoryview[Any]]:
    """The file, piece by piece: large constants are never copied."""
    listed = [programs] if isinstance(programs, Program) else list(programs)
    if not listed:
        raise ProgramError("a model needs a program.")
    for program in listed:
        program.check()
    quantized = any(v.quant is not None for p in listed for v in p.values.values())
    structure = _Structure(listed, {**listed[0].metadata, **(metadata or {})}, quant_profile or quantized * PROFILE)
    body, total = structure.serialize()
    checked = HEADER.pack(MAGIC, FORMAT_VERSION, 0, len(body), total)[16:32]
    yield HEADER.pack(MAGIC, FORMAT_VERSION, zlib.crc32(body, zlib.crc32(checked)), len(body), total)
    yield body
    yield bytes(padded(len(body)) - len(body))
    for data in structure.sections:
        yield data
        yield bytes(padded(data.nbytes) - data.nbytes)
    yield bytes(ALIGNMENT)  # kernels may read a little past the end of the last constant


def _contents(array: Array) -> memoryview[Any]:
    array = np.ascontiguousarray(array)
    return memoryview(array.reshape(-1).view(np.uint8).data) if array.size else memoryview(b"")


class _Structure:
    """Builds the FlatBuffer. Sections are collected first; the same array used twice is stored once."""

    def __init__(self, programs: list[Program], metadata: dict[str, str], quant_profile: str) -> None:
        self.programs, self.metadata, self.quant_profile = programs, metadata, quant_profile
        self.sections: list[memoryview[Any]] = []
        self._section_of: dict[int, int] = {}
        for program in programs:
            for value in program.values.values():
                if value.constant is not None and id(value.constant) not in self._section_of:
                    self._section_of[id(value.constant)] = len(self.sections)
                    self.sections.append(_contents(value.constant))
        self._crcs = [zlib.crc32(s) for s in self.sections]

    def serialize(self) -> tuple[bytes, int]:
        """The FlatBuffer and the size of the whole file. Offsets depend on its size, so it is built twice."""
        start = padded(HEADER.size + padded(len(self._build(0)[0])))
        return self._build(start)

    def _build(self, start: int) -> tuple[bytes, int]:
        self.b = b = flatbuffers.Builder(4096)
        programs = self._offsets([self._program(p) for p in self.programs])
        pairs = self._offsets([self._pair(k, v) for k, v in self.metadata.items()])
        profile = b.CreateString(self.quant_profile) if self.quant_profile else None
        offsets = [start]
        for data in self.sections:
            offsets.append(offsets[-1] + padded(data.nbytes))
        fbs.ModelStartSectionsVector(b, len(self.sections))
        for data, crc, offset in reversed(list(zip(self.sections, self._crcs, offsets))):
            fbs.CreateSection(b, offset, data.nbytes, crc)  # type: ignore[no-untyped-call]
        sections = b.EndVector()
        fbs.ModelStart(b)
        fbs.ModelAddPrograms(b, programs)
        fbs.ModelAddSections(b, sections)
        fbs.ModelAddMetadata(b, pairs)
        if profile is not None:
            fbs.ModelAddQuantProfile(b, profile)
        b.Finish(fbs.ModelEnd(b), file_identifier=b"RLT1")
        return bytes(b.Output()), offsets[-1] + ALIGNMENT

    def _offsets(self, offsets: list[int]) -> int:
        self.b.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.b.PrependUOffsetTRelative(offset)
        return self.b.EndVector()

    def _numbers(self, values: Any, dtype: Any) -> int:
        return self.b.CreateNumpyVector(np.asarray(values, dtype))

    def _pair(self, key: str, value: str) -> int:
        k, v = self.b.CreateString(key), self.b.CreateString(value)
        fbs.KeyValueStart(self.b)
        fbs.KeyValueAddKey(self.b, k)
        fbs.KeyValueAddValue(self.b, v)
        return int(fbs.KeyValueEnd(self.b))

    def _program(self, program: Program) -> int:
        index = {name: i for i, name in enumerate(program.values)}
        inputs = set(program.inputs)
        tensors = self._offsets([self._tensor(v, v.name in inputs) for v in program.values.values()])
        operations = self._offsets([self._operation(a, index) for a in program.applications])
        name = self.b.CreateString(program.name)
        ins = self._numbers([index[n] for n in program.inputs], "<i4")
        outs = self._numbers([index[n] for n in program.outputs], "<i4")
        fbs.ProgramStart(self.b)
        fbs.ProgramAddName(self.b, name)
        fbs.ProgramAddTensors(self.b, tensors)
        fbs.ProgramAddOperations(self.b, operations)
        fbs.ProgramAddInputs(self.b, ins)
        fbs.ProgramAddOutputs(self.b, outs)
        return int(fbs.ProgramEnd(self.b))

    def _tensor(self, value: Value, is_input: bool) -> int:
        b, shape = self.b, value.type.shape
        if value.type.dtype not in DTYPE_CODES:
            raise ProgramError(f"{value.name!r} has dtype {value.type.dtype}, which a model file cannot hold.")
        name = b.CreateString(value.name)
        dims = self._numbers([d if isinstance(d, int) else -1 for d in shape], "<i8")
        named = any(isinstance(d, str) for d in shape)
        names = self._offsets([b.CreateString(d if isinstance(d, str) else "") for d in shape]) if named else None
        quant = None if value.quant is None else self._quant(value.quant)
        fbs.TensorStart(b)
        fbs.TensorAddName(b, name)
        fbs.TensorAddDtype(b, DTYPE_CODES[value.type.dtype])
        fbs.TensorAddShape(b, dims)
        if names is not None:
            fbs.TensorAddDims(b, names)
        if quant is not None:
            fbs.TensorAddQuant(b, quant)
        if value.constant is not None:
            fbs.TensorAddKind(b, fbs.Kind.Constant)
            fbs.TensorAddSection(b, self._section_of[id(value.constant)])
        elif is_input or value.is_variable:
            fbs.TensorAddKind(b, fbs.Kind.Input if is_input else fbs.Kind.Variable)
        return int(fbs.TensorEnd(b))

    def _quant(self, quant: QuantParams) -> int:
        scale = self._numbers(quant.scale, "<f4")
        fbs.QuantStart(self.b)
        fbs.QuantAddScale(self.b, scale)
        fbs.QuantAddZeroPoint(self.b, int(quant.zero_point))
        fbs.QuantAddAxis(self.b, -1 if quant.axis is None else quant.axis)
        return int(fbs.QuantEnd(self.b))

    def _operation(self, a: Application, index: dict[str, int]) -> int:
        b = self.b
        op, name, source = b.CreateString(a.op.name), b.CreateString(a.name), b.CreateString(a.source)
        ins = self._numbers([-1 if n is None else index[n] for n in a.inputs], "<i4")
        outs = self._numbers([index[n] for n in a.outputs], "<i4")
        attrs = self._offsets([self._attr(a.op, f.name, getattr(a.attrs, f.name)) for f in fields(a.attrs)])
        fbs.OperationStart(b)
        fbs.OperationAddOp(b, op)
        fbs.OperationAddVersion(b, a.op.version)
        fbs.OperationAddName(b, name)
        fbs.OperationAddSource(b, source)
        fbs.OperationAddInputs(b, ins)
        fbs.OperationAddOutputs(b, outs)
        fbs.OperationAddAttrs(b, attrs)
        return int(fbs.OperationEnd(b))

    def _attr(self, op: Op, name: str, value: Any) -> int:
        b = self.b
        key, text, numbers = b.CreateString(name), 0, 0
        kind, floats = fbs.AttrKind.None_, False
        if isinstance(value, (bool, int)):
            kind = fbs.AttrKind.Int
        elif isinstance(value, float):
            kind = fbs.AttrKind.Float
        elif isinstance(value, str):
            kind, text = fbs.AttrKind.String, b.CreateString(value)
        elif isinstance(value, tuple):
            floats = is_float_list(op.attr_types[name])
            kind = fbs.AttrKind.Floats if floats else fbs.AttrKind.Ints
            numbers = self._numbers(np.asarray(value).reshape(-1), "<f8" if floats else "<i8")
        elif value is not None:
            raise ProgramError(f"attribute {name!r} of {op.name} is a {type(value).__name__}: not for a model file.")
        fbs.AttrStart(b)
        fbs.AttrAddName(b, key)
        fbs.AttrAddKind(b, kind)
        if kind == fbs.AttrKind.Int:
            fbs.AttrAddI(b, int(value))
        elif kind == fbs.AttrKind.Float:
            fbs.AttrAddF(b, value)
        elif kind == fbs.AttrKind.String:
            fbs.AttrAddS(b, text)
        elif kind != fbs.AttrKind.None_:
            (fbs.AttrAddFloats if floats else fbs.AttrAddInts)(b, numbers)
        return int(fbs.AttrEnd(b))
