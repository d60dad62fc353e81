"""The int8 inner loops of every ISA: here, for aarch64 under qemu-user, and AVX-512 VNNI emulated by SIMDe."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "shared_ops" / "native"
SHARED = ["products_s8.cc", "requantize.cc", "conv_geometry.cc", "kernel.cc", "isa/isa.cc", "isa/scalar_gemm_s8.cc"]
ARM = "aarch64-linux-gnu-g++"


def build(
    compiler: str, binary: Path, families: Sequence[str], flags: Sequence[str], rounds: int, run: Sequence[str]
) -> str:
    """Compiles the test with these ISAs' sources, runs it, returns what it printed."""
    sources = [str(NATIVE / s) for s in SHARED] + [str(ROOT / "tests" / "native" / "s8_isa_test.cc")]
    sources += [str(p) for f in families for p in sorted((NATIVE / "isa").glob(f"{f}_*_s8.cc"))
                if "pointwise" not in p.name]  # fmt: skip
    macros = [f"-DRILLET_HAVE_{f.upper()}" for f in families]
    # kernel.cc names every kernel; the few that this test needs are not among them.
    link = ["-static", "-Wl,--unresolved-symbols=ignore-all"]
    subprocess.run([compiler, "-std=c++17", "-O1", "-ffp-contract=off", *flags, *macros, f"-I{NATIVE}", *sources,
                    "-o", str(binary), *link], check=True)  # fmt: skip
    result = subprocess.run([*run, str(binary), str(rounds)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    for family in ("scalar", *families):
        assert f"{family}: " in result.stdout
    return result.stdout


needs_arm = pytest.mark.skipif(
    not (shutil.which(ARM) and shutil.which("qemu-aarch64")), reason="needs g++-aarch64-linux-gnu and qemu-user"
)
needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("g++"), reason="needs g++ on x86-64")


@needs_arm
@pytest.mark.parametrize("cpu,families,flags", [
    ("cortex-a72", ["neon"], []),
    ("cortex-a76", ["neon", "neondot"], ["-march=armv8.2-a+dotprod"]),
])  # fmt: skip
def test_aarch64(cpu: str, families: list[str], flags: list[str], tmp_path: Path) -> None:
    build(ARM, tmp_path / cpu, families, flags, 40, ["qemu-aarch64", "-cpu", cpu])


@needs_x86
def test_avx2(tmp_path: Path) -> None:
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this CPU has no AVX2")
    build("g++", tmp_path / "avx2", ["avx2"], ["-mavx2", "-mfma"], 40, [])


@pytest.mark.slow  # half a minute to compile
@needs_x86
@pytest.mark.skipif(not Path("/usr/include/simde").is_dir(), reason="needs libsimde-dev")
def test_avx512_vnni_emulated(tmp_path: Path) -> None:
    shim = f"-isystem{ROOT / 'tests' / 'native' / 'simde'}"
    build("g++", tmp_path / "vnni", ["avx512vnni"], [shim, "-mavx2", "-mfma", "-w", "-O0", "-DRILLET_SIMDE"], 20, [])
