"""Builds of the native code that tests need beside the usual one; kept below build/, so that they are incremental."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def build(name: str, *options: str) -> Path:
    """Builds library and tools in build/test-<name> with these CMake options; returns the folder."""
    spec = importlib.util.spec_from_file_location("build_native", ROOT / "build_native.py")
    assert spec and spec.loader
    build_native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build_native)
    folder = ROOT / "build" / f"test-{name}"
    build_native.build(folder, folder / "installed", "-DRILLET_TOOLS=ON", *options)
    return folder


def build_for_arm(training: bool = False) -> tuple[Path, Callable[[str], list[str]]]:
    """Library (the lite one, or with training) and tools for 64-bit ARM, and how to run them on an emulated CPU."""
    for tool in ("aarch64-linux-gnu-g++", "qemu-aarch64"):
        if not shutil.which(tool):
            pytest.skip(f"needs {tool}")
    folder = build(
        "aarch64-training" if training else "aarch64",
        "-DCMAKE_SYSTEM_NAME=Linux",
        "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
        "-DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc",
        "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++",
        f"-DRILLET_TRAINING={'ON' if training else 'OFF'}",
    )
    return folder, lambda cpu: ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-cpu", cpu]
