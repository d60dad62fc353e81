"""Builds the native library in place, for a working copy (`poetry install` runs this; so may you, after editing C++).

Wheels are not built through here: scikit-build-core runs the same CMakeLists.txt. RILLET_CMAKE_ARGS adds options,
for example RILLET_CMAKE_ARGS="-DRILLET_SANITIZE=address,undefined".
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def build(folder: Path, prefix: Path, *options: str) -> None:
    """Configures and builds in `folder`, installs library and header below `prefix`."""
    ninja, ccache = shutil.which("ninja"), shutil.which("ccache")
    subprocess.check_call(
        [
            "cmake",
            "-S",
            str(ROOT),
            "-B",
            str(folder),
            *(["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"] if ninja else []),
            *([f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}"] if ccache else []),
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DPython_EXECUTABLE={sys.executable}",
            *options,
            *shlex.split(os.environ.get("RILLET_CMAKE_ARGS", "")),
        ]
    )
    subprocess.check_call(["cmake", "--build", str(folder), "-j", str(os.cpu_count() or 2)])
    subprocess.check_call(["cmake", "--install", str(folder), "--prefix", str(prefix), "--component", "python"])


def main() -> None:
    build(ROOT / "build" / f"dev-{sysconfig.get_platform()}", ROOT, "-DRILLET_PREFIX=lite/")


if __name__ == "__main__":
    sys.exit(main())
