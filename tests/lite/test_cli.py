"""The command `rillet`: what it prints, and one red line where the user can mend it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sample_models import F32, int8_model

from rillet.lite import save_model
from rillet.shared_ops.program import Program
from rillet.shared_ops.types import TensorType


def rillet(*arguments: object) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "200"}
    command = [sys.executable, "-m", "rillet.lite.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=env)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    program = int8_model()
    program.metadata["labels"] = '["cat", "dog", "eel", "fox"]'
    save_model(tmp_path / "m.rlt", program)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(1, 6, 6, 3)).astype(np.float32))
    return tmp_path / "m.rlt"


def test_run_writes_and_ranks(model: Path, tmp_path: Path) -> None:
    done = rillet("run", model, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", "--top", 2)
    assert done.returncode == 0, done.stderr
    scores = np.load(tmp_path / "y.npy")
    best = np.argsort(-scores[0], kind="stable")[:2]
    lines = [line for line in done.stdout.splitlines() if any(w in line for w in ("cat", "dog", "eel", "fox"))]
    assert [["cat", "dog", "eel", "fox"].index(line.split("│")[1].strip()) for line in lines] == list(best)
    assert f"{scores[0, best[0]]:.4f}" in lines[0]


def test_run_on_an_image(model: Path, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.full((12, 9, 3), 200, np.uint8)).save(tmp_path / "photo.png")
    done = rillet("run", model, "-i", f"image={tmp_path / 'photo.png'}")
    assert done.returncode == 0 and "scores float32[1, 4]" in done.stdout, done.stderr


def test_inspect(model: Path) -> None:
    shown = rillet("inspect", model).stdout
    for word in ("Conv2D", "int8[1, 6, 6, 8]", "8 scales", "rq_f32", '["cat", "dog", "eel", "fox"]'):
        assert word in shown
    report = json.loads(rillet("inspect", model, "--json").stdout)
    assert [o["op"] for o in report["operations"]][:2] == ["Quantize", "Conv2D"]
    assert report["bytes"] == model.stat().st_size
    assert report["operations"][1]["attrs"]["padding"] == "SAME"
    assert report["operations"][1]["inputs"][1]["quant"]["axis"] == 3


def test_bench(model: Path) -> None:
    report = json.loads(rillet("bench", model, "--runs", 5, "--threads", 2, "--profile", "--json").stdout)
    assert 0 < report["p10_ms"] <= report["median_ms"] and report["arena_bytes"] > 0
    assert len(report["operations"]) == 7
    shown = rillet("bench", model, "--runs", 5, "--profile").stdout
    assert "ms (median) of 5 runs" in shown and "Softmax" in shown


def test_help_and_version() -> None:
    assert rillet("--version").stdout.startswith("rillet 0.")
    shown = rillet("--help").stdout
    for command in ("run", "inspect", "bench"):
        assert command in shown


BAD = [
    ("a missing model", ["run", "{tmp}/none.rlt", "-i", "{tmp}/x.npy"], "none.rlt"),
    ("a model that is none", ["inspect", "{tmp}/x.npy"], "not a .rlt file"),
    ("a missing input file", ["run", "{model}", "-i", "{tmp}/none.npy"], "none.npy"),
    ("an input that is no array", ["run", "{model}", "-i", "{model}"], "neither a .npy file nor an image"),
    ("an unknown input", ["run", "{model}", "-i", "picture={tmp}/x.npy"], "the model's inputs are image"),
    ("a wrong shape", ["run", "{model}", "-i", "{tmp}/wrong.npy"], "got shape [2, 2], expected [1, 6, 6, 3]"),
    ("an output folder that is not", ["run", "{model}", "-i", "{tmp}/x.npy", "-o", "{tmp}/no/y.npy"], "No such file"),
]


@pytest.mark.parametrize("arguments,message", [pytest.param(*b[1:], id=b[0]) for b in BAD])
def test_bad_input_is_one_line_and_exit_code_2(model: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    np.save(tmp_path / "wrong.npy", np.ones((2, 2), np.float32))
    done = rillet(*(a.format(tmp=tmp_path, model=model) for a in arguments))
    assert done.returncode == 2
    assert message in done.stderr and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_a_damaged_model_is_one_line(model: Path) -> None:
    data = bytearray(model.read_bytes())
    data[200] ^= 1
    model.write_bytes(data)
    done = rillet("inspect", model)
    assert done.returncode == 2 and "BAD_CHECKSUM" in done.stderr


def test_several_outputs_need_npz(tmp_path: Path) -> None:
    p = Program()
    p.outputs = [p.add_input(n, TensorType(F32, (2,))) for n in ("a", "b")]
    save_model(tmp_path / "m.rlt", p)
    for n in ("a", "b"):
        np.save(tmp_path / f"{n}.npy", np.full(2, ord(n), np.float32))
    given = ["-i", f"b={tmp_path / 'b.npy'}", "-i", tmp_path / "a.npy"]
    assert "name a .npz file" in rillet("run", tmp_path / "m.rlt", *given, "-o", tmp_path / "y.npy").stderr
    assert rillet("run", tmp_path / "m.rlt", *given, "-o", tmp_path / "y.npz").returncode == 0
    with np.load(tmp_path / "y.npz") as written:
        assert written["a"][0] == ord("a") and written["b"][0] == ord("b")
