"""What a device does, and all that it has: rillet.lite and NumPy. Runs a model file over images, one at a time.

python device.py MODEL.rlt IMAGES.npy OUT.npz

Prints the number of images done, line by line, and at the end a line of JSON. Any import of the trainer, the exporter
or their libraries fails.
"""

from __future__ import annotations

import importlib.abc
import json
import sys
import time
from pathlib import Path
from typing import Any

REFUSED = ("rillet.train", "rillet.export", "rillet.quant", "grpc", "onnx", "cupy", "google", "tqdm", "typer", "rich")


class Guard(importlib.abc.MetaPathFinder):
    """Refuses what a device does not have."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in REFUSED or name.startswith(tuple(f"{r}." for r in REFUSED)):
            raise ImportError(f"a device has no {name}")


sys.meta_path.insert(0, Guard())

import numpy as np  # noqa: E402

from rillet.lite import Interpreter  # noqa: E402


def peak_bytes() -> int:
    """The most memory that this process has held (not what its parent held before the start, as getrusage says)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def main(model: str, images_path: str, out: str) -> None:
    """Runs the model over the images and writes its outputs."""
    interpreter = Interpreter(model, threads=1)
    images = np.load(images_path, mmap_mode="r")
    outputs, nanoseconds = [], 0
    interpreter(interpreter.preprocess(images[0]))  # plans memory: not part of a run
    for i, image in enumerate(images):
        x = interpreter.preprocess(image)
        start = time.perf_counter_ns()
        y = interpreter(x)
        nanoseconds += time.perf_counter_ns() - start
        outputs.append(y[0])
        if (i + 1) % 500 == 0:
            print(i + 1, flush=True)
    np.savez(out, outputs=np.stack(outputs))
    peak = peak_bytes()
    profile = interpreter.profile({interpreter.inputs[0].name: interpreter.preprocess(images[0])}, runs=200)
    layers = [[t.op, t.name, t.nanoseconds / max(t.runs, 1) / 1e3] for t in profile if t.runs]
    loaded = sorted(name for name in sys.modules if name.startswith("rillet."))
    result = {"ms": nanoseconds / 1e6 / len(images), "peak": peak, "layers": layers, "modules": loaded}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
