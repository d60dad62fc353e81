"""The thread pool alone, under the thread sanitizer: every item once, no race, no lost wake-up (a hang)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "shared_ops" / "native"


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_pool_visits_every_item_once(sanitizer: str, tmp_path: Path) -> None:
    program = tmp_path / "stress"
    sources = [Path(__file__).with_name("thread_pool_stress.cc"), NATIVE / "thread_pool.cc"]
    flags = ["-std=c++17", "-O1", "-g", "-pthread", f"-fsanitize={sanitizer}", f"-I{NATIVE}"]
    subprocess.run(["g++", *flags, *map(str, sources), "-o", str(program)], check=True)
    # Without a fixed layout of addresses, some kernels' random layouts collide with the sanitizer's own memory.
    command = ["setarch", "-R", str(program)] if shutil.which("setarch") else [str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
