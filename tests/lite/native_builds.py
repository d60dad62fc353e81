"""Builds of the native code that tests need beside the usual one; kept below build/, so that they are incremental."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build(name: str, *options: str) -> Path:
    """Builds library and tools in build/test-<name> with these CMake options; returns the folder."""
    spec = importlib.util.spec_from_file_location("build_native", ROOT / "build_native.py")
    assert spec and spec.loader
    build_native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build_native)
    folder = ROOT / "build" / f"test-{name}"
    build_native.build(folder, folder / "installed", "-DRILLET_TOOLS=ON", *options)
    return folder
