"""The loops of reductions, softmax, norms, pools and random numbers give the same bits on every instruction set.

test_native.py compares what this CPU can run; here the rest: aarch64 under qemu-user, AVX-512 emulated by SIMDe.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "shared_ops" / "native"
CROSS_TOOLS = ("aarch64-linux-gnu-g++", "qemu-aarch64")


def bits(tmp_path: Path, compiler: str, isa: str, *flags: str, run: tuple[str, ...] = ()) -> list[str]:
    """One line a loop: the hash of its results."""
    program = tmp_path / f"nn_{isa}"
    sources = [str(ROOT / "tests" / "native" / "nn_bits.cc"), str(NATIVE / "isa" / f"{isa}_nn.cc")]
    options = ["-std=c++17", "-O2", "-ffp-contract=off", "-fno-math-errno", f"-DRILLET_ISA={isa}", f"-I{NATIVE}"]
    subprocess.run([compiler, *options, *flags, *sources, "-o", str(program)], check=True)
    return subprocess.run([*run, str(program)], check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.fixture(scope="module")
def scalar_bits(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    if not shutil.which("g++"):
        pytest.skip("needs g++")
    lines = bits(tmp_path_factory.mktemp("bits"), "g++", "scalar")
    assert len(set(lines)) == len(lines) > 20
    return lines


@pytest.mark.skipif(not all(map(shutil.which, CROSS_TOOLS)), reason=f"needs {', '.join(CROSS_TOOLS)}")
def test_same_bits_on_arm(scalar_bits: list[str], tmp_path: Path) -> None:
    qemu = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-cpu", "cortex-a72")
    assert bits(tmp_path, "aarch64-linux-gnu-g++", "neon", run=qemu) == scalar_bits


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs x86-64")
def test_same_bits_with_avx2(scalar_bits: list[str], tmp_path: Path) -> None:
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this CPU has no AVX2")
    sanitizers = (
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    )  # no loop reads or writes beyond its data
    assert bits(tmp_path, "g++", "avx2", "-mavx2", "-mfma", *sanitizers) == scalar_bits


@pytest.mark.slow  # the emulation is long to compile
@pytest.mark.skipif(not Path("/usr/include/simde").is_dir(), reason="needs libsimde-dev")
def test_same_bits_with_avx512_emulated(scalar_bits: list[str], tmp_path: Path) -> None:
    shim = f"-isystem{ROOT / 'tests' / 'native' / 'simde'}"
    assert bits(tmp_path, "g++", "avx512", "-mfma", shim, "-w", "-O1") == scalar_bits
