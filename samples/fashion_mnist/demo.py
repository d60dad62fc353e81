"""The whole path in one go: train, export, quantize, run as a device would, compare. `make demo` calls it.

Writes out/fashion_float.rlt, out/fashion_int8.rlt, out/demo.json and out/report.html.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dataset
import numpy as np
import page
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from train import CACHE, Trained, scaled, train

from rillet.export import export
from rillet.lite.engine import Context, Model
from rillet.lite.writer import write_model
from rillet.shared_ops.program import Program, run_reference
from rillet.train import Saver, freeze

HERE = Path(__file__).resolve().parent
OUT = HERE.parents[1] / "out"
CALIBRATION_IMAGES = 1000
console = Console()


@dataclass
class DeviceRun:
    """What the separate process found: outputs of all images, time of one, memory, time of each layer."""

    outputs: np.ndarray
    milliseconds: float
    peak_bytes: int
    layers: list[Any]


def run_on_device(model: Path, images: np.ndarray, name: str) -> DeviceRun:
    """Runs a model file over images in a process that has rillet.lite alone."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        pixels, out = Path(folder) / "images.npy", Path(folder) / "out.npz"
        np.save(pixels, images)
        task = progress.add_task(f"{name} file over the test images", total=len(images))
        command = [sys.executable, str(HERE / "device.py"), str(model), str(pixels), str(out)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        last = ""
        assert process.stdout is not None
        for last in process.stdout:
            if last.strip().isdigit():
                progress.update(task, completed=int(last))
        if process.wait():
            raise SystemExit(f"the device process ended with code {process.returncode}")
        found = json.loads(last)
        return DeviceRun(np.load(out)["outputs"], found["ms"], found["peak"], found["layers"])


def in_batches(run: Any, images: np.ndarray, what: str, size: int = 250) -> np.ndarray:
    """`run` over images, a batch at a time, with a progress bar."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        starts = progress.track(range(0, len(images), size), description=what)
        return np.concatenate([run(scaled(images[i : i + size])) for i in starts])


def unfolded(trained: Trained) -> Any:
    """The trained graph as it stands, batch norms and all, in the engine."""
    program = freeze(trained.session, {"image": trained.image}, {"probabilities": trained.probabilities})
    context = Context(Model(write_model(program)), threads=2)

    def run(x: np.ndarray) -> np.ndarray:
        context.resize(0, x.shape)
        context.prepare()
        context.input(0)[...] = x
        context.run()
        return context.output(0).copy()

    return run


def differing_bytes(a: np.ndarray, b: np.ndarray) -> int:
    """How many bytes of two arrays of one type differ."""
    assert a.shape == b.shape and a.dtype == b.dtype
    return int(np.count_nonzero(np.ascontiguousarray(a).view(np.uint8) != np.ascontiguousarray(b).view(np.uint8)))


def reference_outputs(program: Program, images: np.ndarray) -> np.ndarray:
    """The quantized Program by its references: plain NumPy, the meaning of every int8 op."""
    (name,) = program.outputs
    return in_batches(lambda x: run_reference(program, {"image": x})[name], images, "int8 by the references")


def accuracy(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """The share of rows whose largest entry stands at the label."""
    return float(np.mean(probabilities.argmax(axis=1) == labels))


def export_both(trained: Trained, images: np.ndarray) -> tuple[Any, Any]:
    """Writes the float and the int8 file; calibration uses training images only."""
    ends = {"image": trained.image}, {"probabilities": trained.probabilities}
    extra = {"labels": dataset.LABELS, "preprocessing": {"scale": float(np.float32(1 / 255))}}
    in_float = export(trained.session, *ends, OUT / "fashion_float.rlt", **extra)
    calibration = scaled(images[:CALIBRATION_IMAGES])
    int8 = export(trained.session, *ends, OUT / "fashion_int8.rlt", quantize="int8", calibration=calibration, **extra)
    assert int8.quantization is not None
    for island in int8.quantization.islands:
        console.print(f"note: {island}", markup=False)
    return in_float, int8


def show(result: dict[str, float], unfolded_difference: float, int8_peak: int, float_peak: int) -> None:
    """The table that the README shows."""
    table = Table(title="Fashion-MNIST, 10,000 test images")
    for heading in ("", "trainer", "float file", "int8 file"):
        table.add_column(heading, justify="left" if not heading else "right")
    r = result
    accuracies = (r["trainer_accuracy"], r["float_accuracy"], r["int8_accuracy"])
    table.add_row("test accuracy", *(f"{a:.2%}" for a in accuracies))
    table.add_row("bytes", "", f"{r['float_bytes']:,}", f"{r['int8_bytes']:,}")
    table.add_row("ms an image (1 thread)", "", f"{r['float_ms']:.3f}", f"{r['int8_ms']:.3f}")
    table.add_row("peak memory of the process", "", f"{float_peak / 2**20:.1f} MB", f"{int8_peak / 2**20:.1f} MB")
    table.add_row("output bytes that differ", "", f"{r['float_differing_bytes']:,}", f"{r['int8_differing_bytes']:,}")
    table.add_row("compared with", "", "trainer's predict", "NumPy references")
    console.print(table)
    console.print(
        f"largest difference between the float file and the unfolded training graph: {unfolded_difference:.2e}\n"
        f"{r['seconds']:.0f} seconds in all",
        soft_wrap=True,
    )


def main() -> None:
    """Everything, timed from here."""
    folder = dataset.fetch(CACHE)
    start = time.perf_counter()
    OUT.mkdir(exist_ok=True)
    images, labels = dataset.load(folder, "train")
    test_images, test_labels = dataset.load(folder, "t10k")
    trained = train(scaled(images), labels, say=console.print)
    Saver().save(trained.session, OUT / "fashion_mnist")
    in_float, int8 = export_both(trained, images)

    by_trainer = in_batches(trained.predict, test_images, "trainer over the test images")
    by_graph = in_batches(unfolded(trained), test_images, "unfolded graph over the test images")
    float_run = run_on_device(in_float.path, test_images, "float")
    int8_run = run_on_device(int8.path, test_images, "int8")
    by_reference = reference_outputs(int8.program, test_images)

    result = {
        "trainer_accuracy": accuracy(by_trainer, test_labels),
        "float_accuracy": accuracy(float_run.outputs, test_labels),
        "int8_accuracy": accuracy(int8_run.outputs, test_labels),
        "float_bytes": in_float.bytes,
        "int8_bytes": int8.bytes,
        "float_ms": float_run.milliseconds,
        "int8_ms": int8_run.milliseconds,
        "float_differing_bytes": differing_bytes(by_trainer, float_run.outputs),
        "int8_differing_bytes": differing_bytes(by_reference, int8_run.outputs),
        "peak_mb": max(float_run.peak_bytes, int8_run.peak_bytes) / 2**20,
        "seconds": time.perf_counter() - start,
    }
    (OUT / "demo.json").write_text(json.dumps(result, indent=1) + "\n")
    report = page.Page(
        result, trained.curve, test_images, test_labels, int8_run.outputs, float_run.layers, int8_run.layers
    )
    (OUT / "report.html").write_text(report.html())
    show(result, float(np.abs(by_graph - float_run.outputs).max()), int8_run.peak_bytes, float_run.peak_bytes)
    console.print(f"table: {OUT / 'demo.json'}, pictures: {OUT / 'report.html'}", soft_wrap=True)


if __name__ == "__main__":
    main()
