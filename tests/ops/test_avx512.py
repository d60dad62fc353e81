"""The AVX-512 kernels on any x86-64 CPU: the library built with SIMDe's emulation passes the native tests, bit for bit.

Where the CPU has AVX-512 itself, the native tests run the real instructions anyway.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 only"),
    pytest.mark.skipif(not Path("/usr/include/simde").is_dir(), reason="needs libsimde-dev"),
]


def test_native_kernels_under_emulation(tmp_path: Path) -> None:
    bin_folder = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    configure = ["cmake", "-S", ROOT, "-B", tmp_path, "-DRILLET_EMULATE_AVX512=ON"]
    configure.append(f"-DPython_EXECUTABLE={sys.executable}")
    subprocess.run(configure, check=True, capture_output=True, env=env)
    subprocess.run(
        ["cmake", "--build", tmp_path, "-j2", "--target", "rillet"], check=True, capture_output=True, env=env
    )
    env["RILLET_LIBRARY"] = str(tmp_path / "librillet.so")
    tests = ["tests/ops/test_native.py", "tests/ops/test_int8.py"]
    command = [sys.executable, "-m", "pytest", "-q", *[t for t in tests if (ROOT / t).exists()]]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
