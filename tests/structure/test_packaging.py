"""The wheel and the sdist: what a user installs holds the packages, the library, and nothing else; and it runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """sdist from a clean copy of the tracked files, then the wheel from that sdist."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in filter(None, files):
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "-o", str(out), str(source)],
        check=True,
        capture_output=True,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    return out


def test_wheel_serves_every_python(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    assert "-py3-none-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert (
        "rillet/lite/librillet.so" in names and "rillet/lite/rillet.h" in names and "rillet/lite/_model_fbs.py" in names
    )
    packages = {n.split("/")[1] for n in names if n.startswith("rillet/")}
    assert packages == {"shared_ops", "lite", "quant", "train", "export"}
    assert "rillet/__init__.py" not in names
    assert not [n for n in names if n.endswith((".cc", ".md", ".fbs"))]


def test_sdist_holds_no_build_output(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    names = tarfile.open(sdist).getnames()
    assert any(n.endswith("lite/format/model.fbs") for n in names) and any(n.endswith("build_native.py") for n in names)
    assert not [n for n in names if n.endswith((".so", "_model_fbs.py", "model_generated.h"))]


def test_installed_wheel_runs_a_model(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    code = """
import numpy as np
from rillet.lite import Interpreter, save_model
from rillet.shared_ops.program import Program
from rillet.shared_ops.registry import get_op
from rillet.shared_ops.types import TensorType
p = Program()
p.add_input("x", TensorType(np.dtype(np.float32), (2, 3)))
p.outputs += p.apply(get_op("Relu"), ["x"])
save_model("m.rlt", p)
y = Interpreter("m.rlt")(np.array([[-1, 2, -3], [4, -5, 6]], np.float32))
print(y.tolist())
"""
    run = [sys.executable, "-c", code]
    env = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(run, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[[0.0, 2.0, 0.0], [4.0, 0.0, 6.0]]"
