"""Damaged and hostile model files: a typed error, never a crash. The long run is under sanitizers, in a C++ driver."""

from __future__ import annotations

import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from native_builds import build
from sample_models import F32, float_model, int8_model

from rillet.lite import Context, Model, ModelError, Status, read_file, write_model
from rillet.lite import _model_fbs as fbs
from rillet.lite.layout import HEADER, MAGIC, padded
from rillet.shared_ops.errors import RilletError
from rillet.shared_ops.op import Op
from rillet.shared_ops.program import Application, Program, Value
from rillet.shared_ops.registry import all_ops, get_op
from rillet.shared_ops.types import Array, TensorType, type_of


def fix_checksum(data: bytes) -> bytes:
    """The file with the checksum of its structure put right."""
    size = min(struct.unpack_from("<Q", data, 16)[0], len(data) - 64)
    crc = zlib.crc32(data[64 : 64 + size], zlib.crc32(data[16:32]))
    return data[:12] + struct.pack("<I", crc) + data[16:]


def status_of(load: Callable[[bytes], Any], data: bytes) -> Status:
    try:
        load(data)
    except ModelError as error:
        return error.status
    return Status.OK


def in_engine(data: bytes) -> Any:
    return Context(Model(data))


@pytest.fixture(scope="module")
def model() -> bytes:
    return write_model(int8_model())


@pytest.mark.parametrize("load", [in_engine, read_file])
def test_truncated_at_every_length(load: Callable[[bytes], Any], model: bytes) -> None:
    for size in range(len(model)):
        assert status_of(load, model[:size]) in (Status.TRUNCATED, Status.BAD_MAGIC), size
    assert status_of(load, model + b"\0") is Status.TRUNCATED


@pytest.mark.parametrize("load", [in_engine, read_file])
def test_a_change_of_any_byte_is_noticed(load: Callable[[bytes], Any], model: bytes) -> None:
    rng = np.random.default_rng(0)
    for at in [*range(64), *rng.integers(0, len(model), 600)]:
        damaged = bytearray(model)
        damaged[at] ^= int(rng.integers(1, 256))
        assert status_of(load, bytes(damaged)) is not Status.OK, at


@pytest.mark.parametrize("load", [in_engine, read_file])
def test_changed_bytes_behind_right_checksums(load: Callable[[bytes], Any], model: bytes) -> None:
    """Anything but a crash or another error; the deeper checks are reached."""
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(800):
        damaged = bytearray(model)
        damaged[int(rng.integers(len(model)))] ^= int(rng.integers(1, 256))
        seen.add(status_of(load, fix_checksum(bytes(damaged))))
    assert {Status.MALFORMED, Status.BAD_REFERENCE, Status.BAD_TENSOR, Status.BAD_OPERATION} <= seen


# -- a hostile sample of each status: a tiny file written by hand, with one thing wrong --------------------------------


class Sample:
    """Input x -> Relu -> y, with a constant c; every part can be replaced by something false."""

    def __init__(self, **changes: Any) -> None:
        self.x: dict[str, Any] = {"name": "x", "kind": fbs.Kind.Input, "shape": [2]}
        self.y: dict[str, Any] = {"name": "y", "shape": [2]}
        self.c: dict[str, Any] = {"name": "c", "kind": fbs.Kind.Constant, "shape": [4], "section": 0}
        self.extra: list[dict[str, Any]] = []
        self.op: dict[str, Any] = {"op": "Relu", "inputs": [0], "outputs": [1], "version": 1, "attrs": []}
        self.ops: list[dict[str, Any]] | None = None
        self.inputs, self.outputs = [0], [1]
        self.contents, self.section = np.ones(4, "<f4").tobytes(), {"offset": 0, "size": 16}
        self.programs = 1
        for name, value in changes.items():
            old = getattr(self, name)
            setattr(self, name, {**old, **value} if isinstance(old, dict) else value)

    def bytes(self) -> bytes:
        structure = self._structure(64)
        start = 64 + padded(len(structure))
        structure = self._structure(start)
        body = structure + bytes(padded(len(structure)) - len(structure))
        body += self.contents + bytes(padded(len(self.contents)) - len(self.contents)) + bytes(64)
        return fix_checksum(HEADER.pack(MAGIC, 1, 0, len(structure), 64 + len(body)) + body)

    def _structure(self, start: int) -> bytes:
        b = self.b = flatbuffers.Builder()
        program = self._program()
        fbs.ModelStartSectionsVector(b, 1)
        offset, size = start + self.section["offset"], self.section["size"]
        fbs.CreateSection(b, offset, size, zlib.crc32(self.contents))
        sections = b.EndVector()
        programs = self._vector([program] * self.programs)
        fbs.ModelStart(b)
        fbs.ModelAddPrograms(b, programs)
        fbs.ModelAddSections(b, sections)
        b.Finish(fbs.ModelEnd(b), file_identifier=b"RLT1")
        return bytes(b.Output())

    def _vector(self, offsets: list[int]) -> int:
        self.b.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.b.PrependUOffsetTRelative(offset)
        return self.b.EndVector()

    def _program(self) -> int:
        b = self.b
        tensors = self._vector([self._tensor(**t) for t in (self.x, self.y, self.c, *self.extra)])
        operations = self._vector([self._operation(**o) for o in (self.ops if self.ops is not None else [self.op])])
        name = b.CreateString("main")
        ins = b.CreateNumpyVector(np.array(self.inputs, "<i4"))
        outs = b.CreateNumpyVector(np.array(self.outputs, "<i4"))
        fbs.ProgramStart(b)
        fbs.ProgramAddName(b, name)
        fbs.ProgramAddTensors(b, tensors)
        fbs.ProgramAddOperations(b, operations)
        fbs.ProgramAddInputs(b, ins)
        fbs.ProgramAddOutputs(b, outs)
        return int(fbs.ProgramEnd(b))

    def _tensor(self, name: str, shape: list[int], kind: int = 0, section: int = -1, dtype: int = 0,
                quant: tuple[list[float], int, int] | None = None) -> int:  # fmt: skip
        b = self.b
        text, dims = b.CreateString(name), b.CreateNumpyVector(np.array(shape, "<i8"))
        q = 0
        if quant:
            scale = b.CreateNumpyVector(np.array(quant[0], "<f4"))
            fbs.QuantStart(b)
            fbs.QuantAddScale(b, scale)
            fbs.QuantAddZeroPoint(b, quant[1])
            fbs.QuantAddAxis(b, quant[2])
            q = fbs.QuantEnd(b)
        fbs.TensorStart(b)
        fbs.TensorAddName(b, text)
        fbs.TensorAddDtype(b, dtype)
        fbs.TensorAddKind(b, kind)
        fbs.TensorAddShape(b, dims)
        fbs.TensorAddSection(b, section)
        if quant:
            fbs.TensorAddQuant(b, q)
        return int(fbs.TensorEnd(b))

    def _operation(self, op: str, inputs: list[int], outputs: list[int], version: int = 1, attrs: Any = ()) -> int:
        b = self.b
        made = []
        for key, kind, value in attrs:
            text = b.CreateString(key)
            fbs.AttrStart(b)
            fbs.AttrAddName(b, text)
            fbs.AttrAddKind(b, kind)
            fbs.AttrAddI(b, value)
            made.append(fbs.AttrEnd(b))
        name, listed = b.CreateString(op), self._vector(made)
        ins, outs = (b.CreateNumpyVector(np.array(v, "<i4")) for v in (inputs, outputs))
        fbs.OperationStart(b)
        fbs.OperationAddOp(b, name)
        fbs.OperationAddVersion(b, version)
        fbs.OperationAddInputs(b, ins)
        fbs.OperationAddOutputs(b, outs)
        fbs.OperationAddAttrs(b, listed)
        return int(fbs.OperationEnd(b))


RELU = {"op": "Relu", "inputs": [0], "outputs": [1]}
I8 = fbs.DType.I8
HOSTILE = [
    ("an input beyond the tensors", Status.BAD_REFERENCE, {"op": {"inputs": [9]}}),
    ("an input of -2", Status.BAD_REFERENCE, {"op": {"inputs": [-2]}}),
    ("an index of 2^31-1", Status.BAD_REFERENCE, {"op": {"inputs": [2**31 - 1]}}),
    ("an absent output", Status.BAD_REFERENCE, {"op": {"outputs": [-1]}}),
    ("a program output beyond the tensors", Status.BAD_REFERENCE, {"outputs": [7]}),
    ("a program input beyond the tensors", Status.BAD_REFERENCE, {"inputs": [7]}),
    ("a section that is not there", Status.BAD_REFERENCE, {"c": {"section": 1}}),
    ("a constant without a section", Status.BAD_REFERENCE, {"c": {"section": -1}}),
    ("a section past the end", Status.BAD_REFERENCE, {"section": {"offset": 1 << 20}}),
    ("a section of 2^64-1 bytes", Status.BAD_REFERENCE, {"section": {"size": 2**64 - 1}}),
    ("a section at an odd place", Status.BAD_REFERENCE, {"section": {"offset": 8, "size": 8}}),
    ("a program that calls itself", Status.BAD_REFERENCE, {"op": {"attrs": [("body", fbs.AttrKind.Program, 0)]}}),
    ("a program that is not there", Status.BAD_REFERENCE, {"op": {"attrs": [("body", fbs.AttrKind.Program, 5)]}}),
    ("a circle of two programs", Status.BAD_REFERENCE,
     {"programs": 2, "op": {"attrs": [("body", fbs.AttrKind.Program, 1)]}}),
    ("nine dimensions", Status.BAD_TENSOR, {"x": {"shape": [1] * 9}}),
    ("a dimension of -2", Status.BAD_TENSOR, {"x": {"shape": [-2]}}),
    ("sizes whose product overflows", Status.BAD_TENSOR, {"x": {"shape": [2**32, 2**32]}}),
    ("a tensor of 2^41 bytes", Status.BAD_TENSOR, {"x": {"shape": [2**39]}}),
    ("a dtype that is not", Status.BAD_TENSOR, {"x": {"dtype": 7}}),
    ("a kind that is not", Status.BAD_TENSOR, {"x": {"kind": 4}}),
    ("a section one element short", Status.BAD_TENSOR, {"c": {"shape": [5]}}),
    ("a constant of unknown shape", Status.BAD_TENSOR, {"c": {"shape": [-1]}}),
    ("a temporary with a section", Status.BAD_TENSOR, {"y": {"section": 0}}),
    ("two tensors of one name", Status.BAD_TENSOR, {"y": {"name": "x"}}),
    ("quantized floats", Status.BAD_TENSOR, {"x": {"quant": ([1.0], 0, -1)}}),
    ("a scale of zero", Status.BAD_TENSOR, {"x": {"dtype": I8, "quant": ([0.0], 0, -1)}}),
    ("a scale of NaN", Status.BAD_TENSOR, {"x": {"dtype": I8, "quant": ([float("nan")], 0, -1)}}),
    ("no scale", Status.BAD_TENSOR, {"x": {"dtype": I8, "quant": ([], 0, -1)}}),
    ("a zero point outside int8", Status.BAD_TENSOR, {"x": {"dtype": I8, "quant": ([1.0], 128, -1)}}),
    ("a quantization axis outside", Status.BAD_TENSOR, {"x": {"dtype": I8, "quant": ([1.0], 0, 1)}}),
    ("one scale for two channels", Status.BAD_TENSOR, {"x": {"dtype": I8, "quant": ([1.0], 0, 0)}}),
    ("read before written", Status.BAD_ORDER, {"op": {"inputs": [3]}, "extra": [{"name": "t", "shape": [2]}]}),
    ("one tensor as input and output", Status.BAD_ORDER, {"op": {"inputs": [1]}}),
    ("written twice", Status.BAD_ORDER, {"ops": [RELU, RELU]}),
    ("writes an input", Status.BAD_ORDER, {"op": {"outputs": [0]}}),
    ("writes a constant", Status.BAD_ORDER, {"op": {"outputs": [2]}}),
    ("an output that nothing writes", Status.BAD_ORDER, {"ops": []}),
    ("an input listed twice", Status.BAD_ORDER, {"inputs": [0, 0]}),
    ("an input not listed", Status.BAD_ORDER, {"inputs": []}),
    ("a temporary listed as input", Status.BAD_ORDER, {"inputs": [0, 1]}),
    ("an op that nobody knows", Status.UNKNOWN_OP, {"op": {"op": "Frobnicate"}}),
    ("a version from the future", Status.UNKNOWN_OP, {"op": {"version": 99}}),
    ("a required input left out", Status.BAD_OPERATION, {"ops": [{**RELU, "op": "Add", "inputs": [0, -1]}]}),
    ("too few inputs", Status.BAD_OPERATION, {"ops": [{**RELU, "op": "Add", "inputs": [0]}]}),
]  # fmt: skip


@pytest.mark.parametrize("status,changes", [pytest.param(s, c, id=name) for name, s, c in HOSTILE])
@pytest.mark.parametrize("load", [in_engine, read_file])
def test_hostile_sample(load: Callable[[bytes], Any], status: Status, changes: dict[str, Any]) -> None:
    assert status_of(load, Sample().bytes()) is Status.OK
    assert status_of(load, Sample(**changes).bytes()) is status


@pytest.mark.parametrize("load", [in_engine, read_file])
def test_hostile_headers(load: Callable[[bytes], Any], model: bytes) -> None:
    assert status_of(load, b"RILLET\n" + model[7:]) is Status.BAD_MAGIC  # as a text-mode transfer leaves it
    assert status_of(load, model[:8] + b"\2" + model[9:]) is Status.BAD_VERSION
    assert status_of(load, model[:40] + b"\1" + model[41:]) is Status.BAD_VERSION
    huge = model[:16] + struct.pack("<Q", 2**64 - 1) + model[24:]
    assert status_of(load, fix_checksum(huge)) is Status.TRUNCATED


def test_declared_shape_that_the_kernel_does_not_find() -> None:
    with pytest.raises(ModelError, match=r"\[Relu\].*got shape \[2\], expected \[3\]") as caught:
        in_engine(Sample(y={"shape": [3]}).bytes())
    assert caught.value.status is Status.BAD_OPERATION


def test_arena_beyond_the_machine_is_refused_with_its_size() -> None:
    p = Program()
    x = p.add_input("x", TensorType(F32, (1 << 37,)))
    p.outputs = list(p.apply(get_op("Neg"), [x], name="neg"))
    with pytest.raises(ModelError, match=r"needs an arena of \d{12,} bytes.*the limit is \d+") as caught:
        in_engine(write_model(p))
    assert caught.value.status is Status.OUT_OF_MEMORY


def first_cases() -> list[tuple[Op, list[Array | None], dict[str, Any]]]:
    found = []
    for op in all_ops():
        case = next(iter(op.cases(np.random.default_rng(0))), None)
        if op.native and case is not None and not op.updates:
            arrays = [x.astype(np.float32) if x is not None and x.dtype == np.float64 else x for x in case.inputs]
            found.append((op, arrays, case.attrs))
    return found


@pytest.mark.parametrize("op,arrays,attrs", [pytest.param(*case, id=case[0].name) for case in first_cases()])
def test_operands_of_an_op_left_out(op: Op, arrays: list[Array | None], attrs: dict[str, Any]) -> None:
    """Each operand in turn is set to -1: an optional one may run, a required one is refused, none may crash."""
    record = op.make_attrs(attrs)
    types = op.infer_types(record, tuple(None if x is None else type_of(x) for x in arrays))
    for i in range(len(arrays)):
        program = Program(op.name)
        names = [None if k == i or x is None else program.add_constant(f"in{k}", x) for k, x in enumerate(arrays)]
        outputs = [program.add_value(Value(program.fresh("out"), TensorType(t.dtype, (None,) * t.rank))) for t in types]
        program.applications.append(Application(op, record, tuple(names), tuple(outputs)))
        program.outputs = outputs
        try:
            Context(Model(write_model(program))).run()
        except RilletError:
            continue
        declared = op.inputs[min(i, len(op.inputs) - 1)]
        assert declared.endswith("?"), f"{op.name} ran without its input {declared!r}"


@pytest.mark.slow
@pytest.mark.parametrize("make", [int8_model, float_model])
def test_mutations_under_sanitizers(make: Callable[[], Program], tmp_path: Path) -> None:
    """20,000 changed bytes and every truncation, with the address and undefined-behaviour sanitizers watching."""
    folder = build("sanitized", "-DRILLET_SANITIZE=address,undefined")
    (tmp_path / "model.rlt").write_bytes(write_model(make()))
    done = subprocess.run(
        [folder / "rillet-fuzz", tmp_path / "model.rlt", "20000", "1"], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    counts = {name: int(n) for name, n in (line.split() for line in done.stdout.splitlines())}
    # Both the outer checks and those behind the checksums were reached.
    for name in ("TRUNCATED", "BAD_CHECKSUM", "MALFORMED", "BAD_REFERENCE", "BAD_TENSOR", "BAD_OPERATION"):
        assert counts[name] > 20, counts
