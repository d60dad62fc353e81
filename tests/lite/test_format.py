"""The file: its layout as the format's README says, round trips, atomic writing, awkward paths, sizes over 2 GB."""

from __future__ import annotations

import errno
import os
import struct
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from native_builds import ROOT
from sample_models import F32, float_model, int8_model

from rillet.lite import (
    Context,
    Model,
    ModelError,
    Status,
    layout,
    read_file,
    read_model,
    save_model,
    write_model,
    writer,
)
from rillet.shared_ops.op import Op
from rillet.shared_ops.program import Program
from rillet.shared_ops.registry import get_op
from rillet.shared_ops.types import DTYPES, QuantParams, TensorType


@pytest.mark.parametrize("make", [float_model, int8_model])
def test_round_trip(make: Any) -> None:
    program = make()
    data = write_model(program, {"note": "über 1 ☃"})
    back = read_file(data)
    assert back.metadata == {**program.metadata, "note": "über 1 ☃"}
    assert back.quant_profile == ("rq_f32" if make is int8_model else "")
    assert write_model(back.programs) == data
    for a, b in zip(program.applications, back.programs[0].applications):
        for field in ("op", "attrs", "inputs", "outputs", "name", "source"):
            assert getattr(a, field) == getattr(b, field)
    for name, value in program.values.items():
        other = back.programs[0].values[name]
        assert value.type.plain() == other.type.plain() and value.is_variable == other.is_variable
        assert value.quant is None if other.quant is None else other.quant.same(value.quant)
        if value.constant is not None:
            np.testing.assert_array_equal(value.constant, other.constant)


def test_every_dtype_kind_and_named_dimension() -> None:
    p = Program()
    for name, dtype in DTYPES.items():
        p.add_constant(f"c_{name}", np.arange(3).astype(dtype))
        p.add_input(f"x_{name}", TensorType(dtype, ("batch", None, 3)))
        p.add_variable(f"v_{name}", TensorType(dtype, (2, 0)))
    p.add_constant("scalar", np.float32(-0.0))
    p.add_constant("empty", np.zeros((0, 4), np.float32))
    p.add_constant("q", np.array([1, 2], np.int8), QuantParams(np.array([1, 2], np.float32), 0, 0))
    p.outputs = ["c_f32"]
    back = read_model(write_model(p))
    assert list(back.values) == list(p.values)
    for name, value in p.values.items():
        assert back.values[name].type.plain() == value.type.plain()
        assert back.values[name].is_variable == value.is_variable
        if value.constant is not None:
            assert back.values[name].constant.tobytes() == value.constant.tobytes()  # type: ignore[union-attr]


@dataclass(frozen=True)
class EveryAttr:
    """One attribute of every kind that a record may have."""

    i: int = -(2**63)
    b: bool = True
    f: float = 0.1
    s: str = "héllo"
    word: Literal["A", "B"] = "B"
    many: tuple[int, ...] = (3, 2, 1)
    none: tuple[int, ...] = ()
    pair: tuple[int, int] = (1, 2)
    pads: tuple[tuple[int, int], tuple[int, int]] = ((1, 2), (3, 4))
    any_pads: tuple[tuple[int, int], ...] = ((1, 2), (3, 4), (5, 6))
    floats: tuple[float, ...] = (1.0, 2.5)
    no_floats: tuple[float, ...] = ()
    maybe: int | None = None
    maybe_axes: tuple[int, ...] | None = (0,)


def test_every_kind_of_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    op = Op("Every", ("x",), ("y",), infer=lambda attrs, x: (x,), reference=lambda xp, attrs, x: x, attrs=EveryAttr)
    monkeypatch.setattr("rillet.lite.reader.get_op", lambda name: op)
    for attrs in ({}, {"none": (7,), "no_floats": (1.5,), "maybe": 4, "maybe_axes": None, "b": False, "any_pads": ()}):
        p = Program()
        x = p.add_input("x", TensorType(F32, (2,)))
        p.outputs = list(p.apply(op, [x], **attrs))
        assert read_model(write_model(p)).applications[0].attrs == op.make_attrs(attrs)


def test_layout_is_what_the_readme_says() -> None:
    data = write_model(float_model())
    magic, version, crc, size, total = struct.unpack_from("<8sIIQQ", data)
    assert (magic, version, total) == (b"RILLET\r\n", 1, len(data)) and not any(data[32:64])
    assert crc == zlib.crc32(data[64 : 64 + size], zlib.crc32(data[16:32])) and data[68:72] == b"RLT1"
    assert len(data) % 64 == 0 and not any(data[-64:])
    weights = float_model().values["conv/w"].constant
    assert weights is not None
    at = data.index(weights.tobytes())
    assert at % 64 == 0 and struct.pack("<QQI", at, weights.nbytes, zlib.crc32(weights.tobytes())) in data


def test_one_array_used_twice_is_stored_once() -> None:
    w = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    sizes = []
    for second in (w, w + 1):
        p = Program()
        p.add_constant("a", w)
        p.add_constant("b", second)
        p.outputs = ["a", "b"]
        sizes.append(len(write_model(p)))
    assert sizes[0] < 4000 + 1000 < sizes[1]


@pytest.mark.parametrize("name", ["plain.rlt", "with space.rlt", "naïve-模型-🙂.rlt", "deep/" * 40 + "m.rlt"])
def test_awkward_paths(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    save_model(path, float_model())
    assert path.read_bytes() == write_model(float_model())
    assert read_model(path).outputs and Context(Model(path))
    monkeypatch.chdir(path.parent)
    assert Context(Model(path.name))


def test_missing_file_folder_and_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty.rlt").touch()
    for load in (Model, read_model):
        for path, status in [("none.rlt", Status.FILE_NOT_FOUND), ("", Status.FILE_NOT_FOUND),
                             ("empty.rlt", Status.TRUNCATED)]:  # fmt: skip
            with pytest.raises(ModelError) as caught:
                load(tmp_path / path)
            assert caught.value.status is status


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.rlt"
    save_model(path, float_model())
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_model(path, int8_model())
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["m.rlt"]


def test_full_disk(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk: the write itself fails, half-way."""
    script = f"""
import resource, signal, sys
sys.path[:0] = {sys.path!r}
from rillet.lite import save_model
from sample_models import float_model
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    save_model({str(tmp_path / "m.rlt")!r}, float_model())
except OSError as error:
    sys.exit(7)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == 7
    assert os.listdir(tmp_path) == []


def test_offsets_beyond_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Section arithmetic with sizes that are only claimed: ten constants of 3 GB."""

    class Claimed:
        nbytes = 3 << 30

    p = Program()
    for i in range(10):
        p.add_constant(f"c{i}", np.full(1, i, np.float32))
    p.outputs = ["c0"]
    structure = writer._Structure([p], {}, "")
    structure.sections = [Claimed()] * 10  # type: ignore[list-item]
    body, total = structure.serialize()
    start = layout.padded(64 + len(body))
    assert total == start + 10 * (3 << 30) + 64
    for i in range(10):
        assert struct.pack("<QQ", start + i * (3 << 30), 3 << 30) in body
    monkeypatch.undo()


@pytest.mark.slow
def test_a_constant_over_2_gb() -> None:
    """The files lie below build/: /tmp may be small, or in memory."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        check_a_constant_over_2_gb(Path(folder))


def check_a_constant_over_2_gb(tmp_path: Path) -> None:
    big = np.memmap(tmp_path / "zeros", np.uint8, "w+", shape=(2**31 + 16,))
    big[-1] = 7
    p = Program()
    p.add_constant("big", big)
    p.add_constant("after", np.arange(4, dtype=np.float32))
    p.outputs = ["after"]
    save_model(tmp_path / "m.rlt", p)
    context = Context(Model(tmp_path / "m.rlt"))
    context.run()
    np.testing.assert_array_equal(context.output(0), np.arange(4, dtype=np.float32))
    assert read_model(tmp_path / "m.rlt").values["big"].constant[-1] == 7  # type: ignore[index]


def test_version_of_an_op_is_written() -> None:
    relu = get_op("Relu")
    p = Program()
    x = p.add_input("x", TensorType(F32, (2,)))
    p.outputs = list(p.apply(Op("Relu", ("x",), ("y",), relu.infer, relu.reference, version=2), [x]))
    with pytest.raises(ModelError, match="version: got 2, expected 1") as caught:
        read_model(write_model(p))
    assert caught.value.status is Status.UNKNOWN_OP
    with pytest.raises(ModelError, match="no kernel for version 2 on f32"):
        Model(write_model(p))
