"""The demo on a few synthetic images: every step runs, the figures are consistent, the page stands alone."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rillet.lite.library import is_available
from rillet.lite.single import has_kernel
from rillet.shared_ops.registry import get_op

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "fashion_mnist"
KEYS = (
    "trainer_accuracy, float_accuracy, int8_accuracy, float_bytes, int8_bytes, float_ms, int8_ms, "
    "float_differing_bytes, int8_differing_bytes, peak_mb, seconds"
)


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SAMPLE))
    before = set(sys.modules)
    import dataset

    yield dataset
    for name in set(sys.modules) - before:  # `train`, `net`: names that other samples may use too
        if not name.startswith("rillet"):
            del sys.modules[name]


def stripes(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images that a small net learns in a moment: the class is the place of a bright band."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count).astype(np.int32)
    images = rng.integers(0, 60, (count, 28, 28, 1)).astype(np.uint8)
    for image, label in zip(images, labels):
        image[2 * label + 3 : 2 * label + 6] += 180
    return images, labels


@pytest.mark.skipif(
    not is_available() or not has_kernel(get_op("DepthwiseConv2D"), np.dtype(np.float32)), reason="needs native kernels"
)
def test_the_demo_end_to_end(sample: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import demo
    import train

    monkeypatch.setenv("PYTHONPATH", ":".join(str(ROOT / f) for f in ("lite", "shared_ops")))
    monkeypatch.setattr(sample, "fetch", lambda folder: folder)
    monkeypatch.setattr(sample, "load", lambda folder, part: stripes(*((1088, 0) if part == "train" else (120, 1))))
    monkeypatch.setattr(train, "VALIDATION", 64)
    monkeypatch.setattr(train, "BATCH", 32)
    monkeypatch.setattr(demo, "OUT", tmp_path)
    monkeypatch.setattr(demo, "train", lambda *a, **k: train.train(*a, **{**k, "epochs": 2}))
    demo.main()
    result = json.loads((tmp_path / "demo.json").read_text())
    assert ", ".join(result) == KEYS
    assert result["float_differing_bytes"] == result["int8_differing_bytes"] == 0
    assert result["float_accuracy"] == result["trainer_accuracy"] > 0.5
    assert result["int8_bytes"] < 0.5 * result["float_bytes"] and result["peak_mb"] < 200
    html = (tmp_path / "report.html").read_text()
    assert not re.search(r"(?:src|href)=\"(?!data:)|https?://|@import|<script", html)
    assert html.count("data:image/png;base64,") >= 12 and html.count("<svg") == 5
    assert {p.name for p in tmp_path.iterdir()} == {
        "demo.json", "report.html", "fashion_float.rlt", "fashion_int8.rlt", "fashion_mnist-64.ckpt",
    }  # fmt: skip


def test_a_device_has_no_trainer() -> None:
    code = "import device, rillet.lite.interpreter\nimport rillet.train"
    environment = {"PYTHONPATH": ":".join(str(ROOT / f) for f in ("train", "lite", "shared_ops"))}
    done = subprocess.run([sys.executable, "-c", code], cwd=SAMPLE, capture_output=True, text=True, env=environment)
    assert done.returncode and "ImportError: a device has no rillet.train" in done.stderr, done.stderr


def test_damaged_files_are_refused_and_removed(sample: Any, tmp_path: Path) -> None:
    for name in sample.FILES:
        (tmp_path / name).write_bytes(gzip.compress(b"not what it should be"))
    with pytest.raises(sample.DatasetError, match="SHA-256 of the contents is [0-9a-f]{64}, expected c59f"):
        sample.fetch(tmp_path)
    assert not (tmp_path / "train-images-idx3-ubyte.gz").exists()


def test_without_any_source_every_failure_is_told(sample: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*args: Any, **kwargs: Any) -> Any:
        raise OSError("no network")

    monkeypatch.setattr(sample.subprocess, "run", unreachable)
    monkeypatch.setattr(sample.urllib.request, "urlopen", unreachable)
    with pytest.raises(sample.DatasetError, match="(?s)from debian: no network.*from site: no network.*by hand"):
        sample.fetch(tmp_path)
