"""The elementary functions: within 2 ulp of float64 over all floats, right at special values, the same bits on ARM."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

from rillet.lite.library import is_available
from rillet.lite.single import apply_native
from rillet.shared_ops.registry import get_op

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "shared_ops" / "native"
CROSS_TOOLS = ("aarch64-linux-gnu-g++", "qemu-aarch64")
needs_library = pytest.mark.skipif(not is_available(), reason="the native library is not built")


def native(name: str, *inputs: Any, **attrs: Any) -> Any:
    op = get_op(name)
    return apply_native(op, op.make_attrs(attrs), inputs)[0]


def spread(stride: int = 997) -> Any:
    """Every `stride`-th finite float, denormals and both signs included."""
    x = np.arange(0, 2**32, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return x[np.isfinite(x)]


def ulps(got: Any, want: Any) -> Any:
    """Errors in units of the last place of `want` rounded to float32; denormals count in their own unit.

    Where `want` is NaN or rounds to infinity: 0 if `got` says the same, else infinity.
    """
    with np.errstate(over="ignore"):
        rounded = want.astype(np.float32)
    exponent = np.maximum(np.frexp(np.abs(np.where(np.isfinite(rounded), want, 1.0)))[1], -125)
    error = np.abs(got.astype(np.float64) - want) / np.ldexp(1.0, exponent - 24)
    same = (got == rounded) | (np.isnan(got) & np.isnan(want))
    return np.where(np.isfinite(rounded), np.where(np.isfinite(got), error, np.inf), np.where(same, 0.0, np.inf))


def _elu(x: Any) -> Any:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "Exp": (np.exp, 1.1),
    "Log": (np.log, 1.0),
    "Sin": (np.sin, 0.51),
    "Cos": (np.cos, 0.51),
    "Tanh": (np.tanh, 1.5),
    "Sigmoid": (special.expit, 2.0),
    "Erf": (special.erf, 1.2),
    "Softplus": (lambda x: np.logaddexp(0, x), 2.0),
    "Elu": (_elu, 1.2),
    "Sqrt": (np.sqrt, 0.5),
    "Rsqrt": (lambda x: 1 / np.sqrt(x), 1.5),
    "Reciprocal": (np.reciprocal, 0.5),
    "Floor": (np.floor, 0.0),
    "Ceil": (np.ceil, 0.0),
    "Round": (np.rint, 0.0),
}


@needs_library
@pytest.mark.parametrize("name", FUNCTIONS)
def test_within_ulps_of_float64(name: str) -> None:
    exact, limit = FUNCTIONS[name]
    x = spread()
    with np.errstate(all="ignore"):
        error = ulps(native(name, x), exact(x.astype(np.float64)))
    worst = int(np.argmax(error))
    assert error[worst] <= limit, f"{error[worst]:.2f} ulp at {x[worst]!r}"


@needs_library
def test_pow_is_nearly_correctly_rounded() -> None:
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(-80, 80, 500_000)).astype(np.float32)
    y = rng.normal(size=x.size).astype(np.float32) * rng.choice(np.array([0.1, 1, 30], np.float32), x.size)
    with np.errstate(all="ignore"):
        assert np.max(ulps(native("Pow", x, y), np.power(x.astype(np.float64), y.astype(np.float64)))) <= 0.51


@needs_library
def test_pow_at_special_values() -> None:
    special_values = [
        0.0,
        -0.0,
        1,
        -1,
        2,
        -2,
        3,
        -3,
        0.5,
        -0.5,
        2.5,
        np.inf,
        -np.inf,
        np.nan,
        1e-40,
        -1e-40,
        3e38,
        -3e38,
    ]
    v = np.array([*special_values, 8388609, -8388609, 16777216, 16777218], np.float32)
    x, y = np.meshgrid(v, v)
    got = native("Pow", x, y)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@needs_library
@pytest.mark.parametrize("name", ["Relu", "Relu6", "Floor", "Ceil", "Round", "Sin", "Tanh", "Erf", "Sign", "Sqrt"])
def test_nan_passes_and_minus_zero_stays(name: str) -> None:
    got = native(name, np.array([np.nan, -np.nan, -0.0, 0.0], np.float32))
    assert np.isnan(got[:2]).all()
    assert list(np.signbit(got[2:])) == [True, False] and not got[2:].any()


@needs_library
def test_every_nan_stays_nan() -> None:
    """Whatever its sign and payload: bit tricks on the exponent must not turn one into a number."""
    payload = np.arange(1, 1 << 22, 4093, dtype=np.uint32)
    x = np.concatenate([payload | 0x7F800000, payload | 0xFFC00000]).view(np.float32)
    for name in FUNCTIONS:
        assert np.isnan(native(name, x)).all(), name


def _bits(tmp_path: Path, compiler: str, isa: str, *flags: str, run: tuple[str, ...] = ()) -> list[str]:
    """One line a loop: the hash of what the loops of this ISA make of floats spread over all of them."""
    program = tmp_path / f"bits_{isa}"
    sources = [str(ROOT / "tests" / "native" / "vmath_bits.cc"), str(NATIVE / "isa" / f"{isa}_pointwise.cc")]
    options = ["-std=c++17", "-O2", "-ffp-contract=off", "-fno-math-errno", "-DRILLET_TRAINING", f"-DRILLET_ISA={isa}"]
    subprocess.run([compiler, *options, *flags, f"-I{NATIVE}", *sources, "-o", str(program)], check=True)
    return subprocess.run([*run, str(program)], check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.fixture(scope="module")
def avx2_bits(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    if platform.machine() != "x86_64" or "avx2" not in Path("/proc/cpuinfo").read_text() or not shutil.which("g++"):
        pytest.skip("needs g++ and AVX2")
    lines = _bits(tmp_path_factory.mktemp("bits"), "g++", "avx2", "-mavx2", "-mfma")
    assert len(lines) > 60
    return lines


@pytest.mark.skipif(not all(map(shutil.which, CROSS_TOOLS)), reason=f"needs {', '.join(CROSS_TOOLS)}")
def test_same_bits_on_arm(avx2_bits: list[str], tmp_path: Path) -> None:
    qemu = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-cpu", "cortex-a72")
    assert _bits(tmp_path, "aarch64-linux-gnu-g++", "neon", run=qemu) == avx2_bits


@pytest.mark.slow  # the emulation is long to compile
@pytest.mark.skipif(not Path("/usr/include/simde").is_dir(), reason="needs libsimde-dev")
def test_same_bits_with_avx512_emulated(avx2_bits: list[str], tmp_path: Path) -> None:
    shim = f"-isystem{ROOT / 'tests' / 'native' / 'simde'}"
    assert _bits(tmp_path, "g++", "avx512", "-mfma", shim, "-w", "-O1") == avx2_bits
