"""The C sample compiles as C99 and says what Python says; the lite library has no training kernels."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from native_builds import ROOT, build_for_arm
from sample_models import int8_model

from rillet.lite import Interpreter, save_model
from rillet.lite.library import kernel_flags, library_path

SAMPLE = ROOT / "samples" / "c_runner"
TRAINING = 4  # kTraining of kernel.h
needs_make = pytest.mark.skipif(not (shutil.which("make") and shutil.which("cc")), reason="needs make and a C compiler")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_model(tmp_path / "m.rlt", int8_model())
    return tmp_path / "m.rlt"


def expected(model: Path) -> str:
    first = Interpreter(model)(np.zeros((1, 6, 6, 3), np.float32)).flat[0]
    return f"scores: 16 bytes, the first value is {first:g}\n"


def make(out: Path, library: Path, compiler: str = "cc") -> Path:
    subprocess.run(["make", "-sC", SAMPLE, f"OUT={out}", f"LIBRARY={library}", f"CC={compiler}"], check=True)
    return out


def test_program_is_short() -> None:
    assert len((SAMPLE / "main.c").read_text().splitlines()) <= 25


@needs_make
def test_sample_agrees_with_python(model: Path, tmp_path: Path) -> None:
    program = make(tmp_path / "main", library_path().parent)
    assert subprocess.run([program, model], capture_output=True, text=True, check=True).stdout == expected(model)
    model.write_bytes(b"no model")
    failed = subprocess.run([program, model], capture_output=True, text=True)
    assert failed.returncode == 1 and "not a .rlt file" in failed.stderr
    assert subprocess.run([program], capture_output=True).returncode == 2


def symbols(library: Path) -> set[str]:
    text = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in text.splitlines()}


@pytest.mark.skipif(not shutil.which("nm"), reason="needs nm")
def test_library_exports_the_header_and_nothing_else() -> None:
    header = (ROOT / "lite/engine/rillet.h").read_text()
    declared = set(re.findall(r"^RILLET_API .*?\b(rillet_\w+)\(", header, re.M))
    assert declared and symbols(library_path()) == declared


@pytest.mark.slow
@needs_make
def test_on_arm_with_the_lite_library(model: Path, tmp_path: Path) -> None:
    """The library without training kernels, cross-compiled; the sample runs on an emulated Cortex-A72."""
    folder, emulate = build_for_arm()
    program = make(tmp_path / "main", folder, "aarch64-linux-gnu-gcc")
    done = subprocess.run([*emulate("cortex-a72"), program, model], capture_output=True, text=True)
    assert done.stdout == expected(model), done.stderr
    tool = [*emulate("cortex-a72"), folder / "rillet-run", "--kernels"]
    isa, *lines = subprocess.run(tool, capture_output=True, text=True, check=True).stdout.splitlines()
    assert isa == "isa neon"
    found = {tuple(line.split()[:3]) for line in lines}
    here = {(op, str(version), dtype): flags for (op, version, dtype), flags in kernel_flags().items()}
    assert found == {key for key, flags in here.items() if not flags & TRAINING}
    assert any(flags & TRAINING for flags in here.values())
