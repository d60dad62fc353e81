"""The 40-line sample runs from the first line to the last, on images made up here."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "fashion_mnist_40_lines" / "train.py"


def test_the_sample_trains_and_saves(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for part, count in (("train", 256), ("t10k", 500)):
        labels = rng.integers(0, 10, count).astype(np.uint8)
        images = rng.integers(0, 255, (count, 28, 28)).astype(np.uint8)
        for kind, header, array in (("images-idx3", 16, images), ("labels-idx1", 8, labels)):
            with gzip.open(tmp_path / f"{part}-{kind}-ubyte.gz", "wb") as file:
                file.write(bytes(header) + array.tobytes())
    folders = [str(ROOT / f) for f in ("export", "quant", "train", "lite", "shared_ops")]
    done = subprocess.run(
        [sys.executable, str(SAMPLE), str(tmp_path), "1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("epoch 1: test accuracy 0.")
    assert [p.name for p in (tmp_path / "checkpoints").iterdir()] == ["fashion-2.ckpt"]


def test_the_sample_has_forty_lines() -> None:
    assert SAMPLE.read_text().count("\n") <= 40
